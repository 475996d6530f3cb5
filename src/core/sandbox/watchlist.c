/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes the monitor looks at; see watchlist.h. */
#include "core/sandbox/watchlist.h"

#include "base/mem.h"
#include "core/sandbox/registry.h"

struct watchlist {
    struct loop *loop;
    _Atomic(struct sandbox *) noticed; // a stack; each is a reference
    struct sandbox **watched;          // likewise; the monitor's
    size_t count, capacity;
};

struct watchlist *watchlist_new(struct loop *loop)
{
    struct watchlist *list = xnew(struct watchlist);
    list->loop = loop;
    return list;
}

void watchlist_notice(struct sandbox *sandbox)
{
    struct watchlist *list = sandbox->sandboxes->watchlist;

    sandbox->n_noticed++;
    if (!list || atomic_exchange(&sandbox->is_watched_closely, true))
        return;
    sandbox_ref(sandbox);
    sandbox->next_noticed = atomic_load(&list->noticed);
    while (!atomic_compare_exchange_weak(&list->noticed, &sandbox->next_noticed, sandbox))
        ;
}

static void on_deadline(void *data)
{
    struct sandbox *sandbox = data;
    watchlist_notice(sandbox);
    sandbox_free(sandbox); // the timer's
}

static void clear_timer(struct sandbox *sandbox)
{
    if (sandbox->deadline.place == 0)
        return;
    loop_timer_clear(&sandbox->deadline);
    sandbox_free(sandbox);
}

static void set_timer(struct watchlist *list, struct sandbox *sandbox, int64_t after_ms)
{
    if (sandbox->deadline.place == 0) {
        loop_timer_init(&sandbox->deadline, list->loop, on_deadline, sandbox);
        sandbox_ref(sandbox);
    }
    loop_timer_set(&sandbox->deadline, (uint64_t)after_ms);
}

static void take_noticed(struct watchlist *list)
{
    struct sandbox *next = NULL;

    for (struct sandbox *at = atomic_exchange(&list->noticed, NULL); at; at = next) {
        next = take(at->next_noticed);
        if (list->count == list->capacity) {
            list->capacity = list->capacity ? list->capacity * 2 : 64;
            list->watched = xrealloc(list->watched, list->capacity, sizeof *list->watched);
        }
        list->watched[list->count++] = at;
    }
}

/* Whether it can be left until its deadline; then the list no longer has it. */
static bool leave(struct watchlist *list, struct sandbox *sandbox, int64_t now,
                  int64_t (*deadline)(struct sandbox *sandbox))
{
    int64_t at = deadline(sandbox);
    if (at <= now)
        return false;
    sandbox->is_watched_closely = false;
    // Whoever noticed something before that relied on the list; whoever does after it, puts it there again.
    at = deadline(sandbox);
    if (at <= now && !atomic_exchange(&sandbox->is_watched_closely, true))
        return false;
    if (at != INT64_MAX)
        set_timer(list, sandbox, at > now ? at - now : 0);
    else
        clear_timer(sandbox);
    return true;
}

void watchlist_look(struct watchlist *list, int64_t now,
                    void (*look)(struct sandbox *sandbox, int64_t now),
                    int64_t (*deadline)(struct sandbox *sandbox))
{
    size_t kept = 0;

    take_noticed(list);
    for (size_t i = 0; i < list->count; i++) {
        struct sandbox *sandbox = list->watched[i];
        bool is_over = !sandbox->is_registered;
        if (is_over)
            clear_timer(sandbox);
        else
            look(sandbox, now);
        if (is_over || leave(list, sandbox, now, deadline))
            sandbox_free(sandbox);
        else
            list->watched[kept++] = sandbox;
    }
    list->count = kept;
}

void watchlist_empty(struct watchlist *list, struct registry *registry)
{
    struct sandbox **all = NULL;
    size_t count = registry ? registry_all(registry, &all) : 0;

    take_noticed(list);
    for (size_t i = 0; i < list->count; i++) {
        clear_timer(list->watched[i]);
        sandbox_free(list->watched[i]);
    }
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        clear_timer(all[i]);
        sandbox_free(all[i]);
    }
    free(all);
}

void watchlist_free(struct watchlist *list)
{
    if (!list)
        return;
    watchlist_empty(list, NULL);
    free(list->watched);
    free(list);
}
