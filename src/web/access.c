/* SPDX-License-Identifier: Apache-2.0 */
/* The access log; see access.h. */
#include "web/access.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/audit.h"
#include "web/call.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define METHOD_SHOWN 16
#define SANDBOX_SHOWN 64 // a prefix and an id
#define STATUS_GONE 499  // the client left before there was an answer; nginx says so too

struct access {
    uint64_t started_us;
    const char *pattern; // of the route; NULL: none was found
    struct peer peer;
    struct http_header headers[ACCESS_HEADERS + 2]; // of the answer: the request's id, and more
    atomic_flag has_sandbox;                        // somebody said which
    _Atomic(const char *) sandbox; // `sandbox_text`, once it is all there; NULL: none
    char sandbox_text[SANDBOX_SHOWN];
    char method[METHOD_SHOWN]; // "": what came was no request
    char key[KEY_SHOWN + 1];   // the beginning of it; "": none was sent
    char request_id[REQUEST_ID_TEXT];
    // What the record of changes says of it; audit NULL: nothing.
    struct audit *audit;
    const char *front;
    char organisation[ID_TEXT], key_id[ID_TEXT], token_id[ID_TEXT], member[MEMBER_TEXT];
    char subject[AUDIT_SUBJECT];
};

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static void on_end(void *data, const struct response_outcome *outcome)
{
    struct access *access = data;
    char peer[PEER_TEXT];

    if (!log_is_on(LOG_LEVEL_INFO))
        return;
    log_info_later("request", F("method", or_null(access->method)),
                   F("status", outcome->status ? outcome->status : STATUS_GONE),
                   F("route", access->pattern), F("key", or_null(access->key)),
                   F("sandbox", atomic_load(&access->sandbox)),
                   F("us", clock_monotonic_us() - access->started_us), F("bytes", outcome->bytes),
                   F("whole", outcome->is_delivered),
                   F("peer", access->method[0] ? peer_format(&access->peer, peer) : NULL),
                   F("request", (const char *)access->request_id));
}

void access_log_failure(const struct access *access, const struct error *err)
{
    if (error_is_fault(err))
        log_error("request failed", F("method", or_null(access->method)),
                  F("route", access->pattern), F("key", or_null(access->key)),
                  F("sandbox", atomic_load(&access->sandbox)), F("error", (const char *)err->text),
                  F("request", (const char *)access->request_id));
    else
        log_debug("request refused", F("method", or_null(access->method)),
                  F("route", access->pattern), F("error", (const char *)err->text),
                  F("request", (const char *)access->request_id));
}

/* A change is recorded before its answer goes out. */
static void on_begin(void *data, int status)
{
    struct access *access = data;
    char peer[PEER_TEXT];

    if (!access->audit || status >= 300)
        return;
    const char *sandbox = atomic_load(&access->sandbox);
    const struct audit_entry entry = {
        .organisation = access->organisation,
        .member = access->member,
        .key_id = access->key_id,
        .token_id = access->token_id,
        .front = access->front,
        .method = access->method,
        .route = access->pattern,
        .subject = *access->subject ? access->subject : sandbox,
        .peer = peer_format(&access->peer, peer),
        .request_id = access->request_id,
        .status = status,
    };
    audit_add(access->audit, &entry);
}

static const struct response_observer observer = {
    .on_begin = on_begin, .on_end = on_end, .on_free = free};

struct access *access_begin(struct request_ids *ids, const struct http_request *request,
                            struct response *response)
{
    struct access *access = response_observer_data(response, &observer);

    if (access) // an answer that nobody gave comes here again
        return access;
    access = xnew(struct access);
    access->started_us = clock_monotonic_us();
    request_id_read(ids, request, access->request_id);
    if (request) {
        (void)memccpy(access->method, request->method, '\0', METHOD_SHOWN - 1);
        access->peer = request->peer;
    }
    access->headers[0] = (struct http_header){"X-Request-Id", access->request_id};
    response_set_headers(response, access->headers);
    response_observe(response, &observer, access);
    return access;
}

/* As lists of keys show it: more of one that was made here than of one that a person chose. */
static void keep_key(struct access *access, const char *secret)
{
    if (secret)
        memcpy(access->key, secret, key_shown(secret));
}

static bool is_sandbox(const struct front *front, const char *parameter)
{
    const char *prefix = front->sandbox_prefix;
    size_t length = prefix ? strlen(prefix) : 0;

    return length && parameter && strncmp(parameter, prefix, length) == 0 &&
           id_is_valid(parameter + length);
}

void access_set_route(struct access *access, const struct front *front, const struct route *route,
                      const char *const *parameters, const struct http_request *request)
{
    const struct front_auth *auth = front->auth ? front->auth : &auth_by_key;

    struct auth_room room;

    access->pattern = route->pattern;
    if (route->access == ACCESS_KEY)
        keep_key(access, auth->secret(request, &room));
    for (unsigned i = 0; i < ROUTE_PARAMETERS; i++) {
        if (is_sandbox(front, parameters[i]))
            access_set_sandbox(access, "", parameters[i]);
    }
}

/* What the path names, joined; nothing where naming it is the right to it. */
static void keep_subject(struct access *access, const struct call *call)
{
    size_t length = 0;

    for (unsigned i = 0; i < ROUTE_PARAMETERS && call->parameters[i]; i++) {
        if (length < sizeof access->subject)
            length += (size_t)snprintf(access->subject + length, sizeof access->subject - length,
                                       "%s%s", i ? "/" : "", call->parameters[i]);
    }
}

void access_set_audit(struct access *access, struct audit *audit, const struct call *call)
{
    const struct actor *actor = &call->actor;

    bool is_read = strcmp(call->route->method, "GET") == 0 && route_needs(call->route) != SCOPE_RUN;
    if (!audit || is_read)
        return;
    access->front = call->front->name;
    memcpy(access->organisation, actor->organisation, sizeof access->organisation);
    memcpy(access->key_id, actor->key_id, sizeof access->key_id);
    memcpy(access->token_id, actor->token_id, sizeof access->token_id);
    memcpy(access->member, actor->member, sizeof access->member);
    if (call->route->access == ACCESS_KEY)
        keep_subject(access, call);
    access->audit = audit;
}

void access_set_subject(struct access *access, const char *prefix, const char *id)
{
    if (access)
        (void)snprintf(access->subject, sizeof access->subject, "%s%s", prefix, id);
}

void access_set_header(struct access *access, struct response *response, const char *name,
                       const char *value)
{
    unsigned at = 1;

    while (access->headers[at].name && strcmp(access->headers[at].name, name) != 0)
        at++;
    if (at > ACCESS_HEADERS)
        return;
    access->headers[at] = (struct http_header){name, value};
    response_set_headers(response, access->headers);
}

void access_set_sandbox(struct access *access, const char *prefix, const char *id)
{
    if (!access || atomic_flag_test_and_set(&access->has_sandbox))
        return;
    char *end = memccpy(access->sandbox_text, prefix, '\0', SANDBOX_SHOWN - 1);
    if (end)
        (void)memccpy(end - 1, id, '\0', (size_t)(access->sandbox_text + SANDBOX_SHOWN - end));
    atomic_store(&access->sandbox, access->sandbox_text);
}

const char *access_request_id(const struct access *access)
{
    return access ? access->request_id : NULL;
}
