/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's directory that is kept in step; see watch_there.h. */
#include "cli/watch_there.h"

#include "base/mem.h"
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

int there_look(struct sync *sync, const char *path, struct other *other, struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    autofree char *whole = there(sync, path);
    autofree char *place =
        burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s", sync->sandbox, whole, NULL);
    autoanswer answer = NULL;

    if (burrow_ask(sync->client, "GET", place, NULL, &answer, err) < 0)
        return err->status == 404 && !strstr(err->code, "sandbox") ? 0 : -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    const char *kind = burrow_text(burrow_get(value, "kind"));
    const char *mode = burrow_text(burrow_get(value, "mode"));
    const char *target = burrow_text(burrow_get(value, "target"));
    other->entry.mode = mode ? (unsigned)strtoul(mode, NULL, 8) & 0777 : 0644;
    other->entry.size = (uint64_t)burrow_integer(burrow_get(value, "sizeBytes"), 0);
    if (kind && strcmp(kind, "directory") == 0) {
        other->entry.kind = TREE_DIRECTORY;
    } else if (kind && strcmp(kind, "link") == 0 && target && entry_link_stays(path, target)) {
        other->entry.kind = TREE_LINK;
        other->entry.mode = 0;
        take_target(target, other);
    } else if (kind && strcmp(kind, "file") == 0) {
        other->entry.kind = TREE_FILE;
        other->entry.version = version_of(value);
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
    return 0;
}

// ---- to the sandbox ----

static int send_link(struct sync *sync, const char *path, const char *whole,
                     struct burrow_error *err)
{
    char target[PATH_MAX];
    struct burrow_result result = {0};

    if (local_tree_target(sync->root, path, target, sizeof target) < 0)
        return 0; // it went meanwhile
    const char *const argv[] = {"ln", "-sfn", "--", target, whole, NULL};
    const struct burrow_command command = {.sandbox = sync->sandbox, .argv = argv};
    return burrow_run(sync->client, &command, NULL, NULL, &result, err);
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

int there_send(struct sync *sync, const char *path, const struct tree_entry *here,
               const struct tree_entry *was, uint64_t *version, struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    int result = 0;

    if (here->kind == TREE_NOTHING || (was && was->kind != here->kind)) {
        bool is_tree = was && was->kind == TREE_DIRECTORY;
        result = burrow_file_remove(sync->client, sync->sandbox, whole, is_tree, err);
        if (result < 0 && err->status != 404)
            return -1;
        result = 0;
    }
    if (here->kind == TREE_DIRECTORY) {
        result = burrow_directory_make(sync->client, sync->sandbox, whole, true, err);
    } else if (here->kind == TREE_LINK) {
        result = send_link(sync, path, whole, err);
    } else if (here->kind == TREE_FILE) {
        result = send_file(sync, path, here, version, err);
    }
    return result;
}
