/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the account room share.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/account.h"

struct key_checks; // key.c: answers kept in memory, and the thread that records when keys were used

struct accounts {
    struct store *store;
    char organisation[ID_TEXT];
    struct key_checks *checks;
};

int key_checks_new(struct store *store, struct key_checks **out, struct error *err);
/* Returns when the uses that wait are recorded. */
void key_checks_free(struct key_checks *checks);
