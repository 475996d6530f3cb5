/* SPDX-License-Identifier: Apache-2.0 */
/* burrow key: makes, lists and revokes API keys, in the database itself, so it works with and without a server running. */
#include "serve/serve.h"

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "core/account/key.h"
#include "core/repair.h"
#include "data/json_writer.h"
#include "front/api/api_ids.h"
#include "front/e2b/e2b_key.h"
#include "store/store.h"
#include "engine/box.h"
#include "serve/config.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

struct request {
    const char *data_dir;
    const char *name;
    const char *expires;
    const char *which; // revoke: the operand
    const char *owner;
    const char *scopes;   // separated by commas
    const char *runtimes; // likewise
    const char *tools;    // likewise
    const char *network;  // likewise
    struct quota quota;
    bool has_no_network;
    bool is_admin;
    bool is_e2b;
    bool is_json;
    bool with_revoked;
};

#define ROW(name, type, member, argument, variable, help)                                          \
    {                                                                                              \
        name, 0, type, offsetof(struct request, member), argument, help, variable                  \
    }
#define DATA_ROW                                                                                   \
    ROW("data", OPTION_TEXT, data_dir, "DIR", "BURROW_DATA",                                       \
        "the data directory of the server (default " DATA_DIR_DEFAULT " for root, else "           \
        "~/.local/share/burrow)")
#define JSON_ROW ROW("json", OPTION_FLAG, is_json, NULL, NULL, "print JSON instead")

static const struct option_row create_rows[] = {
    ROW("name", OPTION_TEXT, name, "NAME", NULL, "what lists call it"),
    ROW("expires", OPTION_TEXT, expires, "DURATION", NULL,
        "stops working after this time, such as 30d, 12h or 90m (default never)"),
    ROW("admin", OPTION_FLAG, is_admin, NULL, NULL, "may also manage keys"),
    ROW("e2b", OPTION_FLAG, is_e2b, NULL, NULL,
        "spell it as E2B's clients want keys; both spellings open the same"),
    ROW("owner", OPTION_TEXT, owner, "NAME", NULL,
        "whose it is: a person or a service, who sees its own sandboxes (default nobody's, sees "
        "all)"),
    ROW("scopes", OPTION_TEXT, scopes, "LIST", NULL,
        "what it may do: read, run, manage, admin, organisation, separated by commas"),
    ROW("runtimes", OPTION_TEXT, runtimes, "LIST", NULL,
        "runtimes it may start sandboxes from, separated by commas (default all)"),
    ROW("tools", OPTION_TEXT, tools, "LIST", NULL,
        "tools of MCP it may use, such as run,exec,output, separated by commas; it then opens "
        "/mcp and nothing else (default everything)"),
    ROW("network-allow", OPTION_TEXT, network, "RULES", NULL,
        "where networks of its sandboxes may lead to at most, separated by commas (default "
        "anywhere)"),
    ROW("no-network", OPTION_FLAG, has_no_network, NULL, NULL, "its sandboxes get no network"),
    ROW("max-sandboxes", OPTION_INTEGER, quota.sandboxes, "N", NULL,
        "sandboxes it may have at once (default any number)"),
    ROW("max-memory", OPTION_SIZE, quota.memory_bytes, "SIZE", NULL,
        "memory of all its sandboxes together"),
    ROW("max-cpu", OPTION_CPU, quota.cpu_millicores, "CPU", NULL,
        "processors of all its sandboxes together"),
    ROW("max-disk", OPTION_SIZE, quota.disk_bytes, "SIZE", NULL,
        "disk of all its sandboxes, snapshots and checkpoints together"),
    ROW("max-processes", OPTION_INTEGER, quota.processes, "N", NULL,
        "processes of all its sandboxes together"),
    ROW("max-runs", OPTION_INTEGER, quota.runs_per_day, "N", NULL,
        "commands and code it may run in a day"),
    JSON_ROW,
    DATA_ROW,
    {0},
};
static const struct option_row list_rows[] = {
    ROW("all", OPTION_FLAG, with_revoked, NULL, NULL,
        "also those that are revoked or have expired"),
    JSON_ROW,
    DATA_ROW,
    {0},
};
static const struct option_row revoke_rows[] = {JSON_ROW, DATA_ROW, {0}};

// ---- JSON ----

static void write_time(struct json_writer *json, const char *name, int64_t when)
{
    char text[CLOCK_TEXT];

    json_key(json, name);
    json_string(json, when ? clock_format((uint64_t)when, text) : NULL);
}

static void write_text(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_string(json, text);
}

// NULL is null.
static void write_list(struct json_writer *json, const char *name, const char *const *items)
{
    json_key(json, name);
    if (!items) {
        json_null(json);
        return;
    }
    json_list_begin(json);
    for (; *items; items++)
        json_string(json, *items);
    json_list_end(json);
}

// Without those that are not bounded.
static void write_quota(struct json_writer *json, const struct quota *quota)
{
    const struct {
        const char *name;
        int64_t bound;
    } figures[] = {
        {"sandboxes", quota->sandboxes},          {"memoryBytes", quota->memory_bytes},
        {"cpuMillicores", quota->cpu_millicores}, {"diskBytes", quota->disk_bytes},
        {"processes", quota->processes},          {"runsPerDay", quota->runs_per_day},
    };

    json_key(json, "quotas");
    json_map_begin(json);
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        if (!figures[i].bound)
            continue;
        json_key(json, figures[i].name);
        json_integer(json, figures[i].bound);
    }
    json_map_end(json);
}

// `text` is the key itself, or NULL.
static void write_key(struct json_writer *json, const struct key_info *key, const char *text)
{
    const char *scopes[SCOPES_MADE + 1], *tools[MCP_TOOLS + 1];

    scopes_list(key->scopes, scopes);
    json_map_begin(json);
    autofree char *id = xasprintf(KEY_PREFIX "%s", key->id);
    write_text(json, "id", id);
    if (text)
        write_text(json, "key", text);
    write_text(json, "prefix", key->prefix);
    write_text(json, "name", key->name && *key->name ? key->name : NULL);
    json_key(json, "admin");
    json_bool(json, key->is_admin);
    write_text(json, "owner", key->member);
    write_list(json, "scopes", scopes);
    write_list(json, "runtimes", key->runtimes);
    write_list(json, "networkAllow", key->network_allow);
    mcp_tools_list(key->tools, tools);
    write_list(json, "tools", key->tools ? tools : NULL);
    json_key(json, "network");
    json_bool(json, !key->has_no_network);
    write_quota(json, &key->quota);
    json_key(json, "inUse");
    json_bool(json, key_info_is_in_use(key));
    write_time(json, "createdAt", key->created_at);
    write_time(json, "usedAt", key->used_at);
    write_time(json, "expiresAt", key->expires_at);
    write_time(json, "revokedAt", key->revoked_at);
    json_map_end(json);
}

static int print_json(struct json_writer *json, struct buffer *text, struct error *err)
{
    if (json_writer_finish(json, err) < 0)
        return -1;
    (void)puts(text->data);
    return 0;
}

// ---- create ----

static int parse_expiry(const char *text, int64_t *out, struct error *err)
{
    uint64_t ms = 0;

    if (duration_parse(text, "expires", &ms, err) < 0)
        return -1;
    if (ms == 0)
        return error_set(err, ERROR_INVALID, "expires '%.80s' must be between 1ms and 100 years",
                         text);
    *out = (int64_t)(clock_wall_ms() + ms);
    return 0;
}

// What stands between commas; NULL is nothing.
static void split(const char *text, struct strings *out)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        autofree char *item = xstrndup(text, length);
        if (length)
            strings_add(out, item);
        text += length + (text[length] == ',');
    }
}

static int create_key(struct accounts *accounts, const struct request *request, struct error *err)
{
    struct key_request wanted = {.name = request->name,
                                 .is_admin = request->is_admin,
                                 .member = request->owner,
                                 .has_no_network = request->has_no_network,
                                 .quota = request->quota};
    char text[E2B_KEY_TEXT], made[KEY_TEXT];
    autoclear(key_info) key = {0};
    autostrings scopes = {0};
    autostrings runtimes = {0};
    autostrings tools = {0};
    autostrings network = {0};

    split(request->tools, &tools);
    split(request->network, &network);
    if (network.count)
        wanted.network_allow = (const char *const *)network.items;
    if (tools.count && mcp_tools_of((const char *const *)tools.items, &wanted.tools, err) < 0)
        return -1;
    split(request->scopes, &scopes);
    split(request->runtimes, &runtimes);
    if (runtimes.count)
        wanted.runtimes = (const char *const *)runtimes.items;
    if (scopes.count && scopes_of((const char *const *)scopes.items, &wanted.scopes, err) < 0)
        return -1;
    if (request->expires && parse_expiry(request->expires, &wanted.expires_at, err) < 0)
        return -1;
    if (key_create(accounts, &wanted, made, &key, err) < 0)
        return -1;
    if (!request->is_e2b || !e2b_key_spell(made, text))
        (void)snprintf(text, sizeof text, "%s", made);
    if (!request->is_json) {
        (void)puts(text);
        (void)fflush(stdout);
        (void)fprintf(
            stderr, "burrow: this is the only time the key is shown; its id is " KEY_PREFIX "%s\n",
            key.id);
        return 0;
    }
    autobuffer out = {0};
    struct json_writer json;
    json_writer_init(&json, &out);
    write_key(&json, &key, text);
    return print_json(&json, &out, err);
}

// ---- list ----

struct listing {
    const struct request *request;
    struct json_writer *json; // NULL: a table
};

static const char *day_of(int64_t when, char text[CLOCK_TEXT])
{
    if (!when)
        return "-";
    (void)clock_format((uint64_t)when, text);
    text[16] = '\0'; // to the minute
    text[10] = ' ';
    return text;
}

static void show(const struct listing *listing, const struct key_info *key)
{
    char created[CLOCK_TEXT], used[CLOCK_TEXT], expires[CLOCK_TEXT], scopes[SCOPES_TEXT];
    const char *state = key->revoked_at           ? "revoked"
                        : key_info_is_in_use(key) ? "in use"
                                                  : "expired";

    if (!listing->request->with_revoked && !key_info_is_in_use(key))
        return;
    if (listing->json)
        write_key(listing->json, key, NULL);
    else
        (void)printf(KEY_PREFIX "%-26s  %-12s  %-7s  %-16s  %-16s  %-16s  %-12s  %-34s  %s\n",
                     key->id, key->prefix, state, day_of(key->created_at, created),
                     day_of(key->used_at, used), day_of(key->expires_at, expires),
                     key->member ? key->member : "-", scopes_write(key->scopes, scopes),
                     key->name ? key->name : "");
}

static int show_all(struct accounts *accounts, const struct listing *listing, struct error *err)
{
    struct page page = {.limit = PAGE_MAX};
    int64_t total;

    do {
        autoclear(key_infos) list = {0};
        if (key_list(accounts, &page, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++)
            show(listing, &list.items[i]);
        total = list.total;
        page.offset += page.limit;
    } while (page.offset < total);
    return 0;
}

static int list_keys(struct accounts *accounts, const struct request *request, struct error *err)
{
    struct listing listing = {.request = request};
    autobuffer out = {0};
    struct json_writer json;

    if (!request->is_json) {
        (void)printf("%-30s  %-12s  %-7s  %-16s  %-16s  %-16s  %-12s  %-34s  %s\n", "ID", "KEY",
                     "STATE", "MADE", "USED", "EXPIRES", "OWNER", "SCOPES", "NAME");
        return show_all(accounts, &listing, err);
    }
    listing.json = &json;
    json_writer_init(&json, &out);
    json_list_begin(&json);
    if (show_all(accounts, &listing, err) < 0)
        return -1;
    json_list_end(&json);
    return print_json(&json, &out, err);
}

// ---- revoke ----

/* As the core has it: an id without its prefix, a beginning of the key in its usual spelling. */
static const char *usual_spelling(const char *which, char room[E2B_KEY_TEXT])
{
    if (strncmp(which, KEY_PREFIX, strlen(KEY_PREFIX)) == 0)
        return which + strlen(KEY_PREFIX);
    return e2b_key_read_beginning(which, room) ? room : which;
}

static int revoke_key(struct accounts *accounts, const struct request *request, struct error *err)
{
    char room[E2B_KEY_TEXT];
    autobuffer out = {0};
    struct json_writer json;

    if (key_revoke(accounts, usual_spelling(request->which, room), err) < 0)
        return -1;
    if (!request->is_json)
        return 0;
    json_writer_init(&json, &out);
    json_map_begin(&json);
    json_key(&json, "revoked");
    json_string(&json, request->which);
    json_map_end(&json);
    return print_json(&json, &out, err);
}

// ---- commands ----

#define EXAMPLES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct action {
    const char *name;
    int (*run)(struct accounts *accounts, const struct request *request, struct error *err);
    bool has_operand;
    bool makes_database;
    struct option_set options;
} actions[] = {
    {"create",
     create_key,
     false,
     true,
     {"burrow key create", "[options]", "make a key and print it, this once", NULL, create_rows,
      EXAMPLES("$ burrow key create --name laptop",
               "$ export AGENTUITY_SDK_KEY=$(burrow key create --name ci --expires 30d)",
               "$ export E2B_API_KEY=$(burrow key create --e2b)",
               "$ burrow key create --tools run,create,exec,output,destroy --max-sandboxes 2 "
               "--no-network",
               "$ burrow key create --owner alice --scopes read,run --max-sandboxes 5")}},
    {"list",
     list_keys,
     false,
     false,
     {"burrow key list", "[options]", "show the keys there are, by id and beginning", NULL,
      list_rows, EXAMPLES("$ burrow key list", "$ burrow key list --all --json")}},
    {"revoke",
     revoke_key,
     true,
     false,
     {"burrow key revoke", "[options] KEY",
      "end a key; a running server refuses it within a second",
      "KEY is the id or the beginning that 'burrow key list' shows, or the beginning of the key "
      "in either spelling.",
      revoke_rows, EXAMPLES("$ burrow key revoke brw_3k7q9x2m")}},
};

static void print_help(FILE *out)
{
    (void)fputs("burrow key: make, list and revoke the keys of a server\n\n"
                "usage: burrow key COMMAND [options]\n\ncommands:\n",
                out);
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        (void)fprintf(out, "  %-8s %s\n", actions[i].name, actions[i].options.summary);
    (void)fputs("\nA key is 260 random bits. The server stores its hash alone, so nobody can show "
                "it a second time.\n"
                "'burrow key COMMAND --help' tells more.\n",
                out);
}

static const struct action *find_action(const char *name, struct error *err)
{
    struct suggestion near = {.wanted = name};

    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
        suggestion_consider(&near, actions[i].name);
    }
    if (near.nearest)
        error_set(err, ERROR_INVALID, "burrow key has no command '%s'; did you mean '%s'?", name,
                  near.nearest);
    else
        error_set(err, ERROR_INVALID,
                  "burrow key has no command '%s'; 'burrow key --help' lists them", name);
    return NULL;
}

// Options may stand before and behind the operand. 0, OPTIONS_HELP or -1.
static int read_arguments(const struct action *action, int argc, char **argv,
                          struct request *request, struct error *err)
{
    const char *command = action->options.command;
    int at = 0;

    int parsed = options_parse(&action->options, argc, argv, request, &at, err);
    if (parsed == 0 && action->has_operand && at < argc) {
        request->which = argv[at];
        argc -= at;
        argv += at;
        parsed = options_parse_more(&action->options, argc, argv, request, &at, err);
    }
    if (parsed != 0)
        return parsed;
    if (at < argc)
        return error_set(err, ERROR_INVALID, "%s does not take '%s': see %s --help", command,
                         argv[at], command);
    if (action->has_operand && !request->which)
        return error_set(err, ERROR_INVALID,
                         "%s needs the id or the beginning of a key: see 'burrow key list'",
                         command);
    return 0;
}

static int run(const struct action *action, const struct request *request, struct error *err)
{
    autoptr(store) store = NULL;

    if (engine_need_root(err) < 0 || data_dir_check(request->data_dir, err) < 0)
        return -1;
    if (action->makes_database && fd_make_dirs(request->data_dir, 0700, err) < 0)
        return -1;
    if (!action->makes_database && !store_exists(request->data_dir))
        return error_set(
            err, ERROR_NOT_FOUND,
            "no server has been started with the data directory '%s' yet; name another with --data",
            request->data_dir);
    if (repair_check(request->data_dir, err) < 0 || store_open(request->data_dir, &store, err) < 0)
        return -1;
    autoptr(accounts) accounts = NULL; // goes before the store does
    if (accounts_open(store, &accounts, err) < 0)
        return -1;
    return action->run(accounts, request, err);
}

int key_command(int argc, char **argv)
{
    struct error err = {0};
    autoconfig config = {0};

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    const struct action *action = find_action(argv[1], &err);
    if (!action)
        return serve_fail_as(&err, options_mention(argc, argv, "json"));
    config_init(&config);
    struct request request = {.data_dir = config.data_dir};
    int parsed = read_arguments(action, argc - 1, argv + 1, &request, &err);
    if (parsed == OPTIONS_HELP) {
        options_help(&action->options, stdout);
        return 0;
    }
    if (parsed < 0 || run(action, &request, &err) < 0)
        return serve_fail_as(&err, request.is_json || options_mention(argc, argv, "json"));
    return 0;
}
