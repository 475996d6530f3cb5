/* SPDX-License-Identifier: Apache-2.0 */
/* Requests find their route and their thread; see router.h. */
#include "web/router.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "data/json.h"
#include "web/access.h"
#include "web/call_impl.h"
#include "web/client_watch.h"
#include "web/openapi.h"
#include "web/owner.h"
#include "web/reply.h"
#include "web/route_tree.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define JSON_BODY_BYTES ((uint64_t)64 << 20)
#define JSON_BODY_MEMORY ((size_t)160 << 20) // with its text, less than a key's share of all memory
#define OPEN_BODY_BYTES ((uint64_t)64 << 10) // where nobody has to show a key
#define RETRY_AFTER_S                                                                              \
    "1" // of a queue that is full: it moves on all the time; and of a server that ends
#define RETRY_BUILD_S "5" // of a runtime that is being made
#define DROPPED_BODY_BYTES ((uint64_t)1 << 20)
#define LARGE_BODY_BYTES                                                                           \
    ((size_t)1 << 20) // reading it takes longer than the quick lane should wait

/* The routes of one front that has hosts, or a claim, of its own. */
struct host_routes {
    const struct front *front;
    struct route_tree *tree;
};

/* An OpenAPI document. */
struct document {
    const struct front *front; // NULL: of all that have none of their own
    struct buffer text;
    int fd; // the same as a file in memory
};

struct router {
    struct router_settings settings;
    struct route_tree *tree; // of all fronts that have neither hosts nor a claim of their own
    struct host_routes *hosts;
    size_t n_hosts;
    struct request_ids request_ids; // on the loop only
    uint64_t owner_seed;
    struct document *documents; // that of all fronts, then those of fronts that have their own
    size_t n_documents;
    atomic_bool is_draining;
    atomic_size_t running;
    struct buffer scratch; // for a path; on the loop only
};

static const char crowded[] = "too many requests are waiting, try again shortly";
static const char restarting[] = "the server is restarting, try again shortly";

/* ---- one call ---- */

static struct call_work *work_new(struct router *router, struct http_request *request,
                                  struct response *response)
{
    struct arena arena = {0};
    struct call_work *work = arena_alloc(&arena, sizeof *work);

    work->arena = arena;
    work->settings = &router->settings;
    work->call = (struct call){.router = router,
                               .front = router->settings.fronts[0],
                               .settings = router->settings.fronts[0]->settings,
                               .core = router->settings.core,
                               .request = request,
                               .response = response,
                               .arena = &work->arena};
    work->call.access = access_begin(&router->request_ids, request, response);
    return work;
}

/* The work itself is in its arena. */
static void work_free(struct call_work *work)
{
    struct arena arena = work->arena;

    client_watch_free(work->call.watch);
    http_request_free(work->call.request);
    response_free(work->call.response);
    data_document_free(work->body_memory);
    arena_clear(&arena);
}

static const char *method_of(const struct http_request *request)
{
    return request->is_head ? "GET" : request->method;
}

static const struct front_auth *auth_of(const struct front *front)
{
    return front->auth ? front->auth : &auth_by_key;
}

static void tell_failure(struct call *call, const struct error *err)
{
    const char *challenge = auth_of(call->front)->challenge;

    access_log_failure(call->access, err);
    bool is_soon = error_is(err, ERROR_RESTARTING) ||
                   (error_is(err, ERROR_FULL) && error_is_about(err, "queue"));
    if (is_soon)
        access_set_header(call->access, call->response, "Retry-After", RETRY_AFTER_S);
    if (error_is(err, ERROR_NOT_BUILT))
        access_set_header(call->access, call->response, "Retry-After", RETRY_BUILD_S);
    if (challenge && error_status(err) == 401)
        access_set_header(call->access, call->response, "WWW-Authenticate", challenge);
    call->front->on_error(call, err);
}

static void end_call(struct call_work *work, const struct error *err)
{
    if (err)
        tell_failure(&work->call, err);
    work_free(work);
}

/* ---- finding the route, on the loop ---- */

/* Whose words are used where there is no route. */
static const struct front *front_of(const struct router *router, const char *path)
{
    for (const struct front *const *front = router->settings.fronts; *front; front++) {
        const char *top = (*front)->top;
        if (top && strncmp(path, top, strlen(top)) == 0)
            return *front;
    }
    return router->settings.fronts[0];
}

static void give_to(struct call *call, const struct front *front)
{
    call->front = front;
    call->settings = front->settings;
}

/* Where a request is looked up: by its host, or by what its head says otherwise. A front that has it for itself also words what it has no
 * route for. */
static struct host_routes find_host(const struct router *router, const struct http_request *request)
{
    for (size_t i = 0; i < router->n_hosts; i++) {
        const struct front *front = router->hosts[i].front;
        if (front_has_host(front, request->host) || (front->claims && front->claims(request)))
            return router->hosts[i];
    }
    return (struct host_routes){front_of(router, request->path), router->tree};
}

static int find_nothing(struct call *call, const struct front *front,
                        const struct route_match *match, struct error *err)
{
    const struct http_request *request = call->request;

    if (!match->other) {
        give_to(call, front);
        return error_refuse(err, ERROR_NOT_FOUND, "route", "there is nothing at '%.200s'",
                            request->path);
    }
    give_to(call, match->other->rows->front);
    access_set_header(call->access, call->response, match->other->allow[0].name,
                      match->other->allow[0].value);
    return error_refuse(err, ERROR_METHOD, "route", "'%.200s' takes %s, not %s", request->path,
                        match->other->allow[0].value, request->method);
}

static int find_route(struct router *router, struct call *call, struct error *err)
{
    const char *path = call->request->path;
    struct host_routes host = find_host(router, call->request);
    struct route_path pieces;
    struct route_match match;

    give_to(call, host.front); // words a path that cannot be read
    if (route_path_read(path, call_alloc(call, strlen(path) + 1), &pieces, err) < 0)
        return -1;
    route_tree_match(host.tree, method_of(call->request), &pieces, &match);
    if (!match.row)
        return find_nothing(call, host.front, &match, err);
    give_to(call, match.row->front);
    call->route = match.row->route;
    memcpy(call->parameters, match.parameters, sizeof call->parameters);
    access_set_route(call->access, call->front, call->route, call->parameters, call->request);
    return 0;
}

/* Whose turn it takes, and whether it can be anybody's at all. */
static int expect_actor(const struct router *router, struct call_work *work, struct error *err)
{
    struct call *call = &work->call;
    const struct front_auth *auth = auth_of(call->front);
    bool is_possible = router->settings.is_open || auth->is_possible(call->request);

    call->owner = owner_of_call(call, &router->settings, router->owner_seed);
    work->has_actor =
        call->route->access == ACCESS_OPEN || (call->route->access == ACCESS_ANY && !is_possible);
    return work->has_actor || is_possible ? 0 : auth->missing(err);
}

/* Everything that can be said without waiting: whoever is refused here has not been read from. */
static int prepare(struct router *router, struct call_work *work, struct error *err)
{
    struct call *call = &work->call;

    if (router_is_draining(router))
        return reply_error(503, restarting, err);
    if (find_route(router, call, err) < 0)
        return -1;
    if (call->front->on_call && call->front->on_call(call, err) < 0)
        return -1;
    if (!work->has_actor && expect_actor(router, work, err) < 0)
        return -1;
    const char *query = call->route->body == BODY_WHOLE ? NULL : call->request->query;
    if (query_parse(query, call->arena, &call->query, err) < 0)
        return -1;
    if (call->front->is_strict && call->route->body != BODY_WHOLE &&
        query_check_names(call->query, call->route->query, err) < 0)
        return -1;
    return query_check(call->query, call->route->query, err);
}

/* ---- running it ---- */

static int fail_json(struct error *err)
{
    bool is_full = error_is(err, ERROR_FULL);

    (void)error_wrap(err, is_full ? "read the body" : "the body is not JSON");
    return !is_full && error_is(err, ERROR_LIMIT) ? error_restate(err, ERROR_TOO_LARGE, "body")
                                                  : -1;
}

static int read_json(struct call_work *work, struct error *err)
{
    const struct json_limits limits = {.bytes = JSON_BODY_BYTES,
                                       .memory = JSON_BODY_MEMORY,
                                       .may_take = call_may_take,
                                       .data = &work->call};
    struct buffer *text = &work->call.request->body;

    if (call_header(&work->call, "Idempotency-Key"))
        call_hash_request(work->call.request, work->request_hash);
    if (text->length == 0) {
        work->body_memory = data_document_new("");
        work->call.body = value_add(work->body_memory, NULL, VALUE_MAP, NULL, 0);
        return 0;
    }
    if (json_read("", text->data, text->length, &limits, &work->body_memory, err) < 0)
        return fail_json(err);
    work->call.body = work->body_memory->root;
    gather_charge_give(&work->call.request->charge, text->length);
    buffer_clear(text); // a large one would be in memory twice
    if (work->call.body->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "the body must be a JSON object");
    if (work->call.front->is_strict)
        return fields_check_names(work->call.body, work->call.route->fields, err);
    return 0;
}

static void be_anybody(struct call_work *work)
{
    if (work->settings->core)
        accounts_local_actor(work->settings->core->accounts, &work->call.actor);
    else
        work->call.actor = (struct actor){.scopes = SCOPES_ALL, .is_admin = true};
    work->has_actor = work->call.is_known = true;
}

static uint64_t key_number(const struct actor *actor)
{
    return auth_number(actor->key_id, actor->token_id);
}

/* Blocks for the database. */
static int find_actor(struct call_work *work, struct error *err)
{
    struct call *call = &work->call;

    if (!work->has_actor && work->settings->is_open)
        be_anybody(work);
    if (work->has_actor)
        return 0;
    int status =
        auth_of(call->front)->check(work->settings->core, call->request, &call->actor, err);
    // Who cannot be looked up for now may be anybody, and is not nobody.
    if (status < 0 && (call->route->access != ACCESS_ANY || error_is_fault(err)))
        return -1;
    call->is_known = status == 0;
    work->has_actor = true;
    if (call->is_known)
        response_vouch(call->response, key_number(&call->actor));
    else
        *err = (struct error){0};
    return 0;
}

/* Who asks is known: once for each call. */
static int meet_actor(struct call_work *work, struct error *err)
{
    struct call *call = &work->call;

    if (work->has_met || !call->front->on_actor)
        return 0;
    work->has_met = true;
    return call->front->on_actor(call, err);
}

static bool is_post(const struct call *call)
{
    return call->front->on_post && strcmp(call->route->method, "POST") == 0;
}

/* The one place where a key is held against what a route needs. */
static int check_scope(const struct call *call, struct error *err)
{
    if (call->core)
        access_set_audit(call->access, call->core->audit, call);
    if (call->route->access != ACCESS_KEY)
        return 0;
    if (call->actor.tools && !call->is_inner && !call->route->takes_tool_keys)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key is for tools of MCP alone, at POST /mcp");
    if (*call->actor.sandbox && call->route->reach != REACH_SANDBOX)
        return actor_refuse_token(&call->actor, "ask for anything else", err);
    if (*call->actor.selector && call->route->reach == REACH_ALL)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key is for sandboxes with some labels alone, and not for this");
    return actor_need(&call->actor, route_needs(call->route), err);
}

static int run(struct call_work *work, struct error *err)
{
    struct call *call = &work->call;

    if (find_actor(work, err) < 0 || meet_actor(work, err) < 0 || check_scope(call, err) < 0)
        return -1;
    if (call->request
            ->is_body_refused) // nobody had time to look at the key while the body could still be kept
        return error_refuse(err, ERROR_FULL, "queue",
                            "too much is waiting for the key to be checked: try again shortly");
    if (call->route->body == BODY_JSON && !call->body && read_json(work, err) < 0)
        return -1;
    if (call->tries == 0 && is_post(call)) {
        int answered = call->front->on_post(call, err);
        if (answered != 0)
            return answered < 0 ? -1 : 0;
    }
    int status = call->route->handle(call, err);
    call->tries++;
    return status;
}

static void on_work(void *data);

static enum workers_lane choose_lane(const struct call *call)
{
    enum route_lane lane = call->route->lane;

    if (lane == ROUTE_SLOW || call->request->body.length > LARGE_BODY_BYTES)
        return WORKERS_SLOW;
    bool is_look = lane == ROUTE_LOOP && call->route->body == BODY_NONE;
    return lane == ROUTE_CONTROL || is_look ? WORKERS_CONTROL : WORKERS_QUICK;
}

/* Gives it to a worker. On the loop. */
static int submit(struct call_work *work, struct error *err)
{
    struct router *router = work->call.router;

    atomic_fetch_add(&router->running, 1);
    if (workers_submit_for(router->settings.workers, choose_lane(&work->call), &work->call.owner,
                           on_work, work, err) == 0)
        return 0;
    atomic_fetch_sub(&router->running, 1);
    return -1;
}

static void on_again(void *data)
{
    struct call_work *work = data;
    struct error err = {0};

    if (submit(work, &err) < 0)
        end_call(work, &err);
}

static void wait_again(void *data)
{
    struct call_work *work = data;

    loop_timer_init(&work->again, work->settings->loop, on_again, work);
    loop_timer_set(&work->again, work->call.again_ms > 0 ? (uint64_t)work->call.again_ms : 0);
}

static void on_work(void *data)
{
    struct call_work *work = data;
    struct router *router = work->call.router;
    struct error err = {0};

    int status = run(work, &err);
    if (status == CALL_AGAIN)
        loop_post(work->settings->loop, wait_again, work);
    else
        end_call(work, status < 0 ? &err : NULL);
    atomic_fetch_sub(&router->running, 1);
}

static bool is_read_whole(const struct route *route)
{
    return route->body == BODY_JSON || route->body == BODY_WHOLE;
}

/* Without leaving the loop: CALL_ELSEWHERE when that cannot be. */
static int run_here(struct call_work *work, struct error *err)
{
    struct call *call = &work->call;

    if (call->route->lane != ROUTE_LOOP || is_read_whole(call->route) || is_post(call))
        return CALL_ELSEWHERE;
    if (!work->has_actor && work->settings->is_open)
        be_anybody(work);
    if (!work->has_actor)
        work->has_actor = call->is_known =
            auth_of(call->front)->check_quick(work->settings->core, call->request, &call->actor) ==
            KEY_VALID;
    if (call->request->is_body_refused || !work->has_actor || *call->actor.selector)
        return CALL_ELSEWHERE; // to look at labels takes the store
    if (meet_actor(work, err) < 0 || check_scope(call, err) < 0)
        return -1;
    return call->route->handle(call, err);
}

static void on_request(void *owner, struct http_request *request, struct response *response)
{
    struct router *router = owner;
    struct call_work *work = work_new(router, request, response);
    struct error err = {0};

    int status = prepare(router, work, &err);
    if (status == 0)
        status = run_here(work, &err);
    if (status == CALL_ELSEWHERE && (status = submit(work, &err)) == 0)
        return;
    end_call(work, status < 0 ? &err : NULL);
}

static const char *keep_text(struct call *call, const char *text)
{
    return text ? call_print(call, "%s", text) : NULL;
}

void router_run_inner(const struct waiting_call *whose, struct http_request *request,
                      struct response *response)
{
    struct router *router = whose->router;
    struct call_work *work = work_new(router, request, response);
    struct call *call = &work->call;
    struct error err = {0};

    call->actor = whose->actor;
    call->actor.cancel = NULL;
    call->actor.tenant = keep_text(call, whose->actor.tenant);
    call->actor.scope = keep_text(call, whose->actor.scope);
    call->actor.project = keep_text(call, whose->actor.project);
    call->owner = whose->owner;
    work->has_actor = call->is_known = call->is_inner = true;
    if (prepare(router, work, &err) < 0 || submit(work, &err) < 0)
        end_call(work, &err);
}

const struct route *router_find(const struct router *router, const char *method,
                                const char *pattern)
{
    const struct route_node *node = route_tree_find(router->tree, pattern);

    for (const struct route_row *row = node ? node->rows : NULL; row; row = row->next) {
        if (strcmp(row->route->method, method) == 0)
            return row->route;
    }
    return NULL;
}

/* ---- what to do with a body ---- */

/* The row of a request by its head; NULL: none. */
static const struct route_row *find_row(struct router *router, const struct http_request *request)
{
    struct route_path pieces;
    struct route_match match;
    struct error err;

    router->scratch.length = 0;
    if (buffer_reserve(&router->scratch, strlen(request->path) + 1, &err) < 0 ||
        route_path_read(request->path, router->scratch.data, &pieces, &err) < 0)
        return NULL;
    route_tree_match(find_host(router, request).tree, method_of(request), &pieces, &match);
    return match.row;
}

/* Whoever may send it, this is what the route takes. */
static void plan_body(const struct router *router, const struct route *route,
                      struct http_plan *plan)
{
    bool is_anybody = !router->settings.is_open && route->access != ACCESS_KEY;
    uint64_t usual = is_anybody ? OPEN_BODY_BYTES : JSON_BODY_BYTES;

    if (route->body == BODY_STREAM) {
        plan->body = HTTP_BODY_STREAM;
        plan->body_bytes = route->body_limit ? route->body_limit : UINT64_MAX;
    } else if (is_read_whole(route)) {
        plan->body = HTTP_BODY_GATHER;
        plan->body_bytes = route->body_limit ? route->body_limit : usual;
    } else {
        plan->body = HTTP_BODY_SKIP;
        plan->body_bytes = is_anybody ? OPEN_BODY_BYTES : DROPPED_BODY_BYTES;
    }
}

/* The answer is a refusal, which does not wait for the body: on_request comes to the same conclusion. */
static void plan_refusal(struct http_plan *plan)
{
    plan->body = HTTP_BODY_REFUSE;
    plan->body_bytes = UINT64_MAX;
}

/* Whoever has shown this key has a share of the memory for bodies. */
static void plan_actor(const struct actor *actor, struct http_plan *plan)
{
    plan->is_known = true;
    plan->who = GATHER_KEY;
    plan->who_id = key_number(actor);
}

static bool is_all_here(const struct http_request *request)
{
    return !request->has_body ||
           (!request->is_chunked && request->body_length <= request->body_here);
}

/* By the head alone. Nothing of a body is kept for a key that is not known to be good, unless all of it came with the head: then a
 * worker looks at the key next. */
static void plan_request(struct router *router, const struct http_request *request,
                         const struct route_row *row, struct http_plan *plan)
{
    const struct front_auth *auth = auth_of(row->front);
    struct actor actor = {0};

    plan_body(router, row->route, plan);
    if (router->settings.is_open) {
        plan_actor(&actor, plan);
        return;
    }
    plan->who = GATHER_STRANGER;
    if (row->route->access != ACCESS_KEY)
        return;
    enum key_known known = auth->is_possible(request)
                               ? auth->check_quick(router->settings.core, request, &actor)
                               : KEY_WRONG;
    if (known == KEY_VALID || known == KEY_STALE) // a worker looks again before anything is done
        plan_actor(&actor, plan);
    else if (known == KEY_WRONG)
        plan_refusal(plan);
    else if (is_all_here(request))
        plan->who = GATHER_UNCHECKED;
    else
        plan->body = HTTP_BODY_ASK;
}

static void on_head(void *owner, const struct http_request *request, struct http_plan *plan)
{
    struct router *router = owner;

    if (router_is_draining(router)) {
        plan->refuse_status = 503;
        plan->refuse_text = restarting;
        return;
    }
    const struct route_row *row = find_row(router, request);
    if (row)
        plan_request(router, request, row, plan);
    else
        plan_refusal(plan);
}

/* A body that waits until a worker has looked at its key. */
struct question {
    struct router *router;
    const struct route_row *row;
    struct http_request *request;
    struct response *response;
};

static void decide(struct question *question, const struct http_plan *plan)
{
    response_decide(question->response, question->request, plan);
    response_free(question->response);
    free(question);
}

static void answer_question(void *data)
{
    struct question *question = data;
    const struct router_settings *settings = &question->router->settings;
    struct actor actor = {0};
    struct http_plan plan = {0};
    struct error err = {0};

    plan_body(question->router, question->row->route, &plan);
    if (auth_of(question->row->front)->check(settings->core, question->request, &actor, &err) == 0)
        plan_actor(&actor, &plan);
    else
        plan_refusal(&plan);
    struct router *router = question->router;
    decide(question, &plan);
    atomic_fetch_sub(&router->running, 1);
}

static void on_ask(void *owner, struct http_request *request, struct response *response)
{
    struct router *router = owner;
    struct question *question = xnew(struct question);
    struct http_plan refusal = {.refuse_status = 429, .refuse_text = crowded};
    struct error err;

    *question = (struct question){router, find_row(router, request), request, response};
    const struct call call = {
        .front = question->row->front, .route = question->row->route, .request = request};
    const struct turns_owner who = owner_of_call(&call, &router->settings, router->owner_seed);
    atomic_fetch_add(&router->running, 1);
    if (workers_submit_for(router->settings.workers, WORKERS_CONTROL, &who, answer_question,
                           question, &err) == 0)
        return;
    atomic_fetch_sub(&router->running, 1);
    decide(question, &refusal);
}

static void on_bad_request(void *owner, const struct http_request *request,
                           struct response *response, int status, const char *text)
{
    struct http_request *head = (struct http_request *)(uintptr_t)request; // borrowed, only read
    struct call_work *work = work_new(owner, head, response);
    const struct route_row *row = request ? find_row(owner, request) : NULL;
    struct error err;

    if (request)
        give_to(&work->call, row ? row->front : find_host(owner, request).front);
    if (row)
        access_set_route(work->call.access, row->front, row->route, work->call.parameters, request);
    (void)reply_error(status, text, &err);
    tell_failure(&work->call, &err);
    work->call.request = NULL;
    work_free(work);
}

const struct http_handler router_handler = {.on_head = on_head,
                                            .on_ask = on_ask,
                                            .on_request = on_request,
                                            .on_bad_request = on_bad_request};

/* ---- the router ---- */

/* One tree for each front with hosts of its own, and one for all others. */
static int add_front(struct router *router, const struct front *front, struct error *err)
{
    if (!front->hosts && !front->claims)
        return route_tree_add(router->tree, front, err);
    router->hosts = xrealloc(router->hosts, router->n_hosts + 1, sizeof *router->hosts);
    struct host_routes *host = &router->hosts[router->n_hosts++];
    *host = (struct host_routes){front, route_tree_new()};
    return route_tree_add(host->tree, front, err);
}

/* `front` NULL: all that have no document of their own. */
static int describe(struct router *router, const struct front *front, struct error *err)
{
    router->documents =
        xrealloc(router->documents, router->n_documents + 1, sizeof *router->documents);
    struct document *document = &router->documents[router->n_documents++];

    *document = (struct document){.front = front, .fd = -1};
    if (openapi_write(router->settings.fronts, front, router->tree, router->settings.public_url,
                      &document->text, err) < 0)
        return -1;
    document->fd = memfd_create("openapi", MFD_CLOEXEC);
    if (document->fd < 0 ||
        fd_write_all(document->fd, document->text.data, document->text.length) < 0)
        return error_sys(err, "keep the description of all routes");
    return 0;
}

static int describe_all(struct router *router, struct error *err)
{
    if (describe(router, NULL, err) < 0)
        return -1;
    for (const struct front *const *front = router->settings.fronts; *front; front++) {
        if ((*front)->document && describe(router, *front, err) < 0)
            return -1;
    }
    return 0;
}

int router_new(const struct router_settings *settings, struct router **out, struct error *err)
{
    autoptr(router) router = xnew(struct router);

    router->settings = *settings;
    router->tree = route_tree_new();
    for (const struct front *const *front = settings->fronts; *front; front++) {
        if (add_front(router, *front, err) < 0)
            return -1;
    }
    request_ids_init(&router->request_ids);
    router->owner_seed = owner_new_seed();
    if (describe_all(router, err) < 0)
        return -1;
    *out = take(router);
    return 0;
}

void router_free(struct router *router)
{
    if (!router)
        return;
    route_tree_free(router->tree);
    for (size_t i = 0; i < router->n_hosts; i++)
        route_tree_free(router->hosts[i].tree);
    free(router->hosts);
    for (size_t i = 0; i < router->n_documents; i++) {
        buffer_clear(&router->documents[i].text);
        closep(&router->documents[i].fd);
    }
    free(router->documents);
    buffer_clear(&router->scratch);
    free(router);
}

void router_drain(struct router *router)
{
    atomic_store(&router->is_draining, true);
    if (router->settings.core)
        hub_announce_all(router->settings.core->hub);
}

bool router_is_draining(const struct router *router)
{
    return atomic_load_explicit(&router->is_draining, memory_order_relaxed);
}

size_t router_running(const struct router *router)
{
    return atomic_load(&router->running);
}

const struct front *const *router_fronts(const struct router *router)
{
    return router->settings.fronts;
}

static const struct document *document_of(const struct router *router, const struct front *front)
{
    for (size_t i = 1; i < router->n_documents; i++) {
        if (router->documents[i].front == front)
            return &router->documents[i];
    }
    return &router->documents[0];
}

int router_openapi_file(const struct router *router, const struct front *front)
{
    return document_of(router, front)->fd;
}

const char *router_openapi(const struct router *router, const struct front *front, size_t *length)
{
    const struct document *document = document_of(router, front);

    *length = document->text.length;
    return document->text.data;
}
