/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a real database say that somebody is in the way: a trigger on a table asks whether to fail with SQLITE_BUSY. */
#pragma once

/* From here on, inserts into `table` of this database ask; none fails yet. Another connection is used and closed again. */
void busy_watch(const char *database, const char *table);

/* The next `times` inserts fail. */
void busy_next(int times);
/* Every so many-th insert fails; 0: none. */
void busy_every(int turn);
/* How many were asked for, and how many failed, since either was called. */
int busy_asked(void);
int busy_failed(void);
