/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a command is recorded and not run, in the protocol's words.
 * Threads: plain values.
 */
#pragma once

#define REFUSED_COMMAND "sandbox_command_not_allowed"
#define REFUSED_NAME "invalid_command_name"
