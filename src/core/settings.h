/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator can set: one plain value that every room of the core may read.
 * Threads: plain values.
 */
#pragma once
#include "base/limits.h"

#include <stdint.h>

/* core_settings_default is where to start from. */
struct core_settings {
    const char *data_dir;
    const char *default_runtime;
    struct limits limits; // of a sandbox that asks for none
    int64_t idle_timeout_ms;
    int64_t execution_timeout_ms; // 0: none
    int64_t output_cap_bytes;     // per stream of an execution
    int64_t stream_limit_bytes;   // of a user's own stream
    int64_t
        spool_limit_bytes; // of all outputs of commands, and of users' streams; 0: a tenth of the disk
    int64_t file_limit_bytes; // of one file or archive that is read or written over the API
    int64_t keep_ms;          // how long an ended sandbox's streams and records are kept
    unsigned max_sandboxes;   // alive at once
    unsigned queue_at_once;   // executions from the queue that run at once
    unsigned queue_length;    // that may wait in it
    unsigned spare_one_shot;  // boxes made ahead; 0: none
    unsigned spare_kept;
    const char *spare_directory; // made ahead in them: where the fronts' commands start; NULL: none
    const char *archive_program; // path of burrow-archive; NULL: next to this program
    const char *fail_file;       // tests: as engine_options has it; NULL
};
extern const struct core_settings core_settings_default;
