/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this front share and nobody else sees.
 * Threads: plain values.
 */
#pragma once
#include "front/aionis/aionis.h"
#include "front/aionis/aionis_answers.h"
#include "front/aionis/budget.h"
#include "front/aionis/commands.h"
#include "front/aionis/rate.h"
#include "web/call.h"

#define AIONIS_BODY_MAX ((uint64_t)5 << 20)

/* One table a file, each ended by an empty row; aionis_front.c joins them. */
extern const struct route aionis_session_routes[];
extern const struct route aionis_execute_routes[];
extern const struct route aionis_run_routes[];
extern const struct route aionis_control_routes[];

/* The settings, read. */
struct aionis {
    const struct aionis_settings *settings;
    bool is_enabled, is_admin_only;
    struct commands commands;
    struct budgets *budgets;
    struct rate_limiter *limiter; // NULL: there are no limits
    struct proxies *proxies;      // NULL: none is trusted
};

static inline struct aionis *aionis_of(const struct call *call)
{
    return call->settings;
}

/* Reads the settings; what was made stays with it on failure. */
int aionis_read(struct aionis *aionis, struct error *err);
