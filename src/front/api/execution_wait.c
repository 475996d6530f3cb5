/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for an execution; see execution_wait.h. */
#include "front/api/execution_wait.h"

#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api.h"
#include "front/api/execution_answer.h"
#include "web/poll.h"

static void answer(const struct poll *poll, const struct execution_answer *answer)
{
    call_about_sandbox(poll->call, SANDBOX_PREFIX, answer->sandbox_id);
    (void)api_answer(poll->call, 200, execution_answer_fields, answer);
}

static enum poll_look tell(const struct poll *poll, const struct execution_info *info,
                           bool is_quick)
{
    const struct execution_wait *how = poll->data;
    bool is_over = execution_info_is_over(info);
    autoexecutionanswer told = {0};

    execution_answer_init(&told, info, poll_base_url(poll));
    if (is_over && how->has_changes && is_quick)
        return POLL_ELSEWHERE;
    if (is_over && how->has_output &&
        !execution_answer_read(&told, poll->call->core, info, how->output_bytes, is_quick))
        return POLL_ELSEWHERE;
    if (is_over && how->has_changes)
        execution_answer_compare(&told, poll->call->core, &poll->call->actor, info);
    if (is_over && how->is_alone &&
        how->has_changes) // it is no one-shot sandbox, for its files' sake
        sandbox_end_later(poll->call->core->sandboxes, info->sandbox_id, "one_shot");
    answer(poll, &told);
    return POLL_ANSWERED;
}

/* This server stops, and the command does not. */
static int go_on(const struct execution_info *info, struct error *err)
{
    return error_refuse(err, ERROR_RESTARTING, "execution",
                        "the server stops while the command runs: it goes on as execution '%s%s', "
                        "which the next server knows",
                        execution_answer_prefix(info->kind), info->id);
}

static int look(const struct poll *poll, bool is_last, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (execution_get(poll->call->core->executions, &poll->call->actor, poll->id, NULL, &info,
                      err) < 0)
        return -1;
    const struct execution_wait *how = poll->data;
    if (!is_last && !execution_info_is_over(&info))
        return POLL_WAITS;
    if (how->is_patient && !execution_info_is_over(&info))
        return go_on(&info, err);
    return (int)tell(poll, &info, false);
}

static enum poll_look look_quick(const struct poll *poll, bool is_last)
{
    autoclear(execution_info) info = {0};
    struct error ignored = {0};

    if (execution_get_quick(poll->call->core->executions, &poll->call->actor, poll->id, NULL, &info,
                            &ignored) != 1)
        return POLL_ELSEWHERE;
    const struct execution_wait *how = poll->data;
    if (!is_last && !execution_info_is_over(&info))
        return POLL_WAITS;
    if (how->is_patient && !execution_info_is_over(&info))
        return POLL_ELSEWHERE;
    return tell(poll, &info, true);
}

/* The client is gone, and the sandbox was for it alone. */
static bool on_gone(const struct poll *poll)
{
    const struct execution_wait *how = poll->data;
    autoclear(execution_info) info = {0};
    struct error ignored = {0};

    if (!how->ends_with_client ||
        execution_get_quick(poll->call->core->executions, &poll->call->actor, poll->id, NULL, &info,
                            &ignored) != 1)
        return false;
    sandbox_abandon(poll->call->core->sandboxes, info.sandbox_id);
    return true;
}

static const struct poll_kind kinds[] = {
    {.look_quick = look_quick, .look = look, .on_gone = on_gone},
    {.look_quick = look_quick, .look = look, .on_gone = on_gone, .is_patient = true},
};

int execution_wait(struct call *call, const char *id, int64_t wait_ms,
                   const struct execution_wait *how, struct error *err)
{
    return poll_call(call, &kinds[how->is_patient], id, wait_ms, how, sizeof *how, err);
}
