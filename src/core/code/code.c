/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of code in contexts; see code.h. */
#include "core/code/code.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/quota.h"
#include "core/code/code_impl.h"
#include "core/execution/executions.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_object.h"
#include "store/usage_days.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int code_put(struct buffer *out, const char *name, const void *data, size_t length,
             struct error *err)
{
    if (buffer_addf(out, err, "%s %zu\n", name, length) < 0 ||
        buffer_add(out, data, length, err) < 0)
        return -1;
    return buffer_add(out, "\n", 1, err);
}

int code_put_env(struct buffer *out, const char *const *env, struct error *err)
{
    autobuffer text = {0};

    for (size_t i = 0; env && env[i]; i++) {
        if (buffer_add(&text, env[i], strlen(env[i]) + 1, err) < 0)
            return -1;
    }
    return text.length ? code_put(out, "env", text.data, text.length, err) : 0;
}

static int write_request(const struct code_request *request, const struct context_info *context,
                         struct buffer *out, struct error *err)
{
    if (code_put(out, "code", request->code, request->length, err) < 0 ||
        code_put_env(out, request->env, err) < 0 ||
        (context->language == CODE_TYPESCRIPT && code_put(out, "typed", "1", 1, err) < 0))
        return -1;
    return buffer_add(out, "\n", 1, err);
}

/* It is in use, whatever its idle timeout says. */
static void hold(struct sandbox *sandbox, int by)
{
    autolock(&sandbox->lock);
    sandbox->n_jobs += (unsigned)by;
}

/* A run that no execution tells of. */
struct told_run {
    struct store *store;
    char sandbox_id[ID_TEXT], key_id[ID_TEXT];
    int64_t at;
};

static void on_told_run(void *data)
{
    autofree struct told_run *run = data;
    struct error err = {0};

    if (store_usage_add_run(run->store, run->sandbox_id, run->key_id, run->at, &err) < 0)
        log_debug("a run of code was not recorded", F("sandbox", run->sandbox_id),
                  F("error", err.text)); // it is counted until the server ends
}

/* Each run is remembered: by the record of the interpreter that was started for it, or as one of the day; the code does not wait for that. */
static void record_run(struct contexts *contexts, const struct actor *actor,
                       const struct sandbox *sandbox)
{
    struct sandboxes *sandboxes = contexts->executions->sandboxes;
    struct told_run *run = xnew(struct told_run);

    run->store = sandboxes->store;
    run->at = (int64_t)clock_wall_ms();
    (void)snprintf(run->sandbox_id, sizeof run->sandbox_id, "%s", sandbox->id);
    (void)snprintf(run->key_id, sizeof run->key_id, "%s", actor->key_id);
    workers_run(sandboxes->recorders, WORKERS_SLOW, on_told_run, run);
}

static int begin(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                 const struct code_request *request, struct code_run *out, struct error *err)
{
    struct accounts *accounts = contexts->executions->sandboxes->accounts;
    bool is_counted, is_started = false;

    if (quota_run(accounts, actor, &is_counted, err) < 0)
        return -1;
    if (context_ensure(contexts, actor, sandbox, request, &out->context, &is_started, err) == 0 &&
        context_connect(contexts, actor, sandbox, &out->context, &out->fd, err) == 0 &&
        write_request(request, &out->context, &out->request, err) == 0) {
        if (!is_started && !actor->is_stranger)
            record_run(contexts, actor, sandbox);
        return 0;
    }
    if (is_counted)
        quota_unrun(accounts, actor->key_id, actor->organisation);
    return -1;
}

int code_start(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
               const struct code_request *request, struct code_run *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    *out = (struct code_run){.fd = -1};
    if (request->length > CODE_LENGTH) {
        error_set(err, ERROR_TOO_LARGE, "code: has %zu bytes; %u are taken at most",
                  request->length, CODE_LENGTH);
        return error_field(err, "code");
    }
    if (lookup_sandbox(contexts->executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    if (begin(contexts, actor, sandbox, request, out, err) < 0) {
        code_run_clear(out);
        return -1;
    }
    hold(sandbox, 1);
    out->sandbox = sandbox_ref(sandbox);
    out->contexts = contexts;
    return 0;
}

bool code_run_take(struct code_run *run, uint64_t bytes)
{
    if (!run->sandbox)
        return false;
    if (bytes < run->taken)
        code_memory_give(&run->contexts->memory, run->sandbox, run->taken - bytes);
    else if (bytes > run->taken &&
             !code_memory_take(&run->contexts->memory, run->sandbox, bytes - run->taken))
        return false;
    run->taken = bytes;
    return true;
}

void code_run_clear(struct code_run *run)
{
    if (run->sandbox) {
        (void)code_run_take(run, 0);
        hold(run->sandbox, -1);
        sandbox_touch(run->sandbox);
        sandbox_free(run->sandbox);
    }
    if (run->fd >= 0)
        (void)close(run->fd);
    buffer_clear(&run->request);
    context_info_clear(&run->context);
    *run = (struct code_run){.fd = -1};
}
