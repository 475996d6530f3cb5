/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a server that was told nothing; see settings.h. */
#include "core/settings.h"

#include "base/data_dir.h"
#include "runtime/build.h"

#define GIB ((int64_t)1 << 30)
#define HOUR_MS ((int64_t)3600 * 1000)

const struct core_settings core_settings_default = {
    .data_dir = DATA_DIR_DEFAULT,
    .default_runtime = "base:latest",
    .limits = LIMITS_DEFAULT,
    .ceilings =
        {
            .total = {.streams = 100000, .snapshots = 10000, .checkpoints = 10000},
            .organisation = {.streams = 10000, .snapshots = 1000, .checkpoints = 1000},
        },
    .network = {.is_allowed = true},
    .boxes_cpu_weight = 100,
    .idle_timeout_ms = 10 * 60 * 1000,
    .execution_timeout_ms = 0,
    .output_cap_bytes = LIMITS_OUTPUT_BYTES,
    .stream_limit_bytes = GIB,
    .file_limit_bytes = GIB,
    .file_timeout_ms = 10 * 60 * 1000,
    .keep_ms = 24 * HOUR_MS,
    .event_keep_ms = 72 * HOUR_MS,
    .max_events = 1000000,
    .audit_keep_ms = 90 * 24 * HOUR_MS,
    .usage_keep_ms = 400 * 24 * HOUR_MS,
    .max_sandboxes = 10000,
    .queue_at_once = 2,
    .queue_length = 10000,
    .port_range_first = 20000,
    .port_range_last = 29999,
    .port_rest_ms = 10 * 60 * 1000,
    .spare_one_shot = 16,
    .spare_kept = 4,
    .spare_memory_bytes = GIB / 4,
    .spare_keep_ms = 10 * 60 * 1000,
    .image_timeout_ms = RUNTIME_IMAGE_TIMEOUT_MS,
    .packages_keep_ms = 14 * 24 * HOUR_MS,
};
