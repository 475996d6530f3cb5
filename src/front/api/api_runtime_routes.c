/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes: what sandboxes can be started from; administrators add, make and remove them. */
#include "core/runtime/runtime.h"
#include "core/sandbox/runtime_users.h"
#include "front/api/api_page.h"

#include <string.h>

struct requirements_answer {
    int64_t memory_bytes, cpu_millicores, disk_bytes;
    bool needs_network;
};
#define AT(member) offsetof(struct requirements_answer, member)
static const struct answer_field requirement_fields[] = {
    {"memoryBytes", ANSWER_INTEGER, AT(memory_bytes),
     .help = "what a sandbox needs at least; 0: nothing in particular"},
    {"cpuMillicores", ANSWER_INTEGER, AT(cpu_millicores)},
    {"diskBytes", ANSWER_INTEGER, AT(disk_bytes)},
    {"network", ANSWER_BOOL, AT(needs_network)},
    {0},
};
#undef AT

struct runtime_answer {
    const char *id, *name, *description, *kind, *state, *icon, *color, *url, *readme;
    const char *const *tags, *const *keys;
    int64_t built_at, size_bytes;
    bool is_built, is_used;
    struct requirements_answer requirements;
};
#define AT(member) offsetof(struct runtime_answer, member)
static const struct answer_field runtime_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = RUNTIME_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true, .help = "with its tag: base:latest"},
    {"description", ANSWER_TEXT, AT(description)},
    {"kind", ANSWER_TEXT, AT(kind), .help = "debian, host, layer or oci"},
    {"state", ANSWER_TEXT, AT(state), .help = "ready, not built, building, outdated or damaged"},
    {"built", ANSWER_BOOL, AT(is_built), .help = "else it is built when first asked for"},
    {"builtAt", ANSWER_TIME, AT(built_at)},
    {"inUse", ANSWER_BOOL, AT(is_used), .help = "by a sandbox, or held for the next one"},
    {"sizeBytes", ANSWER_INTEGER, AT(size_bytes), .help = "of its own layer"},
    {"iconUrl", ANSWER_TEXT, AT(icon)},
    {"brandColor", ANSWER_TEXT, AT(color)},
    {"url", ANSWER_TEXT, AT(url)},
    {"tags", ANSWER_TEXTS, AT(tags), .help = "what it is for: language, agent"},
    {"keys", ANSWER_TEXTS, AT(keys), .help = "variables in which its tool wants a secret"},
    {"readme", ANSWER_TEXT, AT(readme)},
    {"requirements", ANSWER_MAP, AT(requirements), .is_needed = true, .fields = requirement_fields},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(runtime_fields, struct runtime_answer), {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer runtime_answers[] = {{200, runtime_fields}, {0}};
static const struct route_answer added_answers[] = {{201, runtime_fields}, {0}};
static const struct parameter list_parameters[] = {API_PAGE_PARAMETERS, {0}};

static const char *text_or_none(const char *text)
{
    return *text ? text : NULL;
}

static struct runtime_answer answer_of(const struct runtime_entry *entry)
{
    return (struct runtime_answer){
        .id = entry->id,
        .name = entry->name,
        .description = entry->description,
        .kind = entry->kind,
        .state = entry->state,
        .icon = entry->icon,
        .color = entry->color,
        .url = entry->url,
        .readme = entry->readme,
        .tags = entry->tags[0] ? entry->tags : NULL,
        .keys = entry->keys[0] ? entry->keys : NULL,
        .built_at = entry->created_at,
        .size_bytes = entry->size_bytes,
        .is_built = entry->is_built,
        .is_used = entry->is_used,
        .requirements = {entry->memory_bytes, entry->cpu_millicores, entry->disk_bytes,
                         entry->needs_network},
    };
}

/* GET /api/v1/runtimes: by their names. */
static int list_runtimes(struct call *call, struct error *err)
{
    struct page page;
    autoruntimes found = {0};

    if (api_page_read(call, &page, err) < 0 ||
        runtime_list(call->core->runtimes, RUNTIME_BY_NAME, false, &page, &found, err) < 0)
        return -1;
    struct runtime_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = answer_of(&found.entries[i]);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

/* An id without its prefix, or a name. */
static const char *reference_of(const struct call *call)
{
    const char *text = call->parameters[0];
    size_t length = strlen(RUNTIME_PREFIX);

    return strncmp(text, RUNTIME_PREFIX, length) == 0 ? text + length : text;
}

static int answer_runtime(struct call *call, int status, const char *reference, struct error *err)
{
    autoruntimes found = {0};

    if (runtime_get(call->core->runtimes, reference, &found, err) < 0)
        return -1;
    const struct runtime_answer answer = answer_of(&found.entries[0]);
    return api_answer(call, status, runtime_fields, &answer);
}

/* GET /api/v1/runtimes/{runtime} */
static int get_runtime(struct call *call, struct error *err)
{
    return answer_runtime(call, 200, reference_of(call), err);
}

struct add_body {
    const char *name, *definition, *image;
};
static const struct field add_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct add_body, name), .is_needed = true, .maximum = 130,
     .help = "with its tag: mine:latest"},
    {"definition", FIELD_TEXT, offsetof(struct add_body, definition), .maximum = 65536,
     .help = "a file of the catalog, as YAML"},
    {"image", FIELD_TEXT, offsetof(struct add_body, image), .maximum = 1000,
     .help = "or an image: docker://, oci:DIR, docker-archive:FILE"},
    {0},
};

/* POST /api/v1/runtimes */
static int add_runtime(struct call *call, struct error *err)
{
    struct add_body body = {0};

    if (fields_read(call->body, add_fields, &body, err) < 0 ||
        runtime_put(call->core->runtimes, &call->actor, body.name, body.definition, body.image,
                    err) < 0)
        return -1;
    return answer_runtime(call, 201, body.name, err);
}

/* The name, of one that is named by its id too. */
static int name_of(struct call *call, char *name, struct error *err)
{
    autoruntimes found = {0};

    if (runtime_get(call->core->runtimes, reference_of(call), &found, err) < 0)
        return -1;
    memcpy(name, found.entries[0].name, RUNTIME_REFERENCE_TEXT);
    return 0;
}

struct made_answer {
    const char *name, *progress;
    bool is_ready;
};
static const struct answer_field made_fields[] = {
    {"name", ANSWER_TEXT, offsetof(struct made_answer, name), .is_needed = true},
    {"ready", ANSWER_BOOL, offsetof(struct made_answer, is_ready)},
    {"progress", ANSWER_TEXT, offsetof(struct made_answer, progress),
     .help = "how far it is, while it is being made"},
    {0},
};
static const struct route_answer made_answers[] = {{200, made_fields}, {202, made_fields}, {0}};

/* POST /api/v1/runtimes/{runtime}/build */
static int make_runtime(struct call *call, struct error *err)
{
    char name[RUNTIME_REFERENCE_TEXT], state[RUNTIME_STATE];

    if (name_of(call, name, err) < 0 ||
        runtime_make(call->core->runtimes, &call->actor, name, state, err) < 0)
        return -1;
    const struct made_answer answer = {name, text_or_none(state), !*state};
    return api_answer(call, *state ? 202 : 200, made_fields, &answer);
}

static const struct answer_field removed_fields[] = {{"name", ANSWER_TEXT, 0, .is_needed = true},
                                                     {0}};
static const struct route_answer removed_answers[] = {{200, removed_fields}, {0}};

/* DELETE /api/v1/runtimes/{runtime} */
static int remove_runtime(struct call *call, struct error *err)
{
    char name[RUNTIME_REFERENCE_TEXT];

    if (name_of(call, name, err) < 0)
        return -1;
    if (runtime_delete_unused(call->core->sandboxes, &call->actor, name, err) < 0)
        return -1;
    const char *removed = name;
    return api_answer(call, 200, removed_fields, &removed);
}

const struct route api_runtime_routes[] = {
    {"GET", API_TOP "/runtimes", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_runtimes,
     .summary = "what sandboxes can be started from, by name", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_READ},
    {"POST", API_TOP "/runtimes", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, add_runtime,
     .summary = "adds a runtime, or replaces one that was added", .fields = add_fields,
     .answers = added_answers, .needs = SCOPE_ADMIN},
    {"GET", API_TOP "/runtimes/{runtime}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_runtime,
     .summary = "one of them, by name or id", .answers = runtime_answers, .needs = SCOPE_READ},
    {"POST", API_TOP "/runtimes/{runtime}/build", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, make_runtime,
     .summary = "begins to make it, and says how far that is", .answers = made_answers,
     .needs = SCOPE_ADMIN},
    {"DELETE", API_TOP "/runtimes/{runtime}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, remove_runtime,
     .summary = "removes it, with what was added of it", .answers = removed_answers,
     .needs = SCOPE_ADMIN},
    {0},
};
