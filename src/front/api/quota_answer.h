/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How quotas are read from bodies and told: six figures, those that are not bounded left out.
 * Threads: plain values.
 */
#pragma once
#include "model/quota.h"
#include "web/answer_table.h"
#include "web/fields.h"

/* What a body says of quotas; what it does not name stays as it is. null takes a bound away. */
struct quota_body {
    int64_t sandboxes, memory_bytes, cpu_millicores, disk_bytes, processes, runs_per_day;
    bool has_sandboxes, has_memory, has_cpu, has_disk, has_processes, has_runs;
};
extern const struct field quota_body_fields[];
void quota_body_apply(const struct quota_body *body, struct quota *quota);

/* Bounds as they are told. */
struct quota_answer {
    struct quota quota;
    bool has_sandboxes, has_memory, has_cpu, has_disk, has_processes, has_runs;
};
extern const struct answer_field quota_bound_fields[]; // without those that are 0
extern const struct answer_field quota_used_fields[];  // all of them
struct quota_answer quota_answer_of(const struct quota *quota);
