/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a launch step that fails although nothing is wrong.
 * Threads: plain values.
 */
#pragma once

struct fault {
    char step[32]; // "": none
    int code;      // the errno it fails with
};

/* Reads "STEP ERRNO" (as a number) from a file of a test's. None when there is no such file. */
void fault_read(const char *path, struct fault *out);
/* The one that options name. */
void fault_set(const char *step, int code, struct fault *out);
