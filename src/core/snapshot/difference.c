/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed between two moments; see difference.h. */
#include "core/sandbox/pool.h"
#include "core/snapshot/difference.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/sandbox/file_work.h"
#include "core/sandbox/lookup.h"
#include "core/snapshot/patch.h"
#include "core/layer/stack.h"
#include "store/checkpoints.h"
#include "core/sandbox/sandbox_box.h"
#include "core/snapshot/snapshots.h"
#include "core/layer/layers.h"

#include <string.h>
#include <sys/stat.h>

#define PATHS_MAX ((size_t)32 << 20)      // of all entries together: more are in no answer
#define TEXT_BYTES_MAX ((size_t)64 << 20) // one text may have many names

void difference_clear(struct difference *difference)
{
    for (size_t i = 0; i < difference->count; i++) {
        free((char *)difference->entries[i].path);
        free((char *)difference->entries[i].patch);
    }
    free(difference->entries);
    *difference = (struct difference){0};
}

// ---- moments ----

/* One of the two, as layers. */
struct moment {
    struct stack stack;
    char *layers;          // packed
    char kept[LAYER_NAME]; // "now", kept for as long as it is looked at; "": not
    char scratch[LAYER_NAME * 2];
};

static void moment_clear(struct snapshots *snapshots, struct moment *moment)
{
    struct error ignored = {0};

    stack_clear(&moment->stack);
    free(moment->layers);
    if (moment->kept[0])
        (void)layer_remove(snapshots->volume, moment->kept, &ignored); // else swept
}

/*
 * Where that costs nothing, the files as they are at one instant; else each file as it is when it is looked at. Such a layer has no
 * row, so that a crash leaves nothing of it.
 */
static int find_now(struct snapshots *snapshots, struct sandbox *sandbox, struct moment *out,
                    struct error *err)
{
    const char *below = sandbox->record.layers;

    if (layer_is_cheap(snapshots->volume)) {
        char name[LAYER_NAME];
        if (sandbox_save_files(sandbox, layers_name(name), NULL, err) < 0)
            return -1;
        memcpy(out->kept, name, sizeof out->kept);
        out->layers = layers_on_top(name, below);
        return 0;
    }
    out->layers = xstrdup(below ? below : "");
    autofree char *scratch = sandbox_scratch(sandbox);
    autobox held = sandbox_share_box(sandbox);
    if (!scratch && sandbox->box)
        scratch = xstrdup(box_scratch(sandbox->box));
    (void)snprintf(out->scratch, sizeof out->scratch, "%s", scratch ? scratch : "");
    return 0;
}

static int find_checkpoint(struct snapshots *snapshots, struct sandbox *sandbox,
                           const char *reference, struct layers_pin *pin, struct moment *out,
                           struct error *err)
{
    autocheckpoint record = {0};

    if (store_checkpoint_get(sandbox->sandboxes->store, sandbox->id, reference, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", reference) : -1;
    autofree char *own = layers_on_top(record.layer, NULL);
    if (layers_pin(pin, own, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", reference) : -1;
    out->layers = layers_on_top(record.layer, sandbox->record.layers);
    return 0;
}

static int moment_open(struct snapshots *snapshots, struct sandbox *sandbox, const char *reference,
                       struct layers_pin *pin, struct moment *out, struct error *err)
{
    const char *below = sandbox->record.layers;
    int result = 0;

    if (strcmp(reference, DIFFERENCE_NOW) == 0)
        result = find_now(snapshots, sandbox, out, err);
    else if (strcmp(reference, DIFFERENCE_BASE) == 0)
        out->layers = xstrdup(below ? below : "");
    else
        result = find_checkpoint(snapshots, sandbox, reference, pin, out, err);
    autofree char *additions = additions_of(sandbox->record.dependencies, sandbox->record.packages);
    if (result < 0 || stack_open(snapshots->runtimes, sandbox->record.runtime, additions,
                                 out->layers, &out->stack, err) < 0)
        return -1;
    out->stack.full.scratch = out->scratch[0] ? out->scratch : NULL;
    return 0;
}

// ---- patches ----

struct gathering {
    struct volume *volume;
    const struct difference_request *request;
    const struct layer_stack *from;
    struct difference *out;
    size_t capacity, patch_bytes;
    size_t path_bytes; // of all entries
    size_t text_bytes; // that were compared for patches
    struct sandbox *sandbox;
    struct file_work work;
};

#define CHECK_EVERY 64 // changes

/* Nobody waits for it any more, or its time is up, or the sandbox is being ended. */
static int check_wanted(const struct gathering *gathering, struct error *err)
{
    if (file_work_check(&gathering->work, err) < 0)
        return -1;
    return sandbox_is_in(gathering->sandbox, SANDBOX_ENDING)
               ? error_refuse(err, ERROR_ENDED, "sandbox", "sandbox '%s' has ended",
                              gathering->sandbox->id)
               : 0;
}

static uint64_t count_changes(const struct difference *difference)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < DIFFERENCE_KINDS; i++)
        count += difference->totals[i];
    return count;
}

static bool is_plain_or_none(uint32_t mode)
{
    return mode == 0 || S_ISREG(mode);
}

/* All of a file of at most 1 MiB; false: larger, or it cannot be read. */
static bool read_text(int fd, struct buffer *content, struct patch_text *out)
{
    struct error ignored = {0};

    if (fd < 0 || fd_read_buffer(fd, content, &ignored) < 0)
        return false;
    *out = (struct patch_text){.bytes = content->length ? content->data : "",
                               .length = content->length};
    return true;
}

static bool read_before(const struct gathering *gathering, const struct layer_change *change,
                        struct buffer *content, struct patch_text *out)
{
    struct error ignored = {0};
    autofd fd = -1;

    if (change->before_mode == 0) {
        *out = (struct patch_text){.bytes = "", .is_missing = true};
        return true;
    }
    return change->before_size <= PATCH_MAX_BYTES &&
           layer_open_file(gathering->volume, gathering->from, change->item.path, &fd, &ignored) ==
               0 &&
           read_text(fd, content, out);
}

static bool read_after(const struct layer_change *change, struct buffer *content,
                       struct patch_text *out)
{
    if (change->kind == LAYER_REMOVED) {
        *out = (struct patch_text){.bytes = "", .is_missing = true};
        return true;
    }
    return change->item.size <= PATCH_MAX_BYTES && read_text(change->fd, content, out);
}

static void add_patch(struct gathering *gathering, const struct layer_change *change,
                      struct difference_entry *entry)
{
    autobuffer old = {.maximum = PATCH_MAX_BYTES};
    autobuffer new = {.maximum = PATCH_MAX_BYTES};
    autobuffer patch = {.maximum = gathering->request->max_patch_bytes - gathering->patch_bytes};
    struct patch_text before, after;
    struct error ignored = {0};

    if (!is_plain_or_none(entry->before.mode) || !is_plain_or_none(entry->after.mode) ||
        patch.maximum == 0 || gathering->text_bytes > TEXT_BYTES_MAX ||
        !read_before(gathering, change, &old, &before) || !read_after(change, &new, &after))
        return;
    gathering->text_bytes += before.length + after.length;
    entry->is_binary = !patch_is_text(&before) || !patch_is_text(&after);
    if (entry->is_binary || patch_make(entry->path, &before, &after, &patch, &ignored) < 0 ||
        patch.length == 0)
        return;
    gathering->patch_bytes += patch.length;
    entry->patch_length = patch.length;
    entry->patch = take(patch.data);
}

// ---- entries ----

static const enum difference_kind kinds[] = {
    [LAYER_ADDED] = DIFFERENCE_ADDED,
    [LAYER_CHANGED] = DIFFERENCE_CHANGED,
    [LAYER_REMOVED] = DIFFERENCE_REMOVED,
};

static int take_change(void *data, const struct layer_change *change, struct error *err)
{
    struct gathering *gathering = data;
    struct difference *out = gathering->out;
    struct difference_entry entry = {
        .kind = kinds[change->kind],
        .before = {.mode = change->before_mode, .size = change->before_size},
    };

    if (count_changes(out) % CHECK_EVERY == 0 && check_wanted(gathering, err) < 0)
        return -1;
    out->totals[entry.kind]++;
    if (out->count == gathering->request->max_entries || gathering->path_bytes > PATHS_MAX)
        return 0;
    if (change->kind != LAYER_REMOVED)
        entry.after =
            (struct difference_side){.mode = change->item.mode, .size = change->item.size};
    entry.path = xasprintf("/%s", change->item.path);
    gathering->path_bytes += strlen(entry.path);
    if (gathering->request->has_patches)
        add_patch(gathering, change, &entry);
    if (out->count == gathering->capacity) {
        gathering->capacity = gathering->capacity ? gathering->capacity * 2 : 64;
        out->entries = xrealloc(out->entries, gathering->capacity, sizeof *out->entries);
    }
    out->entries[out->count++] = entry;
    return 0;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct difference_entry *)left)->path,
                  ((const struct difference_entry *)right)->path);
}

static int compare(struct snapshots *snapshots, struct sandbox *sandbox, const struct actor *actor,
                   const struct difference_request *request, const struct moment *from,
                   const struct moment *to, struct difference *out, struct error *err)
{
    const struct layer_diff_options options = {.is_base_compared = true};
    autodifference found = {0};
    struct gathering gathering = {.volume = snapshots->volume,
                                  .request = request,
                                  .from = &from->stack.full,
                                  .out = &found,
                                  .sandbox = sandbox};

    file_work_init(&gathering.work, snapshots->sandboxes, actor);
    if (layer_diff(gathering.volume, &from->stack.full, &to->stack.full, &options, take_change,
                   &gathering, NULL, err) < 0)
        return -1;
    if (found.count)
        qsort(found.entries, found.count, sizeof *found.entries, by_path);
    *out = found;
    found = (struct difference){0};
    return 0;
}

int difference_get(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                   const struct difference_request *request, struct difference *out,
                   struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autopin pin = {.layers = snapshots->layers};
    struct moment from = {0}, to = {0};

    if (lookup_sandbox(snapshots->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    int result = sandbox->record.layers ? layers_pin(&pin, sandbox->record.layers, err) : 0;
    if (result == 0)
        result = moment_open(snapshots, sandbox, request->from, &pin, &from, err);
    if (result == 0)
        result = moment_open(snapshots, sandbox, request->to, &pin, &to, err);
    if (result == 0)
        result = compare(snapshots, sandbox, actor, request, &from, &to, out, err);
    moment_clear(snapshots, &from);
    moment_clear(snapshots, &to);
    return result;
}
