/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server about itself, for whoever runs it: is it well, which version, what can it do.
 * Threads: plain values.
 */
#pragma once
#include "web/front.h"

extern const struct front ops_front;
