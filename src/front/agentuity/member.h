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
