/* SPDX-License-Identifier: Apache-2.0 */
/* The opening handshake of a WebSocket, and where it comes from; see upgrade.h. */
#include "web/upgrade.h"

#include "base/base64.h"
#include "web/access.h"
#include "web/tokens.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>
#include <strings.h>

#define KEY_BYTES 16

bool upgrade_is_asked(const struct http_request *request)
{
    return strcmp(request->method, "GET") == 0 && request->minor > 0 && !request->is_head &&
           tokens_have(http_request_header(request, "Upgrade"), "websocket") &&
           tokens_have(http_request_header(request, "Connection"), "upgrade");
}

static int ask_for_upgrade(struct call *call, const char *name, const char *value,
                           const char *sentence, struct error *err)
{
    access_set_header(call->access, call->response, name, value);
    return error_set(err, ERROR_UPGRADE, "%s", sentence);
}

static int check_key(const char *key, struct error *err)
{
    char bytes[KEY_BYTES + 8];
    size_t bad, length = key ? strlen(key) : 0;

    if (length != base64_length(KEY_BYTES) || base64_decode(key, length, bytes, &bad) != KEY_BYTES)
        return error_set(err, ERROR_INVALID, "Sec-WebSocket-Key must be 16 bytes in base64");
    return 0;
}

static void make_accept(const char *key, char out[UPGRADE_ACCEPT])
{
    static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[64];
    unsigned char digest[SHA_DIGEST_LENGTH];
    unsigned length = 0;

    char *end = stpcpy(stpcpy(text, key), magic);
    (void)EVP_Digest(text, (size_t)(end - text), digest, &length, EVP_sha1(), NULL);
    base64_encode(digest, sizeof digest, out);
}

/* ---- whose page it is ---- */

/* "https://a.example:443" and "a.example" are one; NULL where the origin has no host. */
static const char *host_of(const char *origin, size_t *length)
{
    static const struct {
        const char *scheme, *port;
    } schemes[] = {{"http://", ":80"}, {"https://", ":443"}};

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        size_t skip = strlen(schemes[i].scheme), tail = strlen(schemes[i].port);
        if (strncasecmp(origin, schemes[i].scheme, skip) != 0)
            continue;
        *length = strlen(origin + skip);
        if (*length > tail && strcmp(origin + skip + *length - tail, schemes[i].port) == 0)
            *length -= tail;
        return *length ? origin + skip : NULL;
    }
    return NULL;
}

/* By its Host. A proxy in front passes that on with or without the port that goes without saying. */
static bool is_own(const char *origin, const char *host)
{
    size_t length = 0;
    const char *name = host_of(origin, &length);

    if (!name || !host || strncasecmp(name, host, length) != 0)
        return false;
    const char *rest = host + length;
    bool is_secure = strncasecmp(origin, "https", 5) == 0;
    return *rest == '\0' || strcmp(rest, is_secure ? ":443" : ":80") == 0;
}

static int check_origin(const struct http_request *request, const char *origins, struct error *err)
{
    const char *origin = NULL;

    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, "Origin") != 0)
            continue;
        if (origin)
            return error_set(err, ERROR_INVALID, "there is more than one Origin");
        origin = request->headers[i].value;
    }
    if (!origin || is_own(origin, request->host) || tokens_have(origins, "*") ||
        (*origin && tokens_have(origins, origin)))
        return 0;
    return error_refuse(
        err, ERROR_DENIED, "origin",
        "pages of '%.200s' may not open a socket here: the operator names those that may", origin);
}

void upgrade_copy(struct upgrade *to, const struct upgrade *from)
{
    *to = *from;
    to->headers[1].value = to->accept;
}

int upgrade_check(struct call *call, const char *origins, struct upgrade *out, struct error *err)
{
    const struct http_request *request = call->request;
    const char *version = http_request_header(request, "Sec-WebSocket-Version");
    const char *key = http_request_header(request, "Sec-WebSocket-Key");
    const char *protocols = http_request_header(request, "Sec-WebSocket-Protocol");

    if (check_origin(request, origins, err) < 0)
        return -1;
    if (!upgrade_is_asked(request))
        return ask_for_upgrade(call, "Upgrade", "websocket",
                               "this is a WebSocket: ask with 'Upgrade: websocket'", err);
    if (!version || strcmp(version, "13") != 0)
        return ask_for_upgrade(call, "Sec-WebSocket-Version", "13",
                               "version 13 of WebSocket is spoken here", err);
    if (request->has_body)
        return error_set(err, ERROR_INVALID, "a request for a WebSocket has no body");
    if (check_key(key, err) < 0)
        return -1;
    if (protocols && !tokens_have(protocols, UPGRADE_PROTOCOL))
        return error_set(err, ERROR_INVALID,
                         "of subprotocols, only '" UPGRADE_PROTOCOL "' is spoken here");
    make_accept(key, out->accept);
    out->headers[0] = (struct http_header){"Upgrade", "websocket"};
    out->headers[1] = (struct http_header){"Sec-WebSocket-Accept", out->accept};
    out->headers[2] =
        (struct http_header){protocols ? "Sec-WebSocket-Protocol" : NULL, UPGRADE_PROTOCOL};
    out->headers[3] = (struct http_header){0};
    return 0;
}
