/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: make, list, look at, wait for, pause, wake, delete. */
#include "base/label.h"
#include "core/fork.h"
#include "core/sandbox/gauge.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api_page.h"
#include "front/api/sandbox_answer.h"
#include "front/api/sandbox_body.h"
#include "web/delivery.h"
#include "web/instant.h"
#include "web/poll.h"
#include "web/representation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAIT_USUAL_MS 30000

/* Of all that is told but for what it has used, which grows by itself. */
#define TAG_TEXT 40
static const char *tag_of(const struct sandbox_info *info, char tag[TAG_TEXT])
{
    (void)snprintf(tag, TAG_TEXT, "\"%" PRIx64 "-%x\"", (uint64_t)info->updated_at,
                   (unsigned)info->state);
    return tag;
}

static int answer_whole(struct call *call, int status, const struct sandbox_info *info,
                        const struct answer_list *ports, const char *const *left_out)
{
    autoclear(sandbox_answer) answer = {0};
    char tag[TAG_TEXT];
    const struct http_header headers[] = {
        {"Content-Type", "application/json"}, {"ETag", tag_of(info, tag)}, {0}};
    struct error err = {0};
    autoreply reply = {0};

    sandbox_answer_init(&answer, info);
    answer.left_out = left_out;
    answer.has_ports = ports != NULL;
    if (ports)
        answer.ports = *ports;
    reply_init(&reply);
    answer_write(&reply.json, sandbox_answer_fields, &answer);
    if (json_writer_finish(&reply.json, &err) < 0)
        reply_send(&reply, call->response, 500);
    else
        (void)response_send(call->response, status, headers, reply.text.data, reply.text.length);
    return 0;
}

static int answer_sandbox(struct call *call, int status, const struct sandbox_info *info)
{
    return answer_whole(call, status, info, NULL, NULL);
}

/* The same request may have been answered before: then its tokens are not known any more. */
static int answer_created(struct call *call, const struct sandbox_info *info,
                          const struct sandbox_request *want)
{
    autoclear(port_infos) found = {0};
    struct error ignored = {0};
    struct answer_list ports;

    if (want->n_ports == 0)
        return answer_sandbox(call, 201, info);
    if (want->exposed[0].created_at)
        ports = port_answer_list(call, want->exposed, want->n_ports);
    else if (port_list(call->core->ports, &call->actor, info->id, &found, &ignored) == 0)
        ports = port_answer_list(call, found.items, found.count);
    else
        return answer_sandbox(call, 201, info);
    return answer_whole(call, 201, info, &ports, NULL);
}

static const struct route_answer one_answers[] = {{200, sandbox_answer_fields}, {0}};
static const struct route_answer created_answers[] = {{201, sandbox_answer_fields}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

// ---- POST /api/v1/sandboxes ----

static int create_sandbox(struct call *call, struct error *err)
{
    struct sandbox_request want;
    struct execution_request command;
    autoclear(sandbox_info) info = {0};

    if (sandbox_body_create(call, &want, &command, err) < 0 || call_once(call, &want.once, err) < 0)
        return -1;
    if (sandbox_create(call->core, &call->actor, &want, &info, NULL, err) < 0)
        return sandbox_body_fail(err);
    call_about_sandbox(call, SANDBOX_PREFIX, info.id);
    if (!want.once)
        delivery_watch(call, info.id);
    return answer_created(call, &info, &want);
}

// ---- GET /api/v1/sandboxes ----

/* "idle,ended" */
static int read_states(const char *text, const char *field, unsigned *out, struct error *err)
{
    unsigned states = 0;

    while (text && *text) {
        size_t length = strcspn(text, ",");
        unsigned i = 0;
        while (i < SANDBOX_STATES && (strlen(sandbox_state_names[i]) != length ||
                                      strncmp(sandbox_state_names[i], text, length) != 0))
            i++;
        if (i == SANDBOX_STATES) {
            (void)error_set(err, ERROR_INVALID,
                            "%s: '%.*s' is not a state of a sandbox: creating, idle, running, "
                            "pausing, paused, resuming, stopping, ended, failed or deleted",
                            field, (int)(length < 40 ? length : 40), text);
            return error_field(err, field);
        }
        states |= sandbox_in(i);
        text += length + (text[length] == ',');
    }
    *out = states;
    return 0;
}

static const struct parameter list_parameters[] = {
    API_PAGE_PARAMETERS,
    {"state", PARAMETER_TEXT, NULL,
     "one or several of the states, separated by commas: creating, idle, running, pausing, paused, "
     "resuming, stopping, ended, failed, deleted"},
    {"selector", PARAMETER_TEXT, NULL,
     "a selector: team=blue, team!=blue, team, !team, team in (blue,red), team notin (blue,red); "
     "several are separated by commas, and all must hold"},
    {"name", PARAMETER_TEXT, NULL, "called exactly so"},
    {"runtime", PARAMETER_TEXT, NULL, "started from this runtime, with its tag"},
    {"project", PARAMETER_TEXT, NULL, "of this project"},
    {"from", PARAMETER_TEXT, NULL, "made at this time or later"},
    {0},
};
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(sandbox_entry_fields, struct sandbox_entry), {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};

static int read_filter(struct call *call, struct sandbox_filter *out,
                       struct label_selector *selector, struct error *err)
{
    const char *text = query_text(call->query, "selector");
    const char *from = query_text(call->query, "from");

    *out = (struct sandbox_filter){
        .owner.project = query_text(call->query, "project"),
        .name = query_text(call->query, "name"),
        .runtime = query_text(call->query, "runtime"),
        .sort = SANDBOX_BY_CREATED,
        .is_descending = true,
    };
    if (from && instant_parse(from, "from", &out->created_from, err) < 0)
        return error_field(err, "from");
    if (text && label_selector_parse(text, selector, err) < 0)
        return error_field(err, "selector");
    out->labels = text ? selector : NULL;
    if (read_states(query_text(call->query, "state"), "state", &out->states, err) < 0)
        return -1;
    return api_page_read(call, &out->page, err);
}

static int list_sandboxes(struct call *call, struct error *err)
{
    struct sandbox_filter filter;
    autoselector selector = {0};
    autoclear(sandbox_infos) found = {0};

    if (read_filter(call, &filter, &selector, err) < 0 ||
        sandbox_list(call->core->sandboxes, &call->actor, &filter, &found, err) < 0)
        return -1;
    struct sandbox_entry *items = call_alloc(call, (found.count + 1) * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = sandbox_entry_of(&found.items[i]);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

// ---- GET, DELETE /api/v1/sandboxes/{sandbox} ----

static int get_sandbox(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, false, &info, err) < 0)
        return -1;
    return answer_sandbox(call, 200, &info);
}

static int delete_sandbox(struct call *call, struct error *err)
{
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_delete(call->core->sandboxes, &call->actor, id, err) < 0)
        return -1;
    return api_answer_empty(call);
}

// ---- GET /api/v1/sandboxes/{sandbox}/metrics ----

struct metrics_answer {
    int64_t measured_at, cpu_ms, memory_bytes, disk_bytes, egress_bytes;
};

#define AT(member) offsetof(struct metrics_answer, member)
static const struct answer_field metrics_fields[] = {
    {"measuredAt", ANSWER_TIME, AT(measured_at), .is_needed = true,
     .help = "when that was looked at"},
    {"cpuMs", ANSWER_INTEGER, AT(cpu_ms), .is_needed = true,
     .help = "of all processors; from 0 again where its processes were ended and its files kept"},
    {"memoryBytes", ANSWER_INTEGER, AT(memory_bytes), .is_needed = true, .help = "in use now"},
    {"diskBytes", ANSWER_INTEGER, AT(disk_bytes), .is_needed = true,
     .help = "that its own files take now"},
    {"egressBytes", ANSWER_INTEGER, AT(egress_bytes), .is_needed = true,
     .help = "that left it; from 0 again as cpuMs is"},
    {0},
};
#undef AT
static const struct route_answer metrics_answers[] = {{200, metrics_fields}, {0}};

static int get_metrics(struct call *call, struct error *err)
{
    struct sandbox_gauge now;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_gauge_once(call->core->sandboxes, &call->actor, id, &now, err) < 0)
        return -1;
    const struct metrics_answer answer = {now.now, now.cpu_us / 1000, now.memory_bytes,
                                          now.disk_bytes, now.egress_bytes};
    return api_answer(call, 200, metrics_fields, &answer);
}

// ---- GET /api/v1/sandboxes/{sandbox}/wait ----

static const struct parameter wait_parameters[] = {
    {"state", PARAMETER_TEXT, NULL,
     "one or several of the states, separated by commas; default: ended. Whatever it is, the end "
     "is waited for too, and ended stands for failed and deleted as well"},
    {"waitMs", PARAMETER_MS, NULL, "for at most so long; default 30s", .minimum = 0,
     .maximum = POLL_MAX_MS},
    {0},
};
static const struct route_answer wait_answers[] = {{200, sandbox_wait_fields}, {0}};

/* Nothing comes after the end. */
static bool is_time(const unsigned *states, enum sandbox_state state)
{
    return (*states | SANDBOX_OVER) & sandbox_in(state);
}

static int look(const struct poll *poll, bool is_last, struct error *err)
{
    const unsigned *states = poll->data;
    autoclear(sandbox_info) info = {0};

    if (sandbox_get(poll->call->core->sandboxes, &poll->call->actor, poll->id, true, &info, err) <
        0)
        return -1;
    if (!is_last && !is_time(states, info.state))
        return POLL_WAITS;
    autoclear(sandbox_answer) answer = {0};
    sandbox_answer_init(&answer, &info);
    answer.is_reached = (*states & sandbox_in(info.state)) != 0;
    (void)api_answer(poll->call, 200, sandbox_wait_fields, &answer);
    return POLL_ANSWERED;
}

/* Tells only that it is not time yet: the whole of a sandbox is in the store. */
static enum poll_look look_quick(const struct poll *poll, bool is_last)
{
    struct sandbox_status status;

    if (is_last || sandbox_status_quick(poll->call->core->sandboxes, &poll->call->actor, poll->id,
                                        &status) != 1)
        return POLL_ELSEWHERE;
    return is_time(poll->data, status.state) ? POLL_ELSEWHERE : POLL_WAITS;
}

static const struct poll_kind wait_kind = {.look_quick = look_quick, .look = look};

static int wait_for_sandbox(struct call *call, struct error *err)
{
    int64_t wait_ms = query_ms(call->query, "waitMs", WAIT_USUAL_MS);
    unsigned states = 0;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        read_states(query_text(call->query, "state"), "state", &states, err) < 0)
        return -1;
    if (!states || (states & sandbox_in(SANDBOX_ENDED)))
        states |= SANDBOX_OVER;
    return poll_call(call, &wait_kind, id, wait_ms, &states, sizeof states, err);
}

// ---- POST /api/v1/sandboxes/{sandbox}/pause, /resume ----

static int pause_sandbox(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_pause(call->core->sandboxes, &call->actor, id, &info, err) < 0)
        return -1;
    return answer_sandbox(call, 200, &info);
}

static int resume_sandbox(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_resume(call->core->sandboxes, &call->actor, id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, true, &info, err) < 0)
        return -1;
    return answer_sandbox(call, 200, &info);
}

// ---- PATCH /api/v1/sandboxes/{sandbox} ----

/* If-Match: nothing is changed when somebody else was quicker. */
static int check_tag(void *data, const struct sandbox_info *now, struct error *err)
{
    char tag[TAG_TEXT];

    if (representation_has_tag(data, tag_of(now, tag)))
        return 0;
    return error_refuse(err, ERROR_PRECONDITION, "sandbox",
                        "the sandbox is no longer as If-Match says");
}

static int change_sandbox(struct call *call, struct error *err)
{
    struct sandbox_changes changes;
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || sandbox_body_change(call, &changes, err) < 0)
        return -1;
    changes.check_data = (void *)(uintptr_t)call_header(call, "If-Match");
    changes.check = changes.check_data ? check_tag : NULL;
    if (sandbox_modify(call->core->sandboxes, &call->actor, id, &changes, &info, err) < 0)
        return sandbox_body_fail(err);
    return answer_sandbox(call, 200, &info);
}

// ---- POST /api/v1/sandboxes/{sandbox}/fork ----

static int fork_sandbox(struct call *call, struct error *err)
{
    struct sandbox_changes changes;
    const struct once *once = NULL;
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || sandbox_body_change(call, &changes, err) < 0 ||
        call_once(call, &once, err) < 0)
        return -1;
    if (sandbox_fork(call->core, &call->actor, id, &changes, once, &info, err) < 0)
        return sandbox_body_fail(err);
    if (!once)
        delivery_watch(call, info.id);
    return answer_whole(call, 201, &info, NULL, mount_targets(call, id));
}

#define ONE API_TOP "/sandboxes/{sandbox}"

const struct route api_sandbox_routes[] = {
    {"POST", API_TOP "/sandboxes", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, create_sandbox,
     .summary = "makes a sandbox; returns when it is up, with its files there and its command "
                "started",
     .fields = sandbox_create_fields, .answers = created_answers, .needs = SCOPE_RUN},
    {"GET", API_TOP "/sandboxes", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_sandboxes,
     .summary = "sandboxes, newest first", .query = list_parameters, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", ONE, ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, get_sandbox,
     .summary = "everything about a sandbox", .answers = one_answers, .needs = SCOPE_READ},
    {"PATCH", ONE, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, change_sandbox,
     .summary = "changes a living sandbox: all that is said, or nothing; If-Match is heeded",
     .fields = sandbox_change_fields, .answers = one_answers, .needs = SCOPE_RUN},
    {"DELETE", ONE, ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, delete_sandbox,
     .summary = "ends everything in a sandbox and deletes it", .answers = empty_answers,
     .needs = SCOPE_RUN},
    {"GET", ONE "/metrics", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_metrics,
     .summary = "what a sandbox uses at this moment", .answers = metrics_answers,
     .needs = SCOPE_READ},
    {"GET", ONE "/wait", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, wait_for_sandbox,
     .summary = "waits for a state", .query = wait_parameters, .answers = wait_answers,
     .needs = SCOPE_READ},
    {"POST", ONE "/pause", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, pause_sandbox,
     .summary = "stops everything in a sandbox where it is, in memory", .answers = one_answers,
     .needs = SCOPE_RUN},
    {"POST", ONE "/resume", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, resume_sandbox,
     .summary = "lets a paused sandbox go on", .answers = one_answers, .needs = SCOPE_RUN},
    {"POST", ONE "/fork", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, fork_sandbox,
     .summary = "makes another sandbox with the files that this one has now, and all its settings "
                "but its name, unless the body says otherwise",
     .fields = sandbox_change_fields, .answers = created_answers, .needs = SCOPE_RUN},
    {0},
};
