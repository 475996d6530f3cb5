/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the routes about files share: which file is meant, how files are told, conditions by ETags.
 * Threads: any.
 */
#pragma once
#include "core/sandbox/file_access.h"
#include "front/api/api.h"

#define API_FILES API_TOP "/sandboxes/{sandbox}/files"
#define API_PATH_MAX 4095

/* The first rows of a table of parameters. */
#define API_FILE_PARAMETERS                                                                        \
    {"path", PARAMETER_TEXT,                                                                       \
     .help = "in the sandbox: absolute, or from its working directory on"},                        \
        {"pathBase64", PARAMETER_TEXT, .help = "instead of path, for names that are not UTF-8"},   \
    {                                                                                              \
        "user", PARAMETER_TEXT,                                                                    \
            .help = "with whose rights: a name or number in the sandbox, also user:group; root "   \
                    "when not given"                                                               \
    }

/* By path, pathBase64 and user; goes with the call. Without a path: `absent`, or ERROR_INVALID where that is NULL. */
int api_file_place(struct call *call, const char *absent, struct file_place *out,
                   struct error *err);

/* Bytes as base64 in the standard alphabet, as text; NULL where they are UTF-8. Goes with the call. */
const char *api_odd_bytes(struct call *call, const char *bytes, size_t length);
/* Of whatever text, without letters that need escapes in a query. */
const char *api_base64_word(struct call *call, const char *text);
/* What such a text of either alphabet stands for: bytes without a NUL, not empty. `name` is the field's. */
int api_read_base64(struct call *call, const char *text, const char *name, const char **out,
                    struct error *err);

/* A failure about the path that was asked for. Returns -1. */
int api_file_failed(struct error *err);

/* How a file is told. */
struct file_answer {
    const char *path, *path_base64, *kind, *target, *target_base64;
    char mode[8], etag[FILE_ETAG + 4];
    const char *mode_text, *etag_text;
    uint64_t size_bytes, disk_bytes;
    unsigned uid, gid, links;
    int64_t modified_at, changed_at, accessed_at;
};
extern const struct answer_field api_file_fields[];
/* `path` may be NULL; texts are borrowed, or go with the call. */
void api_describe_file(struct call *call, const char *path, const struct file_info *info,
                       struct file_answer *out);
/* Answers with a file and its ETag. Returns 0. */
int api_answer_file(struct call *call, int status, const char *path, const struct file_info *info);

/* If-Match and If-None-Match as the core wants them. Goes with the call. */
struct api_condition {
    const char *etags; // NULL: none
    bool is_unless;
};
int api_read_condition(struct call *call, struct api_condition *out, struct error *err);
/* Whether one of a header's ETags is this, or "*"; false without one. `is_strong`: those marked as weak do not count. */
bool api_etag_is_among(const char *header, const char *etag, bool is_strong);

/* "0644": ERROR_INVALID, field "mode", for what is no mode. NULL: `absent`. */
int api_read_mode(const char *text, uint32_t absent, uint32_t *out, struct error *err);
