/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: which sandboxes there are, and what one is. */
#include "base/clock.h"
#include "core/core.h"
#include "core/sandbox/sandbox.h"
#include "data/json.h"
#include "front/e2b/e2b_impl.h"
#include "front/e2b/e2b_network.h"
#include "front/e2b/e2b_template.h"
#include "web/instant.h"
#include "web/percent.h"

#include <inttypes.h>
#include <string.h>

#define LIST_MOST 100
#define PAGES_MOST 1000 // that are looked through for one answer

// ---- one ----

static void write_json(struct json_writer *json, const char *name, const char *text,
                       const char *absent)
{
    json_key(json, name);
    json_raw(json, text ? text : absent, strlen(text ? text : absent));
}

static int64_t end_of(const struct sandbox_info *info)
{
    return info->expires_at      ? info->expires_at
           : e2b_is_paused(info) ? info->paused_at
                                 : info->created_at + (int64_t)365 * 24 * 3600 * 1000;
}

static void write_members(struct call *call, struct json_writer *json,
                          const struct sandbox_info *info, const struct e2b_kept *kept)
{
    const int64_t cpu = info->limits.cpu_millicores;

    (void)call;
    e2b_member_text(json, "sandboxID", info->id);
    e2b_member_text(json, "templateID", kept->template ? kept->template : info->runtime);
    if (kept->template && kept->is_template_alias)
        e2b_member_text(json, "alias", kept->template);
    e2b_member_text(json, "clientID", "burrow");
    e2b_member_time(json, "startedAt", info->created_at);
    e2b_member_time(json, "endAt", end_of(info));
    e2b_member_text(json, "state", e2b_is_paused(info) ? "paused" : "running");
    e2b_member_number(json, "cpuCount", cpu > 1000 ? (cpu + 999) / 1000 : 1);
    e2b_member_number(json, "memoryMB", info->limits.memory_bytes >> 20);
    e2b_member_number(json, "diskSizeMB", info->limits.disk_bytes >> 20);
    write_json(json, "metadata", info->metadata, "{}");
    e2b_member_text(json, "envdVersion", E2B_ENVD_VERSION);
    json_key(json, "volumeMounts");
    json_list_begin(json);
    json_list_end(json);
}

/* GET /sandboxes/{id} */
static int get(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};
    struct json_writer *json = &reply.json;
    char token[E2B_TOKEN_TEXT];
    struct e2b_kept kept;

    if (e2b_get(call, &info, err) < 0)
        return -1;
    e2b_kept_read(call, &info, &kept);
    reply_init(&reply);
    json_map_begin(json);
    write_members(call, json, &info, &kept);
    json_key(json, "allowInternetAccess");
    if (kept.has_internet)
        json_bool(json, kept.internet);
    else
        json_null(json);
    e2b_member_text(json, "domain", e2b_domain(call));
    if (kept.network)
        write_json(json, "network", kept.network, "{}");
    json_key(json, "lifecycle");
    json_map_begin(json);
    e2b_member_text(json, "onTimeout", info.on_expiry > SANDBOX_EXPIRY_ENDS ? "pause" : "kill");
    e2b_member_bool(json, "autoResume", kept.resumes);
    json_map_end(json);
    if (call->actor.scopes & SCOPE_RUN) { // it opens commands too
        e2b_token_make(call->core, &call->actor, info.id, token);
        e2b_member_text(json, "envdAccessToken", token);
    }
    json_map_end(json);
    return e2b_answer(call, &reply, 200);
}

// ---- which ----

struct pair {
    char *name, *value;
};
struct listing {
    struct pair *pairs; // all must be in the metadata
    size_t n_pairs;
    bool with_running, with_paused;
    const char *template;
    int64_t limit, told;
};

static int decode(struct call *call, const char *text, size_t length, bool is_form, char **out,
                  struct error *err)
{
    size_t used;

    *out = call_alloc(call, length + 1);
    return percent_decode(text, length, is_form, "metadata", *out, &used, err);
}

/* The query's value is decoded once already: it is a form whose names and values are encoded once more. */
static int read_metadata(struct call *call, const char *text, struct listing *listing,
                         struct error *err)
{
    char *form;

    if (!text)
        return 0;
    // Decoded twice or three times, by whoever has sent it: a form without '=' is encoded still.
    form = call_print(call, "%s", text);
    if (!strchr(form, '=') && decode(call, form, strlen(form), true, &form, err) < 0)
        return -1;
    listing->pairs = call_alloc(call, (strlen(form) / 2 + 2) * sizeof *listing->pairs);
    for (char *at = form; *at;) {
        size_t length = strcspn(at, "&");
        char *equals = memchr(at, '=', length);
        if (equals) {
            struct pair *pair = &listing->pairs[listing->n_pairs++];
            char *name, *value;
            if (decode(call, at, (size_t)(equals - at), true, &name, err) < 0 ||
                decode(call, equals + 1, (size_t)(at + length - equals - 1), true, &value, err) <
                    0 ||
                decode(call, name, strlen(name), false, &pair->name, err) < 0 ||
                decode(call, value, strlen(value), false, &pair->value, err) < 0)
                return -1;
        }
        at += length + (at[length] == '&');
    }
    return 0;
}

static int read_states(const char *text, struct listing *out, struct error *err)
{
    if (!text) {
        out->with_running = out->with_paused = true;
        return 0;
    }
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        if (length == 7 && strncmp(at, "running", 7) == 0)
            out->with_running = true;
        else if (length == 6 && strncmp(at, "paused", 6) == 0)
            out->with_paused = true;
        else
            return error_set(err, ERROR_INVALID, "state: '%.40s' is neither running nor paused",
                             at);
        at += length + (at[length] == ',');
    }
    return 0;
}

static bool has_metadata(const struct listing *listing, const struct sandbox_info *info)
{
    autoptr(data_document) document = NULL;
    struct error ignored = {0};

    if (listing->n_pairs == 0)
        return true;
    if (!info->metadata ||
        json_read("", info->metadata, strlen(info->metadata), NULL, &document, &ignored) < 0)
        return false;
    for (size_t i = 0; i < listing->n_pairs; i++) {
        const struct data_value *value = value_get(document->root, listing->pairs[i].name);
        if (!value || value->kind != VALUE_STRING ||
            strcmp(value->text, listing->pairs[i].value) != 0)
            return false;
    }
    return true;
}

static bool is_listed(const struct listing *listing, const struct sandbox_info *info,
                      const struct e2b_kept *kept)
{
    const char *template = kept->template ? kept->template : info->runtime;

    return e2b_is_there(info) && !kept->is_builder &&
           (e2b_is_paused(info) ? listing->with_paused : listing->with_running) &&
           (!listing->template || strcmp(listing->template, template) == 0) &&
           has_metadata(listing, info);
}

/* "TIME.ID" */
static int read_mark(const char *text, struct page_mark *out, struct error *err)
{
    int used = 0;

    if (!text)
        return 0;
    if (sscanf(text, "%" SCNd64 ".%n", &out->at, &used) != 1 || !used || !id_is_valid(text + used))
        return error_set(err, ERROR_INVALID, "nextToken: is not one that this server gave");
    (void)snprintf(out->id, sizeof out->id, "%s", text + used);
    return 0;
}

/* *last is where the next page begins, id "" behind the last. */
static int write_page(struct call *call, struct listing *listing, struct sandbox_filter *filter,
                      struct json_writer *json, struct page_mark *last, struct error *err)
{
    for (unsigned page = 0; page < PAGES_MOST; page++) {
        autoclear(sandbox_infos) found = {0};
        if (sandbox_list(call->core->sandboxes, &call->actor, filter, &found, err) < 0)
            return -1;
        for (size_t i = 0; i < found.count; i++) {
            const struct sandbox_info *info = &found.items[i];
            struct e2b_kept kept;
            e2b_kept_read(call, info, &kept);
            if (!is_listed(listing, info, &kept))
                continue;
            if (listing->told == listing->limit)
                return 0; // *last stands before this one
            json_map_begin(json);
            write_members(call, json, info, &kept);
            json_map_end(json);
            listing->told++;
            last->at = info->created_at;
            (void)snprintf(last->id, sizeof last->id, "%s", info->id);
        }
        if (!found.next.id[0])
            break;
        filter->page.after = found.next;
    }
    last->id[0] = '\0';
    return 0;
}

static int answer_list(struct call *call, struct listing *listing, struct sandbox_filter *filter,
                       struct error *err)
{
    struct page_mark last = {0};
    autoreply reply = {0};
    char token[PAGE_MARK_ID + 24];
    struct http_header headers[3] = {{"Content-Type", "application/json"}};

    reply_init(&reply);
    json_list_begin(&reply.json);
    if (write_page(call, listing, filter, &reply.json, &last, err) < 0)
        return -1;
    json_list_end(&reply.json);
    if (json_writer_finish(&reply.json, err) < 0)
        return -1;
    if (last.id[0]) {
        (void)snprintf(token, sizeof token, "%" PRId64 ".%s", last.at, last.id);
        headers[1] = (struct http_header){"X-Next-Token", token};
    }
    (void)response_send(call->response, 200, headers, reply.text.data, reply.text.length);
    return 0;
}

static int read_time(const char *name, const char *text, int64_t *out, struct error *err)
{
    return text ? instant_parse(text, name, out, err) : 0;
}

/* GET /v2/sandboxes */
static int list(struct call *call, struct error *err)
{
    struct listing listing = {.limit = query_integer(call->query, "limit", LIST_MOST),
                              .template = query_text(call->query, "template")};
    const char *order = query_text(call->query, "order");
    struct sandbox_filter filter = {.states = SANDBOX_ALIVE,
                                    .is_descending = !order || strcmp(order, "asc") != 0,
                                    .page = {.limit = PAGE_MAX, .is_marked = true}};

    if (read_metadata(call, query_text(call->query, "metadata"), &listing, err) < 0 ||
        read_states(query_text(call->query, "state"), &listing, err) < 0 ||
        read_time("startedAfter", query_text(call->query, "startedAfter"), &filter.created_from,
                  err) < 0 ||
        read_mark(query_text(call->query, "nextToken"), &filter.page.after, err) < 0)
        return -1;
    return answer_list(call, &listing, &filter, err);
}

/* GET /sandboxes: those that run, all of them. */
static int list_v1(struct call *call, struct error *err)
{
    struct listing listing = {.limit = INT64_MAX, .with_running = true};
    struct sandbox_filter filter = {.states = SANDBOX_ALIVE,
                                    .is_descending = true,
                                    .page = {.limit = PAGE_MAX, .is_marked = true}};

    if (read_metadata(call, query_text(call->query, "metadata"), &listing, err) < 0)
        return -1;
    return answer_list(call, &listing, &filter, err);
}

static const char *const orders[] = {"asc", "desc", NULL};
static const struct parameter list_query[] = {
    {"limit", PARAMETER_INTEGER, .minimum = 1, .maximum = LIST_MOST},
    {"order", PARAMETER_WORD, orders},
    {0},
};

/* GET /sandboxes/{id}/logs */
static int get_logs(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};

    if (e2b_get(call, &info, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    write_json(&reply.json, "logs", NULL, "[]");
    write_json(&reply.json, "logEntries", NULL, "[]");
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

#define ROW(path, handler, summary, parameters)                                                    \
    {                                                                                              \
        "GET", path, ROUTE_QUICK, ACCESS_KEY, BODY_NONE, handler, summary,                         \
            .query = parameters, .needs = SCOPE_READ, .is_undescribed = true,                      \
            .reach = REACH_COMMON                                                                  \
    }
const struct route e2b_list_routes[] = {
    ROW("/v2/sandboxes", list, "sandboxes", list_query),
    ROW("/sandboxes", list_v1, "sandboxes that run", NULL),
    ROW("/sandboxes/{id}", get, "one of them", NULL),
    ROW("/sandboxes/{id}/logs", get_logs, "its log, which is empty", NULL),
    ROW("/v2/sandboxes/{id}/logs", get_logs, "its log, which is empty", NULL),
    {0},
};
