/* SPDX-License-Identifier: Apache-2.0 */
/* Names as they are compared, and names that are not ASCII in their form for DNS (RFC 3492); see policy.h. */
#include "policy/policy_name.h"

#include "base/auto.h"

#include <ctype.h>
#include <string.h>

#define LABEL 63
#define MAX_POINTS 64

bool policy_is_host(const char *name)
{
    static const char *const aliases[] = {"host",
                                          "host.burrow",
                                          "localhost",
                                          "host.docker.internal",
                                          "gateway.docker.internal",
                                          "host.containers.internal"};

    for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
        if (strcmp(name, aliases[i]) == 0)
            return true;
    }
    return false;
}

static bool is_label(const char *label, size_t length)
{
    if (length == 0 || length > LABEL || label[0] == '-' || label[length - 1] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)label[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return true;
}

/* "1", "0x7f": where a name ends so, some clients take it for an address, in one of its many spellings. */
static bool is_number(const char *label, size_t length)
{
    bool is_hex = length > 1 && label[0] == '0' && label[1] == 'x';

    for (size_t i = is_hex ? 2 : 0; i < length; i++) {
        if (is_hex ? !isxdigit((unsigned char)label[i]) : !isdigit((unsigned char)label[i]))
            return false;
    }
    return true;
}

bool policy_fold_name(const char *name, size_t length, char out[POLICY_NAME_LENGTH])
{
    if (length && name[length - 1] == '.')
        length--;
    if (length == 0 || length >= POLICY_NAME_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        out[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    out[length] = '\0';
    if (strlen(out) != length)
        return false;
    const char *label = out;
    for (;;) {
        size_t label_length = strcspn(label, ".");
        if (!is_label(label, label_length))
            return false;
        if (!label[label_length])
            return !is_number(label, label_length);
        label += label_length + 1;
    }
}

// ---- names that are not ASCII ----

/* The next code point of UTF-8; 0 where there is none. */
static uint32_t next_point(const char **text, const char *end)
{
    const unsigned char *p = (const unsigned char *)*text;
    size_t more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : 3;
    static const uint32_t least[] = {1, 0x80, 0x800, 0x10000};
    uint32_t point = more == 0 ? *p : *p & (0x3fU >> more);

    if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4 || (size_t)(end - *text) <= more)
        return 0;
    for (size_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = (point << 6) | (p[i] & 0x3f);
    }
    if (point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    *text += more + 1;
    return point;
}

/* Small letters where they are a fixed distance away: Latin, Greek and Cyrillic. Whoever needs more writes the form of DNS. */
static uint32_t small(uint32_t point)
{
    if ((point >= 'A' && point <= 'Z') || (point >= 0xc0 && point <= 0xde && point != 0xd7) ||
        (point >= 0x391 && point <= 0x3a9) || (point >= 0x410 && point <= 0x42f))
        return point + 32;
    if (point >= 0x400 && point <= 0x40f)
        return point + 80;
    return point;
}

static uint32_t adapt(uint32_t delta, uint32_t count, bool is_first)
{
    uint32_t k = 0;

    delta = is_first ? delta / 700 : delta / 2;
    delta += delta / count;
    for (; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

/* One variable-length integer of RFC 3492; false where there is no room. */
static bool put_delta(uint32_t delta, uint32_t bias, char *out, size_t *length)
{
    for (uint32_t k = 36;; k += 36) {
        uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        uint32_t digit = delta < t ? delta : t + (delta - t) % (36 - t);
        if (*length >= LABEL)
            return false;
        out[(*length)++] = (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
        if (delta < t)
            return true;
        delta = (delta - t) / (36 - t);
    }
}

static uint32_t least_from(const uint32_t *points, size_t count, uint32_t from)
{
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < count; i++) {
        if (points[i] >= from && points[i] < least)
            least = points[i];
    }
    return least;
}

/* "xn--" and the rest; the count of bytes, or 0. */
static size_t encode_label(const uint32_t *points, size_t count, char out[LABEL])
{
    size_t length = 4;
    uint32_t basic = 0, bias = 72, delta = 0, next = 128;

    memcpy(out, "xn--", 4);
    for (size_t i = 0; i < count; i++) {
        if (points[i] < 128 && length < LABEL - 1) {
            out[length++] = (char)points[i];
            basic++;
        }
    }
    if (basic)
        out[length++] = '-';
    for (uint32_t done = basic; done < count;) {
        uint32_t least = least_from(points, count, next);
        if (least - next > (UINT32_MAX - delta) / (done + 1))
            return 0;
        delta += (least - next) * (done + 1);
        next = least;
        for (size_t i = 0; i < count; i++) {
            if (points[i] < next)
                delta++;
            if (points[i] != next)
                continue;
            if (!put_delta(delta, bias, out, &length))
                return 0;
            bias = adapt(delta, done + 1, done == basic);
            delta = 0;
            done++;
        }
        delta++;
        next++;
    }
    return length;
}

static bool put_label(const char *label, const char *end, char *out, size_t *length)
{
    uint32_t points[MAX_POINTS];
    char encoded[LABEL];
    size_t count = 0, bytes = 0;
    bool is_ascii = true;

    while (label < end) {
        uint32_t point = next_point(&label, end);
        if (!point || count == MAX_POINTS)
            return false;
        is_ascii &= point < 128;
        points[count++] = small(point);
    }
    if (is_ascii) {
        for (; bytes < count && bytes < LABEL; bytes++)
            encoded[bytes] = (char)points[bytes];
    } else {
        bytes = encode_label(points, count, encoded);
    }
    if (bytes == 0 || bytes < (is_ascii ? count : 1) || *length + bytes + 2 > POLICY_NAME_LENGTH)
        return false;
    memcpy(out + *length, encoded, bytes);
    *length += bytes;
    return true;
}

bool policy_name_to_ascii(const char *text, size_t length, char out[POLICY_NAME_LENGTH])
{
    const char *end = text + length;
    size_t used = 0;

    if (length && end[-1] == '.')
        end--;
    while (text < end) {
        const char *dot = memchr(text, '.', (size_t)(end - text));
        if (!put_label(text, dot ? dot : end, out, &used))
            return false;
        if (!dot)
            break;
        out[used++] = '.';
        text = dot + 1;
    }
    return policy_fold_name(out, used, out);
}
