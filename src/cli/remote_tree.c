/* SPDX-License-Identifier: Apache-2.0 */
/* Whole directories, from a sandbox and to it; see remote_tree.h. */
#include "cli/remote_tree.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/local_tree.h"
#include "cli/remote_file.h"
#include "cli/say.h"
#include "cli/tar_send.h"
#include "cli/tar_take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void moved(struct remote_tree *tree, uint64_t done, uint64_t total)
{
    tree->done = done;
    if (tree->on_progress)
        tree->on_progress(tree->context, done, total);
}

static char *below(const char *top, const char *name)
{
    return xasprintf("%s%s%s", top, *top && strcmp(top, "/") != 0 ? "/" : "", name);
}

/* What the machine said about a file of it, by its name. */
static int fail_with(struct burrow_error *err, const char *doing, const char *name)
{
    autofree char *clean = say_clean(name);

    errno = err->sys;
    return say_fail_sys(err, "%s '%s'", doing, clean);
}

// ---- from the sandbox ----

#define DEPTH 256
#define NAMES_BYTES ((size_t)64 << 20) // of directories that are still to be taken

struct inner {
    char *name;
    unsigned mode;
};

/* One directory. Those in it come after it, when its list is gone: what a stranger lists is held for one directory at a time. */
struct taking {
    struct remote_tree *tree;
    struct entry_maker *maker;
    const char *name; // of the directory that is taken, below the first one; ""
    unsigned depth;
    size_t *names_left;
    struct inner *inner; // the directories in it
    size_t n_inner;
};

static size_t size_of(const char *name)
{
    return strlen(name) + sizeof(struct inner);
}

static void taking_clear(struct taking *taking)
{
    for (size_t i = 0; i < taking->n_inner; i++) {
        *taking->names_left += size_of(taking->inner[i].name);
        free(taking->inner[i].name);
    }
    free(taking->inner);
}

static int take_directory(struct taking *taking, struct burrow_error *err);

static char *path_of(const struct taking *taking, const char *name)
{
    autofree char *directory =
        *taking->name ? below(taking->tree->path, taking->name) : xstrdup(taking->tree->path);

    return *name ? below(directory, name) : take(directory);
}

/* False where no name can be so long. */
static bool enter(const struct taking *taking)
{
    bool is_in = entry_maker_enter(taking->maker, taking->name);

    if (!is_in)
        entry_refuse(taking->maker);
    return is_in;
}

static int check_much(const struct taking *taking, struct burrow_error *err)
{
    const struct remote_tree *tree = taking->tree;
    bool is_more = entry_maker_bytes(taking->maker) > tree->most_bytes ||
                   entry_maker_entries(taking->maker) > tree->most_entries;

    return is_more ? say_fail(err, BURROW_LIMIT, "%s", tree->too_much) : 0;
}

static int unpack(const struct taking *taking, struct burrow_stream *stream, struct tar_take *tar,
                  struct burrow_error *err)
{
    uint64_t before = taking->tree->done;
    int64_t length = burrow_stream_length(stream);
    uint64_t total = length > 0 && before == 0 ? (uint64_t)length : 0;
    char bytes[65536];
    ssize_t got;

    while ((got = burrow_stream_read(stream, bytes, sizeof bytes, err)) > 0) {
        if (tar_take_bytes(tar, bytes, (size_t)got, err) < 0 || check_much(taking, err) < 0)
            return -1;
        moved(taking->tree, taking->tree->done + (uint64_t)got, total);
    }
    return got < 0 ? -1 : tar_take_end(tar, err);
}

/* The directory is entered. */
static int take_archive(const struct taking *taking, struct burrow_error *err)
{
    const struct remote_tree *tree = taking->tree;
    autofree char *path = path_of(taking, "");
    autofree char *target =
        burrow_path("/sandboxes/%s/files/archive?format=tar&path=%s", tree->sandbox, path, NULL);
    struct burrow_stream *stream = NULL;

    if (burrow_stream_open(tree->client, "GET", target, NULL, NULL, &stream, err) < 0)
        return -1;
    struct tar_take *tar = tar_take_new(taking->maker);
    int result = unpack(taking, stream, tar, err);
    tar_take_free(tar);
    burrow_stream_close(stream);
    return result;
}

static void on_fetched(void *context, uint64_t done, uint64_t total)
{
    struct remote_tree *tree = context;

    (void)total; // of this file
    if (tree->on_progress)
        tree->on_progress(tree->context, tree->done + done, 0);
}

static int fetch(const struct taking *taking, const char *name, struct burrow_error *err)
{
    struct remote_tree *tree = taking->tree;
    uint64_t left = tree->most_bytes - entry_maker_bytes(taking->maker), bytes = 0;
    autofree char *path = path_of(taking, name);
    const struct burrow_transfer what = {
        .sandbox = tree->sandbox,
        .path = path,
        .fd = entry_file_descriptor(taking->maker),
        .most_bytes = left ? left : 1, // of which one too many is seen
        .on_progress = on_fetched,
        .context = tree,
    };
    if (burrow_file_fetch(tree->client, &what, &bytes, err) < 0) {
        if (err->kind == BURROW_LIMIT && !err->status)
            return say_fail(err, BURROW_LIMIT, "%s", tree->too_much);
        return err->kind == BURROW_LOCAL ? fail_with(err, "write", name) : -1;
    }
    entry_wrote(taking->maker, bytes);
    tree->done += bytes;
    return check_much(taking, err);
}

static int leave_changing(const struct taking *taking, const char *name,
                          const struct burrow_error *err)
{
    const struct remote_tree *tree = taking->tree;
    autofree char *path = below(taking->name, name);

    if (!tree->on_changing || !remote_file_is_changing(err))
        return -1;
    tree->on_changing(tree->context, path);
    return 0;
}

static int take_file(const struct taking *taking, const char *name, unsigned mode,
                     struct burrow_error *err)
{
    bool is_taken;

    if (entry_begin_file(taking->maker, name, mode, ENTRY_BY_DESCRIPTOR, &is_taken, err) < 0)
        return -1;
    if (!is_taken)
        return 0;
    if (fetch(taking, name, err) < 0) {
        entry_drop_file(taking->maker);
        return leave_changing(taking, name, err);
    }
    return entry_end_file(taking->maker, err);
}

static int take_inner(const struct taking *taking, const struct inner *which,
                      struct burrow_error *err)
{
    autofree char *inner_name = below(taking->name, which->name);
    autoclear(taking) inner = {.tree = taking->tree,
                               .maker = taking->maker,
                               .name = inner_name,
                               .depth = taking->depth + 1,
                               .names_left = taking->names_left};

    if (inner.depth > DEPTH)
        return say_fail(err, BURROW_PROTOCOL,
                        "the sandbox has directories in each other more than %d deep", DEPTH);
    if (!enter(&inner))
        return 0;
    if (entry_make_directory(taking->maker, "", which->mode, err) < 0)
        return -1;
    return take_directory(&inner, err);
}

static int note_inner(struct taking *taking, const char *name, unsigned mode,
                      struct burrow_error *err)
{
    size_t size = size_of(name);

    if (size > *taking->names_left)
        return say_fail(err, BURROW_LIMIT,
                        "the names of the sandbox's directories are more than %d MiB together",
                        (int)(NAMES_BYTES >> 20));
    *taking->names_left -= size;
    taking->inner = xrealloc(taking->inner, taking->n_inner + 1, sizeof *taking->inner);
    taking->inner[taking->n_inner++] = (struct inner){xstrdup(name), mode};
    return 0;
}

/* What went in the meantime is no failure. */
static bool is_gone(const struct burrow_error *err)
{
    return err->status == 404 && !strstr(err->code, "sandbox");
}

/* Then what failed is about this path alone, as of a file that is a directory by now. */
static bool is_answered_for(const struct taking *taking, const char *name)
{
    autofree char *path = path_of(taking, name);
    autofree char *target = burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s",
                                        taking->tree->sandbox, path, NULL);
    struct burrow_error err;

    return burrow_ask(taking->tree->client, "GET", target, NULL, NULL, &err) == 0 || is_gone(&err);
}

static bool is_unreadable(const struct taking *taking, const char *name,
                          const struct burrow_error *err)
{
    if (err->status == 403)
        return strcmp(err->code, "forbidden") == 0; // and none that is about the key
    return (err->status == 400 || err->status == 409) && is_answered_for(taking, name);
}

/* Whether all else is taken where this cannot be. */
static bool goes_on(const struct taking *taking, const char *name, const struct burrow_error *err)
{
    bool is_left = taking->tree->leaves_unreadable && is_unreadable(taking, name, err);

    if (is_left)
        entry_refuse(taking->maker);
    return is_left || is_gone(err);
}

static int take_entry(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    struct taking *taking = context;
    const char *kind = value_text(item, "kind");
    autofree char *name = value_bytes(item, "path", "pathBase64");
    unsigned mode = (unsigned)strtoul(value_text(item, "mode"), NULL, 8);
    int result = 0;

    if (!enter(taking)) // others were, in between
        return 0;
    // a name of one part, which is all of it: else it is no answer to what was asked
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        entry_refuse(taking->maker);
        return 0;
    }
    if (strcmp(kind, "directory") == 0) {
        result = note_inner(taking, name, mode, err);
    } else if (strcmp(kind, "file") == 0) {
        result = take_file(taking, name, mode, err);
    } else if (strcmp(kind, "link") == 0) {
        autofree char *target = value_bytes(item, "target", "targetBase64");
        result = entry_make_link(taking->maker, name, target, err);
    } else {
        entry_refuse(taking->maker);
    }
    return result < 0 && !goes_on(taking, name, err) ? -1 : check_much(taking, err);
}

static int take_entries(struct taking *taking, struct burrow_error *err)
{
    autofree char *path = path_of(taking, "");
    autofree char *target = burrow_path("/sandboxes/%s/files/list?limit=1000&path=%s",
                                        taking->tree->sandbox, path, NULL);

    if (burrow_list(taking->tree->client, target, 0, take_entry, taking, err) < 0)
        return -1;
    for (size_t i = 0; i < taking->n_inner; i++) {
        const struct inner *inner = &taking->inner[i];
        if (take_inner(taking, inner, err) < 0 && !goes_on(taking, inner->name, err))
            return -1;
    }
    return 0;
}

/* An archive where the server makes one, which it refuses before the first byte of it. */
static int take_directory(struct taking *taking, struct burrow_error *err)
{
    int result = take_archive(taking, err);

    return result < 0 && err->status == 413 ? take_entries(taking, err) : result;
}

int remote_tree_take(struct remote_tree *tree, int directory, struct burrow_error *err)
{
    autoptr(entry_maker) maker = entry_maker_new(directory);
    size_t names_left = NAMES_BYTES;
    autoclear(taking)
        taking = {.tree = tree, .maker = maker, .name = "", .names_left = &names_left};
    int result = take_directory(&taking, err);

    tree->files = entry_maker_files(maker);
    tree->bytes = entry_maker_bytes(maker);
    tree->left_out = entry_maker_refused(maker);
    return result == 0 ? entry_maker_settle(maker, err) : result;
}

// ---- to the sandbox ----

/*
 * A tree goes in parts, each an archive of its own: while the server unpacks one, the next is read and sent. Each is larger than the one
 * before, since each costs a process of the server's. No two have a file in common, so it does not matter which is unpacked first. A part ends with the
 * file that makes it large enough, so one that with the largest part is more than the server takes goes by itself.
 */
#define FIRST_PART ((uint64_t)1 << 20)
#define LARGEST_PART ((uint64_t)256 << 20)

struct sending {
    struct remote_tree *tree;
    struct tar_send *tar;
    uint64_t before; // sent in the parts before this one
    char **large;    // paths of files that are too large for a part
    size_t n_large;
};

static void sending_clear(struct sending *sending)
{
    for (size_t i = 0; i < sending->n_large; i++)
        free(sending->large[i]);
    free(sending->large);
    tar_send_free(sending->tar);
}

static ssize_t read_sending(void *context, void *to, size_t size)
{
    const struct sending *sending = context;

    return tar_send_read(sending->tar, to, size);
}

static void on_sending(void *context, uint64_t sent)
{
    struct sending *sending = context;

    moved(sending->tree, sending->before + sent, 0);
}

static void on_large(void *context, const char *path)
{
    struct sending *sending = context;

    sending->large = xrealloc(sending->large, sending->n_large + 1, sizeof *sending->large);
    sending->large[sending->n_large++] = xstrdup(path);
}

static int send_parts(struct sending *sending, uint64_t most, struct burrow_error *err)
{
    struct remote_tree *tree = sending->tree;
    autofree char *target = burrow_path("/sandboxes/%s/files/archive?format=tar&path=%s",
                                        tree->sandbox, tree->path, NULL);
    const struct burrow_body body = {.type = "application/x-tar",
                                     .read = read_sending,
                                     .on_progress = on_sending,
                                     .context = sending};
    struct burrow_stream *before = NULL, *part = NULL; // sent, and not answered yet
    uint64_t bytes = FIRST_PART < most ? FIRST_PART : most;
    int result = 0;

    while (result == 0 && tar_send_part(sending->tar, bytes)) {
        result = burrow_send_ahead(tree->client, "PUT", target, &body, &part, err);
        if (result == 0 && before)
            result = burrow_finish(take(before), NULL, err);
        if (result == 0)
            before = take(part);
        sending->before = tree->done;
        bytes = 4 * bytes < most ? 4 * bytes : most;
    }
    burrow_stream_close(part);
    if (result < 0)
        burrow_stream_close(before);
    return result < 0 ? -1 : burrow_finish(before, NULL, err);
}

static void on_large_sent(void *context, uint64_t done, uint64_t total)
{
    struct sending *sending = context;

    (void)total;
    moved(sending->tree, sending->before + done, 0);
}

static int send_large(struct sending *sending, int directory, const char *name,
                      struct burrow_error *err)
{
    struct remote_tree *tree = sending->tree;
    autofree char *path = below(tree->path, name);
    autofd fd = local_tree_open(directory, name);
    struct stat info;
    uint64_t bytes = 0;

    if (fd < 0 && errno == ENOENT)
        return 0; // gone meanwhile
    if (fd < 0 || fstat(fd, &info) < 0)
        return say_fail_sys(err, "read '%s'", name);
    const struct burrow_transfer what = {.sandbox = tree->sandbox,
                                         .path = path,
                                         .fd = fd,
                                         .mode = info.st_mode & 0777,
                                         .makes_parents = true,
                                         .on_progress = on_large_sent,
                                         .context = sending};
    sending->before = tree->done;
    if (burrow_file_send(tree->client, &what, &bytes, err) < 0)
        return -1;
    tree->files++;
    tree->bytes += bytes;
    return 0;
}

int remote_tree_send(struct remote_tree *tree, const char *directory, struct burrow_error *err)
{
    autofd fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclear(sending) sending = {.tree = tree};
    uint64_t limit;

    if (fd < 0)
        return say_fail_sys(err, "read the directory '%s'", directory);
    if (burrow_file_limit(tree->client, &limit, err) < 0 ||
        tar_send_new(directory, NULL, NULL, &sending.tar, err) < 0)
        return -1;
    tar_send_leave_out(sending.tar, limit / 2, on_large, &sending);
    int result = send_parts(&sending, limit / 4 < LARGEST_PART ? limit / 4 : LARGEST_PART, err);
    if (result < 0 && err->kind == BURROW_LOCAL) {
        autofree char *path = below(directory, tar_send_path(sending.tar));
        (void)fail_with(err, "read", path);
    }
    tree->files = tar_send_files(sending.tar);
    tree->bytes = tar_send_bytes(sending.tar);
    tree->left_out = tar_send_skipped(sending.tar);
    for (size_t i = 0; i < sending.n_large && result == 0; i++)
        result = send_large(&sending, fd, sending.large[i], err);
    return result;
}
