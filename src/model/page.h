/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a list is wanted.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A place in a list that stays the same while entries come and go: the entry behind which the next page begins. */
#define PAGE_MARK_ID 136
struct page_mark {
    int64_t at;            // what the list is ordered by: a time in ms, or a number
    char id[PAGE_MARK_ID]; // of that entry; "": none, the beginning or the end of the list
};

/* Entries that compare equal come in order of their ids, so pages never overlap. */
struct page {
    int64_t limit; // clamped to the list's maximum; 0: none, for the total alone
    int64_t offset;
    /* Begins behind `after` instead of at an offset: nothing is counted (total is 0), and the list says where the next page begins.
     * For lists in order of a time or a number; else it is ignored. */
    bool is_marked;
    struct page_mark after;
};
#define PAGE_MAX 100
