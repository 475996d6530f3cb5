/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failure as the JSON that commands print with --json: {"error": {"code", "message"}}. The codes are those of the API.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"
#include "data/json_writer.h"

#include <stdio.h>

/* The member "error" of a map that is begun. */
void failure_put(struct json_writer *json, const struct error *err);
/* A map with it alone, on a line. */
void failure_print(const struct error *err, FILE *out);
