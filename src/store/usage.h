/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes have used: added up in the sandbox itself, and by the minute for their
 * organisation.
 * Threads: any but loops.
 */
#pragma once
#include "model/usage.h"
#include "store/store.h"

struct usage_sample {
    const char *sandbox_id;
    struct usage_total more; // since the last sample; executions are counted by store_execution_add
    int64_t counted_cpu_ms;  // its box's own counter at this sample
    int64_t counted_egress_bytes; // likewise
    int64_t now;
    int64_t
        since; // when the last one was: memory is spread over the hours from then on. 0: all of it is of now
    int64_t disk_bytes; // that its files take; 0: not known
};

/* ERROR_NOT_FOUND, noun "sandbox", without one. */
int store_usage_add(struct store *store, const struct usage_sample *sample, struct error *err);

/* From the minute `from` is in, before `to` (0: until now). Organisation, project and member NULL: of all.
 */
int store_usage_sum(struct store *store, const struct owner *owner, int64_t from, int64_t to,
                    struct usage_total *out, struct error *err);

/* Forgets minutes before `before`. */
int store_usage_purge(struct store *store, int64_t before, int64_t *removed, struct error *err);
