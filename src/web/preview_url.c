/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of exposed ports; see preview_url.h. */
#include "web/preview_url.h"

#include "web/call_impl.h"
#include "web/preview.h"

#include <string.h>

/* The host in "https://host:port/path"; an IPv6 one keeps its brackets. */
static const char *bare_host(struct call *call)
{
    const char *url = call_base_url(call), *mark = strstr(url, "://");
    const char *host = mark ? mark + 3 : url;
    size_t length = strcspn(host, "/");
    const char *end = *host == '[' ? memchr(host, ']', length) : NULL;

    if (end)
        length = (size_t)(end - host) + 1;
    else
        length = strcspn(host, ":/");
    return call_print(call, "%.*s", (int)length, host);
}

static const char *named(struct call *call, const struct port_info *info, const char *word)
{
    const struct preview_names *names = call_work_of(call)->settings->previews;

    if (!names || !names->domain || info->protocol != PORT_HTTP)
        return NULL;
    if (info->port == PORT_ALL)
        return call_print(call, "%s://{port}-%s.%s%s", names->scheme, word, names->domain,
                          names->port);
    return call_print(call, "%s://%u-%s.%s%s", names->scheme, info->port, word, names->domain,
                      names->port);
}

const char *preview_url(struct call *call, const struct port_info *info)
{
    const char *by_name = named(call, info, info->sandbox_id);

    if (by_name || !info->host_port)
        return by_name;
    return call_print(call, "%s://%s:%u", info->protocol == PORT_TCP ? "tcp" : "http",
                      bare_host(call), info->host_port);
}

const char *preview_token_url(struct call *call, const struct port_info *info)
{
    return info->token[0] ? named(call, info, info->token) : NULL;
}

const char *preview_domain(struct call *call)
{
    const struct preview_names *names = call_work_of(call)->settings->previews;

    return names && names->domain ? call_print(call, "%s%s", names->domain, names->port) : NULL;
}
