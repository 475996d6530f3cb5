/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in a snapshot's archive; see archive_text.h. */
#include "core/snapshot/archive_text.h"

#include "base/mem.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "burrow-snapshot 1"
#define FIRST_WORD "burrow-snapshot "
#define ABOUT_MAX_LINES ((size_t)512 << 10)
#define CHECKSUM_LENGTH 64
#define LINE_MIN (CHECKSUM_LENGTH + 4) // with two spaces, a name of one character and the newline

int about_begin(struct buffer *about, struct error *err)
{
    return buffer_add_text(about, FIRST_LINE "\n", err);
}

int about_add(struct buffer *about, const char *name, const char *value, struct error *err)
{
    if (!value)
        return 0;
    autofree char *line = xasprintf("%s: %s", name, value);
    const char *one[] = {line, NULL};
    autofree char *packed = strings_pack(one);
    return buffer_add_text(about, packed, err);
}

/* Lines of nothing cost more memory than they take in the archive. */
static bool has_fair_lines(const char *text)
{
    size_t lines = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return lines <= ABOUT_MAX_LINES;
}

int about_read(const struct buffer *about, struct strings *lines, struct error *err)
{
    autostrings found = {0};

    if (about->length && strlen(about->data) == about->length && has_fair_lines(about->data))
        strings_unpack(about->data, &found);
    if (found.count == 0 || strncmp(found.items[0], FIRST_WORD, sizeof FIRST_WORD - 1) != 0)
        return error_refuse(err, ERROR_DAMAGED, "archive", "this is no archive of a snapshot");
    if (strcmp(found.items[0], FIRST_LINE) != 0) {
        quote_scrub(found.items[0]);
        return error_refuse(err, ERROR_REFUSED, "archive",
                            "the archive is '%.40s', of a later burrow; this one knows '" FIRST_LINE
                            "'",
                            found.items[0]);
    }
    *lines = found;
    found = (struct strings){0};
    return 0;
}

const char *about_next(const struct strings *lines, const char *name, size_t *at)
{
    size_t length = strlen(name);

    while (*at < lines->count) {
        const char *line = lines->items[(*at)++];
        if (strncmp(line, name, length) == 0 && strncmp(line + length, ": ", 2) == 0)
            return line + length + 2;
    }
    return NULL;
}

const char *about_get(const struct strings *lines, const char *name)
{
    size_t at = 1;
    return about_next(lines, name, &at);
}

/* Names with newlines and backslashes are escaped, which a backslash at the beginning of the line tells. */
int checksums_add(struct buffer *checksums, const char *checksum, const char *path,
                  struct error *err)
{
    bool is_escaped = strpbrk(path, "\n\\\r") != NULL;

    if (buffer_addf(checksums, err, "%s%s  ", is_escaped ? "\\" : "", checksum) < 0)
        return -1;
    for (const char *c = path; *c; c++) {
        const char *escape = *c == '\n' ? "\\n" : *c == '\r' ? "\\r" : *c == '\\' ? "\\\\" : NULL;
        if ((escape ? buffer_add_text(checksums, escape, err) : buffer_add(checksums, c, 1, err)) <
            0)
            return -1;
    }
    return buffer_add_text(checksums, "\n", err);
}

struct checksum_line {
    const char *at;
    size_t length; // with its newline
    bool is_used;
};

static int compare(const void *left, const void *right)
{
    const struct checksum_line *a = left, *b = right;
    int order = memcmp(a->at, b->at, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_checksum_line(const char *at, size_t length)
{
    if (length && *at == '\\') {
        at++;
        length--;
    }
    return length >= LINE_MIN && strspn(at, "0123456789abcdef") == CHECKSUM_LENGTH &&
           memcmp(at + CHECKSUM_LENGTH, "  ", 2) == 0 && at[length - 1] == '\n';
}

int checksums_read(const struct buffer *text, struct checksums *out, struct error *err)
{
    const char *at = text->data, *end = at + text->length;
    size_t capacity = 0;

    while (text->length && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline + 1 : end) - at);
        if (!is_checksum_line(at, length))
            return error_refuse(err, ERROR_DAMAGED, "archive",
                                "the archive is damaged: line %zu of '" SNAPSHOT_CHECKSUMS
                                "' is no sum and name",
                                out->count + 1);
        if (out->count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            out->lines = xrealloc(out->lines, capacity, sizeof *out->lines);
        }
        out->lines[out->count++] = (struct checksum_line){.at = at, .length = length};
        at += length;
    }
    if (out->count)
        qsort(out->lines, out->count, sizeof *out->lines, compare);
    return 0;
}

bool checksums_use(struct checksums *checksums, const char *checksum, const char *path)
{
    autobuffer line = {0};
    struct error ignored = {0};

    if (!checksums->count || checksums_add(&line, checksum, path, &ignored) < 0)
        return false;
    const struct checksum_line wanted = {.at = line.data, .length = line.length};
    struct checksum_line *found =
        bsearch(&wanted, checksums->lines, checksums->count, sizeof wanted, compare);
    if (!found || found->is_used)
        return false;
    found->is_used = true;
    checksums->n_used++;
    return true;
}

void checksums_clear(struct checksums *checksums)
{
    free(checksums->lines);
    *checksums = (struct checksums){0};
}
