/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bodies that run a command have in common.
 * Threads: plain values.
 */
#pragma once
#include "core/execution/execution.h"
#include "web/call.h"
#include "web/fields.h"

struct command_body {
    const char **command;
    const char *script;
    struct field_list env, files;
    const char *directory, *user;
    const char *input;
    struct bytes_field input_bytes;
    int64_t timeout_ms;
    bool has_timeout;
};

extern const struct field command_file_fields[];
#define COMMAND_FILES_MAX 1000
#define COMMAND_INPUT_MAX ((int64_t)64 << 20)
#define COMMAND_SCRIPT_MAX ((int64_t)100 << 10) // one argument of a program is at most 128 KiB

/* Rows of a table whose struct has a struct command_body as `member`. */
#define COMMAND_FIELDS(type, member)                                                               \
    {"command", FIELD_TEXTS, offsetof(type, member.command), .minimum = 1,                         \
     .help = "program and arguments; no shell. This or 'script'"},                                 \
        {"script", FIELD_TEXT, offsetof(type, member.script), .maximum = COMMAND_SCRIPT_MAX,       \
         .help = "text that 'sh -c' runs"},                                                        \
        {"env", FIELD_TEXT_MAP, offsetof(type, member.env),                                        \
         .help = "variables, beside those of the sandbox and over them"},                          \
        {"directory", FIELD_TEXT, offsetof(type, member.directory), .maximum = 4096,               \
         .help = "where it runs, absolute; made where it is missing. Default: the sandbox's"},     \
        {"user", FIELD_TEXT, offsetof(type, member.user), .maximum = 256,                          \
         .help = "name or number, in the sandbox. Default: the sandbox's, which is root"},         \
        {"stdin", FIELD_TEXT, offsetof(type, member.input), .maximum = COMMAND_INPUT_MAX,          \
         .help = "all of its standard input, as text; this or 'stdinBase64'. Default: none"},      \
        {"stdinBase64", FIELD_BYTES, offsetof(type, member.input_bytes),                           \
         .maximum = COMMAND_INPUT_MAX},                                                            \
        {"timeoutMs", FIELD_MS, offsetof(type, member.timeout_ms),                                 \
         .has_offset = offsetof(type, member.has_timeout),                                         \
         .help = "after which it is killed; 0: never. Default: the sandbox's"},                    \
    {                                                                                              \
        "files", FIELD_LIST, offsetof(type, member.files),                                         \
            .fields = command_file_fields, .item_size = sizeof(struct command_file),               \
            .maximum = COMMAND_FILES_MAX, .help = "written before it starts"                       \
    }

struct command_file {
    const char *path, *content, *mode;
    struct bytes_field bytes;
};

/* Fills in argv, env, directory, user, timeout, input and files. ERROR_INVALID. */
int command_body_fill(struct call *call, const struct command_body *body,
                      struct execution_request *out, struct error *err);

/* A list of files, by command_file_fields. */
int command_body_files(struct call *call, const struct field_list *list,
                       const struct sandbox_file **out, size_t *count, struct error *err);
