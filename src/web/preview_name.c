/* SPDX-License-Identifier: Apache-2.0 */
/* Names of exposed ports; see preview_name.h. */
#include "web/preview_name.h"

#include "base/id.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Without the port; a dot at the end means the same name. */
static size_t bare_length(const char *host, size_t length)
{
    const char *colon = memchr(host, ':', length);

    if (colon)
        length = (size_t)(colon - host);
    return length && host[length - 1] == '.' ? length - 1 : length;
}

bool preview_name_is_below(const char *host, size_t length, const char *domain)
{
    size_t bare = bare_length(host, length), tail = strlen(domain);

    return bare > tail + 1 && host[bare - tail - 1] == '.' &&
           strncasecmp(host + bare - tail, domain, tail) == 0;
}

bool preview_name_is_asked(const char *head, size_t length, const char *domain)
{
    const char *end = head + length;

    for (const char *line = memchr(head, '\n', length); line && end - ++line > 5;
         line = memchr(line, '\n', (size_t)(end - line))) {
        if (strncasecmp(line, "host:", 5) != 0)
            continue;
        const char *host = line + 5, *stop = memchr(host, '\r', (size_t)(end - host));
        if (!stop)
            return false;
        while (host < stop && (*host == ' ' || *host == '\t'))
            host++;
        while (stop > host && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        return preview_name_is_below(host, (size_t)(stop - host), domain);
    }
    return false;
}

static bool read_word(const char *text, size_t length, struct preview_name *out)
{
    out->is_token = length == PORT_TOKEN_LETTERS;
    if (length != ID_LENGTH && !out->is_token)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]))
            return false;
        out->word[i] = (char)tolower((unsigned char)text[i]);
    }
    out->word[length] = '\0';
    return true;
}

bool preview_name_read(const char *host, const char *domain, struct preview_name *out)
{
    size_t length = strlen(host);
    unsigned long port = 0;
    size_t digits = 0;

    if (!preview_name_is_below(host, length, domain))
        return false;
    size_t label = bare_length(host, length) - strlen(domain) - 1;
    while (digits < 6 && host[digits] >= '0' && host[digits] <= '9')
        port = port * 10 + (unsigned long)(host[digits++] - '0');
    if (digits < 1 || digits > 5 || host[0] == '0' || host[digits] != '-' || port > PORT_MOST)
        return false;
    out->port = (uint16_t)port;
    return label > digits + 1 && read_word(host + digits + 1, label - digits - 1, out);
}
