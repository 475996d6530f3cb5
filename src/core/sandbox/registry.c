/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes and commands are known in memory; see live.h. */
#include "base/mem.h"
#include "core/sandbox/live.h"

#include <string.h>

#define BUCKETS 4096
#define REMEMBERED 1024 // that have ended

struct registry {
    pthread_mutex_t lock; // guards everything
    unsigned n_alive;
    struct live *sandboxes[BUCKETS];
    struct running *commands[BUCKETS];
    // Ended ones in the order of their ends, to be forgotten in that order.
    struct live *ended[REMEMBERED];
    struct running *ended_commands[REMEMBERED];
    size_t n_ended, n_ended_commands;
};

struct registry *registry_new(void)
{
    struct registry *registry = xnew(struct registry);
    (void)pthread_mutex_init(&registry->lock, NULL);
    return registry;
}

/* Ids are random: any of their letters are as good as a hash. */
static unsigned bucket_of(const char *id)
{
    unsigned hash = 0;
    for (unsigned i = 0; i < 8 && id[i]; i++)
        hash = hash * 33 + (unsigned char)id[i];
    return hash % BUCKETS;
}

static void unlink_live(struct registry *registry, struct live *live)
{
    struct live **at = &registry->sandboxes[bucket_of(live->id)];
    while (*at && *at != live)
        at = &(*at)->next_known;
    if (*at)
        *at = live->next_known;
}

static void unlink_command(struct registry *registry, struct running *running)
{
    struct running **at = &registry->commands[bucket_of(running->id)];
    while (*at && *at != running)
        at = &(*at)->next_known;
    if (*at)
        *at = running->next_known;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (registry->commands[i]) {
            struct running *running = registry->commands[i];
            registry->commands[i] = running->next_known;
            running_free(running);
        }
        while (registry->sandboxes[i]) {
            struct live *live = registry->sandboxes[i];
            registry->sandboxes[i] = live->next_known;
            live_free(live);
        }
    }
    (void)pthread_mutex_destroy(&registry->lock);
    free(registry);
}

int registry_add(struct registry *registry, struct live *live, unsigned maximum, struct error *err)
{
    (void)pthread_mutex_lock(&registry->lock);
    bool is_full = registry->n_alive >= maximum;
    if (!is_full) {
        struct live **bucket = &registry->sandboxes[bucket_of(live->id)];
        live->next_known = *bucket;
        *bucket = live_ref(live);
        registry->n_alive++;
    }
    (void)pthread_mutex_unlock(&registry->lock);
    if (!is_full)
        return 0;
    error_set(
        err, ERROR_LIMIT,
        "%u sandboxes are alive, which is as many as this server allows; end one and try again",
        maximum);
    return error_about(err, "sandbox", "full");
}

void registry_end(struct registry *registry, struct live *live, bool is_forgotten)
{
    struct live *forgotten = NULL;
    (void)pthread_mutex_lock(&registry->lock);
    registry->n_alive--;
    if (is_forgotten) {
        forgotten = live;
    } else {
        size_t place = registry->n_ended++ % REMEMBERED;
        forgotten = registry->ended[place];
        registry->ended[place] = live;
    }
    if (forgotten)
        unlink_live(registry, forgotten);
    (void)pthread_mutex_unlock(&registry->lock);
    live_free(forgotten);
}

struct live *registry_find(struct registry *registry, const char *id)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct live *live = registry->sandboxes[bucket_of(id)];
    while (live && strcmp(live->id, id) != 0)
        live = live->next_known;
    if (live)
        live_ref(live);
    (void)pthread_mutex_unlock(&registry->lock);
    return live;
}

unsigned registry_count(struct registry *registry)
{
    (void)pthread_mutex_lock(&registry->lock);
    unsigned count = registry->n_alive;
    (void)pthread_mutex_unlock(&registry->lock);
    return count;
}

size_t registry_all(struct registry *registry, struct live ***out)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&registry->lock);
    struct live **all = xcalloc(registry->n_alive + REMEMBERED + 1, sizeof *all);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct live *live = registry->sandboxes[i]; live; live = live->next_known)
            all[count++] = live_ref(live);
    }
    (void)pthread_mutex_unlock(&registry->lock);
    *out = all;
    return count;
}

void registry_add_command(struct registry *registry, struct running *running)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct running **bucket = &registry->commands[bucket_of(running->id)];
    running->next_known = *bucket;
    *bucket = running_ref(running);
    (void)pthread_mutex_unlock(&registry->lock);
}

void registry_end_command(struct registry *registry, struct running *running, bool is_forgotten)
{
    struct running *forgotten = NULL;
    (void)pthread_mutex_lock(&registry->lock);
    if (is_forgotten) {
        forgotten = running;
    } else {
        size_t place = registry->n_ended_commands++ % REMEMBERED;
        forgotten = registry->ended_commands[place];
        registry->ended_commands[place] = running;
    }
    if (forgotten)
        unlink_command(registry, forgotten);
    (void)pthread_mutex_unlock(&registry->lock);
    running_free(forgotten);
}

struct running *registry_find_command(struct registry *registry, const char *id)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct running *running = registry->commands[bucket_of(id)];
    while (running && strcmp(running->id, id) != 0)
        running = running->next_known;
    if (running)
        running_ref(running);
    (void)pthread_mutex_unlock(&registry->lock);
    return running;
}
