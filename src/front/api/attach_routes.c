/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to an execution: both directions over one WebSocket. */
#include "core/execution/execution.h"
#include "front/api/api.h"
#include "front/api/api_manners.h"
#include "front/api/attach_session.h"
#include "front/api/output_follow.h"

#include <stdio.h>
#include <string.h>

static const struct parameter attach_parameters[] = {
    {"from", PARAMETER_TEXT, NULL,
     "what is sent of its output: from the 'start' (default), from 'now' on, or from an offset: "
     "\"1024\" of stdout, or \"1024.17\" of stdout and stderr"},
    {0},
};

static int read_from(const char *text, uint64_t offsets[OUTPUT_SIDES], struct error *err)
{
    char pair[64];

    offsets[OUTPUT_STDOUT] = offsets[OUTPUT_STDERR] = 0;
    if (!text || strcmp(text, "start") == 0)
        return 0;
    if (strcmp(text, "now") == 0) {
        offsets[OUTPUT_STDOUT] = offsets[OUTPUT_STDERR] = OUTPUT_FROM_NOW;
        return 0;
    }
    (void)snprintf(pair, sizeof pair, "%.40s%s", text, strchr(text, '.') ? "" : ".0");
    if (strlen(text) <= 40 && output_follow_read_id(pair, offsets))
        return 0;
    (void)error_set(err, ERROR_INVALID, "from: must be 'start', 'now' or an offset");
    return error_field(err, "from");
}

/* GET /api/v1/executions/{execution}/attach */
static int attach(struct call *call, struct error *err)
{
    autoclear(execution_info) info = {0};
    struct upgrade upgrade;
    struct attach_request request = {.info = &info, .upgrade = &upgrade};
    const char *id;

    if (upgrade_check(call, api_manners_origins(call->settings), &upgrade, err) < 0 ||
        api_execution(call, 0, &id, err) < 0 ||
        read_from(query_text(call->query, "from"), request.offsets, err) < 0 ||
        execution_get(call->core->executions, &call->actor, id, NULL, &info, err) < 0)
        return -1;
    call_about_sandbox(call, SANDBOX_PREFIX, info.sandbox_id);
    return attach_start(call, &request, err);
}

static const struct route_answer attach_answers[] = {{101}, {0}};

const struct route api_attach_routes[] = {
    {"GET", API_TOP "/executions/{execution}/attach", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, attach,
     .summary = "a WebSocket to its input and output (docs/internals/api.md)",
     .query = attach_parameters, .answers = attach_answers, .needs = SCOPE_RUN},
    {0},
};
