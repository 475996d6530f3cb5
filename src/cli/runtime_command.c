/* SPDX-License-Identifier: Apache-2.0 */
/* burrow runtime: lists, builds, verifies, shows and removes what sandboxes start from. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/size.h"
#include "base/suggest.h"
#include "cli/build_view.h"
#include "cli/exit.h"
#include "cli/runtime_remote.h"
#include "data/json_writer.h"
#include "engine/box.h"
#include "runtime/catalog.h"
#include "runtime/oci_add.h"
#include "runtime/oci_export.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *data_dir;
    const char *mirror;
    const char *registry;
    uint64_t image_timeout_ms;
    const char *from;
    const char *target;  // of an export
    const char *operand; // the name as it was given
    struct runtime_where where;
    bool is_json;
    bool is_forced;
    struct runtime_reference reference;          // of the runtime that was named
    const struct runtime_definition *definition; // when the catalog has it, else NULL
    struct catalog *catalog;
};

#define DATA_ROW                                                                                   \
    {                                                                                              \
        "data", 0, OPTION_TEXT, offsetof(struct request, data_dir), "DIR",                         \
            "where burrow keeps things (default " CLI_DEFAULT_DATA ")", "BURROW_DATA"              \
    }
#define JSON_ROW                                                                                   \
    {                                                                                              \
        "json", 0, OPTION_FLAG, offsetof(struct request, is_json), NULL, "print JSON instead",     \
            NULL                                                                                   \
    }

#define TIMEOUT_ROW                                                                                \
    {                                                                                              \
        "image-timeout", 0, OPTION_DURATION, offsetof(struct request, image_timeout_ms),           \
            "DURATION",                                                                            \
            "give up a registry of images that sends nothing for so long (default 2m)",            \
            "BURROW_IMAGE_TIMEOUT", 1000, 86400000                                                 \
    }

static const struct option_row plain_rows[] = {JSON_ROW, DATA_ROW, {0}};
#define WHERE_ROW(name, member, argument, help)                                                    \
    {                                                                                              \
        name, 0, OPTION_TEXT, offsetof(struct request, where.member), argument, help, NULL         \
    }
#define WHERE_ROWS                                                                                 \
    WHERE_ROW("url", url, "URL", "ask this server (default: BURROW_URL)"),                         \
        WHERE_ROW("context", context, "NAME", "ask a server that 'burrow context' knows"),         \
        WHERE_ROW("api-key", api_key, "KEY", "for it (default: BURROW_API_KEY)")
static const struct option_row show_rows[] = {JSON_ROW, DATA_ROW, WHERE_ROWS, {0}};
static const struct option_row list_rows[] = {
    {"limit", 0, OPTION_INTEGER, offsetof(struct request, where.limit), "N",
     "at most so many (default: all)", NULL, 1, 1000},
    {"offset", 0, OPTION_INTEGER, offsetof(struct request, where.offset), "N",
     "leave out so many first", NULL, 0, 1000000},
    {"sort", 0, OPTION_TEXT, offsetof(struct request, where.sort), "FIELD",
     "by name or created, which those that are not built come after (default created)", NULL},
    {"direction", 0, OPTION_TEXT, offsetof(struct request, where.direction), "DIR",
     "asc or desc (default desc)", NULL},
    JSON_ROW,
    DATA_ROW,
    WHERE_ROWS,
    {0},
};
static const struct option_row build_rows[] = {
    {"mirror", 0, OPTION_TEXT, offsetof(struct request, mirror), "URL",
     "Debian mirror to use (default: the machine's own); after a comma its security archive",
     "BURROW_DEBIAN_MIRROR"},
    {"registry", 0, OPTION_TEXT, offsetof(struct request, registry), "URL",
     "npm registry to use (default: npm's own)", "BURROW_NPM_REGISTRY"},
    {"force", 'f', OPTION_FLAG, offsetof(struct request, is_forced), NULL,
     "build it also when it is ready", NULL},
    TIMEOUT_ROW,
    {"json", 0, OPTION_FLAG, offsetof(struct request, is_json), NULL,
     "print progress and result as JSON lines", NULL},
    DATA_ROW,
    {0},
};

static const struct option_row add_rows[] = {
    {"from", 0, OPTION_TEXT, offsetof(struct request, from), "IMAGE",
     "docker://REGISTRY/NAME:TAG, oci:DIR[:NAME], oci-archive:FILE or docker-archive:FILE", NULL},
    TIMEOUT_ROW,
    {"json", 0, OPTION_FLAG, offsetof(struct request, is_json), NULL,
     "print progress and result as JSON lines", NULL},
    DATA_ROW,
    {0},
};

// ---- list and show ----

static void write_strings(struct json_writer *json, const char *key, const char **strings)
{
    json_key(json, key);
    json_list_begin(json);
    for (; strings && *strings; strings++)
        json_string(json, *strings);
    json_list_end(json);
}

static void write_requirements(struct json_writer *json, const struct runtime_requirements *needs)
{
    char text[SIZE_TEXT];

    json_key(json, "requirements");
    json_map_begin(json);
    if (needs->memory_bytes) {
        json_key(json, "memory");
        json_string(json, size_format(needs->memory_bytes, text));
    }
    if (needs->cpu_millicores) {
        (void)snprintf(text, sizeof text, "%um", needs->cpu_millicores);
        json_key(json, "cpu");
        json_string(json, text);
    }
    if (needs->disk_bytes) {
        json_key(json, "disk");
        json_string(json, size_format(needs->disk_bytes, text));
    }
    json_key(json, "networkEnabled");
    json_bool(json, needs->needs_network);
    json_map_end(json);
}

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(json, key);
    json_string(json, text);
}

static void write_more(struct json_writer *json, const struct runtime_definition *definition)
{
    write_text(json, "from", definition->from_name);
    write_strings(json, "packages", definition->packages);
    write_strings(json, "npm", definition->npm);
    write_strings(json, "aliases", definition->aliases);
    write_strings(json, "categories", definition->categories);
    write_strings(json, "keys", definition->keys);
    write_strings(json, "command", definition->command);
    write_strings(json, "env", definition->env);
    write_text(json, "iconUrl", definition->icon);
    write_text(json, "brandColor", definition->color);
    write_text(json, "url", definition->url);
    write_text(json, "readme", definition->readme);
    write_requirements(json, &definition->requirements);
}

/* As servers have it. */
static void write_id(struct json_writer *json, const struct runtime_definition *definition)
{
    char name[2 * RUNTIME_NAME], id[RUNTIME_ID], text[RUNTIME_ID + 8];

    (void)snprintf(name, sizeof name, "%s:%s", definition->name, definition->tags[0]);
    runtime_name_id(name, id);
    (void)snprintf(text, sizeof text, "srt_%s", id);
    json_key(json, "id");
    json_string(json, text);
}

static void write_definition(struct json_writer *json, const struct runtime_definition *definition,
                             const struct runtime_status *status)
{
    json_map_begin(json);
    write_id(json, definition);
    json_key(json, "name");
    json_string(json, definition->name);
    write_strings(json, "tags", definition->tags);
    json_key(json, "description");
    json_string(json, runtime_description(definition, status));
    json_key(json, "kind");
    json_string(json, runtime_kind_name(definition->kind));
    json_key(json, "state");
    json_string(json, runtime_state_name(status->state));
    json_key(json, "inUse");
    json_bool(json, status->is_used);
    json_key(json, "sizeBytes");
    json_natural(json, status->bytes);
    json_key(json, "files");
    json_natural(json, status->files);
    json_key(json, "made");
    json_string(json, *status->made ? status->made : NULL);
    json_key(json, "definedIn");
    json_string(json, definition->file);
    if (definition->image) {
        json_key(json, "image");
        json_string(json, definition->image);
    }
    write_more(json, definition);
    json_map_end(json);
}

struct entry {
    const struct runtime_definition *definition;
    struct runtime_status status;
};

static int compare(const void *a, const void *b, void *context)
{
    const struct runtime_where *where = context;
    const struct entry *left = a, *right = b;
    bool is_ascending = where->direction && strcmp(where->direction, "asc") == 0;
    bool is_by_name = where->sort && strcmp(where->sort, "name") == 0;
    int names = strcmp(left->definition->name, right->definition->name);

    if (names == 0)
        names = strcmp(left->definition->tags[0], right->definition->tags[0]);
    int result = is_by_name ? names : strcmp(left->status.made, right->status.made);
    if (result == 0)
        return names;
    return is_ascending ? result : -result;
}

/* Those that are wanted, in the order that is; the caller frees them. */
static struct entry *pick(const struct request *request, size_t *from, size_t *end)
{
    const struct runtime_where *where = &request->where;
    size_t count = 0, offset = (size_t)where->offset;

    while (catalog_at(request->catalog, count))
        count++;
    struct entry *entries = xcalloc(count + 1, sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        entries[i].definition = catalog_at(request->catalog, i);
        runtime_status(request->data_dir, entries[i].definition, &entries[i].status);
    }
    qsort_r(entries, count, sizeof *entries, compare, (void *)where);
    *from = offset < count ? offset : count;
    *end = where->limit > 0 && count - *from > (size_t)where->limit ? *from + (size_t)where->limit
                                                                    : count;
    return entries;
}

static int list_json(const struct request *request, struct error *err)
{
    size_t from, end;
    autofree struct entry *entries = pick(request, &from, &end);
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (size_t i = from; i < end; i++)
        write_definition(&json, entries[i].definition, &entries[i].status);
    json_list_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    puts(text.data);
    return 0;
}

static int list(struct request *request, int *code, struct error *err)
{
    size_t from, end;

    if (request->is_json)
        return list_json(request, err);
    autofree struct entry *entries = pick(request, &from, &end);
    printf("%-24s %-10s %9s  %-10s  %s\n", "RUNTIME", "STATE", "SIZE", "MADE", "DESCRIPTION");
    for (size_t i = from; i < end; i++) {
        const struct runtime_definition *definition = entries[i].definition;
        const struct runtime_status *status = &entries[i].status;
        char name[2 * RUNTIME_NAME], size[32] = "";

        (void)snprintf(name, sizeof name, "%s:%s", definition->name, definition->tags[0]);
        if (status->bytes)
            (void)snprintf(size, sizeof size, "%.1f MiB", (double)status->bytes / (1 << 20));
        printf("%-24s %-10s %9s  %-10.10s  %s\n", name, runtime_state_name(status->state), size,
               status->made, runtime_description(definition, status));
    }
    return 0;
}

static void print_strings(const char *name, const char **strings)
{
    if (!strings || !*strings)
        return;
    printf("%-12s", name);
    for (; *strings; strings++)
        printf(" %s", *strings);
    putchar('\n');
}

static void print_text(const char *name, const char *text)
{
    if (text && *text)
        printf("%-12s %s\n", name, text);
}

static void print_requirements(const struct runtime_requirements *needs)
{
    char memory[SIZE_TEXT], disk[SIZE_TEXT];

    if (!needs->memory_bytes && !needs->cpu_millicores && !needs->disk_bytes &&
        !needs->needs_network)
        return;
    printf("%-12s", "requires");
    if (needs->memory_bytes)
        printf(" memory %s", size_format(needs->memory_bytes, memory));
    if (needs->cpu_millicores)
        printf(" cpu %um", needs->cpu_millicores);
    if (needs->disk_bytes)
        printf(" disk %s", size_format(needs->disk_bytes, disk));
    puts(needs->needs_network ? " network" : "");
}

static int show_json(const struct request *request, const struct runtime_status *status,
                     struct error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    write_definition(&json, request->definition, status);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    puts(text.data);
    return 0;
}

static int show(struct request *request, int *code, struct error *err)
{
    const struct runtime_definition *definition = request->definition;
    struct runtime_status status;

    runtime_status(request->data_dir, definition, &status);
    if (request->is_json)
        return show_json(request, &status, err);
    print_text("name", definition->name);
    print_strings("tags", definition->tags);
    print_text("description", runtime_description(definition, &status));
    print_text("defined in", definition->file);
    print_text("kind", runtime_kind_name(definition->kind));
    print_text("stands on", definition->from_name);
    print_text("suite", definition->suite);
    print_text("image", definition->image);
    print_strings("packages", definition->packages);
    print_strings("npm", definition->npm);
    print_strings("aliases", definition->aliases);
    print_strings("categories", definition->categories);
    print_text("url", definition->url);
    print_strings("needs keys", definition->keys);
    print_requirements(&definition->requirements);
    print_strings("command", definition->command);
    print_strings("env", definition->env);
    printf("%-12s %s%s\n", "state", runtime_state_name(status.state),
           status.is_used ? ", in use" : "");
    if (status.state == RUNTIME_READY || status.state == RUNTIME_OUTDATED)
        printf("%-12s %" PRIu64 " MiB in %" PRIu64
               " files\n%-12s %s\n%-12s %s/runtimes/%s/%s/rootfs\n",
               "size", status.bytes >> 20, status.files, "made", status.made, "path",
               request->data_dir, definition->name, definition->tags[0]);
    if (definition->readme)
        printf("\n%s", definition->readme);
    return 0;
}

// ---- build, verify, remove ----

static int run_build(const struct build_view *view, const struct runtime_definition *definition,
                     int *code, struct error *err)
{
    int signal = 0;

    if (build_view_run(view, definition, &signal, err) == 0)
        return 0;
    if (error_is(err, ERROR_GONE) && signal)
        *code = EXIT_SIGNAL + signal;
    else if (error_kind(err) == ERROR_NOT_FOUND)
        *code = EXIT_FAILED; // the runtime is there, and what it is made of is not
    return -1;
}

static int build(struct request *request, int *code, struct error *err)
{
    const struct build_view view = {
        .data_dir = request->data_dir,
        .mirror = request->mirror && *request->mirror ? request->mirror : NULL,
        .registry = request->registry && *request->registry ? request->registry : NULL,
        .image_timeout_ms = request->image_timeout_ms,
        .is_forced = request->is_forced,
        .is_json = request->is_json,
    };

    return run_build(&view, request->definition, code, err);
}

// ---- images ----

/* A path of the caller's is meant from where he stands. */
static char *absolute_source(const char *source)
{
    const char *colon = strchr(source, ':');
    autofree char *here = colon && colon[1] != '/' ? getcwd(NULL, 0) : NULL;

    if (!here)
        return xstrdup(source);
    return xasprintf("%.*s:%s/%s", (int)(colon - source), source, here, colon + 1);
}

static int add(struct request *request, int *code, struct error *err)
{
    const struct build_view view = {.data_dir = request->data_dir,
                                    .image_timeout_ms = request->image_timeout_ms,
                                    .is_forced = true,
                                    .is_json = request->is_json};
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    if (!request->from)
        return error_set(err, ERROR_INVALID,
                         "burrow runtime add needs an image: --from docker://REGISTRY/NAME:TAG");
    autofree char *source = absolute_source(request->from);
    if (oci_define(request->data_dir, &request->reference, source, &catalog, &definition, err) < 0)
        return -1;
    if (run_build(&view, definition, code, err) < 0)
        return -1;
    return oci_keep_definition(request->data_dir, definition, err);
}

/* {"success":true,"name":"base:latest", …} */
static int tell_done(const struct request *request, const struct runtime_status *status,
                     const char *target, struct error *err)
{
    autofree char *name = xasprintf("%s:%s", request->reference.name, request->reference.tag);
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    write_text(&json, "name", name);
    write_text(&json, "target", target);
    if (status) {
        json_key(&json, "sizeBytes");
        json_natural(&json, status->bytes);
        json_key(&json, "files");
        json_natural(&json, status->files);
    }
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    puts(text.data);
    return 0;
}

static int export_it(struct request *request, int *code, struct error *err)
{
    autofree char *reference = xasprintf("%s:%s", request->reference.name, request->reference.tag);
    autofree char *target = absolute_source(request->target);

    if (runtime_export(request->data_dir, reference, target, err) < 0)
        return -1;
    if (request->is_json)
        return tell_done(request, NULL, target, err);
    printf("%s is in %s\n", reference, target);
    return 0;
}

static int verify(struct request *request, int *code, struct error *err)
{
    struct runtime_status status;

    if (runtime_verify(request->data_dir, &request->reference, &status, err) < 0)
        return -1;
    if (request->is_json)
        return tell_done(request, &status, NULL, err);
    printf("%s:%s is as it was built: %" PRIu64 " MiB in %" PRIu64 " files\n",
           request->reference.name, request->reference.tag, status.bytes >> 20, status.files);
    return 0;
}

/* The server's records know sandboxes by id. Returns only where that program cannot be asked. */
static void ask_who(const struct request *request, const char *runtime, const struct error *err)
{
    const char *const words[] = {"users", request->data_dir, runtime, err->text};
    struct error ignored = {0};

    (void)fflush(stdout);
    (void)become_server((int)ARRAY_SIZE(words), (char **)words, &ignored);
}

/* An image that was added goes from the catalog too. A server that runs is asked: boxes that it made ahead have the runtime in use. */
static int remove_it(struct request *request, int *code, struct error *err)
{
    const struct runtime_definition *definition = NULL;
    struct error missing = {0};
    bool is_known = catalog_find(request->catalog, &request->reference, &definition, &missing) == 0;

    autofree char *name =
        is_known ? xasprintf("%s:%s", definition->name, definition->tags[0]) : NULL;
    if (name && runtime_remote_remove(request->data_dir, name, request->is_json, code))
        return *code == EXIT_DONE && request->is_json ? tell_done(request, NULL, NULL, err) : 0;
    if (runtime_remove(request->data_dir, &request->reference, err) < 0 &&
        !(is_known && definition->kind == RUNTIME_OCI && error_is(err, ERROR_NOT_FOUND))) {
        if (name && error_is(err, ERROR_BUSY))
            ask_who(request, name, err);
        return -1;
    }
    if (is_known && runtime_forget(request->data_dir, definition, err) < 0)
        return -1;
    return request->is_json ? tell_done(request, NULL, NULL, err) : 0;
}

// ---- the commands ----

static const char *const list_examples[] = {"$ burrow runtime list",
                                            "$ burrow runtime list --sort=name --direction=asc",
                                            "$ burrow runtime list --json | jq '.[].name'", NULL};
static const char *const build_examples[] = {
    "$ sudo burrow runtime build base",
    "$ sudo burrow runtime build --mirror http://mirror.example/debian base:latest",
    "$ sudo burrow runtime build --force host", NULL};
static const char *const add_examples[] = {
    "$ sudo burrow runtime add alpine --from docker://registry.example/alpine:3.20",
    "$ sudo burrow runtime add mine:v2 --from oci:./layout",
    "$ sudo burrow runtime add mine --from docker-archive:saved.tar", NULL};
static const char *const export_examples[] = {
    "$ sudo burrow runtime export base oci:./base-image",
    "$ sudo podman run --rm oci:./base-image python3 --version", NULL};
static const char *const show_examples[] = {"$ burrow runtime show base", NULL};
static const char *const verify_examples[] = {"$ sudo burrow runtime verify base", NULL};
static const char *const remove_examples[] = {"$ sudo burrow runtime remove base:latest", NULL};

static const struct subcommand {
    const char *name;
    int (*run)(struct request *request, int *code, struct error *err);
    bool takes_name;
    bool takes_target;     // behind it
    bool needs_definition; // else a runtime that left the catalog will do
    struct option_set options;
} commands[] = {
    {"list ls",
     list,
     false,
     false,
     false,
     {"burrow runtime list", "[options]", "list the runtimes there are, and whether they are built",
      NULL, list_rows, list_examples}},
    {"show get info",
     show,
     true,
     false,
     true,
     {"burrow runtime show", "[options] NAME[:TAG]", "say what a runtime is made of", NULL,
      show_rows, show_examples}},
    {"build",
     build,
     true,
     false,
     true,
     {"burrow runtime build", "[options] NAME[:TAG]", "make a runtime ready to use",
      "Packages come from the machine's own Debian mirror and are kept, so that an interrupted\n"
      "build goes on where it was. A build replaces the old one when it is whole; sandboxes that\n"
      "use the old one keep it.",
      build_rows, build_examples}},
    {"add",
     add,
     true,
     false,
     false,
     {"burrow runtime add", "--from IMAGE [options] NAME[:TAG]", "make a runtime of an image",
      "Images of registries come through skopeo, with the passwords of the usual auth file. "
      "Layers\n"
      "are unpacked once, however many images have them. One that was added before is made anew;\n"
      "sandboxes that use the old one keep it.",
      add_rows, add_examples}},
    {"export",
     export_it,
     true,
     true,
     false,
     {"burrow runtime export", "[options] NAME[:TAG] oci:DIR", "write a runtime as an image",
      "The directory, which must be empty or not there yet, becomes an image layout that podman,\n"
      "docker and skopeo read. Each layer of the runtime is one of the image's.",
      plain_rows, export_examples}},
    {"verify",
     verify,
     true,
     false,
     false,
     {"burrow runtime verify", "[options] NAME[:TAG]",
      "compare every file of a runtime with what was built", NULL, plain_rows, verify_examples}},
    {"remove",
     remove_it,
     true,
     false,
     false,
     {"burrow runtime remove", "[options] NAME[:TAG]", "remove a built runtime, unless it is used",
      NULL, plain_rows, remove_examples}},
};

static void print_help(FILE *out)
{
    char name[32];

    (void)fprintf(
        out, "usage: burrow runtime COMMAND [options] [NAME[:TAG]]\n\n"
             "What sandboxes start from: a catalog of small files, each saying how one is made.\n"
             "Your own go into /etc/burrow/runtimes/NAME.yaml.\n\ncommands:\n");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        (void)fprintf(out, "  %-8s %s\n", command_name(commands[i].name, name),
                      commands[i].options.summary);
    (void)fprintf(out, "\nburrow runtime COMMAND --help says more.\n");
}

static const struct subcommand *find_command(const char *name, struct error *err)
{
    static char names[ARRAY_SIZE(commands)][32];
    struct suggestion near = {.wanted = name};

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (command_has_name(commands[i].name, name))
            return &commands[i];
        suggestion_consider(&near, command_name(commands[i].name, names[i]));
    }
    error_set(err, ERROR_INVALID, "burrow runtime has no command '%.60s'%s%s%s", name,
              near.nearest ? "; did you mean '" : ": see burrow runtime --help",
              near.nearest ? near.nearest : "", near.nearest ? "'?" : "");
    return NULL;
}

// Options may stand before and behind the runtime's name. 0, OPTIONS_HELP or -1.
static int read_arguments(const struct subcommand *command, struct request *request, int argc,
                          char **argv, struct error *err)
{
    const char *name = command->options.command, *operand = NULL, *target = NULL;

    for (;;) {
        int at = 0;
        int parsed = operand ? options_parse_more(&command->options, argc, argv, request, &at, err)
                             : options_parse(&command->options, argc, argv, request, &at, err);
        if (parsed != 0)
            return parsed;
        if (at >= argc)
            break;
        if (!command->takes_name || (operand && (target || !command->takes_target)))
            return error_set(err, ERROR_INVALID, "%s does not take '%.100s': see %s --help", name,
                             argv[at], name);
        *(operand ? &target : &operand) = argv[at];
        argc -= at;
        argv += at;
    }
    if (!command->takes_name)
        return 0;
    if (!operand)
        return error_set(err, ERROR_INVALID, "%s needs the name of a runtime, such as base:latest",
                         name);
    if (command->takes_target && !target)
        return error_set(err, ERROR_INVALID, "%s needs a place after the name: oci:DIR", name);
    request->target = target;
    request->operand = operand;
    return runtime_reference_parse(operand, &request->reference, err);
}

static int run_command(const struct subcommand *command, struct request *request, int *code,
                       struct error *err)
{
    autoptr(catalog) catalog = NULL;

    // What is built is readable by root alone: anybody else would be told that all of it is damaged.
    if (engine_need_root(err) < 0 || catalog_load(request->data_dir, NULL, &catalog, err) < 0)
        return -1;
    for (size_t i = 0; catalog_fault_at(catalog, i); i++)
        (void)fprintf(stderr, "burrow: left out of the catalog: %s\n",
                      catalog_fault_at(catalog, i));
    request->catalog = catalog;
    if (command->needs_definition &&
        catalog_find(catalog, &request->reference, &request->definition, err) < 0)
        return -1;
    return command->run(request, code, err);
}

/* A data directory that was named is this machine's. */
static bool asks_server(const struct subcommand *command, const struct request *request, int *code)
{
    const char *variable = getenv("BURROW_DATA");
    bool is_here = strcmp(request->data_dir, CLI_DEFAULT_DATA) != 0 &&
                   (!variable || strcmp(request->data_dir, variable) != 0);

    return (command->run == list || command->run == show) && !is_here &&
           runtime_remote(&request->where, command->run == show ? request->operand : NULL,
                          request->is_json, code) == 1;
}

int cli_runtime(int argc, char **argv)
{
    struct request request = {.data_dir = CLI_DEFAULT_DATA};
    char room[PATH_MAX];
    struct error err = {0};
    int code = 0;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    const struct subcommand *command = find_command(argv[1], &err);
    int read = command ? read_arguments(command, &request, argc - 1, argv + 1, &err) : -1;
    if (read == OPTIONS_HELP) {
        options_help(&command->options, stdout);
        return EXIT_DONE;
    }
    if (read < 0 || runtime_where_check(&request.where, &err) < 0) {
        exit_tell_as(&err, request.is_json || options_mention(argc, argv, "json"));
        return EXIT_USAGE;
    }
    if (asks_server(command, &request, &code))
        return code;
    if (data_dir_resolve(&request.data_dir, room, &err) == 0 &&
        run_command(command, &request, &code, &err) == 0)
        return code;
    exit_tell_as(&err, request.is_json);
    return code ? code : error_exit_code(&err);
}
