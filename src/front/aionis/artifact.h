/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's record as a bundle of JSON objects with their sizes and hashes.
 * Threads: one per object.
 */
#pragma once
#include "core/account/actor.h"
#include "front/aionis/run_view.h"

struct artifact_options {
    const struct actor *actor;
    int64_t tail_bytes;
    bool has_action, has_output, has_result, has_metadata;
    bool is_inline; // the objects themselves are in the bundle too
};

/* Writes one object. */
void artifact_write(struct json_writer *json, const struct run_view *view,
                    const struct artifact_options *options);
