/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room that is kept back on the disk of the data directory: a file, <data>/reserve, that gives way when there is nothing else left, so
 * that the database can record how things end. Knows whether the disk is full, for /health and the log.
 * Threads: any but loops; reserve_fault does not block: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

struct reserve;

/* Makes the file where there is room for it; a disk without is told by reserve_fault, and no error. */
int reserve_open(const char *data_dir, struct reserve **out, struct error *err);
void reserve_free(struct reserve *reserve); // the file stays
DEFINE_AUTOPTR(reserve)

/* Looks at the disk: gives the file up, or makes it again. What changes is logged. To be called every second or so. */
void reserve_check(struct reserve *reserve);

/* Why the server cannot keep all that it should, as a sentence; NULL: it can. A literal. */
const char *reserve_fault(struct reserve *reserve);
