/* SPDX-License-Identifier: Apache-2.0 */
/* The newest events in a ring, and the thread that fills it; see channel.h. */
#include "core/event/channel.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/event/event_info_impl.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define RING 2048 // events in memory
#define BATCH 512 // read at once
// Between two looks: under a flood many events are read and announced together, the more so the more readers each announcement wakes.
#define GATHER_MS 10
#define GATHER_READERS 4 // a millisecond more for so many
#define GATHER_MOST_MS 100
#define LOOK_MS 1000  // so often without being told: what another process has written
#define PATIENCE 1000 // ms, after a failure

struct event_channel {
    struct store *store;
    struct hub *hub;
    atomic_uint n_joined;
    atomic_bool is_told; // there is something that nobody has read yet
    struct lock lock;    // guards all below
    struct lock_condition changed;
    bool is_stopping;
    bool is_warm;                    // the ring is of now
    struct shared_event *ring[RING]; // events number first … first + count - 1, by place
    uint64_t first, count;
    int64_t base; // the serial above which the ring has them all
    int64_t last; // up to which it was read
    pthread_t thread;
};

static struct shared_event *shared_event_new(struct event_info *info)
{
    struct shared_event *event = xnew(struct shared_event);

    atomic_init(&event->refs, 1);
    event->info = *info;
    *info = (struct event_info){0};
    return event;
}

void shared_event_unref(struct shared_event *event)
{
    if (atomic_fetch_sub(&event->refs, 1) != 1)
        return;
    event_info_clear(&event->info);
    for (unsigned i = 0; i < SHARED_EVENT_FORMS; i++)
        free(event->rendered[i]);
    free(event);
}

/* Under the lock: forgets the oldest. */
static void drop_first(struct event_channel *channel)
{
    struct shared_event *event = channel->ring[channel->first % RING];

    channel->base = event->info.serial;
    channel->first++;
    channel->count--;
    shared_event_unref(event);
}

static void empty(struct event_channel *channel, int64_t last)
{
    while (channel->count)
        drop_first(channel);
    channel->base = channel->last = last;
}

static void add_all(struct event_channel *channel, struct event_infos *found, int64_t reached)
{
    autolock(&channel->lock);
    for (size_t i = 0; i < found->count; i++) {
        if (channel->count == RING)
            drop_first(channel);
        channel->ring[(channel->first + channel->count++) % RING] =
            shared_event_new(&found->items[i]);
    }
    channel->last = reached;
}

/* Reads what is new. *is_more: there may be as much again. */
static int look(struct event_channel *channel, bool *is_more, struct error *err)
{
    const struct event_scan scan = {.after = channel->last, .scanned = BATCH};
    autoclear(event_infos) found = {0};
    int64_t reached = scan.after;

    if (event_scan(channel, &scan, &found, &reached, err) < 0)
        return -1;
    *is_more = found.count == BATCH;
    if (reached == scan.after)
        return 0;
    add_all(channel, &found, reached);
    hub_announce(channel->hub, EVENT_CHANNEL_ID);
    return 0;
}

/* From the time when nobody had joined: who comes reads what is older from the store. */
static int warm_up(struct event_channel *channel, struct error *err)
{
    struct event_range range;

    if (event_range(channel, &range, err) < 0)
        return -1;
    {
        autolock(&channel->lock);
        empty(channel, range.last);
        channel->is_warm = true;
    }
    hub_announce(channel->hub, EVENT_CHANNEL_ID); // whoever joined before
    return 0;
}

/* Returns when there is something to look for; false: never again. */
static bool wait_for_events(struct event_channel *channel, uint64_t not_before)
{
    autolock(&channel->lock);
    while (!channel->is_stopping) {
        uint64_t now = clock_monotonic_ms();
        if (atomic_load(&channel->n_joined) == 0) {
            channel->is_warm = false;
            (void)lock_condition_wait(&channel->changed, &channel->lock, 0);
        } else if (now < not_before) {
            (void)lock_condition_wait(&channel->changed, &channel->lock, not_before);
        } else if (atomic_exchange(&channel->is_told, false) || !channel->is_warm ||
                   !lock_condition_wait(&channel->changed, &channel->lock, now + LOOK_MS)) {
            return true;
        }
    }
    return false;
}

static uint64_t gather_ms(const struct event_channel *channel)
{
    uint64_t wanted = GATHER_MS + atomic_load(&channel->n_joined) / GATHER_READERS;

    return wanted < GATHER_MOST_MS ? wanted : GATHER_MOST_MS;
}

static void *run(void *data)
{
    struct event_channel *channel = data;
    uint64_t not_before = 0;

    thread_set_name("events");
    while (wait_for_events(channel, not_before)) {
        struct error err = {0};
        bool is_more = false;
        int result = channel->is_warm ? look(channel, &is_more, &err) : warm_up(channel, &err);
        not_before =
            is_more ? 0 : clock_monotonic_ms() + (result < 0 ? PATIENCE : gather_ms(channel));
        if (is_more || result < 0)
            atomic_store(&channel->is_told, true);
        if (result < 0)
            log_warn("events could not be read", F("error", (const char *)err.text));
    }
    return NULL;
}

static void wake(struct event_channel *channel)
{
    autolock(&channel->lock);
    lock_condition_wake(&channel->changed);
}

/* After a commit with events, on any thread that writes. */
static void on_events(void *data)
{
    struct event_channel *channel = data;

    if (atomic_load(&channel->n_joined) && !atomic_exchange(&channel->is_told, true))
        wake(channel);
}

int event_resume(struct store *store, struct error *err)
{
    char boot[64] = "";
    autofd fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, boot, sizeof boot - 1);

    if (got <= 0)
        return error_sys(err, "read which start of the machine this is");
    boot[strcspn(boot, "\n")] = '\0';
    return store_event_resume(store, boot, err);
}

int event_channel_open(struct store *store, struct hub *hub, struct event_channel **out,
                       struct error *err)
{
    struct event_channel *channel = xnew(struct event_channel);

    channel->store = store;
    channel->hub = hub;
    lock_init(&channel->lock, LOCK_CHANNEL);
    lock_condition_init(&channel->changed);
    int code = pthread_create(&channel->thread, NULL, run, channel);
    if (code) {
        lock_condition_clear(&channel->changed);
        lock_clear(&channel->lock);
        free(channel);
        return error_sys_code(err, code, "start the thread for events");
    }
    store_on_events(store, on_events, channel);
    *out = channel;
    return 0;
}

static void stop(struct event_channel *channel)
{
    autolock(&channel->lock);
    channel->is_stopping = true;
    lock_condition_wake(&channel->changed);
}

void event_channel_free(struct event_channel *channel)
{
    if (!channel)
        return;
    store_on_events(channel->store, NULL, NULL);
    stop(channel);
    (void)pthread_join(channel->thread, NULL);
    empty(channel, 0);
    lock_condition_clear(&channel->changed);
    lock_clear(&channel->lock);
    free(channel);
}

void event_channel_join(struct event_channel *channel)
{
    if (atomic_fetch_add(&channel->n_joined, 1) > 0)
        return;
    atomic_store(&channel->is_told, true); // of what was written while nobody was there
    wake(channel);
}

void event_channel_leave(struct event_channel *channel)
{
    (void)atomic_fetch_sub(&channel->n_joined, 1);
}

/* Under the lock: the first place whose serial is above `after`. */
static uint64_t find_place(const struct event_channel *channel, int64_t after)
{
    uint64_t low = channel->first, high = channel->first + channel->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (channel->ring[middle % RING]->info.serial > after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int event_channel_next(struct event_channel *channel, int64_t after, struct shared_event **out,
                       unsigned most)
{
    autolock(&channel->lock);
    if (!channel->is_warm) // it announces when it is
        return 0;
    if (after < channel->base)
        return -1;
    uint64_t end = channel->first + channel->count;
    unsigned count = 0;
    for (uint64_t place = find_place(channel, after); place < end && count < most; place++) {
        out[count] = channel->ring[place % RING];
        atomic_fetch_add(&out[count++]->refs, 1);
    }
    return (int)count;
}

int event_range(struct event_channel *channel, struct event_range *out, struct error *err)
{
    struct event_bounds bounds;

    if (store_event_bounds(channel->store, &bounds, err) < 0)
        return -1;
    *out = (struct event_range){bounds.forgotten, bounds.last};
    return 0;
}

int event_scan(struct event_channel *channel, const struct event_scan *scan,
               struct event_infos *out, int64_t *reached, struct error *err)
{
    autoevents found = {0};

    if (store_event_scan(channel->store, scan, &found, reached, err) < 0)
        return -1;
    event_infos_take(out, &found);
    return 0;
}
