/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of webhooks; see webhook_url.h. */
#include "core/webhook/webhook_url.h"

#include "core/webhook/webhook.h"

#include <string.h>

static int refuse(struct error *err, const char *why)
{
    (void)error_refuse(err, ERROR_INVALID, "webhook", "url: %s", why);
    return error_field(err, "url");
}

static const char *after_scheme(const char *url, bool is_http_allowed)
{
    if (strncmp(url, "https://", 8) == 0)
        return url + 8;
    return is_http_allowed && strncmp(url, "http://", 7) == 0 ? url + 7 : NULL;
}

int webhook_url_check(const char *url, bool is_http_allowed, struct error *err)
{
    const char *host = after_scheme(url, is_http_allowed);

    if (strlen(url) > WEBHOOK_URL)
        return refuse(err, "must have at most 2048 characters");
    for (const char *at = url; *at; at++) {
        if (*at <= ' ' || *at > '~' || *at == '\\' || *at == '#')
            return refuse(err, "must be printable ASCII without spaces, backslashes and '#'");
    }
    if (!host)
        return refuse(err, is_http_allowed ? "must begin with https:// or http://"
                                           : "must begin with https://");
    size_t length = strcspn(host, "/?");
    if (memchr(host, '@', length))
        return refuse(err, "must not name a user: deliveries are signed instead");
    if (length == 0 || *host == ':')
        return refuse(err, "must name a host");
    return 0;
}
