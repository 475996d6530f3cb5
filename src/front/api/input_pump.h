/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body into the input of an execution, as fast as that is read; no thread waits for either. Two that send to one execution
 * at once are mixed.
 * Threads: any.
 */
#pragma once
#include "web/answer_table.h"
#include "web/call.h"

extern const struct answer_field input_pump_fields[];

/*
 * Answers the call when all of its body has been taken; is_closing: and the input has ended behind it. Fails as
 * execution_write_input does, also when the execution ends in the middle.
 */
int input_pump_start(struct call *call, const char *id, bool is_closing, struct error *err);
