/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a sandbox: one value from a request to the engine. What it gets when nothing is asked for, and the least it can be
 * given, are the same for `burrow run` and for the server.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* 0 is no limit, or in a request: the server's default. */
struct limits {
    int64_t memory_bytes;
    int64_t cpu_millicores;
    int64_t disk_bytes;
    int64_t max_processes;
};

/*
 * All of them, in the order above: X(member, name, letter, type, argument, variable, least, usual, most, help, ceiling, ceiling_variable,
 * ceiling_help). From these rows come the options of `burrow run` and `burrow serve`, the server's variables, the columns of the store (named
 * as the member), the defaults and the checks. `least` is the smallest that a sandbox can start with, 0 where there is none; `ceiling`
 * is the server's setting for the most that one can ask for.
 */
#define LIMITS_ROWS(X)                                                                             \
    X(memory_bytes, "memory", 'm', OPTION_SIZE, "SIZE", "MEMORY", 4 << 20, 512 << 20,              \
      INT64_C(1) << 50, "memory of a sandbox, for example 256Mi; 0 is no limit (default 512Mi)",   \
      "max-memory", "MAX_MEMORY",                                                                  \
      "the most memory a sandbox can ask for (default: what --sandboxes-memory leaves to all)"),   \
        X(cpu_millicores, "cpu", 0, OPTION_CPU, "CPU", "CPU", 10, 1000, 1024000,                   \
          "processors of a sandbox: 500m is half of one, 2 is two; 0 is no limit (default 1)",     \
          "max-cpu", "MAX_CPU",                                                                    \
          "the most processors a sandbox can ask for (default: those of the machine)"),            \
        X(disk_bytes, "disk", 0, OPTION_SIZE, "SIZE", "DISK", 1 << 20, INT64_C(2) << 30,           \
          INT64_C(1) << 50, "how much a sandbox may write; 0 is no limit (default 2Gi)",           \
          "max-disk", "MAX_DISK",                                                                  \
          "the most disk a sandbox can ask for (default: the size of the volume)"),                \
        X(max_processes, "max-processes", 0, OPTION_INTEGER, "N", "MAX_PROCESSES", 0, 512,         \
          4000000, "processes and threads in a sandbox; 0 is no limit (default 512)",              \
          "most-processes", "MOST_PROCESSES",                                                      \
          "the most processes a sandbox can ask for (default: an eighth of "                       \
          "--sandboxes-processes)")

/* What a sandbox gets that asks for nothing. */
#define LIMITS_USUAL(member, name, letter, type, argument, variable, least, usual, ...)            \
    .member = (usual)
#define LIMITS_DEFAULT                                                                             \
    {                                                                                              \
        LIMITS_ROWS(LIMITS_USUAL)                                                                  \
    }

#define LIMITS_OUTPUT_BYTES (INT64_C(64) << 20) // kept of each output of a command

/* ERROR_INVALID, naming the limit and the least it can be, for one that no sandbox could start with. 0 asks for none and is fine. */
int limits_check(const struct limits *limits, struct error *err);

/*
 * ERROR_INVALID, naming the limit, what was asked for and the most there is, where a limit is above its ceiling (0: none). `giver` ("this server") gives
 * that; has_settings: and is told what setting to raise.
 */
int limits_check_most(const struct limits *limits, const struct limits *ceilings, const char *giver,
                      bool has_settings, struct error *err);

/* Those above their ceiling (0: none) become it; no limit stays none. */
struct limits limits_lower_to(const struct limits *limits, const struct limits *ceilings);

/* What was asked for, and where nothing was, the default. */
struct limits limits_or_default(const struct limits *asked, const struct limits *usual);

/* Whether an error of limits_check is about one of them: its noun is the limit's name. */
bool limits_has_name(const char *name);

static inline bool limits_equal(const struct limits *a, const struct limits *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
