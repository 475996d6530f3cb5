/* SPDX-License-Identifier: Apache-2.0 */
/* Names of requests; see request_id.h. */
#include "web/request_id.h"

#include <string.h>
#include <sys/random.h>

void request_ids_init(struct request_ids *ids)
{
    if (getrandom(ids->state, sizeof ids->state, 0) != (ssize_t)sizeof ids->state)
        ids->state[0] = (uint64_t)(uintptr_t)ids; // still no two of one server are the same
}

/* splitmix64 (Steele, Lea, Flood 2014): a counter, scattered. No system call for every request. */
static uint64_t scatter(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* As a UUID of version 4: "709bda30-1c5f-4f0e-9a3b-52c1d0a7e9f4". */
static void make(struct request_ids *ids, char out[REQUEST_ID_TEXT])
{
    static const char form[] = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx",
                      digits[] = "0123456789abcdef";
    uint64_t bits = scatter(&ids->state[0]);
    size_t i = 0;

    for (; form[i]; i++) {
        if (i == 18)
            bits = scatter(&ids->state[1]);
        out[i] = form[i] == 'x'   ? digits[bits & 15]
                 : form[i] == 'v' ? digits[8 | (bits & 3)]
                                  : form[i];
        if (form[i] != '-' && form[i] != '4')
            bits >>= 4;
    }
    out[i] = '\0';
}

static size_t trim(const char **text)
{
    size_t length;

    *text += strspn(*text, " \t");
    length = strlen(*text);
    while (length > 0 && ((*text)[length - 1] == ' ' || (*text)[length - 1] == '\t'))
        length--;
    return length;
}

static bool is_sane(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            return false;
    }
    return length > 0 && length < REQUEST_ID_TEXT;
}

void request_id_read(struct request_ids *ids, const struct http_request *request,
                     char out[REQUEST_ID_TEXT])
{
    const char *text = request ? http_request_header(request, "X-Request-Id") : NULL;
    size_t length = text ? trim(&text) : 0;

    if (!is_sane(text, length)) {
        make(ids, out);
        return;
    }
    memcpy(out, text, length);
    out[length] = '\0';
}
