/* SPDX-License-Identifier: Apache-2.0 */
/* As much of a core as streams need: a real store, a hub and a spool in a directory of their own. */
#pragma once
#include "../../store/fixture.h"
#include "core/core.h"
#include "core/sandbox/sandboxes.h"
#include "engine/box.h"
#include "store/store.h"
#include "core/stream/stream.h"
#include "core/stream/streams.h"

#define STREAM_LIMIT (8 << 20)
#define KEEP_MS (60 * 60 * 1000)

/* In a fresh directory, with the sandbox "s" in its store. */
struct core *stream_core(void);
/* The same directory after a restart. */
struct core *stream_core_again(void);
/* Every stream must be given up. */
void stream_core_end(void);

/* Somebody of the organisation, and somebody of another. */
extern const struct actor one_of_us, stranger;

/* The id of a user's new stream, until the next call but seven. */
const char *new_stream(struct core *core);
void append(struct core *core, const char *id, const char *text);

/* Where a command of execution "e" in sandbox "s" has its stream. */
struct stream_place place_of(enum stream_kind kind);

/* The file in the spool. */
const char *stream_file(const char *id);

/* All that a reader of it gets now; in memory of the fixture's, until the next call. */
const char *content_of(struct stream *stream);
struct stream_progress progress_of(struct stream *stream);

/* The number that a statement about the row gives. */
int64_t row_number(struct core *core, const char *column, const char *id);
