/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox that a request to envd is for, awake; and what the front keeps with a sandbox. */
#include "base/clock.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_modify.h"
#include "core/seal.h"
#include "data/json.h"
#include "front/e2b/e2b_impl.h"

#include <string.h>

// ---- what is kept ----

static bool truth_of(const struct data_value *map, const char *name)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_BOOL && value->truth;
}

void e2b_kept_read(struct call *call, const struct sandbox_info *info, struct e2b_kept *out)
{
    e2b_kept_parse(call, info->front_data, out);
}

void e2b_kept_parse(struct call *call, const char *text, struct e2b_kept *out)
{
    autoptr(data_document) document = NULL;
    struct error ignored = {0};
    const struct data_value *value;

    *out = (struct e2b_kept){.timeout_s = E2B_WAKE_LEAST_S};
    if (!text || json_read("", text, strlen(text), NULL, &document, &ignored) < 0)
        return;
    const struct data_value *map = document->root;
    if ((value = value_get(map, "template")) && value->kind == VALUE_STRING)
        out->template = call_print(call, "%s", value->text);
    if ((value = value_get(map, "timeout")) && value->kind == VALUE_NUMBER)
        out->timeout_s = strtoll(value->text, NULL, 10);
    out->is_template_alias = truth_of(map, "alias");
    out->resumes = truth_of(map, "resumes");
    out->is_builder = truth_of(map, "builder");
    out->is_private = truth_of(map, "private");
    out->has_internet = value_get(map, "internet") != NULL;
    out->internet = truth_of(map, "internet");
    if ((value = value_get(map, "mask")) && value->kind == VALUE_STRING)
        out->mask_host = call_print(call, "%s", value->text);
    if ((value = value_get(map, "user")) && value->kind == VALUE_STRING)
        out->user = call_print(call, "%s", value->text);
    if ((value = value_get(map, "workdir")) && value->kind == VALUE_STRING)
        out->directory = call_print(call, "%s", value->text);
    if ((value = value_get(map, "network")) && value->kind == VALUE_STRING)
        out->network = call_print(call, "%s", value->text);
}

const char *e2b_kept_write(struct call *call, const struct e2b_kept *kept)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    if (kept->template)
        e2b_member_text(&json, "template", kept->template);
    if (kept->is_builder)
        e2b_member_bool(&json, "builder", true);
    e2b_member_bool(&json, "alias", kept->is_template_alias);
    e2b_member_bool(&json, "resumes", kept->resumes);
    e2b_member_bool(&json, "private", kept->is_private);
    e2b_member_number(&json, "timeout", kept->timeout_s);
    if (kept->has_internet)
        e2b_member_bool(&json, "internet", kept->internet);
    if (kept->mask_host)
        e2b_member_text(&json, "mask", kept->mask_host);
    if (kept->user)
        e2b_member_text(&json, "user", kept->user);
    if (kept->directory)
        e2b_member_text(&json, "workdir", kept->directory);
    if (kept->network)
        e2b_member_text(&json, "network", kept->network);
    json_map_end(&json);
    return json_writer_finish(&json, &ignored) < 0 ? NULL : call_print(call, "%s", text.data);
}

// ---- waking ----

int e2b_wake(struct core *core, const struct actor *actor, const char *sandbox_id,
             int64_t timeout_s, struct error *err)
{
    struct sandbox_changes changes = {.has_expires_at = true,
                                      .expires_at = (int64_t)clock_wall_ms() + timeout_s * 1000};
    autoclear(sandbox_info) now = {0};

    if (sandbox_resume(core->sandboxes, actor, sandbox_id, err) < 0 &&
        !error_is(err, ERROR_CONFLICT)) // somebody else has woken it
        return -1;
    return sandbox_modify(core->sandboxes, actor, sandbox_id, &changes, &now, err);
}

static int asleep(struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox is paused: connect to resume it");
}

int envd_enter(struct call *call, const char **id, struct error *err)
{
    const unsigned sleepy = sandbox_in(SANDBOX_PAUSED) | sandbox_in(SANDBOX_PAUSING);
    autoclear(sandbox_info) info = {0};
    struct e2b_kept kept;
    enum sandbox_state state;

    if (e2b_of(call)->is_debug && e2b_debug_enter(call, err) < 0)
        return -1;
    call_about_sandbox(call, "", call->actor.sandbox);
    *id = call_print(call, "%s", call->actor.sandbox);
    if (!seal_is_alive(call->core, *id, &state))
        return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox was not found");
    if (sandbox_check_selected(call->core->sandboxes, &call->actor, *id, err) < 0)
        return -1;
    if (!(sandbox_in(state) & sleepy))
        return 0;
    if (sandbox_get(call->core->sandboxes, &call->actor, *id, false, &info, err) < 0)
        return -1;
    e2b_kept_read(call, &info, &kept);
    if (!kept.resumes)
        return asleep(err);
    int64_t seconds = kept.timeout_s > E2B_WAKE_LEAST_S ? kept.timeout_s : E2B_WAKE_LEAST_S;
    return e2b_wake(call->core, &call->actor, *id, seconds, err);
}
