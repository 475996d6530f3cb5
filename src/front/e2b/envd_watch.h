/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watched directories as messages of a stream, or kept until somebody asks.
 * Threads: any but loops.
 */
#pragma once
#include "core/sandbox/file_watch.h"
#include "front/e2b/e2b_impl.h"

struct envd_watching {
    struct file_watch *watch; // taken
    const struct file_place *place;
    bool has_entries; // events tell what stands there
};
/* Answers the call: start, events, keepalive, until the client goes, the directory does, or the time is over. */
void envd_watch_start(struct call *call, const struct envd_watching *watching);

/* Those who are asked. Of a sandbox at most ENVD_WATCHERS, in all some thousands; one that nobody asks for an hour goes. Lost with the server. */
#define ENVD_WATCHERS 64
struct envd_watchers;
struct envd_watchers *envd_watchers_new(void);
void envd_watchers_free(struct envd_watchers *watchers);

/* Takes the watch. ERROR_FULL. */
int envd_watcher_add(struct call *call, struct file_watch *watch, const struct file_place *place,
                     bool has_entries, char id[ID_TEXT], struct error *err);
/* Writes the events there are into a list. ERROR_NOT_FOUND. */
int envd_watcher_take(struct call *call, const char *sandbox_id, const char *id,
                      struct json_writer *json, struct error *err);
int envd_watcher_remove(struct call *call, const char *sandbox_id, const char *id,
                        struct error *err);

/*
 * What has happened, as {"name", "type", "entry"?} each, given to `put` with the JSON of one. A rename within the directory is two. Blocks where
 * there are entries.
 */
struct envd_teller {
    struct call *call; // its arena is used
    const struct file_place *place;
    bool has_entries;
    void (*put)(void *data, const char *json);
    void *data;
};
/* As file_watch_take. */
int envd_watch_tell(struct file_watch *watch, const struct envd_teller *teller, struct error *err);
