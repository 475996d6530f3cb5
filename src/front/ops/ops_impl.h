/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of this front that have a file of their own.
 * Threads: any; handlers run in their lane.
 */
#pragma once
#include "web/route.h"

int ops_get_welcome(struct call *call, struct error *err); // GET /, in welcome_routes.c
extern const struct route_answer ops_welcome_answers[];
