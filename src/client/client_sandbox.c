/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes and their snapshots; lists of anything; see burrow.h. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int client_copy_id(const struct burrow_value *map, const char *name, char out[BURROW_ID],
                   struct burrow_error *err)
{
    const char *id = burrow_text(burrow_get(map, name));

    if (!id || strlen(id) >= BURROW_ID)
        return client_fail(err, BURROW_PROTOCOL, "the server's answer has no %s", name);
    (void)snprintf(out, BURROW_ID, "%s", id);
    return 0;
}

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(json, key);
    json_string(json, text);
}

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    if (!number)
        return;
    json_key(json, key);
    json_integer(json, number);
}

// ---- sandboxes ----

static void write_sandbox(struct json_writer *json, const struct burrow_sandbox_options *o)
{
    json_map_begin(json);
    write_text(json, "name", o->name);
    write_text(json, "description", o->description);
    write_text(json, "runtime", o->runtime);
    write_text(json, "snapshot", o->snapshot);
    client_write_env(json, o->env);
    if (o->memory_bytes || o->cpu_millicores || o->disk_bytes) {
        json_key(json, "limits");
        json_map_begin(json);
        write_number(json, "memoryBytes", o->memory_bytes);
        write_number(json, "cpuMillicores", o->cpu_millicores);
        write_number(json, "diskBytes", o->disk_bytes);
        json_map_end(json);
    }
    if (o->idle_timeout_ms || o->never_idle) {
        json_key(json, "idleTimeoutMs");
        json_integer(json, o->never_idle ? 0 : o->idle_timeout_ms);
    }
    json_map_end(json);
}

/* Sends it and takes the id from the answer. */
static int make(struct burrow_client *client, const char *path, struct json_writer *json,
                struct buffer *text, char out_id[BURROW_ID], struct burrow_error *err)
{
    struct burrow_answer *answer = NULL;
    struct error error = {0};

    if (json_writer_finish(json, &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    if (burrow_ask(client, "POST", path, text->data, &answer, err) < 0)
        return -1;
    int result = client_copy_id(burrow_answer_value(answer), "id", out_id, err);
    burrow_answer_free(answer);
    return result;
}

int burrow_sandbox_create(struct burrow_client *client,
                          const struct burrow_sandbox_options *options, char out_id[BURROW_ID],
                          struct burrow_error *err)
{
    static const struct burrow_sandbox_options none = {0};
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    write_sandbox(&json, options ? options : &none);
    return make(client, "/sandboxes", &json, &text, out_id, err);
}

static int ask_about(struct burrow_client *client, const char *method, const char *format,
                     const char *id, struct burrow_answer **out, struct burrow_error *err)
{
    autofree char *path = burrow_path(format, id, NULL);

    return burrow_ask(client, method, path, NULL, out, err);
}

int burrow_sandbox_get(struct burrow_client *client, const char *sandbox,
                       struct burrow_answer **out, struct burrow_error *err)
{
    return ask_about(client, "GET", "/sandboxes/%s", sandbox, out, err);
}

int burrow_sandbox_delete(struct burrow_client *client, const char *sandbox,
                          struct burrow_error *err)
{
    return ask_about(client, "DELETE", "/sandboxes/%s", sandbox, NULL, err);
}

int burrow_sandbox_pause(struct burrow_client *client, const char *sandbox,
                         struct burrow_error *err)
{
    return ask_about(client, "POST", "/sandboxes/%s/pause", sandbox, NULL, err);
}

int burrow_sandbox_resume(struct burrow_client *client, const char *sandbox,
                          struct burrow_error *err)
{
    return ask_about(client, "POST", "/sandboxes/%s/resume", sandbox, NULL, err);
}

// ---- lists ----

#define EMPTY_PAGES 1000 // in a row, that only tell where to go on

typedef int on_list_item(void *context, const struct burrow_value *item, struct burrow_error *err);

/* 1: enough. */
static int tell_items(const struct burrow_value *page, uint64_t *left, on_list_item *on_item,
                      void *context, struct burrow_error *err)
{
    const struct burrow_value *item = burrow_first(burrow_get(page, "items"));

    for (; item; item = burrow_next(item)) {
        if ((*left)-- == 0)
            return 1;
        int result = on_item(context, item, err);
        if (result != 0)
            return result;
    }
    return *left == 0;
}

int burrow_list(struct burrow_client *client, const char *path, uint64_t most,
                on_list_item *on_item, void *context, struct burrow_error *err)
{
    autofree char *cursor = NULL;
    uint64_t left = most ? most : UINT64_MAX;
    unsigned n_empty = 0;
    int result = 0;

    while (result == 0) {
        struct burrow_answer *answer = NULL;
        autofree char *rest = cursor ? burrow_path("cursor=%s", cursor, NULL) : xstrdup("");
        autofree char *page = xasprintf("%s%s%s", path,
                                        !cursor             ? ""
                                        : strchr(path, '?') ? "&"
                                                            : "?",
                                        rest);
        if (burrow_ask(client, "GET", page, NULL, &answer, err) < 0)
            return -1;
        const struct burrow_value *value = burrow_answer_value(answer);
        const char *next = burrow_text(burrow_get(value, "nextCursor"));
        result = tell_items(value, &left, on_item, context, err);
        n_empty = burrow_count(burrow_get(value, "items")) ? 0 : n_empty + 1;
        if (next && n_empty > EMPTY_PAGES)
            result = client_fail(err, BURROW_PROTOCOL, "the server's list does not end");
        bool is_last = !next || (cursor && strcmp(cursor, next) == 0); // it must move on
        free(cursor);
        cursor = is_last ? NULL : xstrdup(next);
        burrow_answer_free(answer);
        if (is_last)
            break;
    }
    return result < 0 ? -1 : 0;
}

// ---- snapshots ----

int burrow_snapshot_create(struct burrow_client *client, const char *sandbox, const char *name,
                           const char *tag, char out_id[BURROW_ID], struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/snapshots", sandbox, NULL);
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    write_text(&json, "name", name);
    write_text(&json, "tag", tag);
    json_map_end(&json);
    return make(client, path, &json, &text, out_id, err);
}

int burrow_snapshot_get(struct burrow_client *client, const char *snapshot,
                        struct burrow_answer **out, struct burrow_error *err)
{
    return ask_about(client, "GET", "/snapshots/%s", snapshot, out, err);
}

int burrow_snapshot_delete(struct burrow_client *client, const char *snapshot,
                           struct burrow_error *err)
{
    return ask_about(client, "DELETE", "/snapshots/%s", snapshot, NULL, err);
}
