/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/lifecycle.c: every step from every state, with what each refusal says. */
#include "core/sandbox/lifecycle.h"

#include "base/auto.h"
#include "base/mem.h"
#include "test.h"

#define NOW 1000

static const enum sandbox_state every[] = {
    SANDBOX_CREATING, SANDBOX_IDLE,     SANDBOX_RUNNING, SANDBOX_PAUSING, SANDBOX_PAUSED,
    SANDBOX_RESUMING, SANDBOX_STOPPING, SANDBOX_ENDED,   SANDBOX_FAILED,  SANDBOX_DELETED,
};

/* Every step that may be taken. What is not here must be refused. */
static const struct way {
    enum sandbox_state from;
    enum lifecycle_step step;
    enum sandbox_state to;
} ways[] = {
    {SANDBOX_CREATING, STEP_READY, SANDBOX_IDLE},
    {SANDBOX_CREATING, STEP_BEGIN, SANDBOX_RUNNING},
    {SANDBOX_CREATING, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_CREATING, STEP_END, SANDBOX_ENDED},
    {SANDBOX_CREATING, STEP_FAIL, SANDBOX_FAILED},
    {SANDBOX_CREATING, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_IDLE, STEP_BEGIN, SANDBOX_RUNNING},
    {SANDBOX_IDLE, STEP_REST, SANDBOX_IDLE},
    {SANDBOX_IDLE, STEP_PAUSE, SANDBOX_PAUSING},
    {SANDBOX_IDLE, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_IDLE, STEP_END, SANDBOX_ENDED},
    {SANDBOX_IDLE, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_RUNNING, STEP_BEGIN, SANDBOX_RUNNING},
    {SANDBOX_RUNNING, STEP_REST, SANDBOX_IDLE},
    {SANDBOX_RUNNING, STEP_PAUSE, SANDBOX_PAUSING},
    {SANDBOX_RUNNING, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_RUNNING, STEP_END, SANDBOX_ENDED},
    {SANDBOX_RUNNING, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_PAUSING, STEP_READY, SANDBOX_IDLE},
    {SANDBOX_PAUSING, STEP_BEGIN, SANDBOX_RUNNING},
    {SANDBOX_PAUSING, STEP_PAUSED, SANDBOX_PAUSED},
    {SANDBOX_PAUSING, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_PAUSING, STEP_END, SANDBOX_ENDED},
    {SANDBOX_PAUSING, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_PAUSED, STEP_RESUME, SANDBOX_RESUMING},
    {SANDBOX_PAUSED, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_PAUSED, STEP_END, SANDBOX_ENDED},
    {SANDBOX_PAUSED, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_RESUMING, STEP_READY, SANDBOX_IDLE},
    {SANDBOX_RESUMING, STEP_BEGIN, SANDBOX_RUNNING},
    {SANDBOX_RESUMING, STEP_PAUSED, SANDBOX_PAUSED},
    {SANDBOX_RESUMING, STEP_STOP, SANDBOX_STOPPING},
    {SANDBOX_RESUMING, STEP_END, SANDBOX_ENDED},
    {SANDBOX_RESUMING, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_STOPPING, STEP_END, SANDBOX_ENDED},
    {SANDBOX_STOPPING, STEP_DELETE, SANDBOX_DELETED},

    {SANDBOX_ENDED, STEP_DELETE, SANDBOX_DELETED},
    {SANDBOX_FAILED, STEP_DELETE, SANDBOX_DELETED},
};

static const struct way *way_of(enum sandbox_state from, enum lifecycle_step step)
{
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        if (ways[i].from == from && ways[i].step == step)
            return &ways[i];
    }
    return NULL;
}

/* As a refusal says it: "a sandbox that is paused cannot be paused". */
static const char *const wanted[LIFECYCLE_STEPS] = {
    [STEP_READY] = "become ready", [STEP_BEGIN] = "run a command",
    [STEP_REST] = "rest",          [STEP_PAUSE] = "be paused",
    [STEP_PAUSED] = "be paused",   [STEP_RESUME] = "be resumed",
    [STEP_STOP] = "be stopped",    [STEP_END] = "end",
    [STEP_FAIL] = "fail",          [STEP_DELETE] = "be deleted",
};

static bool is_over(enum sandbox_state state)
{
    return state == SANDBOX_ENDED || state == SANDBOX_FAILED || state == SANDBOX_DELETED;
}

static void check_refusal(enum sandbox_state state, enum lifecycle_step step)
{
    struct sandbox_record record = {.state = state, .reason = xstrdup("why")};
    char text[200];
    struct error err = {0};

    CHECK(lifecycle_check(&record, step, &err) < 0);
    (void)snprintf(text, sizeof text, "a sandbox that is %s cannot %s", sandbox_state_name(state),
                   wanted[step]);
    CHECK_STR(err.text, is_over(state) ? "the sandbox has ended: why" : text);
    CHECK_INT(error_kind(&err), is_over(state) ? ERROR_GONE : ERROR_CONFLICT);
    CHECK_STR(err.noun, "sandbox");
    CHECK_INT(err.reason, is_over(state) ? ERROR_ENDED : ERROR_STATE);

    err = (struct error){0};
    CHECK(lifecycle_take(&record, step, "another", NOW, &err) < 0);
    CHECK_STR(err.text, is_over(state) ? "the sandbox has ended: why" : text);
    CHECK_INT(record.state, state);
    CHECK_STR(record.reason, "why");
    CHECK_INT(record.started_at + record.ended_at + record.paused_at + record.deleted_at, 0);
    free((char *)record.reason);
}

static void check_way(const struct way *way)
{
    struct sandbox_record record = {.state = way->from};
    struct error err = {0};

    CHECK_OK(lifecycle_check(&record, way->step, &err), err);
    CHECK_INT(record.state, way->from);
    CHECK_OK(lifecycle_take(&record, way->step, NULL, NOW, &err), err);
    CHECK_INT(record.state, way->to);
}

TEST(every_step_from_every_state_leads_where_it_must_or_is_refused)
{
    CHECK_INT(ARRAY_SIZE(every), SANDBOX_STATES);
    for (size_t i = 0; i < ARRAY_SIZE(every); i++) {
        for (enum lifecycle_step step = 0; step < LIFECYCLE_STEPS; step++) {
            const struct way *way = way_of(every[i], step);
            if (way)
                check_way(way);
            else
                check_refusal(every[i], step);
        }
    }
}

TEST(the_set_of_states_of_a_step_is_the_same_table)
{
    for (enum lifecycle_step step = 0; step < LIFECYCLE_STEPS; step++) {
        unsigned set = 0;
        for (size_t i = 0; i < ARRAY_SIZE(every); i++)
            set |= way_of(every[i], step) ? sandbox_in(every[i]) : 0;
        CHECK_INT(lifecycle_from(step), set);
    }
}

TEST(a_sandbox_that_ended_for_no_reason_is_refused_without_one)
{
    struct sandbox_record record = {.state = SANDBOX_ENDED};
    struct error err = {0};

    CHECK(lifecycle_check(&record, STEP_BEGIN, &err) < 0);
    CHECK_STR(err.text, "the sandbox has ended");
}

static void take_step(struct sandbox_record *record, enum lifecycle_step step, const char *reason,
                      int64_t now)
{
    struct error err = {0};
    CHECK_OK(lifecycle_take(record, step, reason, now, &err), err);
}

TEST(times_go_with_the_state)
{
    struct sandbox_record record = {.state = SANDBOX_CREATING};

    take_step(&record, STEP_READY, NULL, 10);
    CHECK_INT(record.started_at, 10);
    take_step(&record, STEP_BEGIN, NULL, 20);
    CHECK_INT(record.started_at, 10); // the first time counts
    take_step(&record, STEP_PAUSE, NULL, 30);
    CHECK_INT(record.paused_at, 0); // not yet
    take_step(&record, STEP_PAUSED, NULL, 40);
    CHECK_INT(record.paused_at, 40);
    take_step(&record, STEP_RESUME, NULL, 50);
    take_step(&record, STEP_PAUSED, NULL, 60); // it could not be woken
    CHECK_INT(record.paused_at, 40);
    take_step(&record, STEP_RESUME, NULL, 70);
    take_step(&record, STEP_READY, NULL, 80);
    CHECK_INT(record.paused_at, 0);
    CHECK_INT(record.ended_at, 0);
    take_step(&record, STEP_STOP, NULL, 90);
    CHECK_INT(record.ended_at, 0);
    take_step(&record, STEP_END, NULL, 100);
    CHECK_INT(record.ended_at, 100);
    CHECK_INT(record.deleted_at, 0);
    take_step(&record, STEP_DELETE, NULL, 110);
    CHECK_INT(record.deleted_at, 110);
    CHECK_INT(record.ended_at, 100);
    CHECK_INT(record.started_at, 10);
}

TEST(a_deletion_ends_what_was_alive)
{
    struct sandbox_record record = {.state = SANDBOX_RUNNING};

    take_step(&record, STEP_DELETE, "deleted", 10);
    CHECK_INT(record.ended_at, 10);
    CHECK_INT(record.deleted_at, 10);
    CHECK_STR(record.reason, "deleted");
    free((char *)record.reason);
}

TEST(why_it_ended_stays_known_when_it_is_deleted_later)
{
    struct sandbox_record record = {.state = SANDBOX_IDLE};
    char reason[] = "idle for too long";

    take_step(&record, STEP_END, reason, 10);
    reason[0] = '\0'; // it was copied
    take_step(&record, STEP_DELETE, "deleted", 20);
    CHECK_STR(record.reason, "idle for too long");
    free((char *)record.reason);
}

TEST(a_reason_is_replaced_by_the_next_and_goes_without_one)
{
    struct sandbox_record record = {.state = SANDBOX_IDLE};

    take_step(&record, STEP_STOP, "first", 10);
    take_step(&record, STEP_END, "second", 20);
    CHECK_STR(record.reason, "second");
    record.state = SANDBOX_STOPPING;
    take_step(&record, STEP_END, record.reason, 30); // its own text
    CHECK_STR(record.reason, "second");
    record.state = SANDBOX_STOPPING;
    take_step(&record, STEP_END, NULL, 40);
    CHECK(!record.reason);
}
