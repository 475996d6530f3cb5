/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this front's clients look for in the server's health.
 * Threads: any.
 */
#pragma once
#include "core/core.h"
#include "web/front.h"

/* For front.on_health. */
void health_write(const struct front *front, struct core *core, bool is_known,
                  struct json_writer *json);
