/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what happens on the server, as a list or as it happens. */
#include "core/event/channel.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_event.h"
#include "front/api/api_page.h"
#include "front/api/event_stream.h"
#include "front/api/event_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCANNED 500 // events that are looked at, at once
#define TURNS 20    // so often for one page
#define KINDS 32    // patterns in a query

#define EVENT_PARAMETERS                                                                           \
    API_PAGE_PARAMETERS,                                                                           \
        {"after", PARAMETER_INTEGER,                                                               \
         .help = "only events with higher numbers; the header Last-Event-ID says the same",        \
         .minimum = 0, .maximum = INT64_MAX},                                                      \
    {                                                                                              \
        "kind", PARAMETER_TEXT,                                                                    \
            .help = "only these, several with commas between: execution.ended, or sandbox.* for "  \
                    "all of a thing"                                                               \
    }

static const struct parameter all_parameters[] = {
    EVENT_PARAMETERS,
    {"sandboxId", PARAMETER_TEXT, .help = "only what happens to this sandbox, also after its end"},
    {0}};
static const struct parameter sandbox_parameters[] = {EVENT_PARAMETERS, {0}};

static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(event_answer_fields, struct event_answer), {0}};
static const struct route_answer list_answers[] = {
    {200, list_fields},
    {200, .content = "text/event-stream"},
    {200, .content = "application/x-ndjson"},
    {0},
};

// ---- what is wanted ----

static int check_kind(const char *kind, struct error *err)
{
    if (event_pattern_is_known(kind))
        return 0;
    (void)error_set(err, ERROR_INVALID,
                    "kind: no event is called '%.60s': sandbox.created, execution.ended, "
                    "snapshot.* …",
                    kind);
    return error_field(err, "kind");
}

/* "a,b" → {"a", "b", NULL} */
static int read_kinds(struct call *call, const char *const **out, struct error *err)
{
    const char *given = query_text(call->query, "kind");
    size_t count = 0;

    if (!given)
        return 0;
    const char **kinds = call_alloc(call, (KINDS + 1) * sizeof *kinds);
    char *rest = call_print(call, "%s", given);
    for (char *kind; (kind = strsep(&rest, ","));) {
        if (count == KINDS) {
            (void)error_set(err, ERROR_INVALID, "kind: at most %d kinds in one request", KINDS);
            return error_field(err, "kind");
        }
        if (check_kind(kind, err) < 0)
            return -1;
        kinds[count++] = kind;
    }
    *out = kinds;
    return 0;
}

/* A client that connects again says where it was; that is newer than what its URL says. */
static int read_last_id(const char *text, int64_t *out, struct error *err)
{
    char *end;

    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < 0 || strchr("+- ", *text))
        return error_set(err, ERROR_INVALID,
                         "Last-Event-ID: '%.40s' is no number of an event: send the id of the last "
                         "one that came",
                         text);
    *out = number;
    return 0;
}

/* *is_given: a place was named at all. */
static int read_after(struct call *call, const struct page *page, int64_t *out, bool *is_given,
                      struct error *err)
{
    const char *last = call_header(call, "Last-Event-ID");

    *out = query_integer(call->query, "after", -1);
    if (*out < 0 && *page->after.id)
        *out = page->after.at;
    if (last && *last && read_last_id(last, out, err) < 0)
        return -1;
    *is_given = *out >= 0;
    return 0;
}

/* Where to begin: a place that all later events can be told from. */
static int check_place(struct call *call, struct event_wish *wish, bool is_given, bool is_stream,
                       struct error *err)
{
    struct event_range range;

    if (event_range(call->core->events, &range, err) < 0)
        return -1;
    if (!is_given) {
        wish->after = is_stream ? range.last : wish->sandbox_id ? 0 : range.forgotten;
        return 0;
    }
    if (wish->after > range.last) {
        (void)error_set(err, ERROR_INVALID,
                        "after: %lld is higher than any number so far, which is %lld",
                        (long long)wish->after, (long long)range.last);
        return error_field(err, "after");
    }
    if (wish->after < range.forgotten && !wish->sandbox_id)
        return api_refuse_cursor(call, wish->after, range.forgotten + 1, err);
    return 0;
}

// ---- the answer ----

static void add_found(const struct event_wish *wish, const struct event_infos *from,
                      struct event_answer *items, size_t *count, int64_t limit, int64_t *place)
{
    for (size_t i = 0; i < from->count && (int64_t)*count < limit; i++) {
        struct event_answer *item = &items[*count];
        event_answer_fill(item, &from->items[i]);
        *place = item->number;
        if (event_patterns_match(wish->kinds, item->kind))
            ++*count;
    }
}

#define autoinfos __attribute__((cleanup(clear_turns))) struct turns
struct turns {
    struct event_infos of[TURNS];
};
static void clear_turns(struct turns *turns)
{
    for (unsigned i = 0; i < TURNS; i++)
        event_infos_clear(&turns->of[i]);
}

/* A page may be short, or even empty, with more behind it: looking for rare kinds has an end too. */
static int answer_list(struct call *call, const struct event_wish *wish, int64_t limit,
                       struct error *err)
{
    struct event_answer *items = call_alloc(call, (size_t)limit * sizeof *items);
    struct event_scan scan = {.owner = actor_filter(&call->actor),
                              .sandbox_id = wish->sandbox_id,
                              .after = wish->after,
                              .scanned = SCANNED};
    autoinfos turns = {0};
    size_t count = 0;
    bool is_end = false;

    for (unsigned i = 0; i < TURNS && !is_end && (int64_t)count < limit; i++) {
        int64_t reached = scan.after, place = scan.after;
        if (event_scan(call->core->events, &scan, &turns.of[i], &reached, err) < 0)
            return -1;
        add_found(wish, &turns.of[i], items, &count, limit, &place);
        is_end = reached == scan.after;
        scan.after = (int64_t)count < limit ? reached : place;
    }
    struct page_mark next = {.at = scan.after};
    if (!is_end)
        memcpy(next.id, "event", sizeof "event");
    return api_answer_page(call, list_fields, items, count, &next);
}

static int answer_events(struct call *call, struct event_wish *wish, struct error *err)
{
    enum event_format format = event_format_wanted(call);
    struct page page;
    bool is_given = false;

    if (api_page_read(call, &page, err) < 0 ||
        read_after(call, &page, &wish->after, &is_given, err) < 0 ||
        read_kinds(call, &wish->kinds, err) < 0)
        return -1;
    if (wish->sandbox_id)
        event_settle(call->core->sandboxes, wish->sandbox_id);
    int result = check_place(call, wish, is_given, format != EVENT_FORMAT_NONE, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    if (format == EVENT_FORMAT_NONE)
        return answer_list(call, wish, page.limit, err);
    if (call->request->is_head) {
        (void)response_send(call->response, 200, event_format_headers(format), NULL, 0);
        return 0;
    }
    event_stream_start(call, format, wish);
    return 0;
}

/* GET /api/v1/events. The sandbox may be forgotten by now: what its events say of their owner counts. */
static int get_events(struct call *call, struct error *err)
{
    const char *sandbox = query_text(call->query, "sandboxId");
    struct event_wish wish = {0};

    if (sandbox && strncmp(sandbox, SANDBOX_PREFIX, sizeof SANDBOX_PREFIX - 1) != 0) {
        (void)error_set(err, ERROR_INVALID, "sandboxId: '%.60s' is no id of a sandbox", sandbox);
        return error_field(err, "sandboxId");
    }
    if (sandbox)
        wish.sandbox_id = sandbox + sizeof SANDBOX_PREFIX - 1;
    return answer_events(call, &wish, err);
}

/* GET /api/v1/sandboxes/{sandbox}/events */
static int get_sandbox_events(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    struct event_wish wish = {0};

    if (api_sandbox(call, 0, &wish.sandbox_id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, wish.sandbox_id, true, &info, err) < 0)
        return -1;
    return answer_events(call, &wish, err);
}

const struct route api_event_routes[] = {
    {"GET", API_TOP "/events", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_events,
     .summary = "what happens on the server: a list, the oldest first; with Accept: "
                "text/event-stream or application/x-ndjson as it happens, from now or after the "
                "number that after or Last-Event-ID says",
     .query = all_parameters, .answers = list_answers, .needs = SCOPE_READ},
    {"GET", API_TOP "/sandboxes/{sandbox}/events", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     get_sandbox_events, .summary = "the same of one sandbox", .query = sandbox_parameters,
     .answers = list_answers, .needs = SCOPE_READ},
    {0},
};
