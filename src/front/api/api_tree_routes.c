/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a sandbox: listing, search, making, moving, copying, and archives in and out. */
#include "base/mem.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api_file.h"
#include "front/api/api_page.h"
#include "web/client_watch.h"
#include "web/collect.h"

#include <string.h>

// ---- GET /files/list, GET /files/glob ----

static const char *const kind_words[] = {"file", "directory", "link", "other", NULL};

/* "file,link" as bits. */
static int read_kinds(const struct call *call, unsigned *out, struct error *err)
{
    const char *text = query_text(call->query, "kind");

    *out = 0;
    while (text && *text) {
        size_t length = strcspn(text, ","), kind = 0;
        while (kind_words[kind] &&
               (strlen(kind_words[kind]) != length || memcmp(kind_words[kind], text, length) != 0))
            kind++;
        if (!kind_words[kind]) {
            (void)error_set(err, ERROR_INVALID,
                            "kind: must be of file, directory, link and other, not '%.*s'",
                            (int)(length < 40 ? length : 40), text);
            return error_field(err, "kind");
        }
        *out |= 1u << kind;
        text += length + (text[length] == ',');
    }
    return 0;
}

/* The cursor is the last path of the page before. */
static int read_after(struct call *call, const char **out, struct error *err)
{
    const char *cursor = query_text(call->query, "cursor");

    *out = NULL;
    if (!cursor || api_read_base64(call, cursor, "cursor", out, err) == 0)
        return 0;
    (void)error_set(err, ERROR_INVALID,
                    "cursor: '%.40s' is none: take nextCursor of the page before", cursor);
    return error_field(err, "cursor");
}

static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(api_file_fields, struct file_answer), {0}};

static const char *cursor_of(struct call *call, const struct file_infos *found)
{
    if (!found->has_more || !found->count)
        return NULL;
    return api_base64_word(call, found->items[found->count - 1].path);
}

static int answer_found(struct call *call, const struct file_infos *found)
{
    struct file_answer *items = call_alloc(call, (found->count + 1) * sizeof *items);

    for (size_t i = 0; i < found->count; i++)
        api_describe_file(call, found->items[i].path, &found->items[i], &items[i]);
    const struct api_list list = {{items, found->count}, cursor_of(call, found)};
    return api_answer(call, 200, list_fields, &list);
}

static int find_files(struct call *call, struct file_query *query, struct error *err)
{
    struct file_place place;
    autofileinfos found = {0};

    query->maximum = (size_t)query_integer(call->query, "limit", API_PAGE_LIMIT);
    if (api_file_place(call, ".", &place, err) < 0 || read_kinds(call, &query->kinds, err) < 0 ||
        read_after(call, &query->after, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_find(call->core->sandboxes, &call->actor, &place, query, &found, err) < 0)
        return api_file_failed(err);
    return answer_found(call, &found);
}

static int list_files(struct call *call, struct error *err)
{
    bool is_recursive = query_bool(call->query, "recursive", false);
    struct file_query query = {
        .depth = (uint32_t)query_integer(call->query, "depth", is_recursive ? 0 : 1)};

    return find_files(call, &query, err);
}

static int needs_pattern(struct call *call, const char **out, struct error *err)
{
    *out = query_text(call->query, "pattern");
    if (*out)
        return 0;
    (void)error_set(err, ERROR_INVALID, "pattern: is needed");
    return error_field(err, "pattern");
}

/* What is wrong with a pattern is said by the box. */
static int pattern_failed(struct error *err)
{
    if (error_is(err, ERROR_INVALID) && strncmp(err->text, "the pattern", 11) == 0)
        (void)error_field(err, "pattern");
    return api_file_failed(err);
}

static int glob_files(struct call *call, struct error *err)
{
    struct file_query query = {0};

    if (needs_pattern(call, &query.pattern, err) < 0)
        return -1;
    return find_files(call, &query, err) < 0 ? pattern_failed(err) : 0;
}

// ---- GET /files/grep ----

#define GREP_MATCHES 100
#define GREP_MATCHES_MAX 1000
#define GREP_LINE_BYTES 500
#define GREP_LINE_BYTES_MAX 4096
#define GREP_FILE_BYTES ((int64_t)16 << 20)
#define GREP_FILE_BYTES_MAX ((int64_t)1 << 30)

struct match_answer {
    const char *path, *path_base64, *text, *text_base64;
    uint64_t line, offset_bytes;
    unsigned column;
    bool is_cut, has_column;
};
#define AT(member) offsetof(struct match_answer, member)
static const struct answer_field match_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true,
     .help = "below what was searched; empty when that is a file"},
    {"pathBase64", ANSWER_TEXT, AT(path_base64), .help = "its bytes, where they are not UTF-8"},
    {"line", ANSWER_NATURAL, AT(line), .help = "from 1"},
    {"column", ANSWER_UNSIGNED, AT(column), .has_offset = AT(has_column),
     .help = "where in the text the first match begins: in bytes, from 1"},
    {"offset", ANSWER_NATURAL, AT(offset_bytes), .help = "of the text in the file"},
    {"text", ANSWER_TEXT, AT(text), .is_needed = true},
    {"textBase64", ANSWER_TEXT, AT(text_base64), .help = "its bytes, where they are not UTF-8"},
    {"textTruncated", ANSWER_TRUTH, AT(is_cut),
     .help = "it is a part of the line, around the match"},
    {0},
};
#undef AT
struct grep_answer {
    struct answer_list items;
    bool is_cut;
    uint64_t skipped, bytes;
};
#define AT(member) offsetof(struct grep_answer, member)
static const struct answer_field grep_fields[] = {
    {"items", ANSWER_LIST, AT(items), .is_needed = true, .fields = match_fields,
     .item_size = sizeof(struct match_answer)},
    {"truncated", ANSWER_BOOL, AT(is_cut), .help = "there are more matches than these"},
    {"skippedFiles", ANSWER_NATURAL, AT(skipped),
     .help = "that are too large, seem to be no text, or cannot be read"},
    {"searchedBytes", ANSWER_NATURAL, AT(bytes)},
    {0},
};
#undef AT

static int answer_matches(struct call *call, const struct file_matches *found)
{
    struct match_answer *items = call_alloc(call, (found->count + 1) * sizeof *items);

    for (size_t i = 0; i < found->count; i++) {
        const struct file_match *match = &found->items[i];
        items[i] = (struct match_answer){
            .path = match->path,
            .path_base64 = api_odd_bytes(call, match->path, strlen(match->path)),
            .text = match->text,
            .text_base64 = api_odd_bytes(call, match->text, match->text_size),
            .line = match->line,
            .offset_bytes = match->offset_bytes,
            .column = match->column,
            .has_column = match->column != 0,
            .is_cut = match->is_cut,
        };
    }
    const struct grep_answer answer = {
        {items, found->count}, found->is_cut, found->skipped, found->bytes};
    return api_answer(call, 200, grep_fields, &answer);
}

static int grep_files(struct call *call, struct error *err)
{
    struct file_place place;
    autofilematches found = {0};
    struct file_grep grep = {
        .names = query_text(call->query, "include"),
        .is_fixed = query_bool(call->query, "fixed", false),
        .ignores_case = query_bool(call->query, "ignoreCase", false),
        .depth = (uint32_t)query_integer(call->query, "depth", 0),
        .line_bytes = (uint32_t)query_amount(call->query, "maxLineBytes", GREP_LINE_BYTES),
        .file_bytes = (uint64_t)query_amount(call->query, "maxFileBytes", GREP_FILE_BYTES),
        .maximum = (size_t)query_integer(call->query, "limit", GREP_MATCHES),
    };

    if (api_file_place(call, ".", &place, err) < 0 || needs_pattern(call, &grep.pattern, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_search(call->core->sandboxes, &call->actor, &place, &grep, &found, err) < 0)
        return pattern_failed(err);
    return answer_matches(call, &found);
}

// ---- POST /files/mkdir, /files/move, /files/copy ----

struct change_body {
    const char *path, *path_base64, *to, *to_base64, *user, *mode;
    bool makes_parents, may_replace;
};
#define AT(member) offsetof(struct change_body, member)
#define PATH_FIELDS                                                                                \
    {"path",                                                                                       \
     FIELD_TEXT,                                                                                   \
     AT(path),                                                                                     \
     .minimum = 1,                                                                                 \
     .maximum = API_PATH_MAX,                                                                      \
     .help = "in the sandbox: absolute, or from its working directory on"},                        \
        {"pathBase64", FIELD_TEXT, AT(path_base64), .maximum = API_PATH_MAX * 2,                   \
         .help = "instead of path, for names that are not UTF-8"},                                 \
        {"user", FIELD_TEXT, AT(user), .maximum = 255,                                             \
         .help = "with whose rights; root when not given"},                                        \
    {                                                                                              \
        "createParents", FIELD_BOOL, AT(makes_parents), .help = "make missing directories"         \
    }
static const struct field directory_fields[] = {
    PATH_FIELDS,
    {"mode", FIELD_TEXT, AT(mode), .maximum = 8, .help = "\"0755\", which it is when not given"},
    {0},
};
static const struct field target_fields[] = {
    PATH_FIELDS,
    {"to", FIELD_TEXT, AT(to), .minimum = 1, .maximum = API_PATH_MAX,
     .help = "its new path, with its name"},
    {"toBase64", FIELD_TEXT, AT(to_base64), .maximum = API_PATH_MAX * 2, .help = "instead of to"},
    {"overwrite", FIELD_BOOL, AT(may_replace), .help = "a file that is there"},
    {0},
};
#undef AT

static int choose_path(struct call *call, const char *name, const char **path, const char *base64,
                       struct error *err)
{
    char field[32];

    (void)snprintf(field, sizeof field, "%sBase64", name);
    if (!*path && base64 && api_read_base64(call, base64, field, path, err) < 0)
        return -1;
    if (*path && strlen(*path) <= API_PATH_MAX)
        return 0;
    (void)error_set(err, ERROR_INVALID, "%s: is %s", name, *path ? "too long" : "needed");
    return error_field(err, name);
}

static int read_change(struct call *call, const struct field *fields, struct change_body *body,
                       struct file_place *place, struct error *err)
{
    *body = (struct change_body){0};
    if (fields_read(call->body, fields, body, err) < 0 ||
        api_sandbox(call, 0, &place->sandbox_id, err) < 0 ||
        choose_path(call, "path", &body->path, body->path_base64, err) < 0)
        return -1;
    place->path = body->path;
    place->user = body->user;
    return 0;
}

static int make_directory(struct call *call, struct error *err)
{
    struct change_body body;
    struct file_place place;
    autofileinfo info = {0};
    uint32_t mode;

    if (read_change(call, directory_fields, &body, &place, err) < 0 ||
        api_read_mode(body.mode, 0755, &mode, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_make_directory(call->core->sandboxes, &call->actor, &place, mode, body.makes_parents,
                            &info, err) < 0)
        return api_file_failed(err);
    return api_answer_file(call, 200, place.path, &info);
}

static int read_target(struct call *call, struct change_body *body, struct file_place *place,
                       struct file_target *target, struct error *err)
{
    if (read_change(call, target_fields, body, place, err) < 0 ||
        choose_path(call, "to", &body->to, body->to_base64, err) < 0)
        return -1;
    *target = (struct file_target){body->to, body->makes_parents, body->may_replace};
    return 0;
}

/* Which of the two it is about is in the sentence; what stands in the way is at `to`. */
static int target_failed(struct error *err)
{
    if (error_is(err, ERROR_EXISTS))
        (void)error_field(err, "to");
    return -1;
}

static int move_file(struct call *call, struct error *err)
{
    struct change_body body;
    struct file_place place;
    struct file_target target;
    autofileinfo info = {0};

    if (read_target(call, &body, &place, &target, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_move(call->core->sandboxes, &call->actor, &place, &target, &info, err) < 0)
        return target_failed(err);
    return api_answer_file(call, 200, target.to, &info);
}

struct copy_answer {
    struct file_answer file;
    uint64_t entries, bytes, skipped;
};
#define AT(member) offsetof(struct copy_answer, member)
static const struct answer_field copy_fields[] = {
    {"", ANSWER_BESIDE, AT(file), .fields = api_file_fields},
    {"copiedEntries", ANSWER_NATURAL, AT(entries), .help = "below a directory"},
    {"copiedBytes", ANSWER_NATURAL, AT(bytes), .help = "without holes"},
    {"skippedEntries", ANSWER_NATURAL, AT(skipped),
     .help = "that are neither files, directories nor links, or cannot be read"},
    {0},
};
#undef AT

static int copy_file(struct call *call, struct error *err)
{
    struct change_body body;
    struct file_place place;
    struct file_target target;
    struct file_copied copied = {0};

    if (read_target(call, &body, &place, &target, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_copy(call->core->sandboxes, &call->actor, &place, &target, &copied, err) < 0)
        return target_failed(err);
    struct copy_answer answer = {
        .entries = copied.entries, .bytes = copied.bytes, .skipped = copied.skipped};
    api_describe_file(call, target.to, &copied.info, &answer.file);
    int result = api_answer(call, 200, copy_fields, &answer);
    file_info_clear(&copied.info);
    return result;
}

// ---- GET and PUT /files/archive ----

static const char *const format_words[] = {"tar", "tar.gz", "tar.zst", "zip", NULL};
static const struct {
    enum archive_format format;
    const char *type, *disposition;
} formats[] = {
    {ARCHIVE_TAR, "application/x-tar", "attachment; filename=\"files.tar\""},
    {ARCHIVE_TAR_GZIP, "application/gzip", "attachment; filename=\"files.tar.gz\""},
    {ARCHIVE_ZSTD, "application/zstd", "attachment; filename=\"files.tar.zst\""},
    {ARCHIVE_ZIP, "application/zip", "attachment; filename=\"files.zip\""},
};

/* Its row, or -1: none was named. */
static int format_of(const struct call *call)
{
    const char *word = query_text(call->query, "format");

    for (int i = 0; word && format_words[i]; i++) {
        if (strcmp(word, format_words[i]) == 0)
            return i;
    }
    return -1;
}

static int pack_files(struct call *call, struct error *err)
{
    struct file_place place;
    struct temporary *archive = NULL;
    int row = format_of(call);

    if (row < 0)
        row = 1;
    if (api_file_place(call, ".", &place, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_pack_as(call->core->sandboxes, &call->actor, &place, formats[row].format, &archive,
                     err) < 0)
        return api_file_failed(err);
    const struct http_header headers[] = {{"Content-Type", formats[row].type},
                                          {"Content-Disposition", formats[row].disposition},
                                          {"Cache-Control", "no-store"},
                                          {0}};
    return client_watch_send_file(call, 200, headers, archive);
}

/* An archive on its way from the client. */
struct unpacking {
    struct waiting_call waiting;
    struct file_place place; // its strings are ours
    enum archive_format format;
};

static void unpacking_free(struct unpacking *unpacking)
{
    if (!unpacking)
        return;
    waiting_call_clear(&unpacking->waiting);
    free((void *)(uintptr_t)unpacking->place.sandbox_id);
    free((void *)(uintptr_t)unpacking->place.user);
    free((void *)(uintptr_t)unpacking->place.path);
    free(unpacking);
}
DEFINE_AUTOPTR(unpacking)

static void on_archive(void *data, struct collected *body, const struct error *failure)
{
    autoptr(unpacking) unpacking = data;
    struct waiting_call *waiting = &unpacking->waiting;
    struct error err = {0};

    if (!failure && file_unpack_as(waiting->core->sandboxes, &waiting->actor, &unpacking->place,
                                   unpacking->format, body->fd, &err) < 0) {
        (void)api_file_failed(&err);
        failure = &err;
    }
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    (void)api_answer_empty(&call);
}

static int unpack_files(struct call *call, struct error *err)
{
    struct file_place place;
    struct sandbox_status status;
    int row = format_of(call);

    if (api_file_place(call, ".", &place, err) < 0 ||
        sandbox_status(call->core->sandboxes, &call->actor, place.sandbox_id, &status, err) < 0)
        return -1; // before the archive is taken
    struct unpacking *unpacking = xnew(struct unpacking);
    client_watch_start(call);
    waiting_call_init(&unpacking->waiting, call);
    unpacking->place = (struct file_place){
        xstrdup(place.sandbox_id), place.user ? xstrdup(place.user) : NULL, xstrdup(place.path)};
    unpacking->format = row < 0 ? ARCHIVE_ANY : formats[row].format;
    collect_start(&unpacking->waiting, (uint64_t)call->core->settings.file_limit_bytes, on_archive,
                  unpacking);
    return 0;
}

// ---- the table ----

#define FIND_PARAMETERS                                                                            \
    API_FILE_PARAMETERS,                                                                           \
        {"kind", PARAMETER_TEXT,                                                                   \
         .help = "of these alone: file, directory, link, other; several with "                     \
                 "commas between"},                                                                \
        {"limit", PARAMETER_INTEGER, .help = "at most so many; 50 when not given", .minimum = 1,   \
         .maximum = FILE_FIND_MAX},                                                                \
    {                                                                                              \
        "cursor", PARAMETER_TEXT, .help = "nextCursor of the page before"                          \
    }
static const struct parameter list_query[] = {
    FIND_PARAMETERS,
    {"recursive", PARAMETER_BOOL, .help = "also what is in directories below"},
    {"depth", PARAMETER_INTEGER, .help = "so many levels of directories, instead of recursive",
     .minimum = 1, .maximum = 10000},
    {0},
};
static const struct parameter glob_query[] = {
    FIND_PARAMETERS,
    {"pattern", PARAMETER_TEXT,
     .help = "for paths below path: *, ?, [a-z], {a,b}, and ** for any number of directories"},
    {0},
};
static const struct parameter grep_query[] = {
    API_FILE_PARAMETERS,
    {"pattern", PARAMETER_TEXT, .help = "an extended regular expression, for a line"},
    {"fixed", PARAMETER_BOOL, .help = "the pattern is a text and no expression"},
    {"ignoreCase", PARAMETER_BOOL, .help = "of letters of ASCII"},
    {"include", PARAMETER_TEXT, .help = "a glob for paths below path, as of /files/glob"},
    {"depth", PARAMETER_INTEGER, .help = "so many levels of directories; all when not given",
     .minimum = 1, .maximum = 10000},
    {"limit", PARAMETER_INTEGER, .help = "at most so many matches; 100 when not given",
     .minimum = 1, .maximum = GREP_MATCHES_MAX},
    {"maxLineBytes", PARAMETER_AMOUNT, .help = "of a line that are told; 500 when not given",
     .minimum = 1, .maximum = GREP_LINE_BYTES_MAX},
    {"maxFileBytes", PARAMETER_AMOUNT, .help = "larger files are passed over; 16Mi when not given",
     .minimum = 1, .maximum = GREP_FILE_BYTES_MAX},
    {0},
};
static const struct parameter archive_query[] = {
    API_FILE_PARAMETERS,
    {"format", PARAMETER_WORD, format_words,
     "tar.gz when not given; of one that is sent, by its first bytes"},
    {0},
};

static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer grep_answers[] = {{200, grep_fields}, {0}};
static const struct route_answer file_answers[] = {{200, api_file_fields}, {0}};
static const struct route_answer copy_answers[] = {{200, copy_fields}, {0}};
static const struct route_answer bytes_answers[] = {{200, .content = "application/octet-stream"},
                                                    {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

const struct route api_tree_routes[] = {
    {"GET", API_FILES "/list", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_files,
     .summary = "what is in a directory, by path", .query = list_query, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", API_FILES "/glob", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, glob_files,
     .summary = "files by their names", .query = glob_query, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", API_FILES "/grep", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, grep_files,
     .summary = "lines of files by their text", .query = grep_query, .answers = grep_answers,
     .needs = SCOPE_READ},
    {"POST", API_FILES "/mkdir", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, make_directory,
     .summary = "makes a directory; with createParents, one that is there is fine",
     .fields = directory_fields, .answers = file_answers, .needs = SCOPE_RUN},
    {"POST", API_FILES "/move", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, move_file,
     .summary = "moves or renames a file or a directory", .fields = target_fields,
     .answers = file_answers, .needs = SCOPE_RUN},
    {"POST", API_FILES "/copy", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, copy_file,
     .summary = "copies a file, or a directory with all that is in it; all or nothing",
     .fields = target_fields, .answers = copy_answers, .needs = SCOPE_RUN},
    {"GET", API_FILES "/archive", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, pack_files,
     .summary = "a directory as an archive", .query = archive_query, .answers = bytes_answers,
     .needs = SCOPE_READ},
    {"PUT", API_FILES "/archive", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, unpack_files,
     .summary = "unpacks an archive below a directory, which is made", .query = archive_query,
     .answers = empty_answers, .needs = SCOPE_RUN},
    {0},
};
