/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is to be, as JSON; see sandbox_options.h. */
#include "cli/sandbox_options.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/mount_option.h"
#include "cli/pairs.h"
#include "cli/remote_run.h"
#include "cli/say.h"
#include "data/json.h"

#include <stdlib.h>
#include <string.h>

static void put_number(struct json_writer *json, const char *key, int64_t number)
{
    json_key(json, key);
    json_integer(json, number);
}

static void put_limits(const struct invocation *invocation, struct json_writer *json)
{
    bool has_any = invocation->memory_bytes != OPTION_UNSET ||
                   invocation->disk_bytes != OPTION_UNSET || invocation->cpu_millicores >= 0 ||
                   invocation->max_processes >= 0;

    if (!has_any)
        return;
    json_key(json, "limits");
    json_map_begin(json);
    if (invocation->memory_bytes != OPTION_UNSET)
        put_number(json, "memoryBytes", (int64_t)invocation->memory_bytes);
    if (invocation->cpu_millicores >= 0)
        put_number(json, "cpuMillicores", invocation->cpu_millicores);
    if (invocation->disk_bytes != OPTION_UNSET)
        put_number(json, "diskBytes", (int64_t)invocation->disk_bytes);
    if (invocation->max_processes >= 0)
        put_number(json, "maxProcesses", invocation->max_processes);
    json_map_end(json);
}

/* The runtime whose id this is: its name. */
static int put_runtime_of_id(struct invocation *invocation, struct json_writer *json,
                             struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", "/runtimes?limit=100", NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *item =
        burrow_first(burrow_get(burrow_answer_value(answer), "items"));
    for (; item; item = burrow_next(item)) {
        const char *id = burrow_text(burrow_get(item, "id"));
        if (id && strcmp(id, invocation->runtime_id) == 0) {
            say_put_text(json, "runtime", burrow_text(burrow_get(item, "name")));
            return 0;
        }
    }
    return say_fail(err, BURROW_NOT_FOUND,
                    "there is no runtime '%s': 'burrow runtime list' shows those there are",
                    invocation->runtime_id);
}

static void put_network(const struct invocation *invocation, struct json_writer *json)
{
    if (invocation->has_network || invocation->allow.count || invocation->deny.count) {
        json_key(json, "network");
        json_map_begin(json);
        json_key(json, "enabled");
        json_bool(json, true);
        remote_write_strings(json, "allow", &invocation->allow);
        remote_write_strings(json, "deny", &invocation->deny);
        json_map_end(json);
    }
    if (invocation->port) {
        json_key(json, "ports");
        json_list_begin(json);
        json_map_begin(json);
        put_number(json, "port", invocation->port);
        json_map_end(json);
        json_list_end(json);
    }
}

int sandbox_options_put(struct invocation *invocation, struct json_writer *json,
                        struct burrow_error *err)
{
    struct error error = {0};

    put_limits(invocation, json);
    say_put_text(json, "project", invocation->project_id);
    remote_write_strings(json, "scopes", &invocation->scopes);
    say_put_text(json, "runtime", invocation->runtime);
    say_put_text(json, "snapshot", invocation->snapshot);
    if (invocation->runtime_id && put_runtime_of_id(invocation, json, err) < 0)
        return -1;
    remote_write_strings(json, "dependencies", &invocation->dependencies);
    remote_write_strings(json, "packages", &invocation->packages);
    put_network(invocation, json);
    if (remote_write_env(json, &invocation->env, err) < 0)
        return -1;
    if (mount_options_write(json, &invocation->mounts, &error) < 0)
        return say_fail(err, BURROW_INVALID, "%s", error.text);
    return remote_write_files(json, &invocation->files, err);
}

static int put_metadata(const struct invocation *invocation, struct json_writer *json,
                        struct burrow_error *err)
{
    autoptr(data_document) document = NULL;
    struct error error = {0};

    if (!invocation->metadata)
        return 0;
    if (json_read("--metadata", invocation->metadata, strlen(invocation->metadata), NULL, &document,
                  &error) < 0)
        return say_fail(err, BURROW_INVALID, "%s", error.text);
    if (document->root->kind != VALUE_MAP)
        return say_fail(err, BURROW_INVALID, "--metadata must be a JSON object: '{\"key\": 1}'");
    json_key(json, "metadata");
    json_value(json, document->root);
    return 0;
}

static int put_labels(const struct option_list *labels, struct json_writer *json,
                      struct burrow_error *err)
{
    if (labels->count == 0)
        return 0;
    json_key(json, "labels");
    json_map_begin(json);
    for (size_t i = 0; i < labels->count; i++) {
        const char *equals = strchr(labels->items[i], '=');
        if (!equals || equals == labels->items[i])
            return say_fail(err, BURROW_INVALID, "--label '%s' is not KEY=VALUE", labels->items[i]);
        if (pairs_have_later(labels->items, labels->count, i))
            continue;
        autofree char *name = xstrndup(labels->items[i], (size_t)(equals - labels->items[i]));
        json_key(json, name);
        json_string(json, equals + 1);
    }
    json_map_end(json);
    return 0;
}

int sandbox_options_write(struct invocation *invocation, char **words, struct buffer *to,
                          struct burrow_error *err)
{
    struct json_writer json;

    json_writer_init(&json, to);
    json_map_begin(&json);
    say_put_text(&json, "name", invocation->name);
    say_put_text(&json, "description", invocation->description);
    say_put_text(&json, "onIdle", invocation->on_idle);
    say_put_text(&json, "directory", invocation->workdir);
    say_put_text(&json, "user", invocation->user);
    if (invocation->idle_timeout_ms != OPTION_UNSET)
        put_number(&json, "idleTimeoutMs", (int64_t)invocation->idle_timeout_ms);
    if (put_metadata(invocation, &json, err) < 0 ||
        put_labels(&invocation->labels, &json, err) < 0 ||
        sandbox_options_put(invocation, &json, err) < 0)
        return -1;
    if (words)
        remote_write_words(&json, words);
    json_map_end(&json);
    return say_finish(&json, err);
}
