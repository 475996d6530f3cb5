/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces for boxes: loopback up, nothing else. Owned by the host, so root in a box rules nothing in them. */
#pragma once
#include "base/error.h"

/* Makes one and gives its fd. The calling thread is in it for a moment and back when this returns. */
int network_create(int *out, struct error *err);
