/* SPDX-License-Identifier: Apache-2.0 */
/* burrow snapshot build and generate: a snapshot from a file that says what is in it. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "base/sha256.h"
#include "cli/build_file.h"
#include "cli/listing.h"
#include "cli/columns.h"
#include "cli/endpoint.h"
#include "cli/invocation.h"
#include "cli/progress_bar.h"
#include "cli/sandbox_options.h"
#include "cli/tar_send.h"

#include <stdlib.h>
#include <string.h>

#define PATTERNS_MAX 256
#define PIECE 32768 // of the archive, in one block of gzip

struct build {
    struct invocation *invocation;
    struct build_file file;
    char *directory; // whose files go in
    struct pattern *patterns[PATTERNS_MAX];
    bool is_excluding[PATTERNS_MAX];
    size_t n_patterns;
    char hash[SHA256_TEXT];
    uint64_t bytes; // of the archive
};

static void build_clear(struct build *build)
{
    for (size_t i = 0; i < build->n_patterns; i++)
        pattern_free(build->patterns[i]);
    free(build->directory);
    build_file_clear(&build->file);
}

// ---- the file ----

static bool leads_out(const char *path)
{
    if (*path == '/')
        return true;
    for (; *path; path += strcspn(path, "/"), path += *path == '/') {
        if (strcspn(path, "/") == 2 && strncmp(path, "..", 2) == 0)
            return true;
    }
    return false;
}

/* The directory with the file, or the one below it that the file names. */
static int find_directory(struct build *build, struct burrow_error *err)
{
    const char *given = build->invocation->operands[0], *dir = build->file.dir;

    if (dir && leads_out(dir))
        return say_fail(err, BURROW_INVALID, "dir: '%s' is not below '%s'", dir, given);
    build->directory = dir ? xasprintf("%s/%s", given, dir) : xstrdup(given);
    return 0;
}

static int add_pattern(struct build *build, const char *text, struct burrow_error *err)
{
    bool is_excluding = *text == '!';
    struct error error = {0};

    if (build->n_patterns == PATTERNS_MAX)
        return say_fail(err, BURROW_INVALID, "files: a list of at most %d patterns", PATTERNS_MAX);
    text += is_excluding;
    text += strncmp(text, "./", 2) == 0 ? 2 : 0;
    if (pattern_new(text, PATTERN_GLOB, false, &build->patterns[build->n_patterns], &error) < 0)
        return say_fail(err, BURROW_INVALID, "files: '%s': %s", text, error.text);
    build->is_excluding[build->n_patterns++] = is_excluding;
    return 0;
}

static int read_build(struct build *build, struct burrow_error *err)
{
    struct invocation *o = build->invocation;

    if (build_file_read(o->operands[0], o->file, &build->file, err) < 0 ||
        find_directory(build, err) < 0)
        return -1;
    o->is_public |= build_file_is_public(&build->file);
    for (const char **text = build->file.files; text && *text; text++) {
        if (add_pattern(build, *text, err) < 0)
            return -1;
    }
    return 0;
}

/* Directories are gone through unless all in them is excluded; a file needs a pattern that has it, and none that excludes it. */
static bool wants(void *context, const char *path, bool is_directory)
{
    struct build *build = context;
    bool is_in = false;

    for (size_t i = 0; i < build->n_patterns; i++) {
        autofree char *below = is_directory ? xasprintf("%s/x", path) : NULL;
        bool matches = pattern_matches(build->patterns[i], path, strlen(path)) ||
                       (below && build->is_excluding[i] &&
                        pattern_matches(build->patterns[i], below, strlen(below)));
        if (matches && build->is_excluding[i])
            return false;
        is_in |=
            matches || (is_directory && pattern_may_begin(build->patterns[i], path, strlen(path)));
    }
    return is_in;
}

// ---- the archive ----

static int hash_files(struct build *build, struct sha256 *hash, struct burrow_error *err)
{
    struct tar_send *tar = NULL;
    char bytes[PIECE];
    ssize_t got;

    if (tar_send_new(build->directory, wants, build, &tar, err) < 0)
        return -1;
    while ((got = tar_send_read(tar, bytes, sizeof bytes)) > 0 && !endpoint_is_cancelled()) {
        sha256_add(hash, bytes, (size_t)got);
        build->bytes += (uint64_t)got;
    }
    int result = 0;
    if (endpoint_is_cancelled())
        result = say_fail(err, BURROW_CANCELLED, "interrupted");
    else if (got < 0)
        result = say_fail_sys(err, "read '%s/%s'", build->directory, tar_send_path(tar));
    tar_send_free(tar);
    return result;
}

/* The archive as gzip, its blocks as they are: it is for a server that is near. */
struct packed {
    struct tar_send *tar;
    struct progress *progress;
    uint32_t check, length;
    bool has_head, has_end;
};

static uint32_t check_add(uint32_t check, const unsigned char *bytes, size_t length)
{
    check = ~check;
    while (length--) {
        check ^= *bytes++;
        for (int bit = 0; bit < 8; bit++)
            check = check >> 1 ^ (0xedb88320u & (0u - (check & 1)));
    }
    return ~check;
}

static ssize_t read_packed(void *context, void *to, size_t size)
{
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    struct packed *packed = context;
    unsigned char *out = to;

    if (size < PIECE + 32 || packed->has_end)
        return 0;
    size_t at = 0;
    if (!packed->has_head) {
        memcpy(out, head, sizeof head);
        at = sizeof head;
        packed->has_head = true;
    }
    ssize_t got = tar_send_read(packed->tar, out + at + 5, PIECE);
    if (got < 0)
        return -1;
    unsigned length = (unsigned)got;
    const unsigned char block[] = {got == 0, (unsigned char)length, (unsigned char)(length >> 8),
                                   (unsigned char)~length, (unsigned char)(~length >> 8)};
    packed->check = check_add(packed->check, out + at + 5, length);
    packed->length += length;
    memcpy(out + at, block, sizeof block);
    at += sizeof block + length;
    if (got == 0) {
        for (int shift = 0; shift < 32; shift += 8)
            out[at++] = (unsigned char)(packed->check >> shift);
        for (int shift = 0; shift < 32; shift += 8)
            out[at++] = (unsigned char)(packed->length >> shift);
        packed->has_end = true;
    }
    return (ssize_t)at;
}

static void on_packed(void *context, uint64_t sent)
{
    struct packed *packed = context;

    // what gzip adds is no reason to say that it is over
    progress_set(packed->progress, sent < packed->progress->total ? sent : packed->progress->total);
}

static int send_files(struct build *build, const char *id, struct burrow_error *err)
{
    autofree char *path = burrow_path("/snapshots/%s/upload", id, NULL);
    struct progress progress;
    struct packed packed = {.progress = &progress};

    if (tar_send_new(build->directory, wants, build, &packed.tar, err) < 0)
        return -1;
    const struct burrow_body body = {.type = "application/gzip",
                                     .read = read_packed,
                                     .on_progress = on_packed,
                                     .context = &packed};
    progress_init(&progress, "uploading", build->bytes, build->invocation->is_json);
    int result = burrow_send(build->invocation->client, "PUT", path, &body, NULL, err);
    progress_end(&progress);
    tar_send_free(packed.tar);
    return result;
}

// ---- the command ----

static const char *tag_of(const struct build *build)
{
    return build->invocation->tag ? build->invocation->tag : "latest";
}

/* What announces it; without its hash (NULL) what that is made of. */
static int write_announcement(const struct build *build, const char *hash, struct buffer *out,
                              struct burrow_error *err)
{
    const struct invocation *o = build->invocation;
    const struct build_file *file = &build->file;
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    say_put_text(&json, "runtime", file->runtime);
    say_put_text(&json, "name", o->name ? o->name : file->name);
    say_put_text(&json, "tag", tag_of(build));
    say_put_text(&json, "description", o->description ? o->description : file->description);
    json_key(&json, "public");
    json_bool(&json, o->is_public);
    if (hash) {
        say_put_text(&json, "contentHash", hash);
        json_key(&json, "force");
        json_bool(&json, o->is_forced);
    }
    json_map_end(&json);
    return say_finish(&json, err);
}

/* What finishes it. */
static int write_end(const struct build *build, struct buffer *out, struct burrow_error *err)
{
    const struct invocation *o = build->invocation;
    const struct build_file *file = &build->file;
    const struct build_pairs env = {"env", file->env, &o->env, NULL};
    const struct build_pairs metadata = {"metadata", file->metadata, &o->env, &o->metadata_pairs};
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    if (build_file_put_pairs(&json, &env, err) < 0 ||
        build_file_put_pairs(&json, &metadata, err) < 0)
        return -1;
    json_strings(&json, "dependencies", (const char *const *)file->dependencies);
    json_strings(&json, "packages", (const char *const *)file->packages);
    json_map_end(&json);
    return say_finish(&json, err);
}

/* Of all that goes into the snapshot: another hash, another snapshot. */
static int hash_build(struct build *build, struct burrow_error *err)
{
    autobuffer announcement = {0};
    autobuffer end = {0};
    struct sha256 hash;

    if (write_announcement(build, NULL, &announcement, err) < 0 || write_end(build, &end, err) < 0)
        return -1;
    sha256_init(&hash);
    sha256_add(&hash, announcement.data,
               announcement.length + 1); // with the NUL: a text ends there
    sha256_add(&hash, end.data, end.length + 1);
    int result = hash_files(build, &hash, err);
    sha256_end(&hash, build->hash);
    return result;
}

static int begin(struct build *build, struct burrow_answer **out, struct burrow_error *err)
{
    autobuffer text = {0};

    if (write_announcement(build, build->hash, &text, err) < 0)
        return -1;
    return burrow_ask(build->invocation->client, "POST", "/snapshots/builds", text.data, out, err);
}

static int finish(struct build *build, const char *id, struct burrow_answer **out,
                  struct burrow_error *err)
{
    autofree char *path = burrow_path("/snapshots/%s/finish", id, NULL);
    autobuffer text = {0};

    if (write_end(build, &text, err) < 0)
        return -1;
    return burrow_ask(build->invocation->client, "POST", path, text.data, out, err);
}

/* Begins it; where a snapshot has the same hash and still its tag, *unchanged is that one. */
static int begin_or_find(struct build *build, struct burrow_answer **out,
                         struct burrow_answer **unchanged, struct burrow_error *err)
{
    autoanswer first = NULL;

    if (begin(build, &first, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(first);
    if (!burrow_truth(burrow_get(value, "unchanged"))) {
        *out = take(first);
        return 0;
    }
    if (burrow_snapshot_get(build->invocation->client, value_text(value, "id"), unchanged, err) < 0)
        return -1;
    if (strcmp(value_text(burrow_answer_value(*unchanged), "tag"), tag_of(build)) == 0)
        return 0;
    burrow_answer_free(take(*unchanged));
    build->invocation->is_forced = true;
    return begin(build, out, err);
}

static int tell_unchanged(const struct invocation *invocation, const struct burrow_value *value,
                          struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    if (!invocation->is_json) {
        say_done("unchanged: snapshot %s", value_text(value, "id"));
        return 0;
    }
    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_members(&json, value);
    json_key(&json, "unchanged");
    json_bool(&json, true);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

static int build_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    autoclear(build) build = {.invocation = invocation};
    autoanswer begun = NULL;
    autoanswer unchanged = NULL;
    autoanswer done = NULL;

    if (read_build(&build, err) < 0 || hash_build(&build, err) < 0)
        return -1;
    if (invocation->is_public &&
        !say_confirm(invocation->is_confirmed, "Publish this snapshot to all organisations?"))
        return say_fail(err, BURROW_CANCELLED, "nothing was built");
    if (begin_or_find(&build, &begun, &unchanged, err) < 0)
        return -1;
    if (unchanged)
        return tell_unchanged(invocation, burrow_answer_value(unchanged), err);
    const char *id = value_text(burrow_answer_value(begun), "id");
    if (send_files(&build, id, err) < 0 || finish(&build, id, &done, err) < 0)
        return -1;
    if (invocation->is_json)
        return say_thing(burrow_answer_value(done), err);
    say_done("built snapshot %s", id);
    return 0;
}

static const char yaml_template[] =
    "# What a snapshot is made of: burrow snapshot build .\nversion: 1\n\n# Required: what it "
    "starts from ('burrow runtime list')\n"
    "runtime: base:latest\n\n# Optional\nname: my-snapshot\ndescription: My sandbox snapshot\n\n# "
    "Optional: Debian packages to install\n"
    "# dependencies:\n#   - curl\n\n# Files to put in, below /workspace; '!' leaves some "
    "out\nfiles:\n  - \"**\"\n  - \"!**/.git/**\"\n"
    "  - \"!node_modules/**\"\n\n# Optional: variables of all commands; ${NAME} is what --env "
    "NAME=VALUE says\n# env:\n#   NODE_ENV: production\n"
    "\n# Optional\n# metadata:\n#   version: ${VERSION}\n";
static const char json_template[] =
    "{\n  \"version\": 1,\n  \"runtime\": \"base:latest\",\n  \"name\": \"my-snapshot\",\n  "
    "\"description\": \"My sandbox snapshot\",\n"
    "  \"dependencies\": [],\n  \"files\": [\"**\", \"!**/.git/**\", \"!node_modules/**\"],\n  "
    "\"env\": {},\n  \"metadata\": {}\n}\n";

static int generate(struct invocation *invocation, struct burrow_error *err)
{
    const char *format = invocation->format ? invocation->format : "yaml";
    bool is_json = invocation->is_json || strcmp(format, "json") == 0;

    if (strcmp(format, "yaml") != 0 && strcmp(format, "json") != 0)
        return say_fail(err, BURROW_INVALID, "--format is yaml or json, not '%s'", format);
    (void)fputs(is_json ? json_template : yaml_template, stdout);
    return 0;
}

static const struct option_row build_rows[] = {
    OPTION("file", 0, OPTION_TEXT, file, "FILE",
           "the build file (default agentuity-snapshot.yaml, .yml or .json)"),
    OPTION("tag", 0, OPTION_TEXT, tag, "TAG", "a tag (default latest)"),
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "instead of the build file's"),
    OPTION("description", 0, OPTION_TEXT, description, "TEXT", "instead of the build file's"),
    OPTION("env", 'e', OPTION_LIST, env, "KEY=VALUE",
           "what ${KEY} in the build file stands for (repeatable)"),
    OPTION("metadata", 0, OPTION_LIST, metadata_pairs, "KEY=VALUE", "kept with it (repeatable)"),
    OPTION("force", 'f', OPTION_FLAG, is_forced, NULL, "build it also where nothing has changed"),
    OPTION("public", 0, OPTION_FLAG, is_public, NULL, "all organisations may use it"),
    OPTION("confirm", 'y', OPTION_FLAG, is_confirmed, NULL, "do not ask"),
    {0}};
static const struct option_row generate_rows[] = {
    OPTION("format", 0, OPTION_TEXT, format, "FORMAT", "yaml or json (default yaml)"), {0}};
static const char *const build_examples[] = {
    "$ burrow snapshot build .",
    "$ burrow snapshot build ./project --file custom.yaml --tag production", NULL};
static const char *const generate_examples[] = {
    "$ burrow snapshot generate > agentuity-snapshot.yaml", NULL};

const struct cli_command build_commands[] = {
    {"snapshot", "build", "DIRECTORY", "make a snapshot of files, by a build file", NULL,
     build_rows, build_examples, COMMAND_SERVER, build_snapshot},
    {"snapshot", "generate gen", "", "print a build file to begin with", NULL, generate_rows,
     generate_examples, 0, generate},
    {0},
};
