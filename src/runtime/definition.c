/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file of the catalog; see definition.h. */
#include "runtime/definition.h"

#include "base/size.h"
#include "runtime/digest.h"
#include "runtime/oci_fetch.h"

#include <stdio.h>
#include <string.h>

// Raised when the making itself changes, so that what older programs made counts as outdated.
#define MAKING_VERSION 1
#define LAYER_VERSION 2 // of those of kind layer

#define README_MAX 65536

static const char *no_strings[] = {NULL};

static const char *const kind_names[] = {
    [RUNTIME_DEBIAN] = "debian",
    [RUNTIME_HOST] = "host",
    [RUNTIME_LAYER] = "layer",
    [RUNTIME_OCI] = "oci",
};

const char *runtime_kind_name(enum runtime_kind kind)
{
    return kind_names[kind];
}

bool definition_is_name(const char *text, size_t length, const char *letters)
{
    if (length == 0 || length >= RUNTIME_NAME || strchr("._-", *text))
        return false;
    return strspn(text, letters) >= length;
}

static int read_kind(const struct data_value *build, enum runtime_kind *out, struct error *err)
{
    const char *name = NULL;

    if (value_get_string(build, "kind", true, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (enum runtime_kind)i;
            return 0;
        }
    return value_error(value_get(build, "kind"), err,
                       "must be debian, host, layer or oci, not '%.60s'", name);
}

static int check_words(const struct data_value *map, const char *key, const char **words,
                       const char *letters, struct error *err)
{
    for (; words && *words; words++)
        if (!definition_is_name(*words, strlen(*words), letters))
            return value_error(value_get(map, key), err, "'%.60s' is not a name", *words);
    return 0;
}

static int read_bool(const struct data_value *map, const char *key, bool *out, struct error *err)
{
    const struct data_value *value = value_get(map, key);

    if (value && value->kind != VALUE_BOOL)
        return value_error(value, err, "must be true or false");
    if (value)
        *out = value->truth;
    return 0;
}

static int read_debian(const struct data_value *build, struct runtime_definition *definition,
                       struct error *err)
{
    static const char *const known[] = {"kind",   "suite",         "packages", "components",
                                        "mirror", "ignore-expiry", NULL};
    static const char *main_only[] = {"main", NULL};
    const char *letters = LOWER UPPER "._-+:=~";

    definition->components = main_only;
    definition->packages = no_strings;
    if (value_check_keys(build, known, err) < 0 ||
        value_get_string(build, "suite", true, &definition->suite, err) < 0 ||
        value_get_strings(build, "packages", false, &definition->packages, err) < 0 ||
        value_get_strings(build, "components", false, &definition->components, err) < 0 ||
        value_get_string(build, "mirror", false, &definition->mirror, err) < 0 ||
        read_bool(build, "ignore-expiry", &definition->is_expiry_ignored, err) < 0)
        return -1;
    if (!definition_is_name(definition->suite, strlen(definition->suite), LOWER "-"))
        return value_error(value_get(build, "suite"), err, "must be a suite such as bookworm");
    if (check_words(build, "packages", definition->packages, letters, err) < 0)
        return -1;
    return check_words(build, "components", definition->components, LOWER "-", err);
}

// "typescript", "@scope/name@1.2", "node-linux-{arch}@24": nothing that a shell or npm could take for more than a name.
static bool is_npm_package(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && length < 200 && !strchr(".-_/", *text) && !strstr(text, "..") &&
           strspn(text, LOWER UPPER "@/._-~^{}") == length;
}

static int check_npm(const struct data_value *map, const char *key, const char **words,
                     struct error *err)
{
    for (; *words; words++)
        if (!is_npm_package(*words))
            return value_error(value_get(map, key), err, "'%.60s' is not a package of npm", *words);
    return 0;
}

static int read_layer(const struct data_value *build, struct runtime_definition *definition,
                      struct error *err)
{
    static const char *const known[] = {"kind", "from", "with", "apt", "npm", "users", NULL};

    if (value_check_keys(build, known, err) < 0 ||
        value_get_string(build, "from", true, &definition->from_name, err) < 0 ||
        value_get_string(build, "with", false, &definition->with_name, err) < 0 ||
        value_get_strings(build, "apt", false, &definition->packages, err) < 0 ||
        value_get_strings(build, "npm", false, &definition->npm, err) < 0 ||
        value_get_strings(build, "users", false, &definition->users, err) < 0)
        return -1;
    if (check_words(build, "apt", definition->packages, LOWER UPPER "._-+:=~", err) < 0 ||
        check_npm(build, "npm", definition->npm, err) < 0)
        return -1;
    return check_words(build, "users", definition->users, LOWER "_-", err);
}

static int read_oci(const struct data_value *build, struct runtime_definition *definition,
                    struct error *err)
{
    static const char *const known[] = {"kind", "image", NULL};
    struct error why;

    if (value_check_keys(build, known, err) < 0 ||
        value_get_string(build, "image", true, &definition->image, err) < 0)
        return -1;
    if (oci_check_source(definition->image, &why) < 0)
        return value_error(value_get(build, "image"), err, "%s", why.text);
    return 0;
}

static int read_build(const struct data_value *root, struct runtime_definition *definition,
                      struct error *err)
{
    static const char *const host_fields[] = {"kind", NULL};
    struct data_value *build = NULL;

    if (value_get_map(root, "build", true, &build, err) < 0 ||
        read_kind(build, &definition->kind, err) < 0)
        return -1;
    if (definition->kind == RUNTIME_DEBIAN)
        return read_debian(build, definition, err);
    if (definition->kind == RUNTIME_OCI)
        return read_oci(build, definition, err);
    if (definition->kind == RUNTIME_LAYER)
        return read_layer(build, definition, err);
    return value_check_keys(build, host_fields, err);
}

static int read_env(const struct data_value *root, struct runtime_definition *definition,
                    struct error *err)
{
    struct data_value *env = NULL;
    size_t i = 0;

    if (value_get_map(root, "env", false, &env, err) < 0)
        return -1;
    definition->env = value_alloc(root->document, ((env ? env->count : 0) + 1) * sizeof(char *));
    for (struct data_value *v = env ? env->first : NULL; v; v = v->next) {
        const char *text = NULL;
        if (value_get_string(env, v->key, true, &text, err) < 0)
            return -1;
        if (!*v->key || strpbrk(v->key, "=\n") || strchr(text, '\n'))
            return value_error(v, err,
                               "a name needs to be without '=', and both without line breaks");
        size_t size = v->key_length + strlen(text) + 2;
        char *pair = value_alloc(root->document, size);
        (void)snprintf(pair, size, "%s=%s", v->key, text);
        definition->env[i++] = pair;
    }
    return 0;
}

static int read_names(const struct data_value *root, struct runtime_definition *definition,
                      struct error *err)
{
    static const char *latest[] = {"latest", NULL};

    definition->tags = latest;
    definition->description = "";
    if (value_get_string(root, "name", true, &definition->name, err) < 0 ||
        value_get_strings(root, "tags", false, &definition->tags, err) < 0 ||
        value_get_string(root, "description", false, &definition->description, err) < 0)
        return -1;
    if (!definition_is_name(definition->name, strlen(definition->name), LOWER "._-"))
        return value_error(value_get(root, "name"), err,
                           "must be made of lower-case letters, digits, '.', '_' and '-'");
    if (!definition->tags[0])
        return value_error(value_get(root, "tags"), err, "must name at least one tag");
    return check_words(root, "tags", definition->tags, LOWER UPPER "._-", err);
}

static int read_aliases(const struct data_value *root, struct runtime_definition *definition,
                        struct error *err)
{
    struct runtime_reference ignored;

    if (value_get_strings(root, "aliases", false, &definition->aliases, err) < 0)
        return -1;
    for (const char **alias = definition->aliases; *alias; alias++)
        if (runtime_reference_parse(*alias, &ignored, err) < 0)
            return value_error(value_get(root, "aliases"), err, "'%.100s' does not name a runtime",
                               *alias);
    return 0;
}

static bool is_color(const char *text)
{
    return text[0] == '#' && strlen(text) == 7 && strspn(text + 1, "0123456789abcdefABCDEF") == 6;
}

/* For people who choose one. */
static int read_looks(const struct data_value *root, struct runtime_definition *definition,
                      struct error *err)
{
    if (value_get_string(root, "icon", false, &definition->icon, err) < 0 ||
        value_get_string(root, "color", false, &definition->color, err) < 0 ||
        value_get_string(root, "url", false, &definition->url, err) < 0 ||
        value_get_string(root, "readme", false, &definition->readme, err) < 0 ||
        value_get_strings(root, "categories", false, &definition->categories, err) < 0)
        return -1;
    if (definition->color && !is_color(definition->color))
        return value_error(value_get(root, "color"), err, "must be a colour such as '#5fa04e'");
    if (definition->readme && strlen(definition->readme) > README_MAX)
        return value_error(value_get(root, "readme"), err, "may be at most %d bytes", README_MAX);
    return 0;
}

static int read_size(const struct data_value *map, const char *key, uint64_t *out,
                     struct error *err)
{
    const char *text = NULL;

    if (value_get_string(map, key, false, &text, err) < 0)
        return -1;
    if (text && size_parse(text, key, out, err) < 0)
        return value_error(value_get(map, key), err, "must be a size such as 512Mi");
    return 0;
}

static int read_requirements(const struct data_value *root, struct runtime_definition *definition,
                             struct error *err)
{
    static const char *const known[] = {"memory", "cpu", "disk", "network", NULL};
    struct runtime_requirements *needs = &definition->requirements;
    struct data_value *map = NULL;
    const char *cpu = NULL;

    if (value_get_map(root, "requirements", false, &map, err) < 0)
        return -1;
    if (!map)
        return 0;
    if (value_check_keys(map, known, err) < 0 ||
        read_size(map, "memory", &needs->memory_bytes, err) < 0 ||
        read_size(map, "disk", &needs->disk_bytes, err) < 0 ||
        read_bool(map, "network", &needs->needs_network, err) < 0 ||
        value_get_string(map, "cpu", false, &cpu, err) < 0)
        return -1;
    if (cpu && cpu_parse(cpu, "cpu", &needs->cpu_millicores, err) < 0)
        return value_error(value_get(map, "cpu"), err, "must be processors such as 500m or 2");
    return 0;
}

static int check_lines(const struct data_value *root, const char *key, const char **strings,
                       struct error *err)
{
    for (; *strings; strings++)
        if (strchr(*strings, '\n'))
            return value_error(value_get(root, key), err, "must be without line breaks");
    return 0;
}

static int read_use(const struct data_value *root, struct runtime_definition *definition,
                    struct error *err)
{
    if (value_get_strings(root, "command", false, &definition->command, err) < 0 ||
        check_lines(root, "command", definition->command, err) < 0 ||
        value_get_strings(root, "keys", false, &definition->keys, err) < 0 ||
        check_words(root, "keys", definition->keys, UPPER LOWER "_", err) < 0)
        return -1;
    if (value_get_string(root, "interpreter", false, &definition->interpreter, err) < 0)
        return -1;
    if (definition->interpreter && strcmp(definition->interpreter, "python") != 0)
        return value_error(value_get(root, "interpreter"), err, "must be python, not '%.60s'",
                           definition->interpreter);
    return read_bool(root, "internal", &definition->is_internal, err);
}

static void hash_value(struct digest *digest, const struct data_value *value)
{
    unsigned char head[2] = {(unsigned char)value->kind, value->truth};

    digest_add(digest, head, sizeof head);
    digest_add_text(digest, value->key ? value->key : "");
    if (value->text)
        digest_add_text(digest, value->text);
    for (const struct data_value *child = value->first; child; child = child->next)
        hash_value(digest, child);
}

static uint64_t hash_definition(const struct data_value *root)
{
    struct digest digest = {0};
    const char *kind = NULL;
    struct error ignored;
    unsigned char version = MAKING_VERSION;

    if (value_get_string(value_get(root, "build"), "kind", true, &kind, &ignored) == 0 &&
        strcmp(kind, runtime_kind_name(RUNTIME_LAYER)) == 0)
        version = LAYER_VERSION;

    digest_add(&digest, &version, 1);
    hash_value(&digest, value_get(root, "build"));
    if (value_get(root, "env"))
        hash_value(&digest, value_get(root, "env"));
    if (value_get(root, "command"))
        hash_value(&digest, value_get(root, "command"));
    return digest_end(&digest);
}

int definition_read(struct data_document *document, struct runtime_definition *out,
                    struct error *err)
{
    static const char *const known[] = {
        "name",        "tags",    "aliases",    "description", "icon", "color",
        "url",         "readme",  "categories", "keys",        "env",  "requirements",
        "interpreter", "command", "internal",   "build",       NULL};
    const struct data_value *root = document->root;

    out->aliases = out->categories = out->keys = out->command = out->npm = out->users = no_strings;
    out->packages = out->components = no_strings;
    if (value_check_keys(root, known, err) < 0 || read_names(root, out, err) < 0 ||
        read_aliases(root, out, err) < 0 || read_looks(root, out, err) < 0 ||
        read_requirements(root, out, err) < 0 || read_use(root, out, err) < 0 ||
        read_build(root, out, err) < 0 || read_env(root, out, err) < 0)
        return -1;
    out->file = document->name;
    out->hash = hash_definition(root);
    return 0;
}
