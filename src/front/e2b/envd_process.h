/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the process service share: which process is meant, and following one.
 * Threads: any but loops.
 */
#pragma once
#include "core/execution/execution_info.h"
#include "front/e2b/e2b_impl.h"

/* By one of these. */
struct envd_selector {
    int64_t pid; // 0: none was given
    const char *tag;
};
extern const struct field envd_selector_fields[];
extern const struct field envd_pty_fields[]; // {"size": {"cols", "rows"}}

int envd_find(struct call *call, const char *sandbox_id, const struct envd_selector *process,
              struct execution_info *out, struct error *err);

uint64_t envd_now_ms(void);

struct envd_following {
    const struct execution_info *info;
    bool is_from_now;    // else from the first byte
    int64_t deadline_ms; // of the following; 0: none
};
/* Answers with events until it ends. */
int envd_follow(struct call *call, const struct envd_following *following, struct error *err);
