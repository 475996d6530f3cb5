/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-attacker as bytes inside this program.
 * Threads: plain values.
 */
#pragma once

extern const char burrow_attacker_start[] __attribute__((visibility("hidden")));
extern const char burrow_attacker_end[] __attribute__((visibility("hidden")));
