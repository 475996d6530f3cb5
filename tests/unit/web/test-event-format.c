/* SPDX-License-Identifier: Apache-2.0 */
#include "web/event_format.h"

#include "test.h"

#include <string.h>

static enum event_format wanted(const char *accept)
{
    struct http_header header = {"Accept", accept};
    struct http_request request = {.headers = &header, .header_count = accept != NULL};
    struct call call = {.request = &request};

    return event_format_wanted(&call);
}

TEST(the_first_type_that_is_known_counts)
{
    CHECK_INT(wanted(NULL), EVENT_FORMAT_NONE);
    CHECK_INT(wanted(""), EVENT_FORMAT_NONE);
    CHECK_INT(wanted("*/*"), EVENT_FORMAT_NONE);
    CHECK_INT(wanted("application/json"), EVENT_FORMAT_NONE);
    CHECK_INT(wanted("text/event-stream"), EVENT_FORMAT_SSE);
    CHECK_INT(wanted("Text/Event-Stream; charset=utf-8"), EVENT_FORMAT_SSE);
    CHECK_INT(wanted("application/json, application/x-ndjson;q=0.5, text/event-stream"),
              EVENT_FORMAT_NDJSON);
    CHECK_INT(wanted(",, ,text/event-streams , application/x-ndjson"), EVENT_FORMAT_NDJSON);
}

static void check_record(enum event_format format, const struct event_record *record,
                         const char *want)
{
    autobuffer out = {0};
    struct error err = {0};

    CHECK_OK(event_format_add(format, record, &out, &err), err);
    CHECK_OK(buffer_add(&out, "", 1, &err), err);
    CHECK_STR(out.data, want);
}

TEST(records_are_written_in_either_format)
{
    const struct event_record whole = {"17", "exit", "{\"code\":0}", 10},
                              bare = {.data = "[]", .length = 2};

    check_record(EVENT_FORMAT_SSE, &whole, "id: 17\nevent: exit\ndata: {\"code\":0}\n\n");
    check_record(EVENT_FORMAT_NDJSON, &whole,
                 "{\"id\":\"17\",\"event\":\"exit\",\"data\":{\"code\":0}}\n");
    check_record(EVENT_FORMAT_SSE, &bare, "data: []\n\n");
    check_record(EVENT_FORMAT_NDJSON, &bare, "{\"data\":[]}\n");
}

TEST(a_quiet_connection_is_kept_open)
{
    autobuffer out = {0};
    struct error err = {0};

    CHECK_OK(event_format_add_keep_alive(EVENT_FORMAT_SSE, &out, &err), err);
    CHECK_OK(event_format_add_keep_alive(EVENT_FORMAT_NDJSON, &out, &err), err);
    CHECK_OK(buffer_add(&out, "", 1, &err), err);
    CHECK_STR(out.data, ": keep-alive\n\n{\"event\":\"keepAlive\"}\n");
    for (int format = EVENT_FORMAT_SSE; format <= EVENT_FORMAT_NDJSON; format++) {
        const struct http_header *headers = event_format_headers((enum event_format)format);
        CHECK_STR(headers[1].value, "no-cache");
        CHECK_STR(headers[2].name, "X-Accel-Buffering");
    }
}

TEST(a_full_buffer_is_told)
{
    autobuffer out = {0};
    struct error err = {0};
    const struct event_record record = {"17", "exit", "{\"code\":0}", 10};

    buffer_init(&out, 20);
    CHECK(event_format_add(EVENT_FORMAT_SSE, &record, &out, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}
