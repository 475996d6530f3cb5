/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers ask of a call; see call.h. */
#include "web/call.h"

#include "base/id.h"
#include "base/log.h"
#include "base/utf8.h"
#include "web/access.h"
#include "web/call_impl.h"
#include "web/reply.h"

#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct call_work *call_work_of(const struct call *call)
{
    return (const struct call_work *)call;
}

void *call_alloc(struct call *call, size_t size)
{
    return arena_alloc(call->arena, size);
}

char *call_print(struct call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = call_alloc(call, (size_t)length + 1);
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

int call_id(const struct call *call, unsigned index, const char *prefix, const char *noun,
            const char **out, struct error *err)
{
    const char *text = index < ROUTE_PARAMETERS ? call->parameters[index] : NULL;
    size_t length = strlen(prefix);

    if (text && strncmp(text, prefix, length) == 0 && id_is_valid(text + length)) {
        *out = text + length;
        return 0;
    }
    return error_refuse(err, ERROR_NOT_FOUND, noun, "%s '%.80s' not found", noun, text ? text : "");
}

/* Who came by the local socket, and says no other host than this one, is told where it is over TCP. */
static const char *local_url(const struct call *call, const char *host)
{
    const char *url = call_work_of(call)->settings->local_url;
    bool is_local = call->request && call->request->peer.is_local;

    return is_local && url && *url && (!host || strcmp(host, "localhost") == 0) ? url : NULL;
}

const char *call_base_url(struct call *call)
{
    const char *host = call->request ? call->request->host : NULL;
    const char *url = call_work_of(call)->settings->public_url;

    if (!url)
        url = local_url(call, host);
    if (!url)
        return call_print(call, "http://%s", host ? host : "localhost");
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        length--;
    return url[length] ? call_print(call, "%.*s", (int)length, url) : url;
}

const char *call_header(const struct call *call, const char *name)
{
    return call->request ? http_request_header(call->request, name) : NULL;
}

bool call_may_take(void *data, size_t bytes)
{
    const struct call *call = data;

    return gather_charge_add(&call->request->charge, bytes);
}

const char *call_request_id(const struct call *call)
{
    return access_request_id(call->access);
}

void call_about_sandbox(const struct call *call, const char *prefix, const char *id)
{
    access_set_sandbox(call->access, prefix, id);
}

struct loop *call_loop(const struct call *call)
{
    return call_work_of(call)->settings->loop;
}

struct workers *call_workers(const struct call *call)
{
    return call_work_of(call)->settings->workers;
}

/* With a NUL behind each, which none of them but the last can hold, so that no two requests are one text. */
void call_hash_request(const struct http_request *request, unsigned char hash[32])
{
    const char *query = request->query ? request->query : "";
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    (void)EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    (void)EVP_DigestUpdate(context, request->method, strlen(request->method) + 1);
    (void)EVP_DigestUpdate(context, request->path, strlen(request->path) + 1);
    (void)EVP_DigestUpdate(context, query, strlen(query) + 1);
    (void)EVP_DigestUpdate(context, request->body.data, request->body.length);
    (void)EVP_DigestFinal_ex(context, hash, NULL);
    EVP_MD_CTX_free(context);
}

#define ONCE_KEY_MAXIMUM 255

int call_once(struct call *call, const struct once **out, struct error *err)
{
    const char *header = call_header(call, "Idempotency-Key");

    if (!header || !*header) {
        *out = NULL;
        return 0;
    }
    size_t length = strlen(header);
    if (length > ONCE_KEY_MAXIMUM || !utf8_is_valid(header, length))
        return error_set(err, ERROR_INVALID,
                         "the Idempotency-Key must be a text of at most %d bytes",
                         ONCE_KEY_MAXIMUM);
    struct once *once = call_alloc(call, sizeof *once);
    once->realm =
        call_print(call, "%s %s %s%s%s%s", call->front->name, call->route->method,
                   call->route->pattern, call->front->is_once_by_key ? " " : "",
                   call->front->is_once_by_key ? call->actor.key_id : "", call->actor.token_id);
    once->key = header;
    if (call->route->body == BODY_JSON)
        memcpy(once->request_hash, call_work_of(call)->request_hash, sizeof once->request_hash);
    else
        call_hash_request(call->request, once->request_hash);
    *out = once;
    return 0;
}
