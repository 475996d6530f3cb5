/* SPDX-License-Identifier: Apache-2.0 */
/* Two directories in step; see watch_sync.h. */
#include "cli/watch_sync.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/entry_maker.h"
#include "cli/remote_file.h"
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
    local_tree_clear(&sync->changing);
    local_tree_clear(&sync->left);
    local_tree_clear(&sync->dirty[SYNC_HERE]);
    local_tree_clear(&sync->dirty[SYNC_THERE]);
}

/* By its name or all of its path; or it is one of ours, for a moment. */
static bool is_left_out(const struct sync *sync, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sync->ignore->count; i++) {
        if (fnmatch(sync->ignore->items[i], path, FNM_PATHNAME) == 0 ||
            fnmatch(sync->ignore->items[i], name, 0) == 0)
            return true;
    }
    return strncmp(name, ".burrow-", 8) == 0;
}

bool sync_ignores(const struct sync *sync, const char *path)
{
    autofree char *copy = xstrdup(path);

    if (!sync->has_git && local_tree_is_in_git(path))
        return true;
    for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (is_left_out(sync, copy)) // and so is all below it
            return true;
        *slash = '/';
    }
    return is_left_out(sync, path);
}

/* Whether something was left alone at the path or below it. */
static bool is_left(const struct sync *sync, const char *path)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < sync->left.count; i++) {
        const char *left = sync->left.entries[i].path;
        if (strncmp(left, path, length) == 0 && (left[length] == '/' || !left[length]))
            return true;
    }
    return false;
}

static void look_at_all(struct sync *sync)
{
    sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = true;
}

void sync_touch(struct sync *sync, unsigned side, const char *path)
{
    if (sync->is_whole[side] || sync_ignores(sync, path) ||
        (side == SYNC_THERE && local_tree_find(&sync->changing, path)))
        return;
    // what was in the way may have gone
    bool is_much = sync->dirty[side].count >= SYNC_MOST_DIRTY || strlen(path) >= PATH_MAX;
    if (is_much || (side == SYNC_HERE && is_left(sync, path))) {
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

bool sync_is_done(const struct sync *sync)
{
    return !sync_is_due(sync) && !sync_waits(sync) && !sync->left.count;
}

bool sync_waits(const struct sync *sync)
{
    return sync->changing.count > 0;
}

void sync_look_again(struct sync *sync)
{
    struct local_tree due = sync->changing;

    sync->changing = (struct local_tree){0};
    for (size_t i = 0; i < due.count; i++)
        sync_touch(sync, SYNC_THERE, due.entries[i].path);
    local_tree_clear(&due);
}

static void tell(const struct sync *sync, const char *arrow, const char *path)
{
    autofree char *clean = say_clean(path);

    if (!sync->is_quiet)
        (void)printf("%s %s\n", arrow, clean);
    (void)fflush(stdout);
}

// ---- from one side to the other ----

static int check_names(uint64_t names, struct burrow_error *err)
{
    if (names <= SYNC_MOST_NAMES)
        return 0;
    return say_fail(err, BURROW_LIMIT,
                    "the names of the sandbox's files have more than %d MiB together",
                    (int)(SYNC_MOST_NAMES >> 20));
}

/* With what it takes the place of gone. */
static int check_room(const struct sync *sync, const struct tree_entry *entry, const char *path,
                      struct burrow_error *err)
{
    const struct tree_entry *before = local_tree_find(&sync->base, path);

    if (sync->base.bytes - (before ? before->size : 0) + entry->size > sync->most_bytes)
        return say_fail(err, BURROW_LIMIT,
                        "the sandbox's files have become more than --limit allows");
    if (before)
        return 0;
    if (sync->base.count >= SYNC_MOST_ENTRIES)
        return say_fail(err, BURROW_LIMIT, "the sandbox has more than %d files", SYNC_MOST_ENTRIES);
    return check_names(sync->base.names + strlen(path), err);
}

static int write_it(struct sync *sync, const char *path, const struct other *other,
                    struct burrow_error *err)
{
    struct tree_entry entry = other->entry;

    entry.path = (char *)(uintptr_t)path;
    if (entry.kind == TREE_NOTHING)
        return local_tree_remove(sync->root, path, err);
    if (check_room(sync, &entry, path, err) < 0)
        return -1;
    return other->staged >= 0 ? local_tree_put(sync->root, other->staged, &entry, err)
                              : local_tree_write(sync->root, &entry, other->fd, other->target, err);
}

/* 1 where something of the user's own is in the way. */
static int take_it(struct sync *sync, const char *path, const struct other *other,
                   struct burrow_error *err)
{
    static const int in_the_way[] = {ELOOP, ENOTDIR, EISDIR, ENOTEMPTY, EEXIST};

    *err = (struct burrow_error){0};
    int result = write_it(sync, path, other, err);
    for (size_t i = 0; result < 0 && i < ARRAY_SIZE(in_the_way); i++) {
        if (err->sys == in_the_way[i])
            result = 1;
    }
    if (result == 0) {
        tell(sync, other->entry.kind == TREE_NOTHING ? "x←" : "←", path);
        sync->n_taken++;
    }
    return result;
}

// ---- what both changed ----

/* The sandbox's version of a path, and where it is kept. */
struct copy {
    const char *path;
    const struct other *other;
    char *name; // owned
    bool is_kept;
};

static void copy_clear(struct copy *copy)
{
    free(copy->name);
}

/* Whether the name may be used: neither side has it, or the same is kept there; -1. */
static int is_free(struct sync *sync, struct copy *copy, struct burrow_error *err)
{
    const struct tree_entry *entry = &copy->other->entry;
    struct tree_entry here;

    if (local_tree_look(sync->root, copy->name, &here, err) < 0)
        return -1;
    copy->is_kept = entry->kind != TREE_DIRECTORY && tree_entry_is_same(&here, entry);
    if (copy->is_kept || here.kind != TREE_NOTHING)
        return copy->is_kept;
    int result = there_has(sync, copy->name, err);
    return result < 0 ? -1 : !result;
}

/* 1 where there are too many, or the name would be too long. */
static int choose_name(struct sync *sync, struct copy *copy, struct burrow_error *err)
{
    int result = 0;

    for (unsigned number = 1; number <= SYNC_MOST_CONFLICTS && result == 0; number++) {
        free(copy->name);
        copy->name = number == 1 ? xasprintf("%s" SYNC_CONFLICT, copy->path)
                                 : xasprintf("%s" SYNC_CONFLICT "-%u", copy->path, number);
        result = is_free(sync, copy, err);
    }
    if (result != 0)
        return result > 0 ? 0 : err->sys == ENAMETOOLONG ? 1 : -1;
    (void)say_fail(err, BURROW_LIMIT, "'%.300s' has %d copies already", copy->path,
                   SYNC_MOST_CONFLICTS);
    return 1;
}

static int write_copy(struct sync *sync, const struct copy *copy, struct burrow_error *err)
{
    const struct other *other = copy->other;
    struct tree_entry entry = other->entry;
    char target[PATH_MAX];

    entry.path = copy->name;
    if (other->staged < 0)
        return local_tree_write(sync->root, &entry, other->fd, other->target, err);
    autofd source = entry.kind == TREE_FILE ? local_tree_open(other->staged, copy->path) : -1;
    if (entry.kind == TREE_LINK &&
        local_tree_target(other->staged, copy->path, target, sizeof target) < 0)
        return say_fail_sys(err, "read '%s'", copy->path);
    return local_tree_write(sync->root, &entry, source, target, err);
}

/* The sandbox's version, beside the local one that stays. A directory is moved there, and then everything is looked at anew; 1 where it cannot be. */
static int keep_beside(struct sync *sync, const char *path, const struct other *other,
                       struct burrow_error *err)
{
    autoclear(copy) copy = {.path = path, .other = other};
    autofree char *clean = say_clean(path);
    int result = choose_name(sync, &copy, err);

    if (result == 0 && other->entry.kind == TREE_DIRECTORY) {
        result = there_move(sync, path, copy.name, err);
        if (result == 0)
            look_at_all(sync);
    } else if (result == 0 && !copy.is_kept) {
        result = write_copy(sync, &copy, err);
    }
    if (result != 0)
        return result;
    sync_touch(sync, SYNC_HERE, copy.name);
    sync->n_conflicts++;
    say_note("both sides changed '%s': yours stays, the sandbox's is beside it as *%s", clean,
             copy.name + strlen(path));
    return 0;
}

static void remember(struct sync *sync, const char *path, const struct tree_entry *entry,
                     uint64_t version)
{
    struct tree_entry kept = *entry;

    kept.path = (char *)(uintptr_t)path;
    kept.version = version;
    local_tree_unset(&sync->left, path);
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

/* A path to bring in step. */
struct difference {
    const char *path;
    const struct tree_entry *here;
    const struct tree_entry *was; // there, as far as is known
    struct other *other;
    bool is_conflict;
};

/* What is there is a directory with something of its own in it, as was found when all was looked at. */
static bool is_full_there(const struct difference *difference, int result)
{
    const struct tree_entry *was = difference->was;

    return result > 0 && was && was->kind == TREE_DIRECTORY &&
           difference->here->kind != TREE_NOTHING && difference->other->staged >= 0;
}

/* 1 where something else is in the way. */
static int give(struct sync *sync, const struct difference *difference, uint64_t *version,
                struct burrow_error *err)
{
    const char *path = difference->path;
    const struct tree_entry *here = difference->here, *was = difference->was;
    const struct tree_entry *theirs = &difference->other->entry;
    int result = 0;

    if (!difference->is_conflict)
        result = there_send(sync, path, here, was, version, err);
    if (difference->is_conflict || is_full_there(difference, result)) {
        result = keep_beside(sync, path, difference->other, err);
        was = theirs->kind == TREE_DIRECTORY ? NULL : theirs; // a directory has gone from there
        if (result == 0)
            result = there_send(sync, path, here, was, version, err);
    }
    if (result == 0) {
        tell(sync, here->kind == TREE_NOTHING ? "x→" : "→", path);
        sync->n_sent++;
    }
    return result;
}

/*
 * What is in the way of a single path may be about to go: everything is looked at in its order. A directory that is to go and has something in it stays
 * without a word: what is in it goes its own way, or is left out.
 */
static void leave(struct sync *sync, const struct difference *difference, bool is_removal,
                  const struct burrow_error *err)
{
    const char *path = difference->path;

    if (difference->other->staged < 0) {
        look_at_all(sync);
    } else if (!is_removal && !local_tree_find(&sync->left, path)) {
        say_note("left alone%s: %s",
                 err->kind == BURROW_INVALID ? "" : ", something else is in the way", err->text);
        local_tree_set(&sync->left, &(struct tree_entry){.path = (char *)(uintptr_t)path});
    }
}

/* Whether the side that is to be changed is still as it was seen: a long time may have gone since, and what is new there would be lost; -1. */
static int is_still(const struct difference *difference, struct sync *sync, bool takes,
                    struct burrow_error *err)
{
    struct tree_entry now;

    if (!takes)
        return there_is_still(sync, difference->path, difference->was, err);
    if (local_tree_look(sync->root, difference->path, &now, err) < 0)
        return -1;
    return tree_entry_is_same(&now, difference->here);
}

static int bring(struct sync *sync, struct difference *difference, bool takes,
                 struct burrow_error *err)
{
    const char *path = difference->path;
    const struct tree_entry *here = difference->here, *theirs = &difference->other->entry;
    uint64_t version = 0;
    int result = is_still(difference, sync, takes, err);

    if (result == 0)
        sync_touch(sync, SYNC_THERE, path); // so both sides are looked at again
    if (result <= 0)
        return result;
    result = takes ? take_it(sync, path, difference->other, err) : 0;

    if (result > 0 && here->kind == TREE_DIRECTORY && theirs->kind != TREE_NOTHING &&
        difference->other->staged >= 0) {
        takes = false; // what is left in it is the user's own
        difference->is_conflict = true;
    }
    if (!takes)
        result = give(sync, difference, &version, err);
    if (result > 0)
        leave(sync, difference, (takes ? theirs : here)->kind == TREE_NOTHING, err);
    if (result == 0)
        remember(sync, path, takes ? theirs : here, takes ? theirs->version : version);
    return result < 0 ? -1 : 0;
}

static int settle(struct sync *sync, const char *path, const struct tree_entry *here,
                  struct other *other, struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    const struct tree_entry *theirs = &other->entry;
    bool is_mine = !tree_entry_is_same(here, base);
    bool is_theirs = !tree_entry_is_same(theirs, base);

    if ((!is_mine && !is_theirs) || leads_outside(sync, path, here)) {
        local_tree_unset(&sync->left, path);
        return 0;
    }
    if (tree_entry_is_same(here, theirs)) {
        remember(sync, path, here, theirs->version);
        return 0;
    }
    // what was changed wins over what was removed
    bool takes = is_theirs && (!is_mine || here->kind == TREE_NOTHING);
    bool is_conflict = is_mine && is_theirs && !takes && theirs->kind != TREE_NOTHING;
    struct tree_entry was = is_theirs || !base ? *theirs : *base; // base may move
    was.version = theirs->version ? theirs->version : was.version;
    struct difference difference = {path, here, &was, other, is_conflict};
    return bring(sync, &difference, takes, err);
}

// ---- what changes while it is read ----

static void on_changing(void *context, const char *path)
{
    struct sync *sync = context;

    if (!sync_ignores(sync, path))
        local_tree_set(&sync->changing, &(struct tree_entry){.path = (char *)(uintptr_t)path});
}

/* A failure that is none a moment later. */
static int put_off(struct sync *sync, const char *path, const struct burrow_error *err)
{
    if (!remote_file_is_changing(err))
        return -1;
    on_changing(sync, path);
    return 0;
}

// ---- single paths ----

static int look_and_settle(struct sync *sync, const char *path, bool is_there,
                           struct burrow_error *err)
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

static int settle_path(struct sync *sync, const char *path, bool is_there, struct burrow_error *err)
{
    if (local_tree_find(&sync->changing, path)) // both sides are looked at when it is calm
        return 0;
    int result = look_and_settle(sync, path, is_there, err);
    return result < 0 ? put_off(sync, path, err) : result;
}

static bool is_gone(const struct sync *sync, const char *path)
{
    autofd fd = local_tree_open(sync->root, path);

    return fd < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* What went here goes there, the innermost first. */
static int settle_gone(struct sync *sync, const struct local_tree due[2], struct burrow_error *err)
{
    int result = 0;

    for (size_t i = due[SYNC_HERE].count; i-- > 0 && result == 0 && !sync->is_whole[SYNC_THERE];) {
        const char *path = due[SYNC_HERE].entries[i].path;
        if (!local_tree_find(&due[SYNC_THERE], path) && is_gone(sync, path))
            result = settle_path(sync, path, false, err);
    }
    return result;
}

/* What comes comes in order. */
static int settle_dirty(struct sync *sync, struct burrow_error *err)
{
    struct local_tree due[2] = {sync->dirty[0], sync->dirty[1]};

    sync->dirty[0] = sync->dirty[1] = (struct local_tree){0};
    int result = settle_gone(sync, due, err);
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < due[side].count; i++) {
            const char *path = due[side].entries[i].path;
            bool is_there = side == SYNC_THERE || local_tree_find(&due[SYNC_THERE], path);
            if (result == 0 && !sync->is_whole[SYNC_THERE])
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
                               .too_much = too_much,
                               .on_changing = on_changing,
                               .context = sync};

    local_tree_clear(&sync->changing);
    return remote_tree_take(&tree, staged, err);
}

/* All that is to be brought in step. */
struct sides {
    const struct local_tree *here, *other;
    int staged;
    struct local_tree going, coming; // paths alone
};

static void sides_clear(struct sides *sides)
{
    local_tree_clear(&sides->going);
    local_tree_clear(&sides->coming);
}

static bool is_listed(const struct sides *sides, const char *path)
{
    return local_tree_find(&sides->going, path) || local_tree_find(&sides->coming, path);
}

/* Whether one side has it no more, and the other as it was. */
static bool is_going(const struct sync *sync, const struct sides *sides, const char *path)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    const struct tree_entry *mine = local_tree_find(sides->here, path);
    const struct tree_entry *theirs = local_tree_find(sides->other, path);

    return base && !(mine && theirs) &&
           (tree_entry_is_same(base, mine) || tree_entry_is_same(base, theirs));
}

static void list_paths(struct sync *sync, struct sides *sides)
{
    const struct local_tree *const trees[] = {&sync->base, sides->here, sides->other};

    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        for (size_t j = 0; j < trees[i]->count; j++) {
            char *path = trees[i]->entries[j].path;
            if (!is_listed(sides, path))
                local_tree_set(is_going(sync, sides, path) ? &sides->going : &sides->coming,
                               &(struct tree_entry){.path = path});
        }
    }
    for (size_t i = sync->left.count; i-- > 0;) {
        if (!is_listed(sides, sync->left.entries[i].path))
            local_tree_unset(&sync->left, sync->left.entries[i].path);
    }
}

static int settle_one(struct sync *sync, const struct sides *sides, const char *path,
                      struct burrow_error *err)
{
    static const struct tree_entry nothing;
    const struct tree_entry *mine = local_tree_find(sides->here, path);
    const struct tree_entry *theirs = local_tree_find(sides->other, path);
    struct other one = {.entry = theirs ? *theirs : nothing, .fd = -1, .staged = sides->staged};

    if (local_tree_find(&sync->changing, path))
        return 0;
    int result = settle(sync, path, mine ? mine : &nothing, &one, err);
    return result < 0 ? put_off(sync, path, err) : result;
}

/*
 * What goes does so first, and the innermost of it, so that something else can come in place of a directory. Once a directory was moved away there, what is
 * known of it is no longer so: everything is looked at anew.
 */
static int settle_trees(struct sync *sync, struct sides *sides, struct burrow_error *err)
{
    const struct local_tree *going = &sides->going, *coming = &sides->coming;
    int result = 0;

    list_paths(sync, sides);
    for (size_t i = going->count; i-- > 0 && result == 0;)
        result = settle_one(sync, sides, going->entries[i].path, err);
    for (size_t i = 0; i < coming->count && result == 0 && !sync->is_whole[SYNC_THERE]; i++)
        result = settle_one(sync, sides, coming->entries[i].path, err);
    return result;
}

static bool leaves_out(void *context, const char *path)
{
    return sync_ignores(context, path);
}

static int settle_all(struct sync *sync, struct burrow_error *err)
{
    const char *top = getenv("TMPDIR");
    autofree char *place = xasprintf("%s/burrow-watch-XXXXXX", top && *top == '/' ? top : "/tmp");
    struct local_tree here = {0}, other = {0};
    autoclear(sides) sides = {.here = &here, .other = &other};
    struct error ignored = {0};

    if (!mkdtemp(place))
        return say_fail_sys(err, "make a temporary directory");
    autofd staged = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    sides.staged = staged;
    int result = staged < 0 ? say_fail_sys(err, "open '%s'", place) : stage(sync, staged, err);
    if (result == 0)
        result = local_tree_scan(staged, leaves_out, sync, &other, err);
    if (result == 0)
        result = check_names(other.names, err);
    if (result == 0)
        result = local_tree_scan(sync->root, leaves_out, sync, &here, err);
    if (result == 0)
        result = settle_trees(sync, &sides, err);
    local_tree_clear(&here);
    local_tree_clear(&other);
    (void)fd_remove_tree(AT_FDCWD, place, &ignored);
    return result;
}

static int settle_whole(struct sync *sync, struct burrow_error *err)
{
    for (unsigned side = 0; side < 2; side++)
        local_tree_clear(&sync->dirty[side]);
    sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = false;
    int result = settle_all(sync, err);
    if (result < 0)
        look_at_all(sync);
    return result;
}

int sync_run(struct sync *sync, struct burrow_error *err)
{
    bool is_whole = sync->is_whole[SYNC_HERE] || sync->is_whole[SYNC_THERE];

    return (is_whole ? settle_whole : settle_dirty)(sync, err);
}
