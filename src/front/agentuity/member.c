/* SPDX-License-Identifier: Apache-2.0 */
/* Members of objects; see member.h. */
#include "front/agentuity/member.h"
#include "base/clock.h"
#include "front/agentuity/agentuity_impl.h"

#include <string.h>

void member_text(struct json_writer *json, const char *name, const char *text)
{
    if (!text)
        return;
    json_key(json, name);
    json_string(json, text);
}

void member_id(struct json_writer *json, const char *name, const char *prefix, const char *id)
{
    if (!id || !*id)
        return;
    json_key(json, name);
    json_string_begin(json);
    json_string_piece(json, prefix, strlen(prefix));
    json_string_piece(json, id, strlen(id));
    json_string_end(json);
}

void member_time(struct json_writer *json, const char *name, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    if (wall_ms > 0)
        member_text(json, name, clock_format((uint64_t)wall_ms, text));
}

void member_integer(struct json_writer *json, const char *name, int64_t number)
{
    json_key(json, name);
    json_integer(json, number);
}

void member_bool(struct json_writer *json, const char *name, bool truth)
{
    json_key(json, name);
    json_bool(json, truth);
}
