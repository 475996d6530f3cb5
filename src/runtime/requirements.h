/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime needs of a sandbox, held against what is asked of it: the same for `burrow run` and for the server.
 * Threads: any.
 */
#pragma once
#include "base/limits.h"
#include "runtime/catalog.h"

/* Whether a runtime ("base:latest") is in the catalog of every machine and in need of nothing: no file has to be read to know it. */
bool runtime_is_plain(const char *full_name);

/*
 * ERROR_INVALID, of the limit's noun, where less is asked for than the runtime needs (0 or less: nothing is asked for, or no limit), or no network.
 * *needed: what the runtime needs.
 */
int requirements_check(const struct runtime_definition *definition, const struct limits *asked,
                       bool has_network, struct limits *needed, struct error *err);

/* Limits that hold less than is needed become that; no limit stays none. */
struct limits requirements_raise(const struct limits *limits, const struct limits *needed);
