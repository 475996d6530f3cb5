/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/sandbox/gauge_history.c. */
#include "core/sandbox/gauge_history.h"

#include "base/mem.h"
#include "test.h"

static void add(struct gauge_histories *histories, struct gauge_history *history, int64_t at)
{
    const struct gauge_sample sample = {.at = at, .cpu_us = at * 2};

    gauge_history_add(histories, history, &sample);
}

static size_t count_of(struct gauge_histories *histories, const struct gauge_history *history,
                       int64_t *first)
{
    autofree struct gauge_sample *samples = NULL;
    size_t count = gauge_history_copy(histories, history, &samples);

    *first = samples[0].at;
    for (size_t i = 0; i < count; i++)
        CHECK(samples[i].at == *first + (int64_t)i && samples[i].cpu_us == samples[i].at * 2);
    return count;
}

TEST(the_newest_are_kept_in_their_order)
{
    autoptr(gauge_histories) histories = gauge_histories_new();
    struct gauge_history history = {0};
    int64_t first;

    CHECK_INT(count_of(histories, &history, &first), 0);
    for (int64_t at = 1; at <= 3 * GAUGES_EACH; at++) {
        add(histories, &history, at);
        size_t wanted = at < GAUGES_EACH ? (size_t)at : GAUGES_EACH;
        CHECK_INT(count_of(histories, &history, &first), wanted);
        CHECK_INT(first, at - (int64_t)wanted + 1);
    }
    gauge_history_forget(histories, &history);
    gauge_history_forget(histories, &history);
    CHECK_INT(count_of(histories, &history, &first), 0);
}

TEST(a_disk_that_was_not_looked_at_is_as_before)
{
    autoptr(gauge_histories) histories = gauge_histories_new();
    autofree struct gauge_sample *samples = NULL;
    struct gauge_history history = {0};

    for (int64_t at = 1; at <= 600; at++) // over the end of the ring too
        gauge_history_add(histories, &history,
                          &(struct gauge_sample){.at = at, .disk_bytes = at % 100 ? 0 : at});
    CHECK_INT(gauge_history_copy(histories, &history, &samples), GAUGES_EACH);
    for (size_t i = 0; i < GAUGES_EACH; i++)
        CHECK_INT(samples[i].disk_bytes, samples[i].at / 100 * 100);
    gauge_history_forget(histories, &history);
}

TEST(those_measured_longest_ago_make_room)
{
    enum { FULL = GAUGES_ALL / GAUGES_EACH, MORE = FULL + 2 };
    autoptr(gauge_histories) histories = gauge_histories_new();
    autofree struct gauge_history *all = xcalloc(MORE, sizeof *all);
    int64_t first;

    for (int64_t at = 1; at <= GAUGES_EACH; at++)
        add(histories, &all[0], at);
    for (size_t i = 1; i < MORE; i++) {
        for (int64_t at = 1; at <= GAUGES_EACH; at++)
            add(histories, &all[i], at);
        add(histories, &all[0], GAUGES_EACH + (int64_t)i); // is in use all the time
    }
    CHECK_INT(count_of(histories, &all[0], &first), GAUGES_EACH);
    CHECK_INT(count_of(histories, &all[1], &first), 0);
    CHECK_INT(count_of(histories, &all[2], &first), 0);
    for (size_t i = 3; i < MORE; i++)
        CHECK_INT(count_of(histories, &all[i], &first), GAUGES_EACH);
    add(histories, &all[1], 7); // it is measured again
    CHECK_INT(count_of(histories, &all[1], &first), 1);
    for (size_t i = 0; i < MORE; i++)
        gauge_history_forget(histories, &all[i]);
}
