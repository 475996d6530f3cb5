/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a list is wanted.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

/* Entries that compare equal come in order of their ids, so pages never overlap. */
struct page {
    int64_t limit; // clamped to the list's maximum; 0: none, for the total alone
    int64_t offset;
};
#define PAGE_MAX 100
