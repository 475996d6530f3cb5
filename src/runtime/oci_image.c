/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the texts of an image; see oci_image.h. */
#include "runtime/oci_image.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "data/json.h"

#include <string.h>

#define MAX_SIZE ((int64_t)1 << 42) // of a blob
#define MAX_WORDS 4096              // of an environment or a command line, each
#define MAX_WORD_BYTES 32768        // so that all of it fits into a manifest

const char *oci_architecture(void)
{
#if defined __x86_64__
    return "amd64";
#elif defined __aarch64__
    return "arm64";
#else
#error "what do images call this machine?"
#endif
}

int oci_read(const char *what, const char *text, size_t length, struct data_document **out,
             struct error *err)
{
    const struct json_limits limits = {.bytes = OCI_MAX_TEXT, .depth = 32, .takes_last = true};
    autoptr(data_document) document = NULL;

    if (json_read(what, text, length, &limits, &document, err) < 0)
        return -1;
    if (document->root->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "%s is %s and not a map", what,
                         value_kind_name(document->root->kind));
    *out = take(document);
    return 0;
}

// ---- descriptors ----

static const char *const index_types[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
};
static const char *const manifest_types[] = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
};
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
};

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

static int read_digest(const struct data_value *map, char hex[SHA256_TEXT], struct error *err)
{
    static const char prefix[] = "sha256:";
    const char *text = "";

    if (value_get_string(map, "digest", true, &text, err) < 0)
        return -1;
    const char *digits = text + sizeof prefix - 1;
    if (strncmp(text, prefix, sizeof prefix - 1) != 0 || strlen(digits) != SHA256_TEXT - 1 ||
        strspn(digits, "0123456789abcdef") != SHA256_TEXT - 1)
        return value_error(value_get(map, "digest"), err,
                           "must be 'sha256:' and 64 hexadecimal digits, not '%.100s'", text);
    memcpy(hex, digits, SHA256_TEXT);
    return 0;
}

static int read_descriptor(const struct data_value *map, struct oci_descriptor *out,
                           struct error *err)
{
    struct data_value *platform = NULL, *notes = NULL;
    int64_t size = 0;

    *out = (struct oci_descriptor){
        .media_type = "", .os = "", .architecture = "", .variant = "", .name = ""};
    if (map->kind != VALUE_MAP)
        return value_error(map, err, "must be a map, not %s", value_kind_name(map->kind));
    if (value_get_string(map, "mediaType", false, &out->media_type, err) < 0 ||
        read_digest(map, out->hex, err) < 0 ||
        value_get_integer(map, "size", true, 0, MAX_SIZE, &size, err) < 0 ||
        value_get_map(map, "platform", false, &platform, err) < 0 ||
        value_get_map(map, "annotations", false, &notes, err) < 0)
        return -1;
    out->size = (uint64_t)size;
    out->is_index = is_one_of(out->media_type, index_types, ARRAY_SIZE(index_types));
    if (platform &&
        (value_get_string(platform, "os", false, &out->os, err) < 0 ||
         value_get_string(platform, "architecture", false, &out->architecture, err) < 0 ||
         value_get_string(platform, "variant", false, &out->variant, err) < 0))
        return -1;
    return notes ? value_get_string(notes, "org.opencontainers.image.ref.name", false, &out->name,
                                    err)
                 : 0;
}

// ---- an index ----

bool oci_is_index(const struct data_value *root)
{
    const struct data_value *list = value_get(root, "manifests");
    return list && list->kind == VALUE_LIST && !value_get(root, "layers");
}

static bool is_wanted(const struct oci_descriptor *entry, const char *reference)
{
    bool is_image = !*entry->media_type || entry->is_index ||
                    is_one_of(entry->media_type, manifest_types, ARRAY_SIZE(manifest_types));
    // what is attached to an image says that it is for no machine
    bool is_here = !*entry->architecture || (strcmp(entry->architecture, oci_architecture()) == 0 &&
                                             (!*entry->os || strcmp(entry->os, "linux") == 0));
    return is_image && is_here && (!reference || strcmp(entry->name, reference) == 0);
}

// What there is, for a sentence.
static void name_entries(const struct data_value *list, struct buffer *out)
{
    struct error ignored;

    for (const struct data_value *v = list->first; v; v = v->next) {
        struct oci_descriptor entry;
        if (read_descriptor(v, &entry, &ignored) < 0)
            continue;
        (void)buffer_addf(out, &ignored, "%s%.60s%s%.20s%s%.20s", out->length ? ", " : "",
                          entry.name, *entry.name && *entry.os ? " for " : "", entry.os,
                          *entry.os ? "/" : "", entry.architecture);
    }
}

static int tell_entries(const struct data_value *list, const char *reference, bool is_many,
                        struct error *err)
{
    autobuffer names = {.maximum = 300};

    name_entries(list, &names);
    if (is_many)
        return error_set(err, ERROR_INVALID,
                         "the index has several images for this machine; name one of: %s",
                         names.data ? names.data : "");
    return error_set(err, ERROR_NOT_FOUND,
                     "the index has no image%s%.100s%s for linux/%s; it has: %s",
                     reference ? " '" : "", reference ? reference : "", reference ? "'" : "",
                     oci_architecture(), names.data ? names.data : "nothing");
}

int oci_index_choose(const struct data_value *index, const char *reference,
                     struct oci_descriptor *out, struct error *err)
{
    const struct data_value *list = value_get(index, "manifests");
    unsigned found = 0;

    if (!list || list->kind != VALUE_LIST)
        return error_set(err, ERROR_INVALID, "the index has no list 'manifests'");
    for (const struct data_value *v = list->first; v; v = v->next) {
        struct oci_descriptor entry;
        if (read_descriptor(v, &entry, err) < 0)
            return -1;
        if (!is_wanted(&entry, reference))
            continue;
        // one that says what it is for goes before one that does not, and of two of those the first: variants are in order of preference
        if (found && *out->architecture)
            continue;
        if (found && !*entry.architecture) {
            if (strcmp(out->hex, entry.hex) != 0)
                return tell_entries(list, reference, true, err);
            continue;
        }
        *out = entry;
        found++;
    }
    return found ? 0 : tell_entries(list, reference, false, err);
}

// ---- a manifest ----

static int read_layers(const struct data_value *list, struct oci_manifest *out, struct error *err)
{
    if (list->count > OCI_MAX_LAYERS)
        return error_set(err, ERROR_LIMIT, "the image has %zu layers; %d is the most", list->count,
                         OCI_MAX_LAYERS);
    out->layers = xcalloc(list->count ? list->count : 1, sizeof *out->layers);
    for (const struct data_value *v = list->first; v; v = v->next) {
        struct oci_descriptor *layer = &out->layers[out->n_layers];
        if (read_descriptor(v, layer, err) < 0)
            return -1;
        if (!is_one_of(layer->media_type, layer_types, ARRAY_SIZE(layer_types)))
            return error_set(err, ERROR_INVALID,
                             "this is not an image of files: it has a layer of type '%.100s'",
                             layer->media_type);
        out->n_layers++;
    }
    return 0;
}

int oci_manifest_read(const struct data_value *root, struct oci_manifest *out, struct error *err)
{
    const struct data_value *list = value_get(root, "layers");
    struct data_value *config = NULL;
    int64_t version = 0;

    *out = (struct oci_manifest){0};
    if (value_get_integer(root, "schemaVersion", true, 0, 1000, &version, err) < 0)
        return -1;
    if (version != 2)
        return error_set(err, ERROR_INVALID,
                         "the manifest is of version %lld; only version 2 can be read",
                         (long long)version);
    if (value_get_map(root, "config", true, &config, err) < 0 ||
        read_descriptor(config, &out->config, err) < 0)
        return -1;
    if (!list || list->kind != VALUE_LIST)
        return error_set(err, ERROR_INVALID, "the manifest has no list 'layers'");
    if (read_layers(list, out, err) == 0)
        return 0;
    free(out->layers);
    *out = (struct oci_manifest){0};
    return -1;
}

// ---- a config ----

static int check_machine(const struct data_value *root, struct error *err)
{
    const char *os = "", *architecture = "";

    if (value_get_string(root, "os", false, &os, err) < 0 ||
        value_get_string(root, "architecture", false, &architecture, err) < 0)
        return -1;
    if ((*os && strcmp(os, "linux") != 0) ||
        (*architecture && strcmp(architecture, oci_architecture()) != 0))
        return error_set(err, ERROR_INVALID,
                         "the image is for %.20s/%.20s, and this machine is linux/%s", os,
                         architecture, oci_architecture());
    return 0;
}

static int check_layers(const struct data_value *root, size_t n_layers, struct error *err)
{
    struct data_value *files = NULL;
    const struct data_value *list;

    if (value_get_map(root, "rootfs", false, &files, err) < 0)
        return -1;
    list = files ? value_get(files, "diff_ids") : NULL;
    if (list && (list->kind != VALUE_LIST || list->count != n_layers))
        return error_set(err, ERROR_INVALID,
                         "the image's config is about %zu layers, and its manifest about %zu",
                         list->count, n_layers);
    return 0;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

/* Bounded, and without what a line of a manifest cannot hold or a system call would cut. */
static int check_words(const char *what, const char **words, bool are_pairs, struct error *err)
{
    size_t count = 0, bytes = 0;

    for (; words && *words; words++, count++) {
        bytes += strlen(*words);
        if (are_pairs && (!strchr(*words, '=') || **words == '='))
            return error_set(err, ERROR_INVALID,
                             "the image's %s has '%.60s', which is not NAME=VALUE", what, *words);
    }
    if (count > MAX_WORDS || bytes > MAX_WORD_BYTES)
        return error_set(err, ERROR_LIMIT, "the image's %s is too long", what);
    return 0;
}

static int read_strings(const struct data_value *map, struct oci_config *out, struct error *err)
{
    if (value_get_string(map, "WorkingDir", false, &out->directory, err) < 0 ||
        value_get_string(map, "User", false, &out->user, err) < 0)
        return -1;
    if (out->directory && !*out->directory)
        out->directory = NULL;
    if (out->user && !*out->user)
        out->user = NULL;
    if (out->directory && (*out->directory != '/' || strlen(out->directory) > 1000))
        return error_set(err, ERROR_INVALID,
                         "the image's working directory '%.100s' is not an absolute path",
                         out->directory);
    if (out->directory && has_control(out->directory))
        return error_set(err, ERROR_INVALID,
                         "the image's working directory '%.100s' has control characters in it",
                         out->directory);
    if (out->user &&
        (strlen(out->user) > 200 || strpbrk(out->user, " /") || has_control(out->user)))
        return error_set(err, ERROR_INVALID, "the image's user '%.100s' is nobody's name",
                         out->user);
    return 0;
}

/* A label of the usual names, cut between characters. */
static void read_description(const struct data_value *map, char out[RUNTIME_DESCRIPTION])
{
    static const char *const names[] = {"org.opencontainers.image.description",
                                        "org.opencontainers.image.title"};
    const struct data_value *labels = value_get(map, "Labels");

    for (size_t i = 0; i < ARRAY_SIZE(names) && labels && labels->kind == VALUE_MAP; i++) {
        const struct data_value *label = value_get(labels, names[i]);
        const char *text = label && label->kind == VALUE_STRING ? label->text : "";
        size_t used = 0, left = strlen(text);
        for (size_t next; (next = utf8_length(text + used, left - used)) > 0 &&
                          used + next < RUNTIME_DESCRIPTION;)
            used += next;
        memcpy(out, text, used);
        out[used] = '\0';
        quote_scrub(out);
        if (out[strspn(out, " ?")])
            return;
    }
    out[0] = '\0';
}

int oci_config_read(const struct data_value *root, size_t n_layers, struct oci_config *out,
                    struct error *err)
{
    struct data_value *map = NULL;

    *out = (struct oci_config){0};
    if (check_machine(root, err) < 0 || check_layers(root, n_layers, err) < 0 ||
        value_get_map(root, "config", false, &map, err) < 0)
        return -1;
    if (!map)
        return 0;
    read_description(map, out->description);
    if (value_get_strings(map, "Env", false, &out->env, err) < 0 ||
        value_get_strings(map, "Entrypoint", false, &out->entrypoint, err) < 0 ||
        value_get_strings(map, "Cmd", false, &out->command, err) < 0 ||
        read_strings(map, out, err) < 0 || check_words("environment", out->env, true, err) < 0 ||
        check_words("entry point", out->entrypoint, false, err) < 0)
        return -1;
    return check_words("command", out->command, false, err);
}
