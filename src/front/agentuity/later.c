/* SPDX-License-Identifier: Apache-2.0 */
/* What this server does not do yet: pausing, checkpoints, snapshots. Each says so, as a client's mistake, so that nobody retries. */
#include "front/agentuity/agentuity_impl.h"

static int refuse_pause(struct call *call, struct error *err)
{
    return error_set(err, ERROR_INVALID, "pausing and resuming a sandbox is not available yet");
}

static int refuse_checkpoint(struct call *call, struct error *err)
{
    return error_set(err, ERROR_INVALID, "a checkpoint of a sandbox's disk is not available yet");
}

static int refuse_snapshot(struct call *call, struct error *err)
{
    return error_set(err, ERROR_INVALID, "making a snapshot is not available yet");
}

static int write_none(struct call *call, const char *name)
{
    autoreply reply = {0};

    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, name);
    json_list_begin(&reply.json);
    json_list_end(&reply.json);
    member_integer(&reply.json, "total", 0);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* GET /sandbox/snapshots, /sandbox/snapshots/public */
static int list_snapshots(struct call *call, struct error *err)
{
    return write_none(call, "snapshots");
}

static int not_found(const char *name, struct error *err)
{
    error_set(err, ERROR_NOT_FOUND, "snapshot '%.128s' not found", name ? name : "");
    return error_about(err, "snapshot", NULL);
}

/* …/snapshots/{snapshotId} and …/snapshots/public/{ref} */
static int find_snapshot(struct call *call, struct error *err)
{
    return not_found(call->parameters[0], err);
}

/* GET /sandbox/snapshots/lineage */
static int find_lineage(struct call *call, struct error *err)
{
    const char *name = query_text(call->query, "snapshot");

    return not_found(name ? name : query_text(call->query, "name"), err);
}

static const struct parameter lineage_parameters[] = {
    {"snapshot", PARAMETER_TEXT, NULL, NULL}, {"name", PARAMETER_TEXT, NULL, NULL}, {0}};

const struct route agentuity_later_routes[] = {
    {"POST", "/sandbox/{id}/pause", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_pause,
     "not available yet"},
    {"POST", "/sandbox/{id}/resume", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_pause,
     "not available yet"},
    {"POST", "/sandbox/{id}/checkpoint", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_checkpoint,
     "not available yet"},
    {"GET", "/sandbox/checkpoints/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_checkpoint,
     "not available yet"},
    {"POST", "/sandbox/{id}/checkpoint/{ref}/restore", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     refuse_checkpoint, "not available yet"},
    {"DELETE", "/sandbox/{id}/checkpoint/{ref}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     refuse_checkpoint, "not available yet"},
    {"POST", "/sandbox/{id}/snapshot", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_snapshot,
     "not available yet"},
    {"POST", "/sandbox/snapshots/build", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_snapshot,
     "not available yet"},
    {"GET", "/sandbox/snapshots", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_snapshots,
     "snapshots: none yet"},
    {"GET", "/sandbox/snapshots/public", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, list_snapshots,
     "public snapshots: none yet"},
    {"GET", "/sandbox/snapshots/lineage", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, find_lineage,
     "what a snapshot was made from", .query = lineage_parameters},
    {"GET", "/sandbox/snapshots/public/{ref}", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, find_snapshot,
     "a public snapshot"},
    {"GET", "/sandbox/snapshots/{snapshotId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, find_snapshot,
     "a snapshot"},
    {"PATCH", "/sandbox/snapshots/{snapshotId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, find_snapshot,
     "a snapshot's tag"},
    {"DELETE", "/sandbox/snapshots/{snapshotId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, find_snapshot,
     "removes a snapshot"},
    {"PUT", "/sandbox/snapshots/{snapshotId}/upload", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE,
     find_snapshot, "the files of a snapshot that is being built"},
    {"POST", "/sandbox/snapshots/{snapshotId}/finalize", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     find_snapshot, "ends building a snapshot"},
    {0},
};
