/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's directory that is kept in step; see watch_there.h. */
#include "cli/watch_there.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "cli/entry_maker.h"
#include "cli/listing.h"
#include "cli/remote_file.h"
#include "cli/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_ANYWAY ((uint64_t)64 << 10)

static char *there(const struct sync *sync, const char *path)
{
    return xasprintf("%s/%s", strcmp(sync->path, "/") ? sync->path : "", path);
}

void other_clear(struct other *other)
{
    closep(&other->fd);
}

static int take_file(struct sync *sync, const char *path, struct other *other,
                     struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    struct sha256 sha;
    char bytes[65536];
    ssize_t got;

    if (other->entry.size > sync->most_bytes)
        return say_fail(err, BURROW_LIMIT, "a file of the sandbox is larger than --limit allows");
    if (remote_file_take(sync->client, sync->sandbox, whole, sync->most_bytes, &other->fd, err) < 0)
        return -1;
    sha256_init(&sha);
    for (other->entry.size = 0; (got = read(other->fd, bytes, sizeof bytes)) > 0;
         other->entry.size += (uint64_t)got)
        sha256_add(&sha, bytes, (size_t)got);
    sha256_end(&sha, other->entry.digest);
    return got < 0 || lseek(other->fd, 0, SEEK_SET) < 0 ? say_fail_sys(err, "read a temporary file")
                                                        : 0;
}

static void take_target(const char *target, struct other *other)
{
    struct sha256 sha;

    (void)snprintf(other->target, sizeof other->target, "%s", target);
    sha256_init(&sha);
    sha256_add(&sha, other->target, strlen(other->target));
    sha256_end(&sha, other->entry.digest);
}

/* The server's name for a file as it is: another one as soon as anything of the file changes. */
static uint64_t version_of(const struct burrow_value *file)
{
    const char *etag = burrow_text(burrow_get(file, "etag"));
    char digest[SHA256_TEXT];
    struct sha256 sha;

    if (!etag)
        return 0;
    sha256_init(&sha);
    sha256_add(&sha, etag, strlen(etag));
    sha256_end(&sha, digest);
    digest[16] = '\0';
    return strtoull(digest, NULL, 16);
}

/*
 * Whether the sandbox still has what it had when both were the same: what was just sent is told as changed there, and need not come back. Times of
 * files move in steps of some milliseconds on older kernels, within which a program there may change a file again: what is small is read anyway.
 */
static bool is_known(const struct tree_entry *base, const struct tree_entry *there)
{
    return base && base->kind == TREE_FILE && there->version && base->version == there->version &&
           there->size > READ_ANYWAY;
}

/* Of the path, and not of the sandbox. */
static bool is_nothing(const struct burrow_error *err)
{
    return err->status == 404 && !strstr(err->code, "sandbox");
}

/* The answer about what is there; NULL: nothing is. */
static int ask_there(const struct sync *sync, const char *path, struct burrow_answer **out,
                     struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    autofree char *place =
        burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s", sync->sandbox, whole, NULL);

    if (burrow_ask(sync->client, "GET", place, NULL, out, err) < 0)
        return is_nothing(err) ? 0 : -1;
    return 0;
}

int there_has(struct sync *sync, const char *path, struct burrow_error *err)
{
    autoanswer answer = NULL;

    return ask_there(sync, path, &answer, err) < 0 ? -1 : answer != NULL;
}

/* What it is, but for a file's content: of that the version alone. A link that leads outside counts as nothing. */
static void describe(const char *path, const struct burrow_value *value, struct other *other)
{
    const char *kind = value_text(value, "kind");
    const char *mode = burrow_text(burrow_get(value, "mode"));
    autofree char *target = value_bytes(value, "target", "targetBase64");

    other->entry.mode = mode ? (unsigned)strtoul(mode, NULL, 8) & 0777 : 0644;
    if (strcmp(kind, "directory") == 0) {
        other->entry.kind = TREE_DIRECTORY;
    } else if (strcmp(kind, "link") == 0 && *target && entry_link_stays(path, target)) {
        other->entry.kind = TREE_LINK;
        other->entry.mode = 0;
        take_target(target, other);
    } else if (strcmp(kind, "file") == 0) {
        other->entry.kind = TREE_FILE;
        other->entry.size = (uint64_t)burrow_integer(burrow_get(value, "sizeBytes"), 0);
        other->entry.version = version_of(value);
    }
}

int there_look(struct sync *sync, const char *path, struct other *other, struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    autoanswer answer = NULL;

    if (ask_there(sync, path, &answer, err) < 0)
        return -1;
    if (!answer)
        return 0;
    describe(path, burrow_answer_value(answer), other);
    if (other->entry.kind != TREE_FILE)
        return 0;
    if (is_known(base, &other->entry)) {
        other->entry = *base;
        return 0;
    }
    int result = take_file(sync, path, other, err);
    if (result < 0 && err->status == 404) { // it went meanwhile
        closep(&other->fd);
        other->entry = (struct tree_entry){0};
        result = 0;
    }
    return result;
}

int there_is_still(struct sync *sync, const char *path, const struct tree_entry *seen,
                   struct burrow_error *err)
{
    autoclear(other) now = {.fd = -1, .staged = -1};
    autoanswer answer = NULL;

    if (ask_there(sync, path, &answer, err) < 0)
        return -1;
    if (answer)
        describe(path, burrow_answer_value(answer), &now);
    if (now.entry.kind == TREE_FILE && seen->kind == TREE_FILE) {
        if (seen->version)
            return now.entry.version == seen->version;
        if (now.entry.size != seen->size)
            return 0;
        if (take_file(sync, path, &now, err) < 0)
            return err->status == 404 ? 0 : -1;
    }
    return tree_entry_is_same(&now.entry, seen);
}

// ---- to the sandbox ----

/* A directory where there was none, or no directory any more; one that is not empty. */
static bool is_in_the_way(const struct burrow_error *err)
{
    return is_nothing(err) || (err->status == 409 && (strcmp(err->code, "conflict") == 0 ||
                                                      strcmp(err->code, "already_exists") == 0));
}

/* Names in JSON are UTF-8: another one would be made there under a name that is not its own. */
static bool refuse_odd_name(const char *name, struct burrow_error *err)
{
    if (utf8_is_valid(name, strlen(name)))
        return false;
    (void)say_fail(err, BURROW_INVALID, "the name '%.300s' is not UTF-8", name);
    return true;
}

static int send_link(struct sync *sync, const char *path, const char *whole,
                     struct burrow_error *err)
{
    char target[PATH_MAX];
    struct burrow_result result = {0};

    if (local_tree_target(sync->root, path, target, sizeof target) < 0)
        return 0; // it went meanwhile
    if (refuse_odd_name(whole, err) || refuse_odd_name(target, err))
        return 1;
    const char *const argv[] = {"ln", "-sfn", "--", target, whole, NULL};
    const struct burrow_command command = {.sandbox = sync->sandbox, .argv = argv};
    if (burrow_run(sync->client, &command, NULL, NULL, &result, err) < 0)
        return -1;
    if (result.exit_code == 0)
        return 0;
    (void)say_fail(err, BURROW_SERVER, "'ln' makes no link '%.300s'", whole);
    return 1;
}

struct sending {
    int fd;
    struct sha256 sha;
};

static ssize_t read_sending(void *context, void *to, size_t size)
{
    struct sending *sending = context;
    ssize_t got = read(sending->fd, to, size);

    if (got > 0)
        sha256_add(&sending->sha, to, (size_t)got);
    return got;
}

/* What is sent in parts has no version: it is compared when the sandbox tells of it. */
static int send_in_parts(struct sync *sync, const char *path, int fd, unsigned mode,
                         struct burrow_error *err)
{
    const struct burrow_transfer what = {
        .sandbox = sync->sandbox, .path = path, .fd = fd, .mode = mode, .makes_parents = true};

    return burrow_file_send(sync->client, &what, NULL, err);
}

/* *version is left alone where the file was not sent as it was seen. */
static int send_file(struct sync *sync, const char *path, const struct tree_entry *here,
                     uint64_t *version, struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    autofree char *target =
        burrow_path("/sandboxes/%s/files?createParents=true&path=%s", sync->sandbox, whole, NULL);
    autofree char *with_mode = xasprintf("%s&mode=%04o", target, here->mode);
    autofd fd = local_tree_open(sync->root, path);
    struct sending sending = {.fd = fd};
    const struct burrow_body body = {.read = read_sending, .context = &sending};
    autoanswer answer = NULL;
    char digest[SHA256_TEXT];
    uint64_t limit;

    if (fd < 0)
        return 0; // it went meanwhile
    if (burrow_file_limit(sync->client, &limit, err) < 0)
        return -1;
    if (here->size > limit)
        return send_in_parts(sync, whole, fd, here->mode, err);
    sha256_init(&sending.sha);
    if (burrow_send(sync->client, "PUT", with_mode, &body, &answer, err) < 0)
        return -1;
    sha256_end(&sending.sha, digest);
    if (strcmp(digest, here->digest) == 0)
        *version = version_of(burrow_answer_value(answer));
    return 0;
}

static int remove_there(struct sync *sync, const char *whole, struct burrow_error *err)
{
    if (burrow_file_remove(sync->client, sync->sandbox, whole, false, err) == 0 || is_nothing(err))
        return 0;
    return -1;
}

static int send_it(struct sync *sync, const char *path, const struct tree_entry *here,
                   const struct tree_entry *was, uint64_t *version, struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    bool is_other = was && was->kind != TREE_NOTHING && was->kind != here->kind;

    if (is_other && remove_there(sync, whole, err) < 0)
        return -1;
    if (here->kind == TREE_DIRECTORY)
        return burrow_directory_make(sync->client, sync->sandbox, whole, true, err);
    if (here->kind == TREE_LINK)
        return send_link(sync, path, whole, err);
    return here->kind == TREE_FILE ? send_file(sync, path, here, version, err) : 0;
}

int there_send(struct sync *sync, const char *path, const struct tree_entry *here,
               const struct tree_entry *was, uint64_t *version, struct burrow_error *err)
{
    int result = send_it(sync, path, here, was, version, err);

    return result < 0 && is_in_the_way(err) ? 1 : result;
}

int there_move(struct sync *sync, const char *path, const char *to, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files/move", sync->sandbox, NULL);
    autofree char *from_whole = there(sync, path), *to_whole = there(sync, to);
    autobuffer text = {0};
    struct json_writer json;

    if (refuse_odd_name(to_whole, err))
        return 1;
    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "path");
    json_string(&json, from_whole);
    json_key(&json, "to");
    json_string(&json, to_whole);
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    if (burrow_ask(sync->client, "POST", target, text.data, NULL, err) == 0)
        return 0;
    return is_in_the_way(err) ? 1 : -1;
}
