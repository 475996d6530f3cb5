/* SPDX-License-Identifier: Apache-2.0 */
/* Which file is meant, and how files are told; see api_file.h. */
#include "front/api/api_file.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>
#include <sys/stat.h>

// ---- which file ----

static char *encode(struct call *call, const char *bytes, size_t length)
{
    char *text = call_alloc(call, base64_length(length) + 1);

    base64_encode(bytes, length, text);
    return text;
}

const char *api_odd_bytes(struct call *call, const char *bytes, size_t length)
{
    return utf8_is_valid(bytes, length) ? NULL : encode(call, bytes, length);
}

static void swap(char *text, const char *from, const char *to)
{
    for (; *text; text++) {
        if (*text == from[0])
            *text = to[0];
        else if (*text == from[1])
            *text = to[1];
    }
}

const char *api_base64_word(struct call *call, const char *text)
{
    char *word = encode(call, text, strlen(text));

    word[strcspn(word, "=")] = '\0';
    swap(word, "+/", "-_");
    return word;
}

int api_read_base64(struct call *call, const char *text, const char *name, const char **out,
                    struct error *err)
{
    size_t length = strlen(text), bad;
    char *bytes = call_alloc(call, length + 4);

    memcpy(bytes, text, length);
    swap(bytes, "-_", "+/");
    while (length % 4)
        bytes[length++] = '=';
    ssize_t got = base64_decode(bytes, length, bytes, &bad);

    if (got > 0 && !memchr(bytes, '\0', (size_t)got)) {
        bytes[got] = '\0';
        *out = bytes;
        return 0;
    }
    (void)error_set(err, ERROR_INVALID, "%s: must be a path in base64", name);
    return error_field(err, name);
}

int api_file_place(struct call *call, const char *absent, struct file_place *out, struct error *err)
{
    const char *path = query_text(call->query, "path");
    const char *base64 = query_text(call->query, "pathBase64");

    *out = (struct file_place){.user = query_text(call->query, "user")};
    if (api_sandbox(call, 0, &out->sandbox_id, err) < 0 ||
        (!path && base64 && api_read_base64(call, base64, "pathBase64", &path, err) < 0))
        return -1;
    out->path = path ? path : absent;
    if (out->path)
        return 0;
    (void)error_set(err, ERROR_INVALID, "path: is needed");
    return error_field(err, "path");
}

/* The box says in a sentence that it has no such user. */
static bool is_about_user(const struct error *err)
{
    static const char *const beginnings[] = {"no user '", "no group '", "user '", "group '"};

    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        if (strncmp(err->text, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return false;
}

int api_file_failed(struct error *err)
{
    if (error_is_about(err, "file") && !err->field[0])
        (void)error_field(err, is_about_user(err) ? "user" : "path");
    return -1;
}

// ---- how it is told ----

static const char *const kind_words[] = {"file", "directory", "link", "other"};

#define AT(member) offsetof(struct file_answer, member)
const struct answer_field api_file_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true,
     .help = "as it was asked for; in a list, below the directory that is listed"},
    {"pathBase64", ANSWER_TEXT, AT(path_base64),
     .help = "the exact bytes of a path that is not UTF-8; path has U+FFFD for the others"},
    {"kind", ANSWER_TEXT, AT(kind), .is_needed = true, .words = kind_words,
     .n_words = ARRAY_SIZE(kind_words)},
    {"sizeBytes", ANSWER_NATURAL, AT(size_bytes)},
    {"diskBytes", ANSWER_NATURAL, AT(disk_bytes), .help = "that it takes; less where it has holes"},
    {"mode", ANSWER_TEXT, AT(mode_text), .is_needed = true, .help = "\"0644\""},
    {"uid", ANSWER_UNSIGNED, AT(uid)},
    {"gid", ANSWER_UNSIGNED, AT(gid)},
    {"links", ANSWER_UNSIGNED, AT(links), .help = "names it has"},
    {"modifiedAt", ANSWER_TIME, AT(modified_at), .help = "its content"},
    {"changedAt", ANSWER_TIME, AT(changed_at), .help = "its content, mode, owner or names"},
    {"accessedAt", ANSWER_TIME, AT(accessed_at)},
    {"target", ANSWER_TEXT, AT(target), .help = "where a link leads"},
    {"targetBase64", ANSWER_TEXT, AT(target_base64), .help = "as pathBase64"},
    {"etag", ANSWER_TEXT, AT(etag_text),
     .help = "for If-Match and If-None-Match; not there for a file that changed meanwhile"},
    {0},
};
#undef AT

static const char *kind_of(uint32_t mode)
{
    return kind_words[S_ISREG(mode) ? 0 : S_ISDIR(mode) ? 1 : S_ISLNK(mode) ? 2 : 3];
}

/* A guest may set any time; what JSON cannot say is left out. */
static int64_t ms_of(int64_t ns)
{
    return ns > 0 ? ns / 1000000 : 0;
}

void api_describe_file(struct call *call, const char *path, const struct file_info *info,
                       struct file_answer *out)
{
    *out = (struct file_answer){
        .path = path,
        .path_base64 = path ? api_odd_bytes(call, path, strlen(path)) : NULL,
        .kind = kind_of(info->mode),
        .target = info->target,
        .target_base64 =
            info->target ? api_odd_bytes(call, info->target, strlen(info->target)) : NULL,
        .size_bytes = info->size_bytes,
        .disk_bytes = info->disk_bytes,
        .uid = info->uid,
        .gid = info->gid,
        .links = info->links,
        .modified_at = ms_of(info->modified_ns),
        .changed_at = ms_of(info->changed_ns),
        .accessed_at = ms_of(info->accessed_ns),
    };
    (void)snprintf(out->mode, sizeof out->mode, "%04o", info->mode & 07777);
    (void)snprintf(out->etag, sizeof out->etag, "\"%s\"", info->etag);
    out->mode_text = out->mode;
    out->etag_text = info->etag[0] ? out->etag : NULL;
}

int api_answer_file(struct call *call, int status, const char *path, const struct file_info *info)
{
    struct file_answer answer;
    autoreply reply = {0};
    struct error ignored;

    api_describe_file(call, path, info, &answer);
    const struct http_header headers[] = {
        {"Content-Type", "application/json"},
        {"Cache-Control", "no-cache"},
        {answer.etag_text ? "ETag" : NULL, answer.etag},
        {0},
    };
    reply_init(&reply);
    answer_write(&reply.json, api_file_fields, &answer);
    if (json_writer_finish(&reply.json, &ignored) == 0)
        (void)response_send(call->response, status, headers, reply.text.data, reply.text.length);
    return 0;
}

// ---- conditions ----

/* The next ETag of a list, without its quotes; NULL at the end. *is_bad: it is none. */
static const char *next_etag(const char **at, size_t *length, bool *is_weak, bool *is_bad)
{
    *at += strspn(*at, ", \t");
    if (!**at)
        return NULL;
    *is_weak = strncmp(*at, "W/", 2) == 0;
    const char *start = *at + (*is_weak ? 2 : 0);
    const char *end = *start == '"' ? strchr(start + 1, '"') : NULL;
    *is_bad = !end;
    if (!end)
        return NULL;
    *at = end + 1;
    *length = (size_t)(end - start) - 1;
    return start + 1;
}

static bool is_any(const char *header)
{
    header += strspn(header, " \t");
    return *header == '*' && !header[1 + strspn(header + 1, " \t")];
}

bool api_etag_is_among(const char *header, const char *etag, bool is_strong)
{
    size_t length = 0;
    bool is_weak = false, is_bad = false;

    if (!header || !etag[0])
        return false;
    if (is_any(header))
        return true;
    for (const char *next; (next = next_etag(&header, &length, &is_weak, &is_bad));) {
        if (strlen(etag) == length && memcmp(next, etag, length) == 0 && !(is_strong && is_weak))
            return true;
    }
    return false;
}

/* Our etags are of few letters: others match nothing, and do not reach the box. */
static bool is_ours(const char *etag, size_t length)
{
    return length > 0 && length < FILE_ETAG && strspn(etag, "0123456789abcdef-") >= length;
}

static int join_etags(struct call *call, const char *name, const char *header, const char **out,
                      struct error *err)
{
    size_t used = 0, length = 0;
    bool is_weak = false, is_bad = false;
    char *joined = call_alloc(call, strlen(header) + 2);

    if (is_any(header)) {
        *out = "*";
        return 0;
    }
    for (const char *etag; (etag = next_etag(&header, &length, &is_weak, &is_bad));) {
        if (is_weak || !is_ours(etag, length))
            continue;
        if (used)
            joined[used++] = ',';
        memcpy(joined + used, etag, length);
        used += length;
    }
    if (is_bad)
        return error_set(err, ERROR_INVALID, "%s: must be ETags in quotes, or *", name);
    *out = used ? joined : "-"; // which no file has
    return strlen(*out) < API_PATH_MAX
               ? 0
               : error_set(err, ERROR_INVALID, "%s: these are too many ETags", name);
}

int api_read_condition(struct call *call, struct api_condition *out, struct error *err)
{
    const char *match = call_header(call, "If-Match"), *none = call_header(call, "If-None-Match");

    *out = (struct api_condition){0};
    if (match && none)
        return error_set(err, ERROR_INVALID, "If-Match and If-None-Match: one of them, not both");
    if (!match && !none)
        return 0;
    out->is_unless = none;
    return join_etags(call, none ? "If-None-Match" : "If-Match", none ? none : match, &out->etags,
                      err);
}

int api_read_mode(const char *text, uint32_t absent, uint32_t *out, struct error *err)
{
    uint32_t mode = 0;
    size_t length = text ? strlen(text) : 0;

    *out = absent;
    if (!text)
        return 0;
    for (size_t i = 0; i < length; i++)
        mode = mode * 8 + (uint32_t)(text[i] - '0');
    if (length == 0 || length > 5 || strspn(text, "01234567") != length || mode > 07777) {
        (void)error_set(err, ERROR_INVALID, "mode: must be like '0644', not '%.40s'", text);
        return error_field(err, "mode");
    }
    *out = mode;
    return 0;
}
