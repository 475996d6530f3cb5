/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: interpreters, found among the executions of a sandbox; see code.h. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "core/code/code_impl.h"
#include "core/code/resident.h"
#include "core/execution/execution.h"
#include "core/execution/executions.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/pause.h"
#include "core/sandbox/sandbox_box.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFIX "burrow-context-"
#define START_MS 60000 // until an interpreter listens, on a machine that does other things
#define END_MS 2000    // until the end of one is known
#define KEPT 64        // ended ones that are looked through for one to start anew

static const enum execution_kind context_kind = EXECUTION_CONTEXT;

struct contexts *contexts_new(struct executions *executions)
{
    struct contexts *contexts = xnew(struct contexts);

    contexts->executions = executions;
    executions->sandboxes->resident = resident_describe();
    code_memory_init(&contexts->memory);
    for (size_t i = 0; i < CODE_STRIPES; i++)
        lock_init(&contexts->starting[i], LOCK_CONTEXTS);
    return contexts;
}

void contexts_free(struct contexts *contexts)
{
    if (!contexts)
        return;
    for (size_t i = 0; i < CODE_STRIPES; i++)
        lock_clear(&contexts->starting[i]);
    code_memory_clear(&contexts->memory);
    free(contexts);
}

void context_info_clear(struct context_info *info)
{
    free(info->directory);
    free(info->user);
    free((void *)info->env);
    *info = (struct context_info){0};
}

void context_infos_clear(struct context_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        context_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct context_infos){0};
}

static struct lock *stripe(struct contexts *contexts, const char *sandbox_id)
{
    unsigned sum = 0;

    for (const char *at = sandbox_id; *at; at++)
        sum = sum * 31 + (unsigned char)*at;
    return &contexts->starting[sum % CODE_STRIPES];
}

// ---- what an execution is the interpreter of ----

const char *context_name(const struct context_info *info, char text[CONTEXT_NAME])
{
    (void)snprintf(text, CONTEXT_NAME, PREFIX "%s%s-%s", info->is_usual ? "u-" : "", info->id,
                   code_language_names[info->language]);
    return text;
}

static bool read_name(const char *name, struct context_info *out)
{
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    name += strlen(PREFIX);
    out->is_usual = strncmp(name, "u-", 2) == 0;
    name += out->is_usual ? 2 : 0;
    if (strlen(name) <= ID_LENGTH || name[ID_LENGTH] != '-')
        return false;
    (void)snprintf(out->id, sizeof out->id, "%.*s", ID_LENGTH, name);
    return id_is_valid(out->id) && code_language_find(name + ID_LENGTH + 1, &out->language);
}

/* `-` is where the script comes from. False: it is none. */
static bool describe(const struct execution_record *record, struct context_info *out)
{
    const char *const *argv = record->command.argv;

    *out = (struct context_info){0};
    if (record->kind != EXECUTION_CONTEXT || !argv || !argv[0] || !argv[1] || !argv[2] ||
        !read_name(argv[2], out))
        return false;
    (void)snprintf(out->sandbox_id, sizeof out->sandbox_id, "%s", record->sandbox_id);
    (void)snprintf(out->execution_id, sizeof out->execution_id, "%s", record->id);
    out->directory = record->command.directory ? xstrdup(record->command.directory) : NULL;
    out->user = record->command.user ? xstrdup(record->command.user) : NULL;
    out->env = strings_copy(record->command.env);
    out->is_open = record->tag && strcmp(record->tag, EXECUTION_STRANGER) == 0;
    out->is_running = record->state == EXECUTION_RUNNING && !record->stop_at;
    out->created_at = record->created_at;
    return true;
}

/* What others have made is not there for strangers. */
static bool is_seen(const struct actor *actor, const struct context_info *info)
{
    return info->is_open || !actor->is_stranger;
}

static void add_living(struct sandbox *sandbox, struct context_infos *out)
{
    autolock(&sandbox->lock);
    for (struct execution *at = sandbox->executions; at; at = at->next) {
        struct context_info info;
        autolock(&at->lock);
        if (!describe(&at->record, &info))
            continue;
        if (!info.is_running) {
            context_info_clear(&info);
            continue;
        }
        out->items = xrealloc(out->items, out->count + 1, sizeof *out->items);
        out->items[out->count++] = info;
    }
}

static bool is_wanted(const struct context_info *info, const char *id, enum code_language language)
{
    return id ? strcmp(info->id, id) == 0 : info->is_usual && info->language == language;
}

/* How many there are. */
struct living {
    size_t all, open;
};

/* One whose interpreter lives. */
static bool find_living(struct sandbox *sandbox, const struct actor *actor, const char *id,
                        enum code_language language, struct context_info *out, struct living *count)
{
    struct context_infos infos __attribute__((cleanup(context_infos_clear))) = {0};

    add_living(sandbox, &infos);
    *count = (struct living){.all = infos.count};
    for (size_t i = 0; i < infos.count; i++)
        count->open += infos.items[i].is_open;
    for (size_t i = 0; i < infos.count; i++) {
        if (is_seen(actor, &infos.items[i]) && is_wanted(&infos.items[i], id, language)) {
            *out = infos.items[i];
            infos.items[i] = (struct context_info){0};
            return true;
        }
    }
    return false;
}

/* One whose interpreter has ended by itself, the newest first. A context that was removed is gone. */
static int find_ended(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                      const char *id, struct context_info *out, struct error *err)
{
    const struct execution_filter filter = {
        .sandbox_id = sandbox_id, .kind = &context_kind, .page.limit = KEPT};
    struct execution_infos infos __attribute__((cleanup(execution_infos_clear))) = {0};

    lookup_settle(contexts->executions->sandboxes, sandbox_id);
    if (execution_list(contexts->executions, actor, &filter, &infos, err) < 0)
        return -1;
    for (size_t i = 0; i < infos.count; i++) {
        const struct execution_info *info = &infos.items[i];
        const struct execution_record record = {.id = info->id,
                                                .sandbox_id = info->sandbox_id,
                                                .kind = info->kind,
                                                .command = info->command,
                                                .tag = info->tag,
                                                .state = info->state,
                                                .stop_at = info->stop_at,
                                                .created_at = info->created_at};
        if (!describe(&record, out))
            continue;
        if (strcmp(out->id, id) == 0) {
            if (is_seen(actor, out) &&
                (!info->stop_reason || strcmp(info->stop_reason, "removed") != 0))
                return 0;
            context_info_clear(out);
            break;
        }
        context_info_clear(out);
    }
    return error_missing(err, "context", id);
}

// ---- starting ----

static bool has_resident(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->has_resident;
}

/* The interpreter that waits in the box, where there is one that can be what is asked for; else a new one. */
static int start_execution(struct contexts *contexts, const struct actor *actor,
                           struct sandbox *sandbox, enum code_language language,
                           struct execution_request *request, struct execution_info *out,
                           struct error *err)
{
    const struct execution_request usual = *request;
    struct error ignored = {0};

    if (resident_speaks(language) && has_resident(sandbox)) {
        request->input = NULL;
        request->hand_over = resident_hand_over;
        if (execution_start(contexts->executions, actor, sandbox->id, request, out, &ignored) == 0)
            return 0;
    }
    return execution_start(contexts->executions, actor, sandbox->id, &usual, out, err);
}

static int start(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                 struct context_info *info, bool is_counted, struct error *err)
{
    const struct code_driver driver = code_language_driver(info->language);
    char name[CONTEXT_NAME];
    const char *const argv[] = {driver.program, "-", context_name(info, name), driver.word, NULL};
    struct execution_request request = {
        .kind = EXECUTION_CONTEXT,
        .command = {.argv = argv,
                    .env = info->env,
                    .directory = info->directory,
                    .user = info->user},
        .input = driver.script,
        .input_length = driver.length,
        .is_counted = is_counted,
        .tag = info->is_open ? EXECUTION_STRANGER : NULL,
        .output_cap_bytes = 64 << 10, // what it says of itself: not what code writes
    };
    struct execution_info started __attribute__((cleanup(execution_info_clear))) = {0};

    if (start_execution(contexts, actor, sandbox, info->language, &request, &started, err) < 0)
        return -1;
    (void)snprintf(info->sandbox_id, sizeof info->sandbox_id, "%s", sandbox->id);
    (void)snprintf(info->execution_id, sizeof info->execution_id, "%s", started.id);
    info->created_at = started.created_at;
    info->is_running = true;
    if (!info->directory && started.command.directory)
        info->directory = xstrdup(started.command.directory);
    return 0;
}

static int start_new(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                     const struct living *count, struct context_info *info, bool is_counted,
                     struct error *err)
{
    if (count->all >= CODE_CONTEXTS)
        return error_refuse(err, ERROR_FULL, "context",
                            "the sandbox has %d contexts already; remove one of them",
                            CODE_CONTEXTS);
    if (actor->is_stranger && count->open >= CODE_CONTEXTS_OPEN)
        return error_refuse(err, ERROR_FULL, "context",
                            "the sandbox has %d contexts already that were made without its token; "
                            "remove one of them, or send the token",
                            CODE_CONTEXTS_OPEN);
    info->is_open = actor->is_stranger;
    id_make(info->id);
    return start(contexts, actor, sandbox, info, is_counted, err);
}

int context_ensure(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                   const struct code_request *request, struct context_info *out, bool *is_started,
                   struct error *err)
{
    struct living count;

    *out = (struct context_info){0};
    *is_started = false;
    if (find_living(sandbox, actor, request->context_id, request->language, out, &count))
        return 0;
    autolock(stripe(contexts, sandbox->id));
    if (find_living(sandbox, actor, request->context_id, request->language, out, &count))
        return 0;
    *is_started = true;
    if (!request->context_id) {
        *out = (struct context_info){.language = request->language,
                                     .is_usual = true,
                                     .directory =
                                         request->directory ? xstrdup(request->directory) : NULL,
                                     .user = request->user ? xstrdup(request->user) : NULL,
                                     .env = strings_copy(request->context_env)};
        return start_new(contexts, actor, sandbox, &count, out, true, err);
    }
    if (find_ended(contexts, actor, sandbox->id, request->context_id, out, err) < 0)
        return -1;
    return start(contexts, actor, sandbox, out, true, err);
}

static bool is_over(struct contexts *contexts, const struct actor *actor,
                    const struct context_info *info)
{
    struct execution_info now __attribute__((cleanup(execution_info_clear))) = {0};
    struct error ignored = {0};

    // One that is not known runs already, and is about to be recorded.
    return execution_get(contexts->executions, actor, info->execution_id, &context_kind, &now,
                         &ignored) == 0 &&
           execution_info_is_over(&now);
}

/* Its connection is gone a moment before its end is known. */
static void await_end(struct contexts *contexts, const struct actor *actor,
                      const struct context_info *info)
{
    uint64_t until = clock_monotonic_ms() + END_MS;

    while (!is_over(contexts, actor, info) && clock_monotonic_ms() < until)
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

void context_reason(struct contexts *contexts, const struct actor *actor,
                    const struct context_info *info, struct error *out)
{
    const struct code_driver driver = code_language_driver(info->language);
    const char *language = code_language_names[info->language];
    struct execution_info now __attribute__((cleanup(execution_info_clear))) = {0};
    struct error ignored = {0};

    await_end(contexts, actor, info);
    bool is_known = execution_get(contexts->executions, actor, info->execution_id, &context_kind,
                                  &now, &ignored) == 0;
    bool is_lacking = is_known && driver.needs && now.exit.cause == EXECUTION_EXITED &&
                      now.exit.code == CODE_LACKS;
    if (!is_known)
        error_refuse(out, ERROR_UNAVAILABLE, "context", "its interpreter is gone: %s",
                     ignored.text);
    else if (now.exit.cause == EXECUTION_NOT_FOUND)
        error_refuse(out, ERROR_INVALID, "context",
                     "the sandbox has no '%s', which %s needs: use a runtime that has it, as "
                     "code-interpreter:latest does",
                     driver.program, language);
    else if (is_lacking && !driver.package)
        error_refuse(
            out, ERROR_INVALID, "context",
            "the sandbox's '%s' is too old: %s needs '%s' or newer; use a runtime that has "
            "it, as code-interpreter:latest does",
            driver.program, language, driver.needs);
    else if (is_lacking)
        error_refuse(out, ERROR_INVALID, "context",
                     "the sandbox has no '%s', which %s needs: use a runtime that has it, or "
                     "install Debian's package '%s'",
                     driver.needs, language, driver.package);
    else if (now.exit.cause == EXECUTION_MEMORY)
        error_refuse(out, ERROR_UNAVAILABLE, "context",
                     "the %s interpreter ran out of the sandbox's memory and was killed; the next "
                     "run starts a new one",
                     language);
    else if (!execution_info_is_over(&now))
        error_refuse(out, ERROR_UNAVAILABLE, "context",
                     "the %s interpreter has closed the connection; the next run tries again",
                     language);
    else if (now.exit.signal && !now.error)
        error_refuse(out, ERROR_UNAVAILABLE, "context",
                     "the %s interpreter was ended by signal %lld; the next run starts a new one",
                     language, (long long)now.exit.signal);
    else
        error_refuse(out, ERROR_UNAVAILABLE, "context",
                     "the %s interpreter has ended with exit code %lld%s%s; the next run starts a "
                     "new one",
                     language, (long long)execution_info_exit_code(&now), now.error ? ": " : "",
                     now.error ? now.error : "");
}

/* BOX_NOBODY_LISTENS: not yet. */
static int try_connect(struct sandbox *sandbox, const char *name, int *fd, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    return held ? box_connect_name(sandbox->box, name, fd, err) : -1;
}

int context_connect(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                    const struct context_info *info, int *fd, struct error *err)
{
    uint64_t until = clock_monotonic_ms() + START_MS;
    char name[CONTEXT_NAME];
    struct timespec pause = {.tv_nsec = 500000};

    context_name(info, name);
    for (;;) {
        bool was_paused = false;
        if (sandbox_awake(sandbox, &was_paused, err) < 0)
            return -1;
        int result = try_connect(sandbox, name, fd, err);
        if (result != BOX_NOBODY_LISTENS)
            return result;
        if (is_over(contexts, actor, info)) {
            context_reason(contexts, actor, info, err);
            return -1;
        }
        if (clock_monotonic_ms() > until)
            return error_refuse(err, ERROR_SLOW_SANDBOX, "context",
                                "its interpreter does not answer: restart or remove the context");
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < 16000000)
            pause.tv_nsec *= 2;
    }
}

// ---- what callers may do ----

int context_create(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                   const struct context_request *request, struct context_info *out,
                   struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    struct context_info ignored = {0};
    struct living count;
    autofd fd = -1;

    *out = (struct context_info){0};
    if (lookup_sandbox(contexts->executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    {
        autolock(stripe(contexts, sandbox->id));
        (void)find_living(sandbox, actor, "", CODE_PYTHON, &ignored, &count);
        out->language = request->language;
        out->directory = request->directory ? xstrdup(request->directory) : NULL;
        out->user = request->user ? xstrdup(request->user) : NULL;
        out->env = strings_copy(request->env);
        if (start_new(contexts, actor, sandbox, &count, out, false, err) < 0)
            return -1;
    }
    return context_connect(contexts, actor, sandbox, out, &fd, err);
}

int context_list(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                 struct context_infos *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(contexts->executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    add_living(sandbox, out);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        if (is_seen(actor, &out->items[i]))
            out->items[kept++] = out->items[i];
        else
            context_info_clear(&out->items[i]);
    }
    out->count = kept;
    return 0;
}

int context_get(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                const char *id, struct context_info *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    struct living count;

    if (lookup_sandbox(contexts->executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    if (find_living(sandbox, actor, id, CODE_PYTHON, out, &count))
        return 0;
    return find_ended(contexts, actor, sandbox->id, id, out, err);
}

int context_interrupt(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                      const char *id, struct error *err)
{
    struct context_info info __attribute__((cleanup(context_info_clear))) = {0};

    if (context_get(contexts, actor, sandbox_id, id, &info, err) < 0)
        return -1;
    return info.is_running ? execution_signal(contexts->executions, actor, info.execution_id,
                                              SIGINT, false, err)
                           : 0;
}

static int stop(struct contexts *contexts, const struct actor *actor,
                const struct context_info *info, const char *reason, struct error *err)
{
    struct execution_info now __attribute__((cleanup(execution_info_clear))) = {0};

    return execution_cancel(contexts->executions, actor, info->execution_id, reason, &now, err);
}

int context_restart(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                    const char *id, struct error *err)
{
    struct context_info info __attribute__((cleanup(context_info_clear))) = {0};
    uint64_t until = clock_monotonic_ms() + START_MS;
    autoptr(sandbox) sandbox = NULL;

    if (context_get(contexts, actor, sandbox_id, id, &info, err) < 0 ||
        lookup_sandbox(contexts->executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    autolock(stripe(contexts, info.sandbox_id));
    if (info.is_running && stop(contexts, actor, &info, "restarted", err) < 0)
        return -1;
    while (info.is_running && !is_over(contexts, actor, &info)) { // its name is free then
        if (clock_monotonic_ms() > until)
            return error_refuse(err, ERROR_SLOW_SANDBOX, "context",
                                "its interpreter does not end: remove the context");
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return start(contexts, actor, sandbox, &info, false, err);
}

int context_remove(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                   const char *id, struct error *err)
{
    struct context_info info __attribute__((cleanup(context_info_clear))) = {0};

    if (context_get(contexts, actor, sandbox_id, id, &info, err) < 0)
        return -1;
    return stop(contexts, actor, &info, "removed", err);
}
