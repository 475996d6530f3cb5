/* SPDX-License-Identifier: Apache-2.0 */
/* What both kinds of trials have; see try_run.h. */
#include "cli/try_run.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/endpoint.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((uint64_t)4 << 30)

static const char *const change_words[] = {"added", "changed", "removed"};
static const char *const kind_words[] = {"other", "file", "directory", "link"};

void trial_clear(struct trial *trial)
{
    for (size_t i = 0; i < trial->n_changes; i++)
        free(trial->items[i].path);
    free(trial->items);
    local_tree_clear(&trial->before);
    local_tree_clear(&trial->after);
    burrow_answer_free(trial->difference);
}

uint64_t trial_most_bytes(const struct trial *trial)
{
    uint64_t given = trial->invocation->most_bytes;

    return given == OPTION_UNSET ? MOST_BYTES : given;
}

void trial_add(struct trial *trial, const char *path, enum trial_change change, enum tree_kind kind)
{
    if (trial->n_changes == trial->room) {
        trial->room = trial->room ? trial->room * 2 : 64;
        trial->items = xrealloc(trial->items, trial->room, sizeof *trial->items);
    }
    trial->items[trial->n_changes++] =
        (struct trial_item){xstrdup(path), change, kind, false, false};
}

void trial_print(const struct trial_item *item, const char *more)
{
    static const enum say_colour colours[] = {SAY_GREEN, SAY_YELLOW, SAY_RED};
    autofree char *clean = say_clean(item->path);

    (void)printf("%s%c %s%s%s%s\n", say_begin(colours[item->change]), "+~-"[item->change], clean,
                 item -> kind == TREE_DIRECTORY ? "/" : "", more, say_begin(SAY_PLAIN));
}

// ---- running ----

static int on_output(void *context, int stream, const void *data, size_t length)
{
    const struct invocation *invocation = context;

    (void)stream;
    return invocation->is_quiet ? 0 : fd_write_all(STDERR_FILENO, data, length);
}

/* Its output beside the one JSON value. */
static int run_beside(struct trial *trial, struct burrow_error *err)
{
    struct invocation *invocation = trial->invocation;
    struct burrow_result result = {0};
    const struct burrow_command command = {
        .sandbox = trial->sandbox,
        .argv = (const char *const *)invocation->words,
        .directory = trial->directory,
        .user = invocation->user,
        .timeout_ms = invocation->timeout_ms == OPTION_UNSET ? 0 : (int64_t)invocation->timeout_ms,
    };

    if (burrow_run(invocation->client, &command, on_output, invocation, &result, err) < 0)
        return -1;
    trial->exit_code = result.exit_code;
    return 0;
}

int trial_make(struct trial *trial, const char *path, const char *json, struct burrow_answer **out,
               struct burrow_error *err)
{
    struct burrow_client *client = trial->invocation->client;

    burrow_set_cancel_fd(client, -1);
    int result = burrow_ask(client, "POST", path, json, out, err);
    burrow_set_cancel_fd(client, endpoint_cancel_fd());
    return result;
}

int trial_run(struct trial *trial, struct burrow_error *err)
{
    struct invocation *invocation = trial->invocation;
    autobuffer text = {0};
    struct json_writer json;

    if (invocation->is_json)
        return run_beside(trial, err);
    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "sandbox", trial->sandbox);
    remote_write_words(&json, invocation->words);
    say_put_text(&json, "directory", trial->directory);
    say_put_text(&json, "user", invocation->user);
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "timeoutMs");
        json_integer(&json, (int64_t)invocation->timeout_ms);
    }
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    text.data[--text.length] = '\0'; // its input is still to come
    const struct remote_run run = {.body = text.data,
                                   .is_quiet = invocation->is_quiet,
                                   .has_no_stdin = invocation->has_no_stdin};
    trial->exit_code = remote_run(invocation->client, &run, err);
    return trial->exit_code < 0 ? -1 : 0;
}

// ---- the end ----

static size_t count_applied(const struct trial *trial)
{
    size_t count = 0;

    for (size_t i = 0; i < trial->n_changes; i++)
        count += trial->items[i].is_applied;
    return count;
}

void trial_say_shown(const struct trial *trial)
{
    if (trial->left_out)
        say_note("left out (%llu): links that lead outside, devices, and what is in '.git'",
                 (unsigned long long)trial->left_out);
    if (trial->exit_code != 0 && trial->n_changes)
        say_note("the command ended with exit code %d", trial->exit_code);
}

int trial_say_end(const struct trial *trial)
{
    size_t applied = count_applied(trial);

    for (size_t i = 0; i < trial->n_changes && trial->is_applied; i++) {
        autofree char *clean = say_clean(trial->items[i].path);
        if (trial->items[i].is_conflict && !trial->items[i].is_applied)
            say_note("left alone, changed here meanwhile: %s", clean);
        else if (!trial->items[i].is_applied)
            say_note("left alone, it is not empty: %s", clean);
    }
    if (trial->n_changes == 0)
        say_done("nothing was changed");
    else if (!trial->is_applied)
        say_done("discarded %zu change%s", trial->n_changes, trial->n_changes == 1 ? "" : "s");
    else
        say_done("applied %zu of %zu change%s%s", applied, trial->n_changes,
                 trial->n_changes == 1 ? "" : "s",
                 applied < trial->n_changes ? "; --force applies the rest" : "");
    return trial->exit_code;
}

static void write_flag(struct json_writer *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void trial_write(const struct trial *trial, struct json_writer *json)
{
    json_map_begin(json);
    json_key(json, "exitCode");
    json_integer(json, trial->exit_code);
    write_flag(json, "applied", trial->is_applied);
    json_key(json, "changes");
    json_list_begin(json);
    for (size_t i = 0; i < trial->n_changes; i++) {
        const struct trial_item *item = &trial->items[i];
        json_map_begin(json);
        json_key(json, "path");
        json_bytes(json, item->path, strlen(item->path));
        say_put_text(json, "change", change_words[item->change]);
        say_put_text(json, "kind", kind_words[item->kind]);
        write_flag(json, "applied", item->is_applied);
        write_flag(json, "conflict", item->is_conflict);
        json_map_end(json);
    }
    json_list_end(json);
    json_key(json, "leftOut");
    json_natural(json, trial->left_out);
    json_map_end(json);
}
