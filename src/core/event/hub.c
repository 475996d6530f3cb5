/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches by id, in shards with a lock each. A watch's fn is called with the lock of its shard held: that is what lets
 * watch_free promise that fn is not running.
 */
#include "core/event/hub.h"

#include "base/id_table.h"
#include "base/lock.h"
#include "base/mem.h"

#include <string.h>

#define SHARDS 64

/* An id that somebody watches. */
struct subject {
    struct id_entry entry;
    struct watch *watches;
    char id[];
};

struct watch {
    struct shard *shard;
    struct subject *subject;
    struct watch *next, **link;
    void (*fn)(void *data);
    void *data;
};

struct shard {
    struct lock lock; // guards the subjects and their watches
    struct id_table subjects;
};

struct hub {
    struct shard shards[SHARDS];
};

struct hub *hub_new(void)
{
    struct hub *hub = xnew(struct hub);

    for (size_t i = 0; i < SHARDS; i++)
        lock_init(&hub->shards[i].lock, LOCK_HUB);
    return hub;
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        id_table_clear(&hub->shards[i].subjects);
        lock_clear(&hub->shards[i].lock);
    }
    free(hub);
}

static struct shard *shard_of(struct hub *hub, uint64_t hash)
{
    return &hub->shards[(hash >> 48) % SHARDS];
}

static struct subject *find(struct shard *shard, const char *id, uint64_t hash)
{
    // The entry is the subject's first field.
    return (struct subject *)id_table_find(&shard->subjects, id, hash);
}

static struct subject *add_subject(struct shard *shard, const char *id, uint64_t hash)
{
    size_t length = strlen(id) + 1;
    struct subject *subject = xcalloc(1, sizeof *subject + length);

    memcpy(subject->id, id, length);
    subject->entry = (struct id_entry){.id = subject->id, .hash = hash};
    id_table_put(&shard->subjects, &subject->entry);
    return subject;
}

struct watch *hub_watch(struct hub *hub, const char *id, void (*fn)(void *data), void *data)
{
    uint64_t hash = id_hash(id);
    struct shard *shard = shard_of(hub, hash);
    struct watch *watch = xnew(struct watch);

    watch->shard = shard;
    watch->fn = fn;
    watch->data = data;
    autolock(&shard->lock);
    struct subject *subject = find(shard, id, hash);
    if (!subject)
        subject = add_subject(shard, id, hash);
    watch->subject = subject;
    watch->next = subject->watches;
    watch->link = &subject->watches;
    if (watch->next)
        watch->next->link = &watch->next;
    subject->watches = watch;
    return watch;
}

/* Returns the subject where nobody else watches it. */
static struct subject *unlink_watch(struct watch *watch)
{
    struct shard *shard = watch->shard;

    autolock(&shard->lock);
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    if (watch->subject->watches)
        return NULL;
    id_table_remove(&shard->subjects, &watch->subject->entry);
    return watch->subject;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    free(unlink_watch(watch));
    free(watch);
}

static void call_watches(const struct subject *subject)
{
    for (struct watch *watch = subject->watches; watch; watch = watch->next)
        watch->fn(watch->data);
}

void hub_announce(struct hub *hub, const char *id)
{
    uint64_t hash = id_hash(id);
    struct shard *shard = shard_of(hub, hash);

    autolock(&shard->lock);
    struct subject *subject = find(shard, id, hash);
    if (subject)
        call_watches(subject);
}

void hub_announce_all(struct hub *hub)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &hub->shards[i];
        autolock(&shard->lock);
        for (size_t b = 0; b < shard->subjects.n_buckets; b++) {
            for (struct id_entry *entry = shard->subjects.buckets[b]; entry; entry = entry->next)
                call_watches((struct subject *)entry);
        }
    }
}
