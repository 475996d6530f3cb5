/* SPDX-License-Identifier: Apache-2.0 */
/* The servers a user knows; see contexts.h. And `burrow context`. */
#include "cli/contexts.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/invocation.h"
#include "cli/say.h"
#include "data/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1 << 20)
#define NAME_MAX_BYTES 64

void context_clear(struct context *context)
{
    free(context->name);
    free(context->url);
    free(context->key);
    *context = (struct context){0};
}

char *contexts_dir(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        return xasprintf("%s/burrow", config);
    return home && *home == '/' ? xasprintf("%s/.config/burrow", home) : NULL;
}

/* *out is NULL where there is no file. */
static int load(struct data_document **out, struct burrow_error *err)
{
    autofree char *directory = contexts_dir();
    autofree char *path = directory ? xasprintf("%s/contexts.json", directory) : NULL;
    autobuffer text = {.maximum = FILE_MAX};
    struct error error = {0};

    autofd fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return path && errno != ENOENT && errno != ENOTDIR ? say_fail_sys(err, "read '%s'", path)
                                                           : 0;
    if (fd_read_buffer(fd, &text, &error) < 0 ||
        json_read(path, text.data ? text.data : "", text.length, NULL, out, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    return 0;
}

static const char *text_of(const struct data_value *map, const char *key)
{
    const struct data_value *value = value_get(map, key);

    return value && value->kind == VALUE_STRING ? value->text : NULL;
}

static const struct data_value *find(const struct data_document *document, const char *name)
{
    return document ? value_get(value_get(document->root, "contexts"), name) : NULL;
}

int contexts_find(const char *name, struct context *out, struct burrow_error *err)
{
    autoptr(data_document) document = NULL;
    const char *variable = getenv("BURROW_CONTEXT");

    if (!name && variable && *variable)
        name = variable;
    if (load(&document, err) < 0)
        return -1;
    bool is_named = name != NULL;
    if (!name && document)
        name = text_of(document->root, "current");
    const struct data_value *entry = name ? find(document, name) : NULL;
    const char *url = text_of(entry, "url");
    if (!url && is_named && strcmp(name, "local") == 0)
        return 0;
    if (!url)
        return is_named
                   ? say_fail(
                         err, BURROW_NOT_FOUND,
                         "there is no context '%s': 'burrow context list' shows those there are",
                         name)
                   : 0;
    const char *key = text_of(entry, "key");
    *out = (struct context){xstrdup(name), xstrdup(url), key ? xstrdup(key) : NULL, false};
    return 1;
}

// ---- changing it ----

/* One after the other: what is read stays as it is until `*lock` is closed. */
static int begin_change(int *lock, struct burrow_error *err)
{
    autofree char *directory = contexts_dir();
    struct error error = {0};

    if (!directory)
        return say_fail(err, BURROW_LOCAL,
                        "there is no home directory to keep contexts in: set HOME");
    if (fd_make_dirs(directory, 0700, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    *lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return say_fail_sys(err, "open '%s'", directory);
    (void)flock(*lock, LOCK_EX); // some network file systems have none
    return 0;
}

struct change {
    const char *name;      // set or removed
    const char *url, *key; // NULL url: removed
    const char *current;   // NULL: none
};

static void write_entry(struct json_writer *json, const char *name, const char *url,
                        const char *key)
{
    json_key(json, name);
    json_map_begin(json);
    say_put_text(json, "url", url);
    say_put_text(json, "key", key);
    json_map_end(json);
}

static int save(int directory, const struct data_document *document, const struct change *change,
                struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error error = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "current", change->current);
    json_key(&json, "contexts");
    json_map_begin(&json);
    const struct data_value *map = document ? value_get(document->root, "contexts") : NULL;
    for (const struct data_value *each = map ? map->first : NULL; each; each = each->next) {
        if (!change->name || strcmp(each->key, change->name) != 0)
            write_entry(&json, each->key, text_of(each, "url"), text_of(each, "key"));
    }
    if (change->url)
        write_entry(&json, change->name, change->url, change->key);
    json_map_end(&json);
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    if (fd_replace_file(directory, "contexts.json", text.data, text.length, 0600, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    return 0;
}

// ---- the commands ----

static int check_name(const char *name, struct burrow_error *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

    if (!*name || strlen(name) > NAME_MAX_BYTES || name[strspn(name, plain)])
        return say_fail(err, BURROW_INVALID,
                        "a context's name has letters, digits, '.', '_' and '-', not '%.80s'",
                        name);
    return 0;
}

static int add(struct invocation *invocation, struct burrow_error *err)
{
    const char *name = invocation->operands[0], *url = invocation->operands[1];
    autoptr(data_document) document = NULL;
    autofd lock = -1;
    const struct burrow_options options = {.url = url};
    struct burrow_client *probe = NULL;

    if (check_name(name, err) < 0 || burrow_open(&options, &probe, err) < 0)
        return -1;
    burrow_close(probe);
    if (begin_change(&lock, err) < 0 || load(&document, err) < 0)
        return -1;
    const char *current = document ? text_of(document->root, "current") : NULL;
    const struct data_value *known = document ? value_get(document->root, "contexts") : NULL;
    if (!current && !(known && known->first))
        current = name; // the first of all
    const char *key = invocation->api_key ? invocation->api_key : getenv("BURROW_API_KEY");
    const struct change change = {name, url, key && *key ? key : NULL, current};
    if (save(lock, document, &change, err) < 0)
        return -1;
    if (invocation->is_json)
        return say_json("{\"ok\":true}", err);
    say_done("context '%s' is %s%s", name, url,
             current && strcmp(current, name) == 0 ? ", and in use"
                                                   : "; 'burrow context use' switches");
    return 0;
}

static int use(struct invocation *invocation, struct burrow_error *err)
{
    const char *name = invocation_operand(invocation, 0);
    autoptr(data_document) document = NULL;
    autofd lock = -1;

    if (begin_change(&lock, err) < 0 || load(&document, err) < 0)
        return -1;
    if (name && strcmp(name, "local") != 0 && !find(document, name))
        return say_fail(err, BURROW_NOT_FOUND,
                        "there is no context '%s': 'burrow context list' shows those there are",
                        name);
    bool is_local = name && strcmp(name, "local") == 0 && !find(document, name);
    const struct change change = {.current = is_local ? NULL : name};
    if (save(lock, document, &change, err) < 0)
        return -1;
    if (invocation->is_json)
        return say_json("{\"ok\":true}", err);
    say_done("in use: %s", is_local ? "the local server" : name);
    return 0;
}

static int drop(struct invocation *invocation, struct burrow_error *err)
{
    const char *name = invocation->operands[0];
    autoptr(data_document) document = NULL;
    autofd lock = -1;

    if (begin_change(&lock, err) < 0 || load(&document, err) < 0)
        return -1;
    if (!find(document, name))
        return say_fail(err, BURROW_NOT_FOUND, "there is no context '%s'", name);
    const char *current = text_of(document->root, "current");
    const struct change change = {
        .name = name, .current = current && strcmp(current, name) != 0 ? current : NULL};
    if (save(lock, document, &change, err) < 0)
        return -1;
    if (invocation->is_json)
        return say_json("{\"ok\":true}", err);
    say_done("context '%s' is forgotten", name);
    return 0;
}

static void write_list(struct json_writer *json, const struct data_value *map, const char *current)
{
    json_list_begin(json);
    for (const struct data_value *each = map ? map->first : NULL; each; each = each->next) {
        json_map_begin(json);
        say_put_text(json, "name", each->key);
        say_put_text(json, "url", text_of(each, "url"));
        json_key(json, "current");
        json_bool(json, current && strcmp(current, each->key) == 0);
        json_key(json, "hasKey");
        json_bool(json, text_of(each, "key") != NULL);
        json_map_end(json);
    }
    json_list_end(json);
}

static int list(struct invocation *invocation, struct burrow_error *err)
{
    static const char *const heads[] = {"", "NAME", "URL", "KEY", NULL};
    autoptr(data_document) document = NULL;
    struct table table;

    if (load(&document, err) < 0)
        return -1;
    const struct data_value *map = document ? value_get(document->root, "contexts") : NULL;
    const char *current = document ? text_of(document->root, "current") : NULL;
    if (invocation->is_json) {
        autobuffer text = {0};
        struct json_writer json;
        json_writer_init(&json, &text);
        write_list(&json, map, current);
        return say_written(&json, &text, err);
    }
    table_init(&table, heads);
    for (const struct data_value *each = map ? map->first : NULL; each; each = each->next) {
        table_add(&table, current && strcmp(current, each->key) == 0 ? "*" : "");
        table_add(&table, each->key);
        table_add(&table, text_of(each, "url"));
        table_add(&table, text_of(each, "key") ? "yes" : "");
    }
    table_print(&table, stdout);
    if (!current)
        (void)puts("(none is in use: commands go to the local server)");
    table_clear(&table);
    return 0;
}

static const struct option_row add_rows[] = {
    OPTION("api-key", 0, OPTION_TEXT, api_key, "KEY", "kept with it (default: BURROW_API_KEY)"),
    {0},
};
static const char *const add_examples[] = {
    "$ BURROW_API_KEY=brw_… burrow context add lab https://sandbox.example.com",
    "$ burrow context add here unix:/var/lib/burrow/burrow.sock", NULL};
static const char *const use_examples[] = {"$ burrow context use lab", "$ burrow context use local",
                                           NULL};
static const char *const list_examples[] = {"$ burrow context list", NULL};
static const char *const drop_examples[] = {"$ burrow context delete lab", NULL};

const struct cli_command context_commands[] = {
    {"context", "list ls", "", "list the servers you know", NULL, NULL, list_examples, 0, list},
    {"context", "create new add", "NAME URL", "give a server a name; the first one is then in use",
     NULL, add_rows, add_examples, 0, add},
    {"context", "use", "NAME", "send commands to this server; 'local' is the one on this machine",
     NULL, NULL, use_examples, 0, use},
    {"context", "delete rm del remove", "NAME", "forget a server", NULL, NULL, drop_examples, 0,
     drop},
    {0},
};
