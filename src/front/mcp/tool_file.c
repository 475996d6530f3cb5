/* SPDX-License-Identifier: Apache-2.0 */
/* Tools for files: write several, read a part, replace a text in one. */
#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "front/mcp/mcp_tool_call.h"
#include "web/percent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILES_MOST 100
#define CONTENT_MOST ((int64_t)12 << 20)
#define READ_BYTES 32768
#define READ_MOST 262144
#define EDIT_MOST ((int64_t)4 << 20) // of a file that is edited
#define PATH_MOST 4095

#define SANDBOX_FIELD(type)                                                                        \
    {                                                                                              \
        "sandbox", FIELD_TEXT, offsetof(type, sandbox), .is_needed = true, .minimum = 1,           \
                                                        .maximum = 256,                            \
                                                        .help = "the sandbox's id, or its name"    \
    }
#define PATH_FIELD(type)                                                                           \
    {                                                                                              \
        "path", FIELD_TEXT, offsetof(type, path), .is_needed = true, .minimum = 1,                 \
                                                  .maximum = PATH_MOST,                            \
                                                  .help = "absolute, or from /workspace on"        \
    }

static int add_files(struct buffer *target, const char *sandbox, const char *path,
                     struct error *err)
{
    if (buffer_add_text(target, "/api/v1/sandboxes/", err) < 0 ||
        percent_encode(sandbox, target, err) < 0 || buffer_add_text(target, "/files", err) < 0)
        return -1;
    tool_add_query(target, "path", path);
    return 0;
}

static const char *etag_of(struct tool_call *call, const struct inner_answer *answer)
{
    char text[128];

    return inner_answer_header(answer, "ETag", text, sizeof text) ? tool_print(call, "%s", text)
                                                                  : NULL;
}

// ---- sandbox_write_files ----

struct file_body {
    const char *path, *content, *mode;
    struct bytes_field bytes;
};
static const struct field file_fields[] = {
    PATH_FIELD(struct file_body),
    {"content", FIELD_TEXT, offsetof(struct file_body, content), .maximum = CONTENT_MOST,
     .help = "text; this or 'contentBase64'"},
    {"contentBase64", FIELD_BYTES, offsetof(struct file_body, bytes)},
    {"mode", FIELD_TEXT, offsetof(struct file_body, mode), .maximum = 8,
     .help = "permissions, octal; default '0644', or as they are"},
    {0},
};

struct written {
    const char *path, *etag;
    int64_t size;
};
struct write_state {
    const char *sandbox;
    struct field_list files;
    struct answer_list list;
    struct written *written;
    size_t at;
};
const struct field tool_write_fields[] = {
    SANDBOX_FIELD(struct write_state),
    {"files", FIELD_LIST, offsetof(struct write_state, files), .is_needed = true, .minimum = 1,
     .maximum = FILES_MOST, .fields = file_fields, .item_size = sizeof(struct file_body)},
    {0},
};
#define AT(member) offsetof(struct written, member)
static const struct answer_field written_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true},
    {"sizeBytes", ANSWER_INTEGER, AT(size)},
    {0},
};
#undef AT
const struct answer_field tool_write_answer[] = {
    {"written", ANSWER_LIST, offsetof(struct write_state, list), .is_needed = true,
     .fields = written_fields, .item_size = sizeof(struct written)},
    {0},
};

static int ask_write(struct tool_call *call, struct ask *next, struct error *err)
{
    const struct write_state *state = call->state;
    const struct file_body *file = (const struct file_body *)state->files.items + state->at;

    next->method = "PUT";
    next->is_stream = true;
    if (add_files(&next->target, state->sandbox, file->path, err) < 0)
        return -1;
    tool_add_query(&next->target, "createParents", "true");
    if (file->mode)
        tool_add_query(&next->target, "mode", file->mode);
    const void *data = file->content ? file->content : file->bytes.data;
    size_t length = file->content ? strlen(file->content) : file->bytes.length;
    return buffer_add(&next->body, data ? data : "", length, err) < 0 ? -1 : TOOL_ASKS;
}

int tool_write_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct write_state *state = tool_alloc(call, sizeof *state);

    call->state = state;
    if (tool_read(call, state, err) < 0)
        return -1;
    const struct file_body *file = state->files.items;
    for (size_t i = 0; i < state->files.count; i++) {
        if (!file[i].content == !file[i].bytes.data)
            return error_set(err, ERROR_INVALID,
                             "files[%zu]: has either 'content', which is text, or 'contentBase64'",
                             i);
    }
    state->written = tool_alloc(call, state->files.count * sizeof *state->written);
    return ask_write(call, next, err);
}

int tool_write_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                    struct error *err)
{
    struct write_state *state = call->state;
    const struct file_body *file = (const struct file_body *)state->files.items + state->at;
    autoptr(data_document) document = NULL;

    if (tool_answer(call, answer, &document, err) < 0)
        return error_wrap(err, "files[%zu] of %zu (those before it are written)", state->at,
                          state->files.count);
    state->written[state->at++] =
        (struct written){.path = file->path, .size = tool_integer(document->root, "sizeBytes", 0)};
    if (state->at < state->files.count)
        return ask_write(call, next, err);
    state->list = (struct answer_list){state->written, state->files.count};
    return tool_result(call, tool_write_answer, state, err);
}

// ---- sandbox_read_file ----

struct read_state {
    const char *sandbox, *path, *etag;
    int64_t offset, most, next_offset, size;
    bool has_more;
    struct answer_bytes text, base64;
    struct buffer content;
};
#define AT(member) offsetof(struct read_state, member)
const struct field tool_read_fields[] = {
    SANDBOX_FIELD(struct read_state),
    PATH_FIELD(struct read_state),
    {"offset", FIELD_INTEGER, AT(offset), .minimum = 0, .maximum = INT64_MAX,
     .help = "of the first byte; default 0"},
    {"maxBytes", FIELD_AMOUNT, AT(most), .minimum = 1, .maximum = READ_MOST,
     .help = "default 32Ki"},
    {0},
};
const struct answer_field tool_read_answer[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true},
    {"text", ANSWER_BYTES, AT(text), .help = "where it is UTF-8"},
    {"base64", ANSWER_BASE64, AT(base64), .help = "instead of text, where it is not"},
    {"offset", ANSWER_INTEGER, AT(offset)},
    {"nextOffset", ANSWER_INTEGER, AT(next_offset), .has_offset = AT(has_more),
     .help = "where to go on; not there at the end of the file"},
    {"sizeBytes", ANSWER_INTEGER, AT(size), .help = "of the whole file"},
    {"etag", ANSWER_TEXT, AT(etag), .help = "changes with the file"},
    {0},
};
#undef AT

static void read_clear(void *state)
{
    buffer_clear(&((struct read_state *)state)->content);
}

int tool_read_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct read_state *state = tool_alloc(call, sizeof *state);

    call->state = state;
    call->clear = read_clear;
    state->most = READ_BYTES;
    if (tool_read(call, state, err) < 0)
        return -1;
    int64_t last =
        state->offset > INT64_MAX - state->most ? INT64_MAX : state->offset + state->most - 1;
    next->method = "GET";
    next->range = tool_print(call, "bytes=%" PRId64 "-%" PRId64, state->offset, last);
    return add_files(&next->target, state->sandbox, state->path, err) < 0 ? -1 : TOOL_ASKS;
}

/* Whether what there is of it is text, its last character perhaps cut: how much of it then; else SIZE_MAX. */
static size_t text_length(const struct read_state *state)
{
    const char *data = state->content.data;
    size_t length = state->content.length;

    for (size_t cut = 0; cut < UTF8_MAX && cut <= length; cut++) {
        if (cut && (!state->has_more || !utf8_is_partial(data + length - cut, cut)))
            continue;
        if (utf8_is_valid(data, length - cut) && !memchr(data, 0, length - cut) && length > cut)
            return length - cut;
    }
    return SIZE_MAX;
}

static void say_part(struct tool_call *call, const struct read_state *state)
{
    struct error ignored;

    if (!state->text.data)
        return; // its JSON says it all
    (void)buffer_add(&call->text, state->text.data, state->text.length, &ignored);
    if (state->has_more)
        (void)buffer_addf(&call->text, &ignored,
                          "\n[bytes %" PRId64 "–%" PRId64 " of %" PRId64
                          ": call again with offset %" PRId64 "]",
                          state->offset, state->next_offset, state->size, state->next_offset);
    if (call->text.length == 0)
        (void)buffer_add_text(&call->text, "[empty]", &ignored);
}

int tool_read_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err)
{
    struct read_state *state = call->state;
    int64_t size = tool_whole_size(answer);

    (void)next;
    bool is_empty = answer->status == 416 && size == 0 && state->offset == 0;
    if (!is_empty && tool_check(call, answer, err) < 0)
        return -1;
    if (!is_empty && buffer_add(&state->content, answer->body, answer->length, err) < 0)
        return -1;
    state->etag = etag_of(call, answer);
    state->size = size >= 0 ? size : state->offset + (int64_t)state->content.length;
    state->has_more = state->offset + (int64_t)state->content.length < state->size;
    size_t length = state->content.length ? text_length(state) : 0;
    if (length == SIZE_MAX) {
        length = state->content.length;
        state->base64 = (struct answer_bytes){state->content.data, length};
    } else {
        state->text = (struct answer_bytes){length ? state->content.data : "", length};
    }
    state->next_offset = state->offset + (int64_t)length;
    say_part(call, state);
    return tool_result(call, tool_read_answer, state, err);
}

// ---- sandbox_edit_file ----

struct edit_state {
    const char *sandbox, *path, *old, *new, *etag;
    bool is_all, is_written;
    int64_t replacements, size;
};
#define AT(member) offsetof(struct edit_state, member)
const struct field tool_edit_fields[] = {
    SANDBOX_FIELD(struct edit_state),
    PATH_FIELD(struct edit_state),
    {"old", FIELD_TEXT, AT(old), .is_needed = true, .minimum = 1,
     .help = "the text to replace, exactly as it stands in the file, with its line breaks"},
    {"new", FIELD_TEXT, AT(new), .is_needed = true, .help = "what to put there"},
    {"all", FIELD_BOOL, AT(is_all), .help = "replace it wherever it stands; default false"},
    {0},
};
const struct answer_field tool_edit_answer[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true},
    {"replacements", ANSWER_INTEGER, AT(replacements)},
    {"sizeBytes", ANSWER_INTEGER, AT(size), .help = "of the file as it is now"},
    {0},
};
#undef AT

int tool_edit_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct edit_state *state = tool_alloc(call, sizeof *state);

    call->state = state;
    if (tool_read(call, state, err) < 0)
        return -1;
    if (strcmp(state->old, state->new) == 0)
        return error_set(err, ERROR_INVALID, "new: is the same as 'old': nothing would change");
    next->method = "GET";
    next->range = tool_print(call, "bytes=0-%" PRId64, EDIT_MOST - 1);
    next->limit = (size_t)EDIT_MOST + 1;
    return add_files(&next->target, state->sandbox, state->path, err) < 0 ? -1 : TOOL_ASKS;
}

static int refuse_edit(const struct edit_state *state, int64_t found, struct error *err)
{
    if (found == 0)
        return error_set(err, ERROR_INVALID,
                         "old: this text is not in '%.200s'; nothing was changed. What to do: read "
                         "the file with sandbox_read_file and give the text exactly as it stands "
                         "there, with blanks and line breaks",
                         state->path);
    return error_set(err, ERROR_INVALID,
                     "old: this text is in '%.200s' %" PRId64
                     " times; nothing was changed. What to do: give more of the lines around it, "
                     "or all: true to replace every one",
                     state->path, found);
}

static int64_t count_found(const char *text, size_t length, const char *old)
{
    int64_t found = 0;
    const char *at = text, *end = text + length;

    while ((at = memmem(at, (size_t)(end - at), old, strlen(old)))) {
        at += strlen(old);
        found++;
    }
    return found;
}

static int replace(const struct edit_state *state, const char *text, size_t length,
                   struct buffer *out, struct error *err)
{
    const char *at = text, *end = text + length, *hit;

    while ((hit = memmem(at, (size_t)(end - at), state->old, strlen(state->old)))) {
        if (buffer_add(out, at, (size_t)(hit - at), err) < 0 ||
            buffer_add_text(out, state->new, err) < 0)
            return -1;
        at = hit + strlen(state->old);
    }
    return buffer_add(out, at, (size_t)(end - at), err);
}

/* The file as it was read, and no other, gets the new content. */
static int ask_save(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                    struct error *err)
{
    struct edit_state *state = call->state;
    bool is_empty = answer->status == 416;

    if (!is_empty && tool_check(call, answer, err) < 0)
        return -1;
    if (tool_whole_size(answer) > EDIT_MOST)
        return error_set(err, ERROR_TOO_LARGE,
                         "'%.200s' is larger than 4 MiB, which is not edited here. What to do: "
                         "change it with sandbox_exec, by sed or a script",
                         state->path);
    size_t length = is_empty ? 0 : answer->length;
    int64_t found = count_found(answer->body, length, state->old);
    if (found == 0 || (found > 1 && !state->is_all))
        return refuse_edit(state, found, err);
    state->replacements = found;
    state->etag = etag_of(call, answer);
    state->is_written = true;
    next->method = "PUT";
    next->is_stream = true;
    next->if_match = state->etag;
    next->body.maximum = (size_t)EDIT_MOST * 4;
    if (replace(state, answer->body, length, &next->body, err) < 0)
        return -1;
    return add_files(&next->target, state->sandbox, state->path, err) < 0 ? -1 : TOOL_ASKS;
}

int tool_edit_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err)
{
    struct edit_state *state = call->state;
    autoptr(data_document) document = NULL;

    if (!state->is_written)
        return ask_save(call, answer, next, err);
    if (tool_answer(call, answer, &document, err) < 0)
        return -1;
    state->size = tool_integer(document->root, "sizeBytes", 0);
    return tool_result(call, tool_edit_answer, state, err);
}

// ---- sandbox_list_files ----

struct listed {
    const char *path, *path_base64, *kind, *mode, *modified_at, *target;
    int64_t size;
};
struct list_state {
    struct answer_list items;
    const char *next_cursor;
};
#define AT(member) offsetof(struct listed, member)
static const struct answer_field listed_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true,
     .help = "below the directory that is listed"},
    {"pathBase64", ANSWER_TEXT, AT(path_base64), .help = "of a path that is not UTF-8"},
    {"kind", ANSWER_TEXT, AT(kind), .is_needed = true, .help = "file, directory, link or other"},
    {"sizeBytes", ANSWER_INTEGER, AT(size)},
    {"mode", ANSWER_TEXT, AT(mode), .help = "\"0644\""},
    {"modifiedAt", ANSWER_TEXT, AT(modified_at)},
    {"target", ANSWER_TEXT, AT(target), .help = "where a link leads"},
    {0},
};
#undef AT
const struct answer_field tool_list_answer[] = {
    {"items", ANSWER_LIST, offsetof(struct list_state, items), .is_needed = true,
     .fields = listed_fields, .item_size = sizeof(struct listed)},
    {"nextCursor", ANSWER_TEXT, offsetof(struct list_state, next_cursor),
     .help = "there is more: call again with this as 'cursor'"},
    {0},
};

/* Of each file what a model asks for: a page is read whole, and what nobody reads costs as much. */
int tool_list_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                   struct error *err)
{
    autoptr(data_document) document = NULL;
    struct list_state state = {0};
    size_t count = 0;

    (void)next;
    if (tool_answer(call, answer, &document, err) < 0)
        return -1;
    const struct data_value *items = value_get(document->root, "items");
    struct listed *listed = tool_alloc(call, ((items ? items->count : 0) + 1) * sizeof *listed);
    for (const struct data_value *v = items ? items->first : NULL; v; v = v->next) {
        listed[count++] = (struct listed){
            .path = mcp_text(v, "path"),
            .path_base64 = mcp_text(v, "pathBase64"),
            .kind = mcp_text(v, "kind"),
            .mode = mcp_text(v, "mode"),
            .modified_at = mcp_text(v, "modifiedAt"),
            .target = mcp_text(v, "target"),
            .size = tool_integer(v, "sizeBytes", 0),
        };
    }
    state.items = (struct answer_list){listed, count};
    state.next_cursor = mcp_text(document->root, "nextCursor");
    return tool_result(call, tool_list_answer, &state, err);
}
