/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that the bodies of several endpoints share: how they are read, and as the core wants them. Memory is the call's.
 * Threads: plain values.
 */
#pragma once
#include "core/execution/execution.h"
#include "web/call.h"

/* {"path":…,"content":…base64…}, for FIELD_LIST */
struct file_body {
    const char *path;
    struct bytes_field content;
};
extern const struct field body_file_fields[];
#define BODY_FILES_MAX 10000
/* Of up to two lists, the first one's first. *out is NULL when there is none. */
void body_files(struct call *call, const struct field_list *first, const struct field_list *second,
                const struct sandbox_file **out, size_t *count);

/* {"stdout":…,"stderr":…,"stdin":…,"timestamps":…}, for FIELD_MAP */
struct stream_body {
    const char *output, *error, *input;
    bool has_timestamps;
};
extern const struct field body_stream_fields[];
extern const struct field body_job_stream_fields[]; // only the outputs
/* Where outputs go and input comes from. `path` is what the client calls the object. */
int body_streams(const struct stream_body *body, const char *path, struct execution_request *out,
                 struct error *err);

/* A command without a program is none. */
int body_check_command(const char *const *argv, const char *path, struct error *err);

/* Variables of FIELD_TEXT_MAP as NAME=VALUE. *out is NULL when there is none. */
int body_env(struct call *call, const struct field_list *pairs, const char *const **out,
             struct error *err);
int body_check_variable(const char *name, struct error *err);
