/* SPDX-License-Identifier: Apache-2.0 */
/* Fronts: their hosts, and what they want; see front.h. */
#include "web/front.h"

#include <string.h>
#include <strings.h>

/* Without its port: "[::1]:80" → "[::1]". */
static size_t name_length(const char *host)
{
    const char *colon = strrchr(host, ':');
    bool is_port =
        colon && !strchr(colon, ']') && colon[1 + strspn(colon + 1, "0123456789")] == '\0';

    return is_port ? (size_t)(colon - host) : strlen(host);
}

static bool is_host(const char *pattern, const char *host, size_t length)
{
    bool is_below = pattern[0] == '*';
    const char *name = pattern + is_below;
    size_t tail = strlen(name);

    if (length < tail + is_below || (!is_below && length != tail))
        return false;
    return strncasecmp(host + length - tail, name, tail) == 0;
}

bool front_has_host(const struct front *front, const char *host)
{
    size_t length = host ? name_length(host) : 0;

    for (const char *const *pattern = front->hosts; length && pattern && *pattern; pattern++) {
        if (is_host(*pattern, host, length))
            return true;
    }
    return false;
}

struct front_defaults front_defaults_of(const struct front *const *fronts)
{
    struct front_defaults all = {0};

    for (; *fronts; fronts++) {
        const struct front_defaults *wanted = &(*fronts)->defaults;
        if (!all.queue_at_once)
            all.queue_at_once = wanted->queue_at_once;
        if (!all.queue_length)
            all.queue_length = wanted->queue_length;
    }
    return all;
}
