/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, and records to put into it. */
#pragma once
#include "store/accounts.h"
#include "store/events.h"
#include "store/executions.h"
#include "store/sandboxes.h"
#include "store/store.h"
#include "store/streams.h"

#define ORGANISATION "org1"
#define NOW 1767323045678 // 2026

/* A fresh directory; the one before, and what was opened in it, goes, also after a failed test and
 * at the end. */
const char *fixture_fresh(void);
const char *fixture_directory(void);
/* The database file in it. */
const char *fixture_path(void);
/* Opens (again) the store there; it is the fixture's. */
struct store *fixture_open(void);
void fixture_close(void);

/* A store in a fresh directory that has the organisation. */
struct store *fixture_store(void);

/* Filled in with the least there must be; ids are borrowed. */
struct sandbox_record fixture_sandbox(const char *id);
struct execution_record fixture_execution(const char *id, const char *sandbox_id);
struct stream_record fixture_stream(const char *id);
struct event_record fixture_event(const char *id, const char *sandbox_id);

/* The number that a statement without parameters gives. */
int64_t fixture_number(struct store *store, const char *text);
