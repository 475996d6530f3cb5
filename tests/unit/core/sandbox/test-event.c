/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/event.c and statistics.c. */
#include "core/sandbox/sandbox_event.h"

#include "core/sandbox/statistics.h"
#include "../core_rig.h"
#include "store/events.h"
#include "store/sandboxes.h"
#include "store/usage.h"

static void put_sandbox(struct core *core, const char *id, enum sandbox_state state,
                        const char *tenant)
{
    struct sandbox_record sandbox = fixture_sandbox(id);
    struct event_record event = fixture_event(id, id);
    struct error err = {0};

    sandbox.state = state;
    sandbox.ended_at = SANDBOX_OVER & sandbox_in(state) ? NOW : 0;
    sandbox.deleted_at = state == SANDBOX_DELETED ? NOW : 0;
    sandbox.owner.tenant = event.owner.tenant = tenant;
    CHECK_OK(store_sandbox_put(core->store, &sandbox, &err), err);
    CHECK_OK(store_event_add(core->store, &event, &err), err);
}

static enum error_reason list(struct core *core, const struct actor *actor, const char *id)
{
    struct event_filter filter = {.sandbox_id = id, .page.limit = 10};
    struct error err = {0};
    autoclear(event_infos) events = {0};

    if (event_list(core->sandboxes, actor, &filter, &events, &err) == 0) {
        CHECK_INT(events.total, 1);
        return ERROR_NONE;
    }
    CHECK_STR(err.noun, "sandbox");
    CHECK(strstr(err.text, id));
    return error_kind(&err);
}

TEST(events_are_for_those_who_see_the_sandbox)
{
    struct core *core = rig_core();
    struct actor us = rig_actor(), them = {.organisation = "org2", .scopes = SCOPES_ALL};
    struct actor tenant = {.organisation = ORGANISATION, .tenant = "t1", .scopes = SCOPES_ALL};

    put_sandbox(core, "s1", SANDBOX_IDLE, NULL);
    put_sandbox(core, "s2", SANDBOX_IDLE, "t1");
    CHECK_INT(list(core, &us, "s1"), ERROR_NONE);
    CHECK_INT(list(core, &us, "s2"), ERROR_NONE);
    CHECK_INT(list(core, &them, "s1"), ERROR_NOT_FOUND);
    CHECK_INT(list(core, &tenant, "s1"), ERROR_NOT_FOUND);
    CHECK_INT(list(core, &tenant, "s2"), ERROR_NONE);
    CHECK_INT(list(core, &us, "s3"), ERROR_NOT_FOUND);
}

TEST(events_of_a_deleted_sandbox_stay_readable)
{
    struct core *core = rig_core();
    struct actor us = rig_actor();

    put_sandbox(core, "s1", SANDBOX_DELETED, NULL);
    CHECK_INT(list(core, &us, "s1"), ERROR_NONE);
}

TEST(statistics_count_states_and_add_up_what_was_used)
{
    struct core *core = rig_core();
    struct actor us = rig_actor(), them = {.organisation = "org2", .scopes = SCOPES_ALL};
    struct usage_sample sample = {.sandbox_id = "s2",
                                  .more = {.cpu_ms = 40, .memory_mib_ms = 5000, .egress_bytes = 7},
                                  .counted_cpu_ms = 40,
                                  .now = NOW};
    struct statistics statistics;
    struct error err = {0};

    put_sandbox(core, "s1", SANDBOX_CREATING, NULL);
    put_sandbox(core, "s2", SANDBOX_IDLE, NULL);
    put_sandbox(core, "s3", SANDBOX_RUNNING, NULL);
    put_sandbox(core, "s4", SANDBOX_RUNNING, NULL);
    put_sandbox(core, "s5", SANDBOX_STOPPING, NULL);
    put_sandbox(core, "s6", SANDBOX_ENDED, NULL);
    put_sandbox(core, "s7", SANDBOX_FAILED, NULL);
    put_sandbox(core, "s8", SANDBOX_DELETED, NULL);
    CHECK_OK(store_usage_add(core->store, &sample, &err), err);
    CHECK_OK(statistics_get(core->sandboxes, &us, NOW - 60000, 0, &statistics, &err), err);
    CHECK_INT(statistics.active, 5);
    CHECK_INT(statistics.running, 2);
    CHECK_INT(statistics.idle, 1);
    CHECK_INT(statistics.creating, 1);
    CHECK_INT(statistics.used.cpu_ms, 40);
    CHECK_INT(statistics.used.memory_mib_ms, 5000);
    CHECK_INT(statistics.used.egress_bytes, 7);
    CHECK_OK(statistics_get(core->sandboxes, &us, NOW + 120000, 0, &statistics, &err), err);
    CHECK_INT(statistics.used.cpu_ms, 0);
    CHECK_OK(statistics_get(core->sandboxes, &them, 0, 0, &statistics, &err), err);
    CHECK_INT(statistics.active, 0);
    CHECK_INT(statistics.used.cpu_ms, 0);
}
