/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are sent as they come; see event_format.h. */
#include "web/event_format.h"

#include "base/auto.h"
#include "data/json_writer.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *type;
    struct http_header headers[4];
} formats[] = {
    [EVENT_FORMAT_SSE] = {"text/event-stream",
                          {{"Content-Type", "text/event-stream"},
                           {"Cache-Control", "no-cache"},
                           {"X-Accel-Buffering", "no"},
                           {0}}},
    [EVENT_FORMAT_NDJSON] = {"application/x-ndjson",
                             {{"Content-Type", "application/x-ndjson"},
                              {"Cache-Control", "no-cache"},
                              {"X-Accel-Buffering", "no"},
                              {0}}},
};

static enum event_format format_of(const char *text, size_t length)
{
    for (unsigned i = EVENT_FORMAT_SSE; i < ARRAY_SIZE(formats); i++) {
        if (strlen(formats[i].type) == length && strncasecmp(text, formats[i].type, length) == 0)
            return (enum event_format)i;
    }
    return EVENT_FORMAT_NONE;
}

enum event_format event_format_wanted(const struct call *call)
{
    const char *accept = call_header(call, "Accept");
    enum event_format format = EVENT_FORMAT_NONE;

    while (accept && *accept && format == EVENT_FORMAT_NONE) {
        accept += strspn(accept, " \t,");
        format = format_of(accept, strcspn(accept, " \t,;"));
        accept += strcspn(accept, ",");
    }
    return format;
}

const struct http_header *event_format_headers(enum event_format format)
{
    return formats[format].headers;
}

static int add_line(struct buffer *out, const char *name, const char *text, size_t length,
                    struct error *err)
{
    if (buffer_add_text(out, name, err) < 0 || buffer_add(out, text, length, err) < 0)
        return -1;
    return buffer_add_text(out, "\n", err);
}

static int add_sse(const struct event_record *record, struct buffer *out, struct error *err)
{
    if (record->id && add_line(out, "id: ", record->id, strlen(record->id), err) < 0)
        return -1;
    if (record->event && add_line(out, "event: ", record->event, strlen(record->event), err) < 0)
        return -1;
    if (add_line(out, "data: ", record->data, record->length, err) < 0)
        return -1;
    return buffer_add_text(out, "\n", err);
}

static int add_ndjson(const struct event_record *record, struct buffer *out, struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    if (record->id) {
        json_key(&json, "id");
        json_string(&json, record->id);
    }
    if (record->event) {
        json_key(&json, "event");
        json_string(&json, record->event);
    }
    json_key(&json, "data");
    json_raw(&json, record->data, record->length);
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    return buffer_add_text(out, "\n", err);
}

int event_format_add(enum event_format format, const struct event_record *record,
                     struct buffer *out, struct error *err)
{
    return (format == EVENT_FORMAT_SSE ? add_sse : add_ndjson)(record, out, err);
}

int event_format_add_keep_alive(enum event_format format, struct buffer *out, struct error *err)
{
    return buffer_add_text(
        out, format == EVENT_FORMAT_SSE ? ": keep-alive\n\n" : "{\"event\":\"keepAlive\"}\n", err);
}
