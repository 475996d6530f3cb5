/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals by the names people know them by.
 * Threads: plain values.
 */
#pragma once

/* Of "INT" or "SIGINT"; 0: there is no such name. */
int signal_of_name(const char *name);
