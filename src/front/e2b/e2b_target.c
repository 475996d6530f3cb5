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

#define PURPOSE "e2b-envd-key"
#define NO_KEY "00000000000000000000000000" // in place of a key's id: the machine's own root
#define IDS_LENGTH (2 * ID_LENGTH)
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

/* Whose a token is. */
struct holder {
    char sandbox_id[ID_TEXT];
    char key_id[ID_TEXT]; // "": the machine's own root
};

/* "SANDBOX:KEY" */
#define SUBJECT_TEXT (2 * ID_TEXT)
static const char *subject_of(const struct holder *holder, char text[SUBJECT_TEXT])
{
    (void)snprintf(text, SUBJECT_TEXT, "%s:%s", holder->sandbox_id, holder->key_id);
    return text;
}

static void make_token(const struct core *core, const struct holder *holder,
                       char out[E2B_TOKEN_TEXT])
{
    char subject[SUBJECT_TEXT];

    memcpy(out, holder->sandbox_id, ID_LENGTH);
    memcpy(out + ID_LENGTH, *holder->key_id ? holder->key_id : NO_KEY, ID_LENGTH);
    seal_make(core, PURPOSE, subject_of(holder, subject), out + IDS_LENGTH);
}

/* False: it is none that was given here. */
static bool read_token(const struct core *core, const char *token, struct holder *out)
{
    char subject[SUBJECT_TEXT];

    *out = (struct holder){0};
    if (strlen(token) != E2B_TOKEN_TEXT - 1 || !read_id(token, ID_LENGTH, out->sandbox_id))
        return false;
    if (strncmp(token + ID_LENGTH, NO_KEY, ID_LENGTH) != 0 &&
        !read_id(token + ID_LENGTH, ID_LENGTH, out->key_id))
        return false;
    return seal_is(core, PURPOSE, subject_of(out, subject), token + IDS_LENGTH);
}

void e2b_token_make(struct core *core, const struct actor *actor, const char *sandbox_id,
                    char out[E2B_TOKEN_TEXT])
{
    struct holder holder = {0};

    (void)snprintf(holder.sandbox_id, sizeof holder.sandbox_id, "%s", sandbox_id);
    memcpy(holder.key_id, actor->key_id, sizeof holder.key_id);
    make_token(core, &holder, out);
    seal_add_key(core, sandbox_id, actor->key_id);
}

/* What a URL has to be signed with. */
struct signing {
    struct core *core;
    const char *path, *operation, *username, *expiration, *signature;
    struct holder found;
};

static void sign(const struct signing *signing, const struct holder *holder,
                 char out[SIGNATURE_TEXT])
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

    make_token(signing->core, holder, token);
    (void)EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        (void)EVP_DigestUpdate(context, parts[i], strlen(parts[i]));
    (void)EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    OPENSSL_cleanse(token, sizeof token);
    base64_encode(digest, sizeof digest, text);
    (void)snprintf(out, SIGNATURE_TEXT, "v1_%.43s", text);
}

static bool is_signed_with(const struct signing *signing, const struct holder *holder)
{
    char wanted[SIGNATURE_TEXT];

    sign(signing, holder, wanted);
    return strlen(signing->signature) == SIGNATURE_TEXT - 1 &&
           CRYPTO_memcmp(wanted, signing->signature, SIGNATURE_TEXT - 1) == 0;
}

/* By any of the keys that have a token of this sandbox. */
static bool is_signed_by(void *data, const char *sandbox_id)
{
    struct signing *signing = data;
    char keys[SEAL_KEYS + 1][ID_TEXT];
    size_t count = seal_list_keys(signing->core, sandbox_id, keys);

    for (size_t i = 0; i < count; i++) {
        struct holder *holder = &signing->found;
        (void)snprintf(holder->sandbox_id, sizeof holder->sandbox_id, "%s", sandbox_id);
        memcpy(holder->key_id, keys[i], sizeof holder->key_id);
        if (is_signed_with(signing, holder))
            return true;
    }
    return false;
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
                        const struct e2b_target *target, struct holder *out)
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
        *out = signing.found;
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

/* Whether the request can be for a sandbox at all. */
static int check_target(struct core *core, const struct http_request *request,
                        struct e2b_target *target, struct error *err)
{
    e2b_target_read(request, target);
    if (target->is_wrong)
        return error_refuse(err, ERROR_INVALID, "target",
                            "send both E2b-Sandbox-Id and E2b-Sandbox-Port");
    bool is_named = http_request_header(request, "E2b-Sandbox-Id") ||
                    http_request_header(request, "X-Access-Token");
    return target->id[0] ? (seal_is_alive(core, target->id, NULL) ? 0 : gone(err))
           : is_named    ? gone(err)
                         : 0;
}

/* Who has shown a token of the sandbox, or signed the URL with one. */
static bool find_holder(struct core *core, const struct http_request *request,
                        const struct e2b_target *target, struct holder *out)
{
    const char *token = http_request_header(request, "X-Access-Token");

    if (token)
        return read_token(core, token, out) && strcmp(out->sandbox_id, target->id) == 0;
    return strcmp(request->path, "/files") == 0 && find_signer(core, request, target, out);
}

static int ended_key(struct error *err)
{
    return error_refuse(
        err, ERROR_UNAUTHORIZED, "token",
        "the key that this token was given to may not use the sandbox any more: connect "
        "to it again with one that may");
}

static int check_token(struct core *core, const struct http_request *request, struct actor *out,
                       struct error *err)
{
    struct e2b_target target;
    struct holder holder;
    struct actor actor = {0};

    if (check_target(core, request, &target, err) < 0)
        return -1;
    if (!find_holder(core, request, &target, &holder))
        return missing_token(err);
    if (key_check_id(core->accounts, holder.key_id, &actor, err) < 0)
        return error_is(err, ERROR_UNAUTHORIZED) ? ended_key(err) : -1;
    if (!seal_hold(core, holder.sandbox_id, &actor))
        return ended_key(err);
    seal_add_key(core, holder.sandbox_id, holder.key_id);
    *out = actor;
    return 0;
}

/* A signature may be anybody's, which is looked for by a worker; so is the reason of what is wrong. */
static enum key_known check_token_quick(struct core *core, const struct http_request *request,
                                        struct actor *out)
{
    struct e2b_target target;
    struct holder holder;
    struct actor actor = {0};
    struct error ignored = {0};

    if (!http_request_header(request, "X-Access-Token") ||
        check_target(core, request, &target, &ignored) < 0 ||
        !find_holder(core, request, &target, &holder))
        return KEY_UNKNOWN;
    enum key_known known = key_check_id_quick(core->accounts, holder.key_id, &actor);
    if ((known != KEY_VALID && known != KEY_STALE) || !seal_hold(core, holder.sandbox_id, &actor))
        return KEY_UNKNOWN;
    *out = actor;
    return known;
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
