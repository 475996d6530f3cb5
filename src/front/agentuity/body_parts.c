/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of bodies; see body_parts.h. */
#include "front/agentuity/body_parts.h"
#include "front/agentuity/agentuity_impl.h"

#include <string.h>

const struct field body_file_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct file_body, path), .is_needed = true, .maximum = 4096,
     .help = "absolute, or relative to the working directory"},
    {"content", FIELD_BYTES, offsetof(struct file_body, content), .is_needed = true,
     .help = "base64"},
    {0},
};

#define STREAM_HELP "a stream's id, or 'ignore'"

const struct field body_stream_fields[] = {
    {"stdout", FIELD_TEXT, offsetof(struct stream_body, output), .help = STREAM_HELP},
    {"stderr", FIELD_TEXT, offsetof(struct stream_body, error), .help = STREAM_HELP},
    {"stdin", FIELD_TEXT, offsetof(struct stream_body, input), .help = STREAM_HELP},
    {"timestamps", FIELD_BOOL, offsetof(struct stream_body, has_timestamps),
     .help = "a time before every line"},
    {0},
};

const struct field body_job_stream_fields[] = {
    {"stdout", FIELD_TEXT, offsetof(struct stream_body, output), .help = STREAM_HELP},
    {"stderr", FIELD_TEXT, offsetof(struct stream_body, error), .help = STREAM_HELP},
    {0},
};

static void add_files(const struct field_list *list, struct sandbox_file *to)
{
    const struct file_body *from = list->items;

    for (size_t i = 0; i < list->count; i++) {
        to[i] = (struct sandbox_file){
            .path = from[i].path, .data = from[i].content.data, .length = from[i].content.length};
    }
}

void body_files(struct call *call, const struct field_list *first, const struct field_list *second,
                const struct sandbox_file **out, size_t *count)
{
    size_t total = first->count + (second ? second->count : 0);
    struct sandbox_file *files = total ? call_alloc(call, total * sizeof *files) : NULL;

    *out = files;
    *count = total;
    if (!files)
        return;
    add_files(first, files);
    if (second)
        add_files(second, files + first->count);
}

/* "stream_abc" → "abc"; NULL: it is none. */
static const char *stream_id_of(const char *text)
{
    const size_t length = strlen(STREAM_PREFIX);

    return strncmp(text, STREAM_PREFIX, length) == 0 && text[length] ? text + length : NULL;
}

static int read_stream(const char *text, const char *path, const char *name, const char **id,
                       struct error *err)
{
    const char *found = stream_id_of(text);

    if (!found)
        return error_refuse(err, ERROR_INVALID, "stream",
                            "%s.%s: must be 'ignore' or the id of a stream, not '%.64s'", path,
                            name, text);
    *id = found;
    return 0;
}

static int read_output(const char *text, const char *path, const char *name,
                       struct output_request *out, struct error *err)
{
    if (!text)
        return 0;
    out->target = strcmp(text, "ignore") == 0 ? OUTPUT_TO_NONE : OUTPUT_TO_STREAM;
    return out->target == OUTPUT_TO_NONE ? 0 : read_stream(text, path, name, &out->stream_id, err);
}

int body_streams(const struct stream_body *body, const char *path, struct execution_request *out,
                 struct error *err)
{
    out->has_timestamps = body->has_timestamps;
    if (body->input && strcmp(body->input, "ignore") != 0 &&
        read_stream(body->input, path, "stdin", &out->stdin_stream, err) < 0)
        return -1;
    if (read_output(body->output, path, "stdout", &out->standard_output, err) < 0)
        return -1;
    return read_output(body->error, path, "stderr", &out->standard_error, err);
}

int body_check_command(const char *const *argv, const char *path, struct error *err)
{
    if (!argv || !argv[0] || !argv[0][0])
        return error_set(err, ERROR_INVALID, "%s: must name a program", path);
    return 0;
}

int body_check_variable(const char *name, struct error *err)
{
    if (!*name || strchr(name, '='))
        return error_set(err, ERROR_INVALID,
                         "env: a name must not be empty or contain '=': '%.64s'", name);
    return 0;
}

int body_env(struct call *call, const struct field_list *pairs, const char *const **out,
             struct error *err)
{
    const struct text_pair *pair = pairs->items;

    if (pairs->count == 0)
        return 0;
    const char **list = call_alloc(call, (pairs->count + 1) * sizeof *list);
    for (size_t i = 0; i < pairs->count; i++) {
        if (body_check_variable(pair[i].name, err) < 0)
            return -1;
        list[i] = call_print(call, "%s=%s", pair[i].name, pair[i].value);
    }
    *out = list;
    return 0;
}
