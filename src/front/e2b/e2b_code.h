/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of code in the words of E2B's code interpreter: a line of JSON for each thing that happens.
 * Threads: any; a format has no state.
 */
#pragma once
#include "web/code_follow.h"

extern const struct code_format e2b_code_format;
