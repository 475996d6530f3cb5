/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks: who is told of events over HTTP, and what became of it. */
#include "core/event/event_kind.h"
#include "core/webhook/webhook.h"
#include "front/api/api_page.h"

#include <string.h>

// ---- what is told ----

struct webhook_answer {
    const struct webhook_info *info;
    const char *id, *name, *url, *secret, *sandbox_id, *disabled_reason, *made_by;
    const char *const *kinds;
    int64_t last_event, attempts, failing_since, next_at, created_at, updated_at;
    bool is_enabled;
};
#define AT(member) offsetof(struct webhook_answer, member)
static const struct answer_field webhook_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = WEBHOOK_PREFIX},
    {"name", ANSWER_TEXT, AT(name)},
    {"url", ANSWER_TEXT, AT(url), .is_needed = true},
    {"kinds", ANSWER_TEXTS, AT(kinds), .is_needed = true,
     .help =
         "of events it is told of: execution.ended, or sandbox.* for all of a thing; none: all"},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .prefix = SANDBOX_PREFIX,
     .help = "the one sandbox that it is told of"},
    {"enabled", ANSWER_BOOL, AT(is_enabled), .is_needed = true},
    {"disabledReason", ANSWER_TEXT, AT(disabled_reason), .help = "why the server turned it off"},
    {"secret", ANSWER_TEXT, AT(secret),
     .help = "what deliveries are signed with: told once, when it is made"},
    {"lastEvent", ANSWER_INTEGER, AT(last_event), .is_needed = true,
     .help = "the number of the last event that it was told of, or did not have to be"},
    {"failures", ANSWER_INTEGER, AT(attempts), .is_needed = true,
     .help = "attempts that failed since the last delivery"},
    {"failingSince", ANSWER_TIME, AT(failing_since)},
    {"nextAttemptAt", ANSWER_TIME, AT(next_at)},
    {"createdBy", ANSWER_ID, AT(made_by), .prefix = KEY_PREFIX,
     .help = "the key that made it; it goes on when that key has ended"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"updatedAt", ANSWER_TIME, AT(updated_at), .is_needed = true},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(webhook_fields, struct webhook_answer), {0}};

static struct webhook_answer tell(const struct webhook_info *info, bool with_secret)
{
    static const char *const none[] = {NULL};

    return (struct webhook_answer){
        .info = info,
        .id = info->id,
        .name = info->name,
        .url = info->url,
        .secret = with_secret ? info->secret : NULL,
        .sandbox_id = info->sandbox_id,
        .disabled_reason = info->disabled_reason,
        .made_by = info->key_id,
        .kinds = info->kinds ? info->kinds : none,
        .last_event = info->event_cursor,
        .attempts = info->attempts,
        .failing_since = info->failing_since,
        .next_at = info->next_at,
        .created_at = info->created_at,
        .updated_at = info->updated_at,
        .is_enabled = info->is_enabled,
    };
}

static int answer_webhook(struct call *call, int status, const struct webhook_info *info,
                          bool with_secret)
{
    const struct webhook_answer answer = tell(info, with_secret);

    return api_answer(call, status, webhook_fields, &answer);
}

// ---- what is asked for ----

struct webhook_body {
    const char *name, *url, *sandbox;
    const char **kinds;
    bool is_enabled, has_enabled, is_secret_new;
};
#define AT(member) offsetof(struct webhook_body, member)
#define SHARED_FIELDS                                                                              \
    {"name", FIELD_TEXT, AT(name), .maximum = WEBHOOK_NAME, .help = "for people"},                 \
        {"kinds", FIELD_TEXTS, AT(kinds), .maximum = WEBHOOK_KINDS,                                \
         .help = "of events: execution.ended, or sandbox.* for all of a thing; none: all"},        \
        {"sandboxId", FIELD_TEXT, AT(sandbox), .help = "only what happens to this sandbox"},       \
    {                                                                                              \
        "enabled", FIELD_BOOL, AT(is_enabled), .has_offset = AT(has_enabled)                       \
    }
static const struct field create_fields[] = {
    {"url", FIELD_TEXT, AT(url), .is_needed = true, .maximum = WEBHOOK_URL,
     .help = "https://…, at a public address unless the operator allows others"},
    SHARED_FIELDS,
    {0},
};
static const struct field change_fields[] = {
    {"url", FIELD_TEXT, AT(url), .maximum = WEBHOOK_URL},
    SHARED_FIELDS,
    {"newSecret", FIELD_BOOL, AT(is_secret_new), .help = "true: make another secret, and tell it"},
    {0},
};
#undef AT

static int read_sandbox(const char *text, const char **out, struct error *err)
{
    if (!text || !*text) {
        *out = text;
        return 0;
    }
    if (strncmp(text, SANDBOX_PREFIX, sizeof SANDBOX_PREFIX - 1) != 0) {
        (void)error_set(err, ERROR_INVALID, "sandboxId: '%.60s' is no id of a sandbox", text);
        return error_field(err, "sandboxId");
    }
    *out = text + sizeof SANDBOX_PREFIX - 1;
    return 0;
}

static int read_request(struct call *call, struct webhook_body *body,
                        struct webhook_request *request, struct error *err)
{
    if (fields_read(call->body, call->route->fields, body, err) < 0 ||
        read_sandbox(body->sandbox, &request->sandbox_id, err) < 0)
        return -1;
    request->name = body->name;
    request->url = body->url;
    request->kinds = (const char *const *)body->kinds;
    request->is_enabled = body->has_enabled ? &body->is_enabled : NULL;
    request->is_secret_new = body->is_secret_new;
    return 0;
}

static int webhook_id(const struct call *call, const char **id, struct error *err)
{
    return call_id(call, 0, WEBHOOK_PREFIX, "webhook", id, err);
}

// ---- handlers ----

/* POST /api/v1/webhooks */
static int create_webhook(struct call *call, struct error *err)
{
    struct webhook_request request = {0};
    struct webhook_body body = {0};
    autoclear(webhook_info) made = {0};

    if (read_request(call, &body, &request, err) < 0 ||
        webhook_create(call->core->webhooks, &call->actor, &request, &made, err) < 0)
        return -1;
    return answer_webhook(call, 201, &made, true);
}

/* GET /api/v1/webhooks */
static int list_webhooks(struct call *call, struct error *err)
{
    autoclear(webhook_infos) found = {0};
    struct page page;

    if (api_page_read(call, &page, err) < 0 ||
        webhook_list(call->core->webhooks, &call->actor, &page, &found, err) < 0)
        return -1;
    struct webhook_answer *items = call_alloc(call, (found.count + 1) * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = tell(&found.items[i], false);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

/* GET /api/v1/webhooks/{webhook} */
static int get_webhook(struct call *call, struct error *err)
{
    autoclear(webhook_info) found = {0};
    const char *id;

    if (webhook_id(call, &id, err) < 0 ||
        webhook_get(call->core->webhooks, &call->actor, id, &found, err) < 0)
        return -1;
    return answer_webhook(call, 200, &found, false);
}

/* PATCH /api/v1/webhooks/{webhook} */
static int change_webhook(struct call *call, struct error *err)
{
    struct webhook_request request = {0};
    struct webhook_body body = {0};
    autoclear(webhook_info) changed = {0};
    const char *id;

    if (webhook_id(call, &id, err) < 0 || read_request(call, &body, &request, err) < 0 ||
        webhook_change(call->core->webhooks, &call->actor, id, &request, &changed, err) < 0)
        return -1;
    return answer_webhook(call, 200, &changed, request.is_secret_new);
}

/* DELETE /api/v1/webhooks/{webhook} */
static int delete_webhook(struct call *call, struct error *err)
{
    const char *id;

    if (webhook_id(call, &id, err) < 0 ||
        webhook_remove(call->core->webhooks, &call->actor, id, err) < 0)
        return -1;
    return api_answer_empty(call);
}

struct test_answer {
    int64_t number;
};
static const struct answer_field test_fields[] = {
    {"eventNumber", ANSWER_INTEGER, offsetof(struct test_answer, number), .is_needed = true,
     .help = "of the event webhook.test that it will be told of; see its deliveries"},
    {0},
};

/* POST /api/v1/webhooks/{webhook}/test */
static int test_webhook(struct call *call, struct error *err)
{
    struct test_answer answer;
    const char *id;

    if (webhook_id(call, &id, err) < 0 ||
        webhook_test(call->core->webhooks, &call->actor, id, &answer.number, err) < 0)
        return -1;
    return api_answer(call, 202, test_fields, &answer);
}

static const char *const delivery_words[] = {[DELIVERY_FAILING] = "failing",
                                             [DELIVERY_DELIVERED] = "delivered",
                                             [DELIVERY_FAILED] = "failed"};
#define AT(member) offsetof(struct delivery_info, member)
static const struct answer_field delivery_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = DELIVERY_PREFIX,
     .help = "the same for every attempt; the header Burrow-Delivery"},
    {"eventNumber", ANSWER_INTEGER, AT(event_number), .is_needed = true},
    {"eventKind", ANSWER_TEXT, AT(event_kind), .is_needed = true},
    {"state", ANSWER_WORD, AT(state), .is_needed = true, .words = delivery_words,
     .n_words = ARRAY_SIZE(delivery_words), .help = "failing: it is tried again"},
    {"status", ANSWER_INTEGER, AT(status), .is_needed = true,
     .help = "of HTTP, of the last attempt; 0: no answer came"},
    {"attempts", ANSWER_INTEGER, AT(attempts), .is_needed = true},
    {"error", ANSWER_TEXT, AT(error), .help = "why the last attempt failed"},
    {"durationMs", ANSWER_INTEGER, AT(duration_ms), .is_needed = true},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true, .help = "the first attempt"},
    {"updatedAt", ANSWER_TIME, AT(updated_at), .is_needed = true, .help = "the last attempt"},
    {0},
};
#undef AT
static const struct answer_field deliveries_fields[] = {
    API_LIST_FIELDS(delivery_fields, struct delivery_info), {0}};

/* GET /api/v1/webhooks/{webhook}/deliveries */
static int list_deliveries(struct call *call, struct error *err)
{
    autoclear(delivery_infos) found = {0};
    struct page page;
    const char *id;

    if (webhook_id(call, &id, err) < 0 || api_page_read(call, &page, err) < 0 ||
        delivery_list(call->core->webhooks, &call->actor, id, &page, &found, err) < 0)
        return -1;
    return api_answer_page(call, deliveries_fields, found.items, found.count, &found.next);
}

static const struct parameter page_parameters[] = {API_PAGE_PARAMETERS, {0}};
static const struct route_answer one_answers[] = {{200, webhook_fields}, {0}};
static const struct route_answer made_answers[] = {{201, webhook_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer gone_answers[] = {{204}, {0}};
static const struct route_answer test_answers[] = {{202, test_fields}, {0}};
static const struct route_answer delivery_answers[] = {{200, deliveries_fields}, {0}};

const struct route api_webhook_routes[] = {
    {"POST", API_TOP "/webhooks", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, create_webhook,
     .summary = "has a server of yours told of events from now on", .fields = create_fields,
     .answers = made_answers, .needs = SCOPE_MANAGE},
    {"GET", API_TOP "/webhooks", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_webhooks,
     .summary = "all webhooks, the oldest first", .query = page_parameters, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", API_TOP "/webhooks/{webhook}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_webhook,
     .summary = "one webhook", .answers = one_answers, .needs = SCOPE_READ},
    {"PATCH", API_TOP "/webhooks/{webhook}", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, change_webhook,
     .summary = "changes what is given; one that is failing is tried at once",
     .fields = change_fields, .answers = one_answers, .needs = SCOPE_MANAGE},
    {"DELETE", API_TOP "/webhooks/{webhook}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, delete_webhook,
     .summary = "removes it with its deliveries", .answers = gone_answers, .needs = SCOPE_MANAGE},
    {"POST", API_TOP "/webhooks/{webhook}/test", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, test_webhook,
     .summary = "tells it of an event webhook.test", .answers = test_answers,
     .needs = SCOPE_MANAGE},
    {"GET", API_TOP "/webhooks/{webhook}/deliveries", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     list_deliveries, .summary = "its last hundred deliveries, the newest first",
     .query = page_parameters, .answers = delivery_answers, .needs = SCOPE_READ},
    {0},
};
