/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that run a command; see command_body.h. */
#include "front/api/command_body.h"

#include "front/api/api_body.h"

#include <stdlib.h>
#include <string.h>

#define MODE_MAX 07777

static const char *check_mode(const char *text)
{
    bool is_octal = *text && !text[strspn(text, "01234567")] && strlen(text) <= 5 &&
                    strtoul(text, NULL, 8) <= MODE_MAX;

    return is_octal ? NULL : "must be permissions as octal digits: '0644', '755'";
}

const struct field command_file_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct command_file, path), .is_needed = true, .minimum = 1,
     .maximum = 4096, .help = "absolute, or relative to the working directory"},
    {"content", FIELD_TEXT, offsetof(struct command_file, content), .maximum = (int64_t)64 << 20,
     .help = "text; this or 'contentBase64'"},
    {"contentBase64", FIELD_BYTES, offsetof(struct command_file, bytes)},
    {"mode", FIELD_TEXT, offsetof(struct command_file, mode), .check = check_mode,
     .help = "permissions, octal; default '0644'"},
    {0},
};

static int fault(struct error *err, const char *field, const char *text)
{
    error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

static int fill_argv(struct call *call, const struct command_body *body,
                     struct execution_request *out, struct error *err)
{
    if (body->command && body->script)
        return fault(err, "script", "cannot be given together with 'command'");
    if (!body->command && !body->script)
        return fault(err, "command", "is needed, or 'script'");
    if (body->script) {
        const char **argv = call_alloc(call, 4 * sizeof *argv);
        argv[0] = "sh";
        argv[1] = "-c";
        argv[2] = body->script;
        out->command.argv = argv;
        return 0;
    }
    out->command.argv = (const char *const *)body->command;
    return *body->command[0] ? 0 : fault(err, "command", "must name a program");
}

static int fill_file(const struct command_file *from, struct sandbox_file *to, struct error *err)
{
    if (!from->content == !from->bytes.data)
        return fault(err, "files", "each has either 'content', which is text, or 'contentBase64'");
    *to = (struct sandbox_file){
        .path = from->path,
        .data = from->content ? from->content : from->bytes.data,
        .length = from->content ? strlen(from->content) : from->bytes.length,
        .mode = from->mode ? (uint32_t)strtoul(from->mode, NULL, 8) : 0,
    };
    return 0;
}

int command_body_files(struct call *call, const struct field_list *list,
                       const struct sandbox_file **out, size_t *count, struct error *err)
{
    const struct command_file *from = list->items;

    if (list->count == 0)
        return 0;
    struct sandbox_file *files = call_alloc(call, list->count * sizeof *files);
    for (size_t i = 0; i < list->count; i++) {
        if (fill_file(&from[i], &files[i], err) < 0)
            return -1;
    }
    *out = files;
    *count = list->count;
    return 0;
}

static int fill_input(const struct command_body *body, struct execution_request *out,
                      struct error *err)
{
    if (body->input && body->input_bytes.data)
        return fault(err, "stdinBase64", "cannot be given together with 'stdin'");
    out->input = body->input ? body->input : body->input_bytes.data;
    out->input_length = body->input ? strlen(body->input) : body->input_bytes.length;
    return 0;
}

int command_body_fill(struct call *call, const struct command_body *body,
                      struct execution_request *out, struct error *err)
{
    out->command.directory = body->directory;
    out->command.user = body->user;
    out->command.timeout_ms = body->has_timeout ? body->timeout_ms : EXECUTION_DEFAULT;
    if (body->directory && *body->directory != '/')
        return fault(err, "directory", "must be an absolute path");
    if (fill_argv(call, body, out, err) < 0 ||
        api_env(call, "env", &body->env, &out->command.env, err) < 0 ||
        fill_input(body, out, err) < 0)
        return -1;
    return command_body_files(call, &body->files, &out->files, &out->n_files, err);
}
