/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandbox is meant, and who asks; see e2b_target.h. */
#include "front/e2b/e2b_target.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/clock.h"
#include "core/core.h"
#include "core/seal.h"
#include "front/e2b/e2b_key.h"
#include "web/query.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PURPOSE "e2b-envd"
#define SIGNATURE_TEXT 47 // "v1_", 43 of base64 and a NUL

// ---- where it goes ----

static bool read_port(const char *text, size_t length, unsigned *out)
{
    unsigned value = 0;

    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *out = value;
    return value > 0 && value < 65536;
}

static bool read_id(const char *text, size_t length, char out[ID_TEXT])
{
    if (length != ID_LENGTH)
        return false;
    memcpy(out, text, ID_LENGTH);
    out[ID_LENGTH] = '\0';
    if (id_is_valid(out))
        return true;
    out[0] = '\0';
    return false;
}

/* "49983-ID.example.com:80" */
static bool read_host(const char *host, struct e2b_target *out)
{
    const char *dot = host ? strchr(host, '.') : NULL;
    const char *dash = dot ? memchr(host, '-', (size_t)(dot - host)) : NULL;

    return dash && dot[1] && read_port(host, (size_t)(dash - host), &out->port) &&
           read_id(dash + 1, (size_t)(dot - dash - 1), out->id);
}

enum e2b_way e2b_target_find(const char *id, const char *port, const char *host,
                             struct e2b_target *out)
{
    *out = (struct e2b_target){.port = E2B_ENVD_PORT};
    if (id || port) {
        out->is_wrong = !id || !port || !read_port(port, strlen(port), &out->port);
        if (id)
            (void)read_id(id, strlen(id), out->id);
        out->is_wrong |= id && strlen(id) > 63;
        return E2B_BY_HEADER;
    }
    if (read_host(host, out))
        return E2B_BY_HOST;
    *out = (struct e2b_target){.port = E2B_ENVD_PORT};
    return E2B_BY_NOTHING;
}

void e2b_target_read(const struct http_request *request, struct e2b_target *out)
{
    const char *id = http_request_header(request, "E2b-Sandbox-Id");
    const char *port = http_request_header(request, "E2b-Sandbox-Port");
    const char *token = http_request_header(request, "X-Access-Token");

    if (e2b_target_find(id, port, request->host, out) == E2B_BY_NOTHING && token &&
        strlen(token) == E2B_TOKEN_TEXT - 1)
        (void)read_id(token, ID_LENGTH, out->id);
}

bool e2b_target_claims(const struct http_request *request)
{
    struct e2b_target target = {0};

    return http_request_header(request, "E2b-Sandbox-Id") ||
           http_request_header(request, "E2b-Sandbox-Port") ||
           http_request_header(request, "X-Access-Token") || strcmp(request->path, "/files") == 0 ||
           read_host(request->host, &target);
}

// ---- tokens and signatures ----

void e2b_token_make(const struct core *core, const char *sandbox_id, char out[E2B_TOKEN_TEXT])
{
    memcpy(out, sandbox_id, ID_LENGTH);
    seal_make(core, PURPOSE, sandbox_id, out + ID_LENGTH);
}

/* What a URL has to be signed with. */
struct signing {
    const struct core *core;
    const char *path, *operation, *username, *expiration, *signature;
    char found[ID_TEXT];
};

static void sign(const struct signing *signing, const char *sandbox_id, char out[SIGNATURE_TEXT])
{
    char token[E2B_TOKEN_TEXT], text[48];
    unsigned char digest[32];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const char *const parts[] = {signing->path,
                                 ":",
                                 signing->operation,
                                 ":",
                                 signing->username,
                                 ":",
                                 token,
                                 signing->expiration ? ":" : "",
                                 signing->expiration ? signing->expiration : ""};

    e2b_token_make(signing->core, sandbox_id, token);
    (void)EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        (void)EVP_DigestUpdate(context, parts[i], strlen(parts[i]));
    (void)EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    OPENSSL_cleanse(token, sizeof token);
    base64_encode(digest, sizeof digest, text);
    (void)snprintf(out, SIGNATURE_TEXT, "v1_%.43s", text);
}

static bool is_signed_by(void *data, const char *sandbox_id)
{
    struct signing *signing = data;
    char wanted[SIGNATURE_TEXT];

    sign(signing, sandbox_id, wanted);
    if (strlen(signing->signature) != SIGNATURE_TEXT - 1 ||
        CRYPTO_memcmp(wanted, signing->signature, SIGNATURE_TEXT - 1) != 0)
        return false;
    memcpy(signing->found, sandbox_id, ID_TEXT);
    return true;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static bool is_expired(const char *expiration)
{
    char *end;
    long long when = strtoll(expiration, &end, 10);

    return *end || when < (long long)(clock_wall_ms() / 1000);
}

/* Whose token the URL was signed with: of the sandbox that is named, or of any that is alive. */
static bool find_signer(struct core *core, const struct http_request *request,
                        struct e2b_target *target)
{
    struct arena arena = {0};
    struct query *query;
    struct error ignored = {0};
    bool is_read = strcmp(request->method, "GET") == 0 || request->is_head;
    bool is_good = false;

    if (query_parse(request->query, &arena, &query, &ignored) == 0) {
        struct signing signing = {
            .core = core,
            .path = or_empty(query_text(query, "path")),
            .operation = is_read ? "read" : "write",
            .username = or_empty(query_text(query, "username")),
            .expiration = query_text(query, "signature_expiration"),
            .signature = query_text(query, "signature"),
        };
        is_good = signing.signature && (!signing.expiration || !is_expired(signing.expiration)) &&
                  (target->id[0] ? is_signed_by(&signing, target->id)
                                 : seal_find(core, is_signed_by, &signing));
        if (is_good)
            memcpy(target->id, signing.found, ID_TEXT);
    }
    arena_clear(&arena);
    return is_good;
}

// ---- envd ----

static bool is_token_possible(const struct http_request *request)
{
    (void)request;
    return true; // a sandbox that is gone is told before a token is asked for
}

static int missing_token(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "token",
                        "this needs the sandbox's own token: send envdAccessToken of the answer to "
                        "create or connect as 'X-Access-Token'");
}

static int gone(struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox was not found");
}

static int check_token(struct core *core, const struct http_request *request, struct actor *out,
                       struct error *err)
{
    const char *token = http_request_header(request, "X-Access-Token");
    struct e2b_target target;

    e2b_target_read(request, &target);
    if (target.is_wrong)
        return error_refuse(err, ERROR_INVALID, "target",
                            "send both E2b-Sandbox-Id and E2b-Sandbox-Port");
    bool is_named = http_request_header(request, "E2b-Sandbox-Id") != NULL;
    if (target.id[0] ? !seal_actor(core, target.id, out, NULL) : is_named)
        return gone(err);
    if (token) {
        if (target.id[0] && strncmp(token, target.id, ID_LENGTH) == 0 &&
            seal_is(core, PURPOSE, target.id, token + ID_LENGTH))
            return 0;
        *out = (struct actor){0};
        return target.id[0] ? missing_token(err) : gone(err);
    }
    if (strcmp(request->path, "/files") == 0 && find_signer(core, request, &target) &&
        seal_actor(core, target.id, out, NULL))
        return 0;
    *out = (struct actor){0};
    return missing_token(err);
}

/* A signature may be anybody's, which is looked for by a worker. */
static enum key_known check_token_quick(struct core *core, const struct http_request *request,
                                        struct actor *out)
{
    struct error ignored = {0};

    if (!http_request_header(request, "X-Access-Token"))
        return KEY_UNKNOWN;
    return check_token(core, request, out, &ignored) == 0 ? KEY_VALID : KEY_UNKNOWN;
}

static const char *find_token(const struct http_request *request, struct auth_room *room)
{
    (void)room;
    return http_request_header(request, "X-Access-Token");
}

const struct front_auth e2b_token_auth = {
    .is_possible = is_token_possible,
    .check = check_token,
    .check_quick = check_token_quick,
    .missing = missing_token,
    .secret = find_token,
};

// ---- the control plane ----

/* In our spelling; NULL: none was sent. */
static const char *find_key(const struct http_request *request, struct auth_room *room)
{
    const char *key = http_request_header(request, "X-Api-Key");

    if (!key || !*key)
        return NULL;
    return e2b_key_read(key, room->text) ? room->text : key;
}

static bool is_key_possible(const struct http_request *request)
{
    struct auth_room room;

    return find_key(request, &room) || auth_by_key.is_possible(request);
}

static int missing_key(struct error *err)
{
    return error_refuse(
        err, ERROR_UNAUTHORIZED, "key",
        "this needs a key: set E2B_API_KEY to what 'burrow key create --e2b' prints");
}

static int check_key(struct core *core, const struct http_request *request, struct actor *out,
                     struct error *err)
{
    struct auth_room room;
    const char *key = find_key(request, &room);

    return key ? key_check(core->accounts, key, out, err)
               : auth_by_key.check(core, request, out, err);
}

static enum key_known check_key_quick(struct core *core, const struct http_request *request,
                                      struct actor *out)
{
    struct auth_room room;
    const char *key = find_key(request, &room);

    return key ? key_check_quick(core->accounts, key, out)
               : auth_by_key.check_quick(core, request, out);
}

const struct front_auth e2b_key_auth = {
    .is_possible = is_key_possible,
    .check = check_key,
    .check_quick = check_key_quick,
    .missing = missing_key,
    .secret = find_key,
};
