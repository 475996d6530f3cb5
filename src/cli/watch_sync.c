/* SPDX-License-Identifier: Apache-2.0 */
/* Two directories in step; see watch_sync.h. */
#include "cli/watch_sync.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/entry_maker.h"
#include "cli/remote_tree.h"
#include "cli/say.h"
#include "cli/watch_there.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sync_clear(struct sync *sync)
{
    local_tree_clear(&sync->base);
    local_tree_clear(&sync->later);
    local_tree_clear(&sync->dirty[SYNC_HERE]);
    local_tree_clear(&sync->dirty[SYNC_THERE]);
}

/* Patterns: by any part of the path, or the whole of it. */
bool sync_ignores(const struct sync *sync, const char *path)
{
    autofree char *copy = xstrdup(path);

    if (!sync->has_git && local_tree_is_in_git(path))
        return true;
    for (size_t i = 0; i < sync->ignore->count; i++) {
        const char *pattern = sync->ignore->items[i];
        if (fnmatch(pattern, path, FNM_PATHNAME) == 0)
            return true;
        (void)snprintf(copy, strlen(path) + 1, "%s", path);
        char *rest = NULL;
        for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
            if (fnmatch(pattern, part, 0) == 0)
                return true;
        }
    }
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, ".burrow-", 8) == 0; // ours, for a moment
}

void sync_touch(struct sync *sync, unsigned side, const char *path)
{
    if (sync->is_whole[side] || sync_ignores(sync, path))
        return;
    if (sync->dirty[side].count >= SYNC_MOST_DIRTY || strlen(path) >= PATH_MAX) {
        sync->is_whole[side] = true;
        local_tree_clear(&sync->dirty[side]);
        return;
    }
    if (!local_tree_find(&sync->dirty[side], path))
        local_tree_set(&sync->dirty[side], &(struct tree_entry){.path = (char *)(uintptr_t)path});
}

bool sync_is_due(const struct sync *sync)
{
    return sync->is_whole[SYNC_HERE] || sync->is_whole[SYNC_THERE] ||
           sync->dirty[SYNC_HERE].count || sync->dirty[SYNC_THERE].count;
}

static void tell(const struct sync *sync, const char *arrow, const char *path)
{
    autofree char *clean = say_clean(path);

    if (!sync->is_quiet)
        (void)printf("%s %s\n", arrow, clean);
    (void)fflush(stdout);
}

// ---- from one side to the other ----

static int send_it(struct sync *sync, const char *path, const struct tree_entry *here,
                   const struct tree_entry *was, uint64_t *version, struct burrow_error *err)
{
    tell(sync, here->kind == TREE_NOTHING ? "x→" : "→", path);
    int result = there_send(sync, path, here, was, version, err);
    sync->n_sent += result == 0;
    return result;
}

static int check_names(uint64_t names, struct burrow_error *err)
{
    if (names <= SYNC_MOST_NAMES)
        return 0;
    return say_fail(err, BURROW_LIMIT,
                    "the names of the sandbox's files have more than %d MiB together",
                    (int)(SYNC_MOST_NAMES >> 20));
}

static int take_it(struct sync *sync, const char *path, struct other *other,
                   struct burrow_error *err)
{
    struct tree_entry entry = other->entry;

    tell(sync, entry.kind == TREE_NOTHING ? "x←" : "←", path);
    sync->n_taken++;
    if (entry.kind == TREE_NOTHING) {
        int result = local_tree_remove(sync->root, path, err);
        if (result > 0)
            local_tree_set(&sync->later, &(struct tree_entry){.path = (char *)(uintptr_t)path});
        return result < 0 ? -1 : 0;
    }
    if (sync->base.bytes + entry.size > sync->most_bytes)
        return say_fail(err, BURROW_LIMIT,
                        "the sandbox's files have become more than --limit allows");
    if (sync->base.count >= SYNC_MOST_ENTRIES)
        return say_fail(err, BURROW_LIMIT, "the sandbox has more than %d files", SYNC_MOST_ENTRIES);
    if (check_names(sync->base.names + strlen(path), err) < 0)
        return -1;
    entry.path = (char *)(uintptr_t)path;
    int result = other->staged >= 0
                     ? local_tree_put(sync->root, other->staged, &entry, err)
                     : local_tree_write(sync->root, &entry, other->fd, other->target, err);
    if (result < 0 && (err->sys == ELOOP || err->sys == ENOTDIR || err->sys == ENOTEMPTY)) {
        say_note("left alone, something of yours is in the way: %s", err->text);
        return 0;
    }
    return result;
}

/* The sandbox's version, beside the local one that stays. */
static int keep_beside(struct sync *sync, const char *path, struct other *other,
                       struct burrow_error *err)
{
    autofree char *name = xasprintf("%s" SYNC_CONFLICT, path), *clean = say_clean(path);
    struct tree_entry entry = other->entry;
    autofd source = -1;

    sync->n_conflicts++;
    say_note("both sides changed '%s': yours stays, the sandbox's is beside it as *" SYNC_CONFLICT,
             clean);
    if (entry.kind != TREE_FILE)
        return 0;
    if (other->staged >= 0)
        source = local_tree_open(other->staged, path);
    entry.path = name;
    if (local_tree_write(sync->root, &entry, other->staged >= 0 ? source : other->fd, "", err) < 0)
        return -1;
    sync_touch(sync, SYNC_HERE, name);
    return 0;
}

static void remember(struct sync *sync, const char *path, const struct tree_entry *entry,
                     uint64_t version)
{
    struct tree_entry kept = *entry;

    kept.path = (char *)(uintptr_t)path;
    kept.version = version;
    if (entry->kind == TREE_NOTHING)
        local_tree_unset(&sync->base, path);
    else
        local_tree_set(&sync->base, &kept);
}

/* A link of the user's own that leads out of the directory is nobody else's business. */
static bool leads_outside(const struct sync *sync, const char *path, const struct tree_entry *here)
{
    char target[PATH_MAX];

    return here->kind == TREE_LINK &&
           local_tree_target(sync->root, path, target, sizeof target) == 0 &&
           !entry_link_stays(path, target);
}

static int settle(struct sync *sync, const char *path, const struct tree_entry *here,
                  struct other *other, struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    bool is_mine = !tree_entry_is_same(here, base);
    bool is_theirs = !tree_entry_is_same(&other->entry, base);

    if ((!is_mine && !is_theirs) || leads_outside(sync, path, here))
        return 0;
    if (tree_entry_is_same(here, &other->entry)) {
        remember(sync, path, here, other->entry.version);
        return 0;
    }
    // what was changed wins over what was removed
    bool takes = is_theirs && (!is_mine || here->kind == TREE_NOTHING);
    if (is_mine && is_theirs && !takes && other->entry.kind != TREE_NOTHING &&
        keep_beside(sync, path, other, err) < 0)
        return -1;
    base = local_tree_find(&sync->base, path);
    uint64_t version = takes ? other->entry.version : 0;
    if (takes ? take_it(sync, path, other, err) < 0
              : send_it(sync, path, here, is_theirs ? &other->entry : base, &version, err) < 0)
        return -1;
    remember(sync, path, takes ? &other->entry : here, version);
    return 0;
}

// ---- single paths ----

static int settle_path(struct sync *sync, const char *path, bool is_there, struct burrow_error *err)
{
    autoclear(other) other = {.fd = -1, .staged = -1};
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    struct tree_entry here;

    if (local_tree_look(sync->root, path, &here, err) < 0)
        return -1;
    if (is_there && there_look(sync, path, &other, err) < 0)
        return -1;
    if (!is_there && base)
        other.entry = *base;
    return settle(sync, path, &here, &other, err);
}

/* The innermost goes first, what comes comes in order. */
static int settle_dirty(struct sync *sync, struct burrow_error *err)
{
    struct local_tree due[2] = {sync->dirty[0], sync->dirty[1]};
    int result = 0;

    sync->dirty[0] = sync->dirty[1] = (struct local_tree){0};
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < due[side].count; i++) {
            const char *path = due[side].entries[i].path;
            bool is_there = side == SYNC_THERE || local_tree_find(&due[SYNC_THERE], path);
            if (result == 0)
                result = settle_path(sync, path, is_there, err);
            if (result < 0)
                sync_touch(sync, side, path); // again, once that is mended
        }
    }
    local_tree_clear(&due[0]);
    local_tree_clear(&due[1]);
    return result;
}

// ---- everything ----

static int stage(struct sync *sync, int staged, struct burrow_error *err)
{
    autofree char *too_much = xasprintf(
        "the sandbox has more than --limit allows, or more than %d files", SYNC_MOST_ENTRIES);
    struct remote_tree tree = {.client = sync->client,
                               .sandbox = sync->sandbox,
                               .path = sync->path,
                               .most_bytes = sync->most_bytes,
                               .most_entries = SYNC_MOST_ENTRIES,
                               .too_much = too_much};

    return remote_tree_take(&tree, staged, err);
}

static int settle_trees(struct sync *sync, const struct local_tree *here,
                        const struct local_tree *other, int staged, struct burrow_error *err)
{
    struct local_tree all = {0};
    const struct local_tree *const trees[] = {&sync->base, here, other};
    static const struct tree_entry nothing;
    int result = 0;

    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        for (size_t j = 0; j < trees[i]->count; j++) {
            if (!local_tree_find(&all, trees[i]->entries[j].path))
                local_tree_set(&all, &(struct tree_entry){.path = trees[i]->entries[j].path});
        }
    }
    for (size_t i = 0; i < all.count && result == 0; i++) {
        const char *path = all.entries[i].path;
        if (sync_ignores(sync, path))
            continue;
        const struct tree_entry *mine = local_tree_find(here, path);
        const struct tree_entry *theirs = local_tree_find(other, path);
        struct other one = {.fd = -1, .staged = staged};
        one.entry = theirs ? *theirs : nothing;
        result = settle(sync, path, mine ? mine : &nothing, &one, err);
    }
    local_tree_clear(&all);
    return result;
}

static int settle_all(struct sync *sync, struct burrow_error *err)
{
    const char *top = getenv("TMPDIR");
    autofree char *place = xasprintf("%s/burrow-watch-XXXXXX", top && *top == '/' ? top : "/tmp");
    struct local_tree here = {0}, other = {0};
    struct error ignored = {0};

    if (!mkdtemp(place))
        return say_fail_sys(err, "make a temporary directory");
    autofd staged = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = staged < 0 ? say_fail_sys(err, "open '%s'", place) : stage(sync, staged, err);
    if (result == 0)
        result = local_tree_scan(staged, NULL, &other, err);
    if (result == 0)
        result = check_names(other.names, err);
    if (result == 0)
        result = local_tree_scan(sync->root, NULL, &here, err);
    if (result == 0)
        result = settle_trees(sync, &here, &other, staged, err);
    local_tree_clear(&here);
    local_tree_clear(&other);
    (void)fd_remove_tree(AT_FDCWD, place, &ignored);
    return result;
}

/* What was in them has gone meanwhile; one that still has something, which is ignored, stays. */
static void remove_later(struct sync *sync)
{
    struct burrow_error ignored;

    for (size_t i = sync->later.count; i-- > 0;)
        (void)local_tree_remove(sync->root, sync->later.entries[i].path, &ignored);
    local_tree_clear(&sync->later);
}

static int settle_whole(struct sync *sync, struct burrow_error *err)
{
    for (unsigned side = 0; side < 2; side++)
        local_tree_clear(&sync->dirty[side]);
    sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = false;
    int result = settle_all(sync, err);
    if (result < 0)
        sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = true;
    return result;
}

int sync_run(struct sync *sync, struct burrow_error *err)
{
    bool is_whole = sync->is_whole[SYNC_HERE] || sync->is_whole[SYNC_THERE];
    int result = (is_whole ? settle_whole : settle_dirty)(sync, err);

    remove_later(sync);
    return result;
}
