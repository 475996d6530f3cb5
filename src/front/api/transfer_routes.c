/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots from one machine to another, as one file. */
#include "core/snapshot/snapshot_archive.h"
#include "base/mem.h"
#include "front/api/api_snapshot.h"
#include "web/client_watch.h"
#include "web/collect.h"

#include <stdio.h>
#include <string.h>

enum export_format { EXPORT_SNAPSHOT, EXPORT_IMAGE };
static const char *const export_words[] = {"snapshot", "oci", NULL};
static const struct {
    int (*make)(struct snapshots *snapshots, const struct actor *actor, const char *id,
                uint64_t maximum, struct temporary **out, struct error *err);
    const char *type, *suffix;
} export_formats[] = {
    [EXPORT_SNAPSHOT] = {snapshot_export, "application/zstd", "tar.zst"},
    [EXPORT_IMAGE] = {snapshot_export_image, "application/x-tar", "oci.tar"},
};

/* GET /api/v1/snapshots/{snapshot}/export */
static int export(struct call *call, struct error *err)
{
    const char *word = query_text(call->query, "format");
    enum export_format format = word && strcmp(word, "oci") == 0 ? EXPORT_IMAGE : EXPORT_SNAPSHOT;
    struct temporary *file = NULL;
    const char *id;

    if (api_snapshot(call, &id, err) < 0)
        return -1;
    client_watch_start(call);
    if (export_formats[format].make(call->core->snapshots, &call->actor, id,
                                    snapshot_archive_room(call->core->snapshots), &file, err) < 0)
        return -1;
    const struct http_header headers[] = {
        {"Content-Type", export_formats[format].type},
        {"Content-Disposition",
         call_print(call, "attachment; filename=\"" SNAPSHOT_PREFIX "%s.%s\"", id,
                    export_formats[format].suffix)},
        {"Cache-Control", "no-store"},
        {0},
    };
    return client_watch_send_file(call, 200, headers, file);
}

struct import {
    struct waiting_call waiting;
    char *name; // NULL: as the archive says
    char *tag;
    bool is_public, is_forced;
};

static void import_free(struct import *import)
{
    if (!import)
        return;
    waiting_call_clear(&import->waiting);
    free(import->name);
    free(import->tag);
    free(import);
}
DEFINE_AUTOPTR(import)

static void on_collected_snapshot(void *data, struct collected *body, const struct error *failure)
{
    autoptr(import) import = data;
    struct waiting_call *waiting = &import->waiting;
    struct snapshot_import_request want = {.name = import->name,
                                           .tag = import->tag,
                                           .is_public = import->is_public,
                                           .is_forced = import->is_forced};
    autoclear(snapshot_info) info = {0};
    struct error err = {0};

    if (!failure && snapshot_import(waiting->core->snapshots, &waiting->actor, &want, body->fd,
                                    &info, &err) < 0)
        failure = &err;
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    (void)api_snapshot_answer(&call, 201, &info);
}

/* POST /api/v1/snapshots/import */
static int import(struct call *call, struct error *err)
{
    const char *name = query_text(call->query, "name");
    const char *tag = query_text(call->query, "tag");
    struct import *import = xnew(struct import);

    waiting_call_init(&import->waiting, call);
    import->name = name ? xstrdup(name) : NULL;
    import->tag = tag ? xstrdup(tag) : NULL;
    import->is_public = query_bool(call->query, "public", false);
    import->is_forced = query_bool(call->query, "force", false);
    collect_start(&import->waiting, snapshot_archive_room(call->core->snapshots),
                  on_collected_snapshot, import);
    return 0;
}

static const struct parameter import_parameters[] = {
    {"name", PARAMETER_TEXT, NULL, "instead of the one it had"},
    {"tag", PARAMETER_TEXT, NULL, "instead of the one it had"},
    {"public", PARAMETER_BOOL, NULL, NULL},
    {"force", PARAMETER_BOOL, NULL, "also onto another build of its runtime"},
    {0},
};

static const struct parameter export_parameters[] = {
    {"format", PARAMETER_WORD, export_words,
     "snapshot (the default), for burrow's import; or oci, an image with its runtime, in a tar"},
    {0},
};
static const struct route_answer export_answers[] = {
    {200, .content = "application/zstd"}, {200, .content = "application/x-tar"}, {0}};

const struct route api_transfer_routes[] = {
    {"GET", API_TOP "/snapshots/{snapshot}/export", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, export,
     .summary = "a snapshot as one file, for another machine", .query = export_parameters,
     .answers = export_answers, .needs = SCOPE_READ, .is_heavy = true},
    {"POST", API_TOP "/snapshots/import", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, import,
     .summary = "makes a snapshot of such a file", .query = import_parameters,
     .answers = api_snapshot_made_answers, .needs = SCOPE_MANAGE},
    {0},
};
