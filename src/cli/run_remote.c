/* SPDX-License-Identifier: Apache-2.0 */
/* `burrow run` through a server; see run_remote.h. */
#include "cli/run_remote.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/built_wait.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/listing.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>

#define TERMINAL "--tty" // for which a server has to be named

/* A variable is for the runs that happen here; an option asks for one. */
static bool is_option(const char *value, const char *variable)
{
    const char *usual = getenv(variable);

    return value && (!usual || strcmp(value, usual) != 0);
}

/* What a server is needed for, and what it cannot do; NULL: nothing. */
static const char *needs_server(const struct run_remote *remote)
{
    return remote->snapshot       ? "--snapshot"
           : remote->runtime_id   ? "--runtime-id"
           : remote->scopes.count ? "--scope"
           : remote->project_id   ? "--project-id"
                                  : NULL;
}

static const char *needs_here(const struct run_options *o, char **words)
{
    return o->output_cap_bytes                               ? "--output-limit"
           : is_option(o->network_dns, "BURROW_NETWORK_DNS") ? "--network-dns"
           : o->network_rate                                 ? "--network-rate"
           : !words[0]                                       ? "a command of the runtime's own"
           : o->has_tty                                      ? TERMINAL
                                                             : NULL;
}

static void fill(struct invocation *invocation, const struct run_options *o,
                 const struct run_remote *remote)
{
    const char *variable = getenv("BURROW_DATA");
    const struct limits *given = &remote->given;

    invocation->url = remote->url;
    invocation->context = remote->context;
    invocation->api_key = remote->api_key;
    // a variable says where the local server is, an option that it is meant
    invocation->data_dir =
        o->data_dir && (!variable || strcmp(o->data_dir, variable) != 0) ? o->data_dir : NULL;
    invocation->memory_bytes =
        given->memory_bytes < 0 ? OPTION_UNSET : (uint64_t)given->memory_bytes;
    invocation->disk_bytes = given->disk_bytes < 0 ? OPTION_UNSET : (uint64_t)given->disk_bytes;
    invocation->cpu_millicores = given->cpu_millicores;
    invocation->max_processes = given->max_processes;
    invocation->runtime = remote->has_runtime ? o->runtime : NULL;
    invocation->runtime_id = remote->runtime_id;
    invocation->snapshot = remote->snapshot;
    invocation->scopes = remote->scopes;
    invocation->project_id = remote->project_id;
    invocation->dependencies = o->dependencies;
    invocation->packages = o->packages;
    invocation->env = o->env;
    invocation->files = o->files;
    invocation->mounts = o->mounts;
    invocation->has_network = o->has_network || o->allow.count || o->deny.count;
    invocation->allow = o->allow;
    invocation->deny = o->deny;
}

static int write_body(struct invocation *invocation, const struct run_options *o, char **words,
                      struct buffer *text, struct burrow_error *err)
{
    struct json_writer json;

    json_writer_init(&json, text);
    json_map_begin(&json);
    remote_write_words(&json, words);
    say_put_text(&json, "directory", o->directory);
    say_put_text(&json, "user", o->user);
    if (o->timeout_ms) {
        json_key(&json, "timeoutMs");
        json_natural(&json, o->timeout_ms);
    }
    if (sandbox_options_put(invocation, &json, err) < 0)
        return -1;
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    text->data[--text->length] = '\0'; // its input is still to come
    return 0;
}

static int run_there(struct invocation *invocation, const struct run_options *o, char **words,
                     struct burrow_error *err)
{
    autobuffer text = {0};

    if (write_body(invocation, o, words, &text, err) < 0)
        return -1;
    const struct remote_run run = {
        .body = text.data,
        .is_quiet = o->is_quiet,
        .is_json = o->is_json,
        .has_timestamps = o->has_timestamps,
        .has_runtime = true,
    };
    return remote_run(invocation->client, &run, err);
}

/* In a sandbox that is made for it and deleted after it; should this end before, it ends by itself when it is idle. */
static int run_terminal(struct invocation *invocation, const struct run_options *o, char **words,
                        struct burrow_error *err)
{
    struct built_wait wait = {.is_quiet = o->is_quiet};
    struct burrow_error ignored = {0};
    autobuffer text = {0};
    autoanswer answer = NULL;

    if (sandbox_options_write(invocation, NULL, &text, err) < 0)
        return -1;
    while (burrow_ask(invocation->client, "POST", "/sandboxes", text.data, &answer, err) < 0) {
        if (!built_wait_again(&wait, err))
            return -1;
    }
    (void)built_wait_again(&wait, err); // its line goes
    const char *id = value_text(burrow_answer_value(answer), "id");
    invocation->words = words;
    invocation->workdir = o->directory;
    invocation->user = o->user;
    if (o->timeout_ms)
        invocation->timeout_ms = o->timeout_ms;
    int code = attach_terminal(invocation, id, false, err);
    (void)burrow_sandbox_delete(invocation->client, id, &ignored);
    return code;
}

/* The lists are the caller's. */
static void forget(struct invocation *invocation)
{
    burrow_close(invocation->client);
}

/* Not the command failed, but burrow. */
static int fail_there(const struct burrow_error *failure, const struct run_options *o, int *code)
{
    int told = say_error(failure, o->is_json);

    *code = told == EXIT_USAGE || told >= EXIT_SIGNAL ? told : EXIT_BURROW;
    return 1;
}

int run_remote(const struct run_options *o, const struct run_remote *remote, char **words,
               int *code, struct error *err)
{
    const char *there = needs_server(remote), *here = needs_here(o, words);
    __attribute__((cleanup(forget))) struct invocation invocation;
    struct burrow_error failure = {0};

    invocation_init(&invocation, NULL);
    fill(&invocation, o, remote);
    int is_named = remote->is_local ? 0 : endpoint_is_named(&invocation, &failure);
    if (is_named < 0)
        return fail_there(&failure, o, code);
    if (!is_named && !here && o->mounts.count)
        here = "--mount"; // a server may refuse it, this machine's own runs do not
    bool is_terminal = here && strcmp(here, TERMINAL) == 0;
    if (remote->is_local || (here && !is_named && !(is_terminal && there)))
        return there ? error_set(err, ERROR_INVALID,
                                 "%s needs a server, and %s is for a run here: leave one out",
                                 there, remote->is_local ? "--local" : here)
                     : 0;
    if (endpoint_connect(&invocation, ENDPOINT_LOOK, &failure) < 0) {
        if (failure.kind == BURROW_UNREACHABLE && !is_named)
            return there ? error_set(err, ERROR_INVALID,
                                     "%s needs a server: start one with 'burrow serve', or set "
                                     "BURROW_URL",
                                     there)
                         : 0;
        return fail_there(&failure, o, code);
    }
    if (here && !is_terminal)
        return error_set(err, ERROR_INVALID, "%s is for a run on this machine: use --local", here);
    *code = (is_terminal ? run_terminal : run_there)(&invocation, o, words, &failure);
    return *code < 0 ? fail_there(&failure, o, code) : 1;
}
