/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differences of texts; see patch.h. Lines become numbers, equal ones the same; what both texts begin and end with is cut off; for the
 * rest the shortest way from one to the other is looked for (E. Myers, An O(ND) Difference Algorithm, 1986), up to a number
 * of steps. Where that does not reach, all of the rest counts as replaced.
 */
#include "core/snapshot/patch.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

#define CONTEXT 3
#define MAX_STEPS 2000 // takes 16 MiB

struct line {
    const char *at;
    uint32_t length; // with its newline, if it has one
    uint32_t number; // equal lines have equal ones
};

struct side {
    struct line *lines;
    size_t count;
    bool *is_changed; // by line: removed, or added
};

static void side_clear(struct side *side)
{
    free(side->lines);
    free(side->is_changed);
}
#define autoside __attribute__((cleanup(side_clear))) struct side

bool patch_is_text(const struct patch_text *text)
{
    return text->length == 0 || !memchr(text->bytes, 0, text->length);
}

// ---- lines ----

static int split(const struct patch_text *text, struct side *side, struct error *err)
{
    const char *at = text->bytes, *end = at + text->length;

    if (text->length > PATCH_MAX_BYTES)
        return error_set(err, ERROR_LIMIT, "texts above 1 MiB are not compared");
    side->lines = xcalloc(PATCH_MAX_LINES, sizeof *side->lines);
    while (text->length && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        if (side->count == PATCH_MAX_LINES)
            return error_set(err, ERROR_LIMIT, "texts of more than %u lines are not compared",
                             PATCH_MAX_LINES);
        side->lines[side->count++] = (struct line){.at = at, .length = (uint32_t)(next - at)};
        at = next;
    }
    side->is_changed = xcalloc(side->count + 1, sizeof *side->is_changed);
    return 0;
}

static int by_content(const void *left, const void *right)
{
    const struct line *a = *(struct line *const *)left, *b = *(struct line *const *)right;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->at, b->at, a->length);
}

/* By sorting, not hashing: whoever writes the lines could make all their hashes meet. */
static void number_both(struct side *before, struct side *after)
{
    size_t count = before->count + after->count;
    autofree struct line **sorted = xcalloc(count + 1, sizeof(struct line *));
    uint32_t next = 0;

    for (size_t i = 0; i < count; i++)
        sorted[i] = i < before->count ? &before->lines[i] : &after->lines[i - before->count];
    if (count)
        qsort(sorted, count, sizeof(struct line *), by_content);
    for (size_t i = 0; i < count; i++) {
        next += i > 0 && by_content(&sorted[i - 1], &sorted[i]) != 0;
        sorted[i]->number = next;
    }
}

// ---- the shortest way ----

struct way {
    const struct line *a, *b; // what is left of the texts
    int n, m;
    int32_t *rows; // row d: the furthest x on diagonals -d, -d+2 … d
};

static int32_t *row(const struct way *way, int d)
{
    return way->rows + (size_t)d * ((size_t)d + 1) / 2;
}

/* Of the furthest points that d steps reach, that on diagonal k; *is_down: the last step was an addition. */
static int32_t before_step(const struct way *way, int d, int k, bool *is_down)
{
    const int32_t *old = row(way, d - 1);
    // diagonal k stands at (k + d) / 2 of row d
    int32_t left = k > -d ? old[(k - 1 + d - 1) / 2] : -1;
    int32_t right = k < d ? old[(k + 1 + d - 1) / 2] : -1;
    *is_down = k == -d || (k != d && left < right);
    return *is_down ? right : left + 1;
}

static int32_t follow(const struct way *way, int32_t x, int k)
{
    while (x < way->n && x - k < way->m && way->a[x].number == way->b[x - k].number)
        x++;
    return x;
}

/* Steps that are needed, or -1 when there are too many. */
static int find_way(const struct way *way)
{
    bool is_down;
    for (int d = 0; d <= MAX_STEPS; d++) {
        int32_t *now = row(way, d);
        for (int k = -d; k <= d; k += 2) {
            int32_t x = d == 0 ? 0 : before_step(way, d, k, &is_down);
            if (x <= way->n && x - k <= way->m && x - k >= 0)
                x = follow(way, x, k);
            now[(k + d) / 2] = x;
            if (x >= way->n && x - k >= way->m)
                return d;
        }
    }
    return -1;
}

static void mark_way(const struct way *way, int steps, bool *removed, bool *added)
{
    int k = way->n - way->m;
    for (int d = steps; d > 0; d--) {
        bool is_down;
        int32_t x = before_step(way, d, k, &is_down);
        if (is_down)
            added[x - k - 1] = true;
        else
            removed[x - 1] = true;
        k += is_down ? 1 : -1;
    }
}

static void compare(struct side *before, struct side *after)
{
    size_t first = 0, n = before->count, m = after->count;

    while (first < n && first < m && before->lines[first].number == after->lines[first].number)
        first++;
    while (n > first && m > first && before->lines[n - 1].number == after->lines[m - 1].number) {
        n--;
        m--;
    }
    struct way way = {before->lines + first, after->lines + first, (int)(n - first),
                      (int)(m - first), NULL};
    int steps = -1;
    if (way.n && way.m) {
        way.rows = xcalloc((size_t)(MAX_STEPS + 1) * (MAX_STEPS + 2) / 2, sizeof *way.rows);
        steps = find_way(&way);
    }
    if (steps < 0) {
        memset(before->is_changed + first, true, n - first);
        memset(after->is_changed + first, true, m - first);
    } else {
        mark_way(&way, steps, before->is_changed + first, after->is_changed + first);
    }
    free(way.rows);
}

// ---- writing ----

static int add_line(char mark, const struct line *line, struct buffer *out, struct error *err)
{
    if (buffer_add(out, &mark, 1, err) < 0 || buffer_add(out, line->at, line->length, err) < 0)
        return -1;
    if (line->at[line->length - 1] == '\n')
        return 0;
    return buffer_add_text(out, "\n\\ No newline at end of file\n", err);
}

/* As diff has it: a range without lines is named by the line before it. */
static int add_range(char mark, size_t first, size_t count, struct buffer *out, struct error *err)
{
    size_t named = count ? first + 1 : first;
    return count == 1 ? buffer_addf(out, err, " %c%zu", mark, named)
                      : buffer_addf(out, err, " %c%zu,%zu", mark, named, count);
}

/* Lines that belong together: [i, i_end) of before, [j, j_end) of after. */
struct hunk {
    size_t i, i_end, j, j_end;
};

static int add_hunk(const struct side *before, const struct side *after, const struct hunk *hunk,
                    struct buffer *out, struct error *err)
{
    if (buffer_add_text(out, "@@", err) < 0 ||
        add_range('-', hunk->i, hunk->i_end - hunk->i, out, err) < 0 ||
        add_range('+', hunk->j, hunk->j_end - hunk->j, out, err) < 0 ||
        buffer_add_text(out, " @@\n", err) < 0)
        return -1;
    for (size_t i = hunk->i, j = hunk->j; i < hunk->i_end || j < hunk->j_end;) {
        bool is_removed = i < hunk->i_end && before->is_changed[i];
        bool is_added = !is_removed && j < hunk->j_end && after->is_changed[j];
        const struct line *line = is_added ? &after->lines[j] : &before->lines[i];
        if (add_line(is_removed ? '-' : is_added ? '+' : ' ', line, out, err) < 0)
            return -1;
        i += !is_added;
        j += !is_removed;
    }
    return 0;
}

static bool is_change(const struct side *before, const struct side *after, size_t i, size_t j)
{
    return (i < before->count && before->is_changed[i]) ||
           (j < after->count && after->is_changed[j]);
}

static void pass_changes(const struct side *before, const struct side *after, size_t *i, size_t *j)
{
    while (*i < before->count && before->is_changed[*i])
        ++*i;
    while (*j < after->count && after->is_changed[*j])
        ++*j;
}

/* From the change at *i, *j: it and those near it, with what is around them. */
static struct hunk gather(const struct side *before, const struct side *after, size_t *i, size_t *j)
{
    size_t ahead = *i < CONTEXT ? *i : CONTEXT;
    struct hunk hunk = {.i = *i - ahead, .j = *j - ahead};
    size_t equal = 0;

    pass_changes(before, after, i, j);
    while (*i + equal < before->count && equal <= (size_t)2 * CONTEXT) {
        if (!is_change(before, after, *i + equal, *j + equal)) {
            equal++;
            continue;
        }
        *i += equal;
        *j += equal;
        equal = 0;
        pass_changes(before, after, i, j);
    }
    if (equal <= (size_t)2 * CONTEXT &&
        is_change(before, after, *i + equal, *j + equal)) { // additions behind the last line
        *i += equal;
        *j += equal;
        equal = 0;
        pass_changes(before, after, i, j);
    }
    size_t behind = equal < CONTEXT ? equal : CONTEXT;
    hunk.i_end = *i + behind;
    hunk.j_end = *j + behind;
    *i += equal;
    *j += equal;
    return hunk;
}

static int add_hunks(const struct side *before, const struct side *after, struct buffer *out,
                     struct error *err)
{
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        if (!is_change(before, after, i, j)) {
            i++;
            j++;
            continue;
        }
        struct hunk hunk = gather(before, after, &i, &j);
        if (add_hunk(before, after, &hunk, out, err) < 0)
            return -1;
    }
    return 0;
}

/* Names with characters that would end the line or the name are quoted as git does it. */
static int add_name(const char *mark, const char *prefix, const char *path, struct buffer *out,
                    struct error *err)
{
    bool is_plain = true;
    for (const char *c = path; *c; c++)
        is_plain &= (unsigned char)*c >= 0x20 && *c != 0x7f && *c != '"' && *c != '\\';
    if (is_plain) // a name with a space ends with a tab
        return buffer_addf(out, err, "%s %s%s%s\n", mark, prefix, path,
                           strchr(path, ' ') ? "\t" : "");
    if (buffer_addf(out, err, "%s \"%s", mark, prefix) < 0)
        return -1;
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        bool is_odd = *c < 0x20 || *c == 0x7f, is_marked = *c == '"' || *c == '\\';
        if ((is_odd ? buffer_addf(out, err, "\\%03o", *c)
                    : buffer_addf(out, err, "%s%c", is_marked ? "\\" : "", *c)) < 0)
            return -1;
    }
    return buffer_add_text(out, "\"\n", err);
}

int patch_make(const char *path, const struct patch_text *before, const struct patch_text *after,
               struct buffer *out, struct error *err)
{
    autoside old = {0};
    autoside new = {0};

    if (before->length == after->length &&
        (!before->length || memcmp(before->bytes, after->bytes, after->length) == 0))
        return 0;
    if (split(before, &old, err) < 0 || split(after, &new, err) < 0)
        return -1;
    number_both(&old, &new);
    compare(&old, &new);
    if ((before->is_missing ? buffer_add_text(out, "--- /dev/null\n", err)
                            : add_name("---", "a", path, out, err)) < 0 ||
        (after->is_missing ? buffer_add_text(out, "+++ /dev/null\n", err)
                           : add_name("+++", "b", path, out, err)) < 0)
        return -1;
    return add_hunks(&old, &new, out, err);
}
