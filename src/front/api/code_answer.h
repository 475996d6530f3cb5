/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a run of code: records as they come, or one answer.
 * Threads: one per object.
 */
#pragma once
#include "web/answer_table.h"
#include "web/code_follow.h"
#include "web/event_format.h"

extern const struct answer_field code_answer_fields[]; // of the one answer

/* How a run is told; *state is the run's then. */
const struct code_format *code_answer_format(enum event_format format, void **state);
