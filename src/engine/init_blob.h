/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-init as bytes inside this program.
 * Threads: plain values.
 */
#pragma once

extern const char init_blob_start[] __attribute__((visibility("hidden")));
extern const char init_blob_end[] __attribute__((visibility("hidden")));
