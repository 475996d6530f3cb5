/* SPDX-License-Identifier: Apache-2.0 */
/* Trying in a fork of a sandbox; see try_sandbox.h. */
#include "cli/try_sandbox.h"

#include "base/mem.h"
#include "cli/listing.h"
#include "cli/remote_file.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_NAME "burrow-try-end"

static const char *text_of(const struct burrow_value *map, const char *name)
{
    const char *text = burrow_text(burrow_get(map, name));

    return text ? text : "";
}

static int make_checkpoint(struct trial *trial, const char *sandbox, const char *name,
                           struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints", sandbox, NULL);
    autofree char *body = xasprintf("{\"name\": \"%s\"}", name);
    autoanswer answer = NULL;

    return trial_make(trial, path, body, &answer, err);
}

/* The checkpoint first: what changes in between counts as changed meanwhile. */
static int begin(struct trial *trial, struct burrow_error *err)
{
    const char *source = trial->invocation->sandbox;
    autofree char *path = burrow_path("/sandboxes/%s/fork", source, NULL);
    char name[sizeof trial->checkpoint];
    autoanswer answer = NULL;

    (void)snprintf(name, sizeof name, "burrow-try-%d-%lld", (int)getpid(), (long long)time(NULL));
    if (make_checkpoint(trial, source, name, err) < 0)
        return -1;
    (void)snprintf(trial->checkpoint, sizeof trial->checkpoint, "%s", name);
    if (trial_make(trial, path, "{}", &answer, err) < 0)
        return -1;
    (void)snprintf(trial->sandbox, sizeof trial->sandbox, "%s",
                   text_of(burrow_answer_value(answer), "id"));
    trial->directory = trial->invocation->workdir;
    return 0;
}

/* Going back to this very moment ends whatever still runs in it: what is shown is what is applied. */
static int settle(struct trial *trial, struct burrow_error *err)
{
    autofree char *path =
        burrow_path("/sandboxes/%s/checkpoints/" END_NAME "/restore", trial->sandbox, NULL);
    autoanswer answer = NULL;

    if (make_checkpoint(trial, trial->sandbox, END_NAME, err) < 0)
        return -1;
    return burrow_ask(trial->invocation->client, "POST", path, NULL, &answer, err);
}

static enum tree_kind kind_of(const struct burrow_value *item)
{
    const char *word = text_of(item, "after.kind");

    if (!*word)
        word = text_of(item, "before.kind");
    return strcmp(word, "file") == 0        ? TREE_FILE
           : strcmp(word, "directory") == 0 ? TREE_DIRECTORY
           : strcmp(word, "link") == 0      ? TREE_LINK
                                            : TREE_NOTHING;
}

/* Before anything is applied. */
static int check_size(const struct trial *trial, const struct burrow_value *items,
                      struct burrow_error *err)
{
    uint64_t left = trial_most_bytes(trial);
    char text[SAY_TEXT];

    for (const struct burrow_value *item = burrow_first(items); item; item = burrow_next(item)) {
        uint64_t size = (uint64_t)burrow_integer(burrow_get(item, "after.sizeBytes"), 0);
        if (size > left)
            return say_fail(err, BURROW_LIMIT,
                            "what it changed has more than %s: nothing was applied; --limit allows "
                            "more",
                            say_size((int64_t)trial_most_bytes(trial), text));
        left -= size;
    }
    return 0;
}

static int compare(struct trial *trial, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/diff?patch=true", trial->sandbox, NULL);

    if (settle(trial, err) < 0 ||
        burrow_ask(trial->invocation->client, "GET", path, NULL, &trial->difference, err) < 0)
        return -1;
    const struct burrow_value *whole = burrow_answer_value(trial->difference);
    if (burrow_truth(burrow_get(whole, "truncated")))
        return say_fail(err, BURROW_LIMIT,
                        "it changed more files than can be shown: nothing was applied");
    if (check_size(trial, burrow_get(whole, "items"), err) < 0)
        return -1;
    const struct burrow_value *item = burrow_first(burrow_get(whole, "items"));
    for (; item; item = burrow_next(item)) {
        const char *change = text_of(item, "change");
        enum tree_kind kind = kind_of(item);
        if (kind == TREE_NOTHING && *change != 'r')
            trial->left_out++;
        else
            trial_add(trial, text_of(item, "path"),
                      *change == 'a'   ? TRIAL_ADDED
                      : *change == 'r' ? TRIAL_REMOVED
                                       : TRIAL_CHANGED,
                      kind);
    }
    return 0;
}

static void show(const struct trial *trial)
{
    const struct burrow_value *item =
        burrow_first(burrow_get(burrow_answer_value(trial->difference), "items"));

    for (; item; item = burrow_next(item))
        change_print(item);
}

// ---- applying ----

static const struct burrow_value *find(const struct burrow_value *whole, const char *path)
{
    const struct burrow_value *item = burrow_first(burrow_get(whole, "items"));

    while (item && strcmp(text_of(item, "path"), path) != 0)
        item = burrow_next(item);
    return item;
}

/* What has changed in the sandbox itself since. */
static int find_conflicts(struct trial *trial, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/diff?from=%s", trial->invocation->sandbox,
                                      trial->checkpoint, NULL);
    autoanswer answer = NULL;

    if (burrow_ask(trial->invocation->client, "GET", path, NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *whole = burrow_answer_value(answer);
    bool is_cut = burrow_truth(burrow_get(whole, "truncated"));
    for (size_t i = 0; i < trial->n_changes; i++)
        trial->items[i].is_conflict =
            is_cut || (trial->items[i].kind != TREE_DIRECTORY && find(whole, trial->items[i].path));
    return 0;
}

/* By way of a file here. */
static int copy_file(struct trial *trial, const char *path, unsigned mode, struct burrow_error *err)
{
    struct burrow_client *client = trial->invocation->client;
    uint64_t most = trial_most_bytes(trial) - trial->taken;
    struct stat info;
    autofd fd = -1;

    if (remote_file_take(client, trial->sandbox, path, most, &fd, err) < 0)
        return -1;
    if (fstat(fd, &info) < 0)
        return say_fail_sys(err, "read a temporary file");
    trial->taken += (uint64_t)info.st_size;
    return burrow_file_write(client, trial->invocation->sandbox, path, fd, mode, true, err);
}

static int copy_link(struct trial *trial, const char *path, struct burrow_error *err)
{
    struct burrow_client *client = trial->invocation->client;
    struct burrow_result result = {0};
    autoanswer answer = NULL;

    autofree char *place =
        burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s", trial->sandbox, path, NULL);

    if (burrow_ask(client, "GET", place, NULL, &answer, err) < 0)
        return -1;
    const char *target = text_of(burrow_answer_value(answer), "target");
    const char *const argv[] = {"ln", "-sfn", "--", target, path, NULL};
    const struct burrow_command command = {.sandbox = trial->invocation->sandbox, .argv = argv};
    if (burrow_run(client, &command, NULL, NULL, &result, err) < 0)
        return -1;
    autofree char *clean = say_clean(path);
    return result.exit_code ? say_fail(err, BURROW_SERVER, "the link '%s' could not be made", clean)
                            : 0;
}

static int apply_item(struct trial *trial, struct trial_item *item, struct burrow_error *err)
{
    struct burrow_client *client = trial->invocation->client;
    const char *to = trial->invocation->sandbox;
    const struct burrow_value *told = find(burrow_answer_value(trial->difference), item->path);
    unsigned mode = (unsigned)strtoul(text_of(told, "after.mode"), NULL, 8) & 0777;
    int result;

    if (item->is_conflict && !trial->invocation->is_forced)
        return 0;
    if (item->change == TRIAL_REMOVED) {
        result = burrow_file_remove(client, to, item->path, item->kind == TREE_DIRECTORY, err);
        result = result < 0 && err->kind == BURROW_NOT_FOUND ? 0 : result; // with what it was in
    } else if (item->kind == TREE_DIRECTORY) {
        result = burrow_directory_make(client, to, item->path, true, err);
    } else {
        result = item->kind == TREE_LINK ? copy_link(trial, item->path, err)
                                         : copy_file(trial, item->path, mode, err);
    }
    item->is_applied = result == 0;
    return result;
}

static int apply(struct trial *trial, struct burrow_error *err)
{
    if (find_conflicts(trial, err) < 0)
        return -1;
    for (size_t i = trial->n_changes; i-- > 0;) {
        if (trial->items[i].change == TRIAL_REMOVED && apply_item(trial, &trial->items[i], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < trial->n_changes; i++) {
        if (trial->items[i].change != TRIAL_REMOVED && apply_item(trial, &trial->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static void end(struct trial *trial)
{
    struct burrow_error ignored = {0};
    autoanswer answer = NULL;

    if (*trial->sandbox)
        (void)burrow_sandbox_delete(trial->invocation->client, trial->sandbox, &ignored);
    if (!*trial->checkpoint)
        return;
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints/%s", trial->invocation->sandbox,
                                      trial->checkpoint, NULL);
    (void)burrow_ask(trial->invocation->client, "DELETE", path, NULL, &answer, &ignored);
}

const struct trial_kind trial_of_sandbox = {begin, compare, show, apply, end};
