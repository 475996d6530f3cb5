/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What envd's two ways to files share: failures in its terms, and entries as its clients read them.
 * Threads: any but loops.
 */
#pragma once
#include "core/sandbox/file_access.h"
#include "front/e2b/e2b_impl.h"

/* A user that the sandbox has not becomes ERROR_UNAUTHORIZED. Returns -1. */
int envd_file_failed(struct error *err);

/* Metadata of files is notes below this. */
#define ENVD_NOTES "user.e2b."
/* "metadata": {…} of notes; nothing where there are none. */
void envd_notes_write(struct call *call, struct json_writer *json, const char *notes);

/* Of what stands at `path`, absolute; links are told with what they lead to. Notes cost a question each. */
int envd_entry_write(struct call *call, struct json_writer *json, const struct file_place *place,
                     const struct file_info *info, bool with_notes, struct error *err);
