/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes and commands are known in memory; see live.h. */
#include "base/mem.h"
#include "core/sandbox/sandbox_object.h"

#include <string.h>

#define BUCKETS 4096
#define REMEMBERED 1024 // that have ended

struct registry {
    pthread_mutex_t lock; // guards everything
    unsigned n_alive;
    struct sandbox *sandboxes[BUCKETS];
    struct execution *commands[BUCKETS];
    // Ended ones in the order of their ends, to be forgotten in that order.
    struct sandbox *ended[REMEMBERED];
    struct execution *ended_commands[REMEMBERED];
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

static void unlink_live(struct registry *registry, struct sandbox *sandbox)
{
    struct sandbox **at = &registry->sandboxes[bucket_of(sandbox->id)];
    while (*at && *at != sandbox)
        at = &(*at)->next_known;
    if (*at)
        *at = sandbox->next_known;
}

static void unlink_command(struct registry *registry, struct execution *execution)
{
    struct execution **at = &registry->commands[bucket_of(execution->id)];
    while (*at && *at != execution)
        at = &(*at)->next_known;
    if (*at)
        *at = execution->next_known;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (registry->commands[i]) {
            struct execution *execution = registry->commands[i];
            registry->commands[i] = execution->next_known;
            execution_free(execution);
        }
        while (registry->sandboxes[i]) {
            struct sandbox *sandbox = registry->sandboxes[i];
            registry->sandboxes[i] = sandbox->next_known;
            sandbox_free(sandbox);
        }
    }
    (void)pthread_mutex_destroy(&registry->lock);
    free(registry);
}

int registry_add(struct registry *registry, struct sandbox *sandbox, unsigned maximum,
                 struct error *err)
{
    (void)pthread_mutex_lock(&registry->lock);
    bool is_full = registry->n_alive >= maximum;
    if (!is_full) {
        struct sandbox **bucket = &registry->sandboxes[bucket_of(sandbox->id)];
        sandbox->next_known = *bucket;
        *bucket = sandbox_ref(sandbox);
        registry->n_alive++;
    }
    (void)pthread_mutex_unlock(&registry->lock);
    if (!is_full)
        return 0;
    return error_refuse(
        err, ERROR_FULL, "sandbox",
        "%u sandboxes are alive, which is as many as this server allows; end one and try again",
        maximum);
}

void registry_end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten)
{
    struct sandbox *forgotten = NULL;
    (void)pthread_mutex_lock(&registry->lock);
    registry->n_alive--;
    if (is_forgotten) {
        forgotten = sandbox;
    } else {
        size_t place = registry->n_ended++ % REMEMBERED;
        forgotten = registry->ended[place];
        registry->ended[place] = sandbox;
    }
    if (forgotten)
        unlink_live(registry, forgotten);
    (void)pthread_mutex_unlock(&registry->lock);
    sandbox_free(forgotten);
}

struct sandbox *registry_find(struct registry *registry, const char *id)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct sandbox *sandbox = registry->sandboxes[bucket_of(id)];
    while (sandbox && strcmp(sandbox->id, id) != 0)
        sandbox = sandbox->next_known;
    if (sandbox)
        sandbox_ref(sandbox);
    (void)pthread_mutex_unlock(&registry->lock);
    return sandbox;
}

unsigned registry_count(struct registry *registry)
{
    (void)pthread_mutex_lock(&registry->lock);
    unsigned count = registry->n_alive;
    (void)pthread_mutex_unlock(&registry->lock);
    return count;
}

size_t registry_all(struct registry *registry, struct sandbox ***out)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&registry->lock);
    struct sandbox **all = xcalloc(registry->n_alive + REMEMBERED + 1, sizeof *all);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct sandbox *sandbox = registry->sandboxes[i]; sandbox;
             sandbox = sandbox->next_known)
            all[count++] = sandbox_ref(sandbox);
    }
    (void)pthread_mutex_unlock(&registry->lock);
    *out = all;
    return count;
}

void registry_add_command(struct registry *registry, struct execution *execution)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct execution **bucket = &registry->commands[bucket_of(execution->id)];
    execution->next_known = *bucket;
    *bucket = execution_ref(execution);
    (void)pthread_mutex_unlock(&registry->lock);
}

void registry_end_command(struct registry *registry, struct execution *execution, bool is_forgotten)
{
    struct execution *forgotten = NULL;
    (void)pthread_mutex_lock(&registry->lock);
    if (is_forgotten) {
        forgotten = execution;
    } else {
        size_t place = registry->n_ended_commands++ % REMEMBERED;
        forgotten = registry->ended_commands[place];
        registry->ended_commands[place] = execution;
    }
    if (forgotten)
        unlink_command(registry, forgotten);
    (void)pthread_mutex_unlock(&registry->lock);
    execution_free(forgotten);
}

struct execution *registry_find_command(struct registry *registry, const char *id)
{
    (void)pthread_mutex_lock(&registry->lock);
    struct execution *execution = registry->commands[bucket_of(id)];
    while (execution && strcmp(execution->id, id) != 0)
        execution = execution->next_known;
    if (execution)
        execution_ref(execution);
    (void)pthread_mutex_unlock(&registry->lock);
    return execution;
}
