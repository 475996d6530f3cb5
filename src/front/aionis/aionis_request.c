/* SPDX-License-Identifier: Apache-2.0 */
/* What every call goes through; see aionis_request.h. */
#include "front/aionis/aionis_request.h"

#include "data/json.h"
#include "front/aionis/wide.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEPTH 100
#define BODY_MEMORY ((size_t)64 << 20)

void request_clear(struct request *request)
{
    data_document_free(request->document);
    *request = (struct request){0};
}

static struct wide_text wide(const char *text)
{
    return (struct wide_text){text, text ? strlen(text) : 0};
}

const char *request_trim(struct call *call, const char *text)
{
    struct wide_text trimmed = wide_trim(wide(text));

    if (trimmed.length == 0)
        return NULL;
    char *copy = call_alloc(call, trimmed.length + 1);
    memcpy(copy, trimmed.text, trimmed.length);
    return copy;
}

// ---- faults ----

/* "action.argv[1]" → "action.argv.1" */
static void put_path(struct json_writer *json, const char *path)
{
    json_key(json, "path");
    json_string_begin(json);
    for (; *path; path++) {
        if (*path != ']')
            json_string_piece(json, *path == '[' ? "." : path, 1);
    }
    json_string_end(json);
}

static void put_issues(struct json_writer *json, const struct field_faults *faults)
{
    json_list_begin(json);
    for (size_t i = 0; i < faults->count; i++) {
        json_map_begin(json);
        put_path(json, faults->items[i].path);
        put_text(json, "message", faults->items[i].text);
        json_map_end(json);
    }
    json_list_end(json);
}

static const char *print_issues(struct call *call, const struct field_faults *faults)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    put_issues(&json, faults);
    return keep_json(call, &json, &text);
}

static int refuse_faults(struct call *call, const struct field_faults *faults, struct error *err)
{
    const char *issues = print_issues(call, faults);
    const struct refusal refusal = {
        .status = 400,
        .code = "invalid_request",
        .details = call_print(call, "{\"contract\":\"error_v1\",\"issues\":%s}", issues),
        .issues = issues,
    };
    const struct field_fault *first = &faults->items[0];

    return refuse(call, &refusal, err, "%s%s%s%s", first->path, *first->path ? ": " : "the body ",
                  first->text, faults->count > 1 ? ", and more" : "");
}

static int refuse_body(struct call *call, const char *text, struct error *err)
{
    struct field_fault fault = {"", text};
    const struct field_faults faults = {&fault, 1};

    return refuse_faults(call, &faults, err);
}

// ---- the body ----

enum content { CONTENT_NONE, CONTENT_JSON, CONTENT_TEXT, CONTENT_UNKNOWN };

static enum content content_of(const struct call *call)
{
    const char *type = call_header(call, "Content-Type");
    size_t length = type ? strcspn(type, "; \t") : 0;

    if (!type)
        return call->request->body.length ? CONTENT_UNKNOWN : CONTENT_NONE;
    if (length == 16 && strncasecmp(type, "application/json", length) == 0)
        return CONTENT_JSON;
    return length == 10 && strncasecmp(type, "text/plain", length) == 0 ? CONTENT_TEXT
                                                                        : CONTENT_UNKNOWN;
}

/* What JavaScript programs must not be given. */
static bool has_prototype(const struct data_value *value)
{
    for (const struct data_value *child = value->first; child; child = child->next) {
        if ((child->key && child->key_length == 9 && memcmp(child->key, "__proto__", 9) == 0) ||
            has_prototype(child))
            return true;
    }
    return false;
}

static int read_body(struct call *call, struct request *out, struct error *err)
{
    const struct json_limits limits = {.depth = DEPTH,
                                       .memory = BODY_MEMORY,
                                       .takes_last = true,
                                       .may_take = call_may_take,
                                       .data = call};
    const struct refusal unknown = {.status = 415, .code = "unsupported_media_type"};
    const struct buffer *text = &call->request->body;
    enum content content = content_of(call);
    struct error why = {0};

    if (content == CONTENT_UNKNOWN)
        return refuse(call, &unknown, err, "the body must be sent as application/json");
    if (content != CONTENT_JSON)
        return 0;
    if (text->length == 0)
        return refuse_body(call, "is empty where JSON should be", err);
    if (json_read("", text->data, text->length, &limits, &out->document, &why) < 0)
        return refuse_body(call, call_print(call, "is not JSON: %s", why.text), err);
    if (has_prototype(out->document->root))
        return refuse_body(call, "must not have a key '__proto__'", err);
    out->body = out->document->root;
    return 0;
}

// ---- the token of an admin ----

/* In a time that tells nothing about where they differ. */
static bool is_same_secret(struct wide_text a, struct wide_text b)
{
    unsigned char hashes[2][EVP_MAX_MD_SIZE] = {{0}};
    unsigned lengths[2] = {0};

    (void)EVP_Digest(a.text, a.length, hashes[0], &lengths[0], EVP_sha256(), NULL);
    (void)EVP_Digest(b.text, b.length, hashes[1], &lengths[1], EVP_sha256(), NULL);
    return CRYPTO_memcmp(hashes[0], hashes[1], lengths[0]) == 0;
}

static bool is_admin(const struct call *call)
{
    struct wide_text token = wide_trim(wide(aionis_of(call)->settings->admin_token));
    struct wide_text given = wide_trim(wide(call_header(call, "X-Admin-Token")));

    return token.length > 0 && given.length > 0 && is_same_secret(token, given);
}

static int check_admin(struct call *call, struct error *err)
{
    const struct refusal not_configured = {.status = 503, .code = "admin_not_configured"};
    const struct refusal unauthorized = {.status = 401, .code = "unauthorized_admin"};
    const struct aionis *aionis = aionis_of(call);

    if (!aionis->is_admin_only)
        return 0;
    if (wide_is_blank(wide(aionis->settings->admin_token)))
        return refuse(call, &not_configured, err,
                      "only admins may use the sandbox, and this server has no admin token");
    if (!is_admin(call))
        return refuse(call, &unauthorized, err,
                      "only admins may use the sandbox: send the token as X-Admin-Token");
    return 0;
}

// ---- the rate ----

/* Where the request came from: behind a proxy that is trusted, what that says. */
static struct in6_addr address_of(const struct call *call)
{
    const struct peer *peer = &call->request->peer;
    const char *forwarded = call_header(call, "X-Forwarded-For");
    struct in6_addr address;
    char first[RATE_CLIENT];

    if (!proxies_contain(aionis_of(call)->proxies, &peer->address))
        return peer->address;
    if (!forwarded)
        forwarded = call_header(call, "X-Real-Ip");
    struct wide_text text =
        wide_trim((struct wide_text){forwarded, forwarded ? strcspn(forwarded, ",") : 0});
    (void)snprintf(first, sizeof first, "%.*s", (int)text.length, text.text ? text.text : "");
    return rate_client_parse(first, &address) ? address : peer->address;
}

/* Whose bucket counts; NULL: none does. */
static const char *client_of(const struct call *call, char text[RATE_CLIENT])
{
    struct in6_addr address = address_of(call);

    if (call->request->peer.is_local || rate_is_loopback(&address))
        return NULL;
    if (is_admin(call))
        return "admin";
    return rate_client_format(&address, text);
}

static int refuse_rate(struct call *call, enum rate_class class, int64_t wait_ms, struct error *err)
{
    int64_t waited_ms = call_state(call)->waited_ms;
    const struct refusal refusal = {
        .status = 429,
        .code = class == RATE_WRITE ? "rate_limited_sandbox_write" : "rate_limited_sandbox_read",
        .details = call_print(call, "{\"retry_after_ms\":%lld,\"waited_ms\":%lld}",
                              (long long)wait_ms, (long long)waited_ms),
        .retry_after_s = (wait_ms + 999) / 1000,
    };

    return refuse(call, &refusal, err, "too many requests; try again in %lld ms",
                  (long long)wait_ms);
}

/* A write that is over the limit is held back once, for a moment. */
static int check_rate(struct call *call, enum rate_class class, struct error *err)
{
    struct aionis *aionis = aionis_of(call);
    struct call_state *state = call_state(call);
    int64_t most_ms = class == RATE_WRITE ? (int64_t)aionis->settings->write_wait_ms : 0;
    char text[RATE_CLIENT];

    const char *client = aionis->limiter && !state->has_token ? client_of(call, text) : NULL;
    int64_t wait_ms = client ? rate_take(aionis->limiter, class, client) : 0;
    state->has_token = wait_ms == 0;
    if (state->has_token)
        return 0;
    if (state->waited_ms || most_ms == 0)
        return refuse_rate(call, class, wait_ms, err);
    state->waited_ms = call->again_ms = wait_ms < most_ms ? wait_ms : most_ms;
    return CALL_AGAIN;
}

// ---- the tenant ----

/* The header counts where the body says nothing that could be a tenant. */
static void merge_tenant(struct call *call, struct request *request)
{
    const char *header = request_trim(call, call_header(call, "X-Tenant-Id"));

    if (!header || !request->body || request->body->kind != VALUE_MAP)
        return;
    struct data_value *tenant = value_get(request->body, "tenant_id");
    if (tenant && tenant->kind == VALUE_STRING &&
        !wide_is_blank((struct wide_text){tenant->text, tenant->length}))
        return;
    if (!tenant)
        tenant = value_add(request->document, request->body, VALUE_STRING, "tenant_id",
                           strlen("tenant_id"));
    tenant->kind = VALUE_STRING;
    tenant->text = header;
    tenant->length = strlen(header);
    tenant->first = NULL;
    tenant->count = 0;
}

const char *request_text(struct call *call, const struct request *request, const char *name)
{
    const struct data_value *value = value_get(request->body, name);

    return value && value->kind == VALUE_STRING ? request_trim(call, value->text) : NULL;
}

const char *request_tenant(struct call *call, const struct request *request)
{
    const char *tenant = request_text(call, request, "tenant_id");

    return tenant ? tenant : aionis_of(call)->settings->tenant;
}

int request_open(struct call *call, enum rate_class class, struct request *out, struct error *err)
{
    if (read_body(call, out, err) < 0 || check_admin(call, err) < 0)
        return -1;
    merge_tenant(call, out);
    return check_rate(call, class, err);
}

// ---- fields ----

static int refuse_name(struct call *call, const char *code, const char *name, const char *value,
                       struct error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, name, value ? value : "");
    json_map_end(&json);
    bool has_details = value || strcmp(name, "tenant_id") != 0;
    const struct refusal refusal = {
        .status = 400, .code = code, .details = has_details ? keep_json(call, &json, &text) : NULL};
    return refuse(call, &refusal, err, "%s '%.80s' cannot be one", name, value ? value : "");
}

#define TENANT_MAX 64

bool request_is_tenant(const char *text)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(text);

    return length <= TENANT_MAX && strspn(text, first) > 0 && strspn(text, rest) == length;
}

/* Beginnings of "tenant:" are the vendor's own. */
bool request_is_scope(const char *text)
{
    return *text && strncmp(text, "tenant:", strlen("tenant:")) != 0;
}

static int identify(struct call *call, const struct identity_body *body, struct error *err)
{
    const struct aionis_settings *settings = aionis_of(call)->settings;
    const char *tenant = request_trim(call, body->tenant ? body->tenant : settings->tenant);
    const char *scope = request_trim(call, body->scope ? body->scope : settings->scope);

    if (!tenant || !request_is_tenant(tenant))
        return refuse_name(call, "invalid_tenant_id", "tenant_id", tenant, err);
    if (!scope || !request_is_scope(scope))
        return refuse_name(call, "invalid_scope", "scope", scope, err);
    call->actor.tenant = tenant;
    call->actor.scope = scope;
    return 0;
}

int request_read(struct call *call, const struct request *request, const struct field *fields,
                 void *into, struct error *err)
{
    struct field_faults faults = {0};

    if (!request->body)
        return refuse_body(call, "must be an object", err);
    if (fields_read_all(request->body, fields, into, &faults, err) < 0)
        return refuse_faults(call, &faults, err);
    return identify(call, into, err);
}

const char *request_check_uuid(const char *text)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    static const size_t parts[] = {8, 4, 4, 4, 12};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t length = strspn(text, digits);
        text += length;
        if (length != parts[i] || *text != (i + 1 < ARRAY_SIZE(parts) ? '-' : '\0'))
            return "must be a UUID";
        text++;
    }
    return NULL;
}

const char *request_check_project(const char *text)
{
    return wide_units(wide(text)) > 128 ? "has more than 128 characters" : NULL;
}

const char *request_check_reason(const char *text)
{
    return wide_units(wide(text)) > 400 ? "has more than 400 characters" : NULL;
}
