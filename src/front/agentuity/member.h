/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of an answer's objects. The clients take no null where they want a text or a number, so what is not known is left out:
 * every call here writes name and value, or nothing at all.
 * Threads: one per object.
 */
#pragma once
#include "data/json_writer.h"

#include <stdint.h>

void member_text(struct json_writer *json, const char *name, const char *text); // NULL: left out
void member_id(struct json_writer *json, const char *name, const char *prefix,
               const char *id); // NULL or "": left out
void member_time(struct json_writer *json, const char *name, int64_t wall_ms); // 0: left out
void member_integer(struct json_writer *json, const char *name, int64_t number);
void member_bool(struct json_writer *json, const char *name, bool truth);
/* JSON of ours that was stored as text. NULL, or not JSON after all: left out. */
void member_json(struct json_writer *json, const char *name, const char *text);
/* The same of a map of strings; what else is in it is left out, since it may be a stranger's and clients take a list no more for one odd
 * entry. */
void member_text_map(struct json_writer *json, const char *name, const char *text);
/* "http://host:port/stream/stream_<id>". NULL: left out. */
void member_stream_url(struct json_writer *json, const char *name, const char *base_url,
                       const char *stream_id);

/* For members that are null when not known. */
void member_text_or_null(struct json_writer *json, const char *name, const char *text);
