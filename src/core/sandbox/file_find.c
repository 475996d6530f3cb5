/* SPDX-License-Identifier: Apache-2.0 */
/* Many files at once: listings by page, and search; see file_access.h. */
#include "core/sandbox/file_access.h"
#include "core/sandbox/file_access_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_MATCH_BYTES ((size_t)8 << 20) // of the paths and texts of all matches

_Static_assert(FILE_KIND_FILE == FILES_KIND_FILE && FILE_KIND_OTHER == FILES_KIND_OTHER &&
                   FILE_KIND_DIRECTORY == FILES_KIND_DIRECTORY && FILE_KIND_LINK == FILES_KIND_LINK,
               "the same to PID 1");

// ---- listings ----

struct finding {
    struct file_access *access;
    struct file_infos infos;
};

static int find_one(void *data, const struct files_item *item, struct error *err)
{
    struct finding *finding = data;
    struct file_infos *infos = &finding->infos;

    if (file_work_check(&finding->access->work, err) < 0)
        return -1;
    struct file_info *info = &infos->items[infos->count++]; // as many as were asked for
    file_access_fill_info(info, item);
    info->path = xstrdup(item->path);
    if (S_ISLNK(item->mode))
        info->target = xstrdup(item->target);
    return 0;
}

void file_infos_clear(struct file_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        file_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct file_infos){0};
}

int file_find(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_query *query,
              struct file_infos *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    size_t maximum = query->maximum < FILE_FIND_MAX ? query->maximum : FILE_FIND_MAX;
    struct finding finding = {.access = &access};
    struct files_total total;
    const struct files_find what = {
        .pattern = query->pattern ? query->pattern : "",
        .after = query->after ? query->after : "",
        .depth = query->depth,
        .kinds = query->kinds ? query->kinds : FILES_KIND_ANY,
        .maximum = maximum,
    };

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    finding.infos.items = xcalloc(maximum, sizeof *finding.infos.items);
    struct files_patience patience = file_access_patience(&access);
    if (files_find(access.work.conversation, place->path, &what, &patience, find_one, &finding,
                   &total, err) < 0) {
        file_infos_clear(&finding.infos);
        return file_access_failed_tree(&access, err);
    }
    finding.infos.has_more = total.is_truncated;
    finding.infos.skipped = total.skipped;
    *out = finding.infos;
    return 0;
}

// ---- search ----

struct searching {
    struct file_access *access;
    struct file_matches matches;
    size_t bytes;
};

/* What does not fit any more ends the search: so far it is a result. */
static int search_one(void *data, const struct files_match *match, struct error *err)
{
    struct searching *searching = data;
    struct file_matches *matches = &searching->matches;

    if (file_work_check(&searching->access->work, err) < 0)
        return -1;
    searching->bytes += strlen(match->path) + match->text_size;
    if (searching->bytes > MAX_MATCH_BYTES) {
        matches->is_cut = true;
        return error_refuse(err, ERROR_TOO_LARGE, "file", "the matches are too long");
    }
    struct file_match *kept = &matches->items[matches->count++]; // as many as were asked for
    *kept = (struct file_match){
        .path = xstrdup(match->path),
        .text = xcalloc(1, match->text_size + 1),
        .text_size = match->text_size,
        .line = match->line,
        .offset_bytes = match->offset,
        .column = match->column,
        .is_cut = match->is_cut,
    };
    memcpy(kept->text, match->text, match->text_size);
    return 0;
}

static int compare_matches(const void *a, const void *b)
{
    const struct file_match *left = a, *right = b;
    int order = files_path_compare(left->path, right->path);

    if (order)
        return order;
    return left->line < right->line ? -1 : left->line > right->line;
}

void file_matches_clear(struct file_matches *matches)
{
    for (size_t i = 0; i < matches->count; i++) {
        free(matches->items[i].path);
        free(matches->items[i].text);
    }
    free(matches->items);
    *matches = (struct file_matches){0};
}

int file_search(struct sandboxes *sandboxes, const struct actor *actor,
                const struct file_place *place, const struct file_grep *grep,
                struct file_matches *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    struct searching searching = {.access = &access};
    struct files_total total = {0};
    const struct files_search what = {
        .pattern = grep->pattern,
        .names = grep->names ? grep->names : "",
        .flags = (grep->is_fixed ? FILES_FIXED : 0) | (grep->ignores_case ? FILES_IGNORE_CASE : 0),
        .depth = grep->depth,
        .line_bytes = grep->line_bytes,
        .file_bytes = grep->file_bytes,
        .maximum = grep->maximum,
    };

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    searching.matches.items = xcalloc(grep->maximum, sizeof *searching.matches.items);
    struct files_patience patience = file_access_patience(&access);
    int result = files_search(access.work.conversation, place->path, &what, &patience, search_one,
                              &searching, &total, err);
    if (result < 0 && !searching.matches.is_cut) {
        file_matches_clear(&searching.matches);
        return file_access_failed(&access, err);
    }
    searching.matches.is_cut |= total.is_truncated != 0;
    searching.matches.skipped = total.skipped;
    searching.matches.bytes = total.bytes;
    if (searching.matches.count)
        qsort(searching.matches.items, searching.matches.count, sizeof *searching.matches.items,
              compare_matches);
    *out = searching.matches;
    return 0;
}
