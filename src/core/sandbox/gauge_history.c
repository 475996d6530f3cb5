/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the past; see gauge_history.h. */
#include "core/sandbox/gauge_history.h"

#include "base/lock.h"
#include "base/mem.h"

#include <stdlib.h>

#define FIRST_ROOM 8

struct gauge_histories {
    struct lock lock;                      // guards all of it, and those that are in it
    struct gauge_history *newest, *oldest; // by their last sample
    size_t room;
};

struct gauge_histories *gauge_histories_new(void)
{
    struct gauge_histories *histories = xnew(struct gauge_histories);

    lock_init(&histories->lock, LOCK_GAUGES);
    return histories;
}

void gauge_histories_free(struct gauge_histories *histories)
{
    if (!histories)
        return;
    lock_clear(&histories->lock);
    free(histories);
}

static void unlink_one(struct gauge_histories *histories, struct gauge_history *history)
{
    *(history->newer ? &history->newer->older : &histories->newest) = history->older;
    *(history->older ? &history->older->newer : &histories->oldest) = history->newer;
    history->newer = history->older = NULL;
}

static void put_first(struct gauge_histories *histories, struct gauge_history *history)
{
    history->older = histories->newest;
    *(history->older ? &history->older->newer : &histories->oldest) = history;
    histories->newest = history;
}

static void drop(struct gauge_histories *histories, struct gauge_history *history)
{
    unlink_one(histories, history);
    histories->room -= history->room;
    free(history->samples);
    *history = (struct gauge_history){0};
}

static void copy_all(const struct gauge_history *history, struct gauge_sample *to)
{
    for (size_t i = 0; i < history->count; i++)
        to[i] = history->samples[(history->first + i) % history->room];
}

static void grow(struct gauge_histories *histories, struct gauge_history *history)
{
    size_t room = history->room ? history->room * 2 : FIRST_ROOM;
    struct gauge_sample *samples = xcalloc(room, sizeof *samples);

    copy_all(history, samples);
    free(history->samples);
    history->samples = samples;
    histories->room += room - history->room;
    history->room = room;
    history->first = 0;
}

static void append(struct gauge_history *history, const struct gauge_sample *sample)
{
    size_t last = history->first + history->count;
    int64_t disk_bytes =
        history->count ? history->samples[(last - 1) % history->room].disk_bytes : 0;

    if (history->count == history->room) {
        history->first = (history->first + 1) % history->room;
        history->count--;
    }
    history->samples[last % history->room] = *sample;
    if (!sample->disk_bytes)
        history->samples[last % history->room].disk_bytes = disk_bytes;
    history->count++;
}

void gauge_history_add(struct gauge_histories *histories, struct gauge_history *history,
                       const struct gauge_sample *sample)
{
    autolock(&histories->lock);
    if (history->room)
        unlink_one(histories, history);
    if (history->count == history->room && history->room < GAUGES_EACH)
        grow(histories, history);
    append(history, sample);
    put_first(histories, history);
    while (histories->room > GAUGES_ALL)
        drop(histories, histories->oldest);
}

void gauge_history_forget(struct gauge_histories *histories, struct gauge_history *history)
{
    autolock(&histories->lock);
    if (history->room)
        drop(histories, history);
}

size_t gauge_history_copy(struct gauge_histories *histories, const struct gauge_history *history,
                          struct gauge_sample **out)
{
    autolock(&histories->lock);
    *out = xcalloc(history->count + 1, sizeof **out);
    copy_all(history, *out);
    return history->count;
}
