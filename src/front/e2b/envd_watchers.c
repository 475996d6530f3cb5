/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers that are asked for what has happened; see envd_watch.h. */
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/seal.h"
#include "front/e2b/envd_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHERS_MOST 4096
#define FORGET_MS 3600000

struct watcher {
    struct watcher *next;
    char id[ID_TEXT], sandbox_id[ID_TEXT];
    char *user, *path;
    struct file_watch *files;
    bool has_entries;
    bool is_busy; // somebody takes its events: not to be freed, nor taken by another
    uint64_t used_ms;
};

struct envd_watchers {
    struct lock lock; // guards the list and is_busy
    struct watcher *first;
    size_t count;
};

static void watcher_free(struct watcher *watcher)
{
    if (!watcher)
        return;
    file_watch_free(watcher->files);
    free(watcher->user);
    free(watcher->path);
    free(watcher);
}

struct envd_watchers *envd_watchers_new(void)
{
    struct envd_watchers *watchers = xnew(struct envd_watchers);

    lock_init(&watchers->lock, LOCK_FRONT);
    return watchers;
}

void envd_watchers_free(struct envd_watchers *watchers)
{
    if (!watchers)
        return;
    while (watchers->first) {
        struct watcher *watcher = watchers->first;
        watchers->first = watcher->next;
        watcher_free(watcher);
    }
    lock_clear(&watchers->lock);
    free(watchers);
}

/* Out of the list those that nobody has asked for long. Under the lock. */
static struct watcher *take_old(struct envd_watchers *watchers, uint64_t now)
{
    struct watcher *old = NULL;

    for (struct watcher **at = &watchers->first; *at;) {
        struct watcher *watcher = *at;
        if (watcher->is_busy || watcher->used_ms + FORGET_MS > now) {
            at = &watcher->next;
            continue;
        }
        *at = watcher->next;
        watcher->next = old;
        old = watcher;
        watchers->count--;
    }
    return old;
}

static size_t count_of(const struct envd_watchers *watchers, const char *sandbox_id)
{
    size_t count = 0;

    for (const struct watcher *at = watchers->first; at; at = at->next)
        count += strcmp(at->sandbox_id, sandbox_id) == 0;
    return count;
}

/* False: there are too many. */
static bool put(struct envd_watchers *watchers, struct watcher *watcher, struct watcher **old)
{
    autolock(&watchers->lock);
    *old = take_old(watchers, watcher->used_ms);
    if (watchers->count >= WATCHERS_MOST ||
        count_of(watchers, watcher->sandbox_id) >= ENVD_WATCHERS)
        return false;
    watcher->next = watchers->first;
    watchers->first = watcher;
    watchers->count++;
    return true;
}

static void free_all(struct watcher *list)
{
    while (list) {
        struct watcher *next = list->next;
        watcher_free(list);
        list = next;
    }
}

int envd_watcher_add(struct call *call, struct file_watch *watch, const struct file_place *place,
                     bool has_entries, char id[ID_TEXT], struct error *err)
{
    struct watcher *watcher = xnew(struct watcher), *old = NULL;

    (void)id_make(id);
    memcpy(watcher->id, id, ID_TEXT);
    (void)snprintf(watcher->sandbox_id, sizeof watcher->sandbox_id, "%s", place->sandbox_id);
    watcher->user = place->user ? xstrdup(place->user) : NULL;
    watcher->path = xstrdup(place->path);
    watcher->files = watch;
    watcher->has_entries = has_entries;
    watcher->used_ms = clock_monotonic_ms();
    bool is_put = put(e2b_of(call)->watchers, watcher, &old);
    free_all(old);
    if (is_put)
        return 0;
    watcher_free(watcher);
    return error_refuse(err, ERROR_FULL, "watcher",
                        "there are too many watchers: remove some of them first");
}

static struct watcher **find(struct envd_watchers *watchers, const char *sandbox_id, const char *id)
{
    struct watcher **at = &watchers->first;

    while (*at && (strcmp((*at)->id, id) != 0 || strcmp((*at)->sandbox_id, sandbox_id) != 0))
        at = &(*at)->next;
    return at;
}

static int missing(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "watcher", "watcher with id '%.64s' not found", id);
}

/* To be given back with give_back; NULL with *is_known: somebody else has it. */
static struct watcher *occupy(struct envd_watchers *watchers, const char *sandbox_id,
                              const char *id, bool *is_known)
{
    autolock(&watchers->lock);
    struct watcher *watcher = *find(watchers, sandbox_id, id);
    *is_known = watcher != NULL;
    if (!watcher || watcher->is_busy)
        return NULL;
    watcher->is_busy = true;
    watcher->used_ms = clock_monotonic_ms();
    return watcher;
}

static void give_back(struct envd_watchers *watchers, struct watcher *watcher)
{
    autolock(&watchers->lock);
    watcher->is_busy = false;
}

static void put_event(void *data, const char *json)
{
    json_raw(data, json, strlen(json));
}

int envd_watcher_take(struct call *call, const char *sandbox_id, const char *id,
                      struct json_writer *json, struct error *err)
{
    struct envd_watchers *watchers = e2b_of(call)->watchers;
    bool is_known = false;
    struct watcher *watcher = occupy(watchers, sandbox_id, id, &is_known);
    struct error over = {0};

    if (!watcher)
        return is_known ? 0 : missing(id, err);
    const struct file_place place = {watcher->sandbox_id, watcher->user, watcher->path};
    const struct envd_teller teller = {call, &place, watcher->has_entries, put_event, json};
    int taken;
    do
        taken = envd_watch_tell(watcher->files, &teller, &over);
    while (taken > 0);
    give_back(watchers, watcher);
    return 0;
}

int envd_watcher_remove(struct call *call, const char *sandbox_id, const char *id,
                        struct error *err)
{
    struct envd_watchers *watchers = e2b_of(call)->watchers;
    bool is_known = false;
    struct watcher *watcher = occupy(watchers, sandbox_id, id, &is_known);

    if (!watcher)
        return is_known ? error_refuse(err, ERROR_BUSY, "watcher", "the watcher is in use")
                        : missing(id, err);
    {
        autolock(&watchers->lock);
        struct watcher **at = find(watchers, sandbox_id, id);
        *at = watcher->next;
        watchers->count--;
    }
    watcher_free(watcher);
    return 0;
}
