/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS that is opened here, for hosts that a secret is for and for no others: towards the box with a certificate of this installation, towards the host as any client.
 * Threads: one thread.
 */
#pragma once
#include "egress/flow.h"

/* Answers the ClientHello that was read; requests are relayed then. */
void flow_open_tls(struct worker *worker, struct flow *flow);
/* TLS towards the host; false: no memory. */
bool flow_begin_tls(struct worker *worker, struct flow *flow);
