/* SPDX-License-Identifier: Apache-2.0 */
/* Debug mode: all that comes in is for one sandbox and needs no token; see e2b.h. */
#include "core/core.h"
#include "core/create.h"
#include "core/sandbox/sandbox.h"
#include "core/seal.h"
#include "front/e2b/e2b_impl.h"
#include "front/e2b/e2b_network.h"

#include <string.h>
#include <strings.h>

#define NO_SANDBOX "-" // no id: an actor that is bound to it sees nothing

// ---- the sandbox ----

static int make_sandbox(struct call *call, const struct actor *own, struct error *err)
{
    const struct e2b_kept kept = {
        .template = "base", .is_template_alias = true, .resumes = true, .timeout_s = 3600};
    struct sandbox_request request = {
        .name = E2B_DEBUG_NAME,
        .is_name_unique = true,
        .runtime = e2b_settings_of(call)->runtime,
        .home = E2B_HOME,
        .usual = {.directory = E2B_HOME, .user = "1000:1000"},
        .front_data = e2b_kept_write(call, &kept),
    };
    autoclear(sandbox_info) info = {0};

    if (e2b_network_ask(call, true, NULL, &request, err) < 0)
        return -1;
    int result = sandbox_create(call->core, own, &request, &info, NULL, err);
    if (result < 0 && e2b_network_is_refused(err)) {
        request.network = NULL; // as with other sandboxes of these clients
        *err = (struct error){0};
        result = sandbox_create(call->core, own, &request, &info, NULL, err);
    }
    if (result == 0 || !error_is(err, ERROR_EXISTS))
        return result;
    *err = (struct error){0}; // somebody else was first
    return 0;
}

int e2b_debug_enter(struct call *call, struct error *err)
{
    char id[ID_TEXT];
    struct actor own;

    accounts_local_actor(call->core->accounts, &own);
    int found = sandbox_find_name(call->core->sandboxes, &own, E2B_DEBUG_NAME, id, err);
    if (found < 0 && error_is(err, ERROR_NOT_FOUND)) {
        *err = (struct error){0};
        if (make_sandbox(call, &own, err) < 0)
            return -1;
        found = sandbox_find_name(call->core->sandboxes, &own, E2B_DEBUG_NAME, id, err);
    }
    if (found < 0)
        return -1;
    if (seal_actor(call->core, id, &call->actor, NULL))
        return 0;
    return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox was not found");
}

// ---- who asks ----

static bool is_possible(const struct http_request *request)
{
    (void)request;
    return true; // whoever reaches the listener
}

/* Sees nothing until e2b_debug_enter has found the sandbox. */
static enum key_known check_quick(struct core *core, const struct http_request *request,
                                  struct actor *out)
{
    struct actor own;

    (void)request;
    accounts_local_actor(core->accounts, &own);
    *out = (struct actor){.scopes = SCOPES_USUAL, .sandbox = NO_SANDBOX};
    memcpy(out->organisation, own.organisation, sizeof out->organisation);
    return KEY_VALID;
}

static int check(struct core *core, const struct http_request *request, struct actor *out,
                 struct error *err)
{
    (void)err;
    (void)check_quick(core, request, out);
    return 0;
}

static int missing(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "key", "this needs a key");
}

static const char *find_secret(const struct http_request *request, struct auth_room *room)
{
    (void)request;
    (void)room;
    return NULL;
}

const struct front_auth e2b_debug_auth = {
    .is_possible = is_possible,
    .check = check,
    .check_quick = check_quick,
    .missing = missing,
    .secret = find_secret,
};

static bool is_own_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]", NULL};

    for (const char *const *name = names; host && *name; name++) {
        size_t length = strlen(*name);
        if (strncasecmp(host, *name, length) == 0 && (!host[length] || host[length] == ':'))
            return true;
    }
    return false;
}

/* A web page in a browser of this machine reaches the listener too: by a request of its own, or by a name that it has made to mean this machine. */
int e2b_debug_on_call(struct call *call, struct error *err)
{
    const struct http_request *request = call->request;

    if (http_request_header(request, "Origin") || http_request_header(request, "Sec-Fetch-Site"))
        return error_refuse(err, ERROR_DENIED, "origin", "debug mode is not for web pages");
    if (!is_own_name(request->host))
        return error_refuse(err, ERROR_DENIED, "host",
                            "debug mode answers to localhost, 127.0.0.1 and [::1] alone");
    return 0;
}

// ---- routes of its own ----

/* GET /health */
static int health(struct call *call, struct error *err)
{
    const char *id;

    return envd_enter(call, &id, err) < 0 ? -1 : e2b_answer_empty(call, 204);
}

const struct route e2b_debug_routes[] = {
    {"GET", "/health", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, health, "whether the sandbox is there",
     .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX},
    {0},
};
