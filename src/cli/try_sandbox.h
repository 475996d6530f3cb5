/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow try in a fork of a sandbox: the server says what differs; files go from the fork to the sandbox one by one.
 * Threads: one thread.
 */
#pragma once
#include "cli/try_run.h"

extern const struct trial_kind trial_of_sandbox;
