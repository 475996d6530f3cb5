/* SPDX-License-Identifier: Apache-2.0 */
/* Exposing ports of sandboxes, and what is told of them; see port.h. */
#include "core/port/port.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/port/port_impl.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandboxes.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define HOST_TRIES 64 // ports of the machine that turn out to be somebody else's

static int refuse(struct error *err, const char *field, const char *text)
{
    (void)error_refuse(err, ERROR_INVALID, "port", "%s: %s", field, text);
    return error_field(err, field);
}

int port_check(const struct port_request *request, struct error *err)
{
    bool is_all = request->port == PORT_ALL;

    if (!is_all && (request->port < PORT_LEAST || request->port > PORT_MOST))
        return refuse(err, "port", "must be from 1024 to 65535");
    if (request->protocol == PORT_TCP && request->is_private)
        return refuse(err, "private", "only HTTP can show a token: not with protocol 'tcp'");
    if (request->protocol == PORT_TCP && is_all)
        return refuse(err, "protocol", "all ports are told apart by names, which only HTTP has");
    if (request->token_ms && !request->is_private)
        return refuse(err, "expiresInMs", "is of the token of a private port");
    if (request->token_ms < 0 || request->token_ms > PORT_TOKEN_MOST_MS)
        return refuse(err, "expiresInMs", "is at most a year");
    return 0;
}

// ---- exposing ----

/* One on its way to being exposed, or to being exposed differently. */
struct exposure {
    struct ports *ports;
    struct exposed *exposed;
    struct port_record record;
    char id[ID_TEXT], token[PORT_TOKEN_TEXT];
    bool is_new;
};

static int full(struct error *err, const char *text)
{
    return error_refuse(err, ERROR_FULL, "port", "%s", text);
}

static int add_new(struct exposure *exposure, const char *sandbox_id,
                   const struct port_request *request, struct error *err)
{
    struct ports *ports = exposure->ports;
    struct port_owner *owner = ports_owner(ports, sandbox_id);

    if (owner && owner->count >= PORTS_OF_SANDBOX)
        return full(err, "a sandbox exposes at most 32 ports: remove one");
    exposure->exposed = exposed_new(sandbox_id, (uint16_t)request->port);
    exposure->exposed->protocol = request->protocol; // for who listens
    (void)id_make(exposure->exposed->id);
    exposure->exposed->created_at = (int64_t)clock_wall_ms();
    exposure->is_new = true;
    ports_add(ports, exposure->exposed);
    return 0;
}

/* It is in the tables from here on, and nobody else's until it is ready. */
static int begin(struct exposure *exposure, const char *sandbox_id,
                 const struct port_request *request, struct error *err)
{
    struct ports *ports = exposure->ports;

    autolock(&ports->lock);
    struct exposed *there = ports_find(ports, sandbox_id, (uint16_t)request->port);
    if (there && !there->is_ready)
        return error_refuse(err, ERROR_BUSY, "port", "port %lld is being exposed",
                            (long long)request->port);
    if (there && there->protocol != request->protocol)
        return error_refuse(err, ERROR_EXISTS, "port",
                            "port %lld is exposed with another protocol: remove it first",
                            (long long)request->port);
    if (!there)
        return add_new(exposure, sandbox_id, request, err);
    there->is_ready = false;
    exposure->exposed = exposed_ref(there);
    return 0;
}

static void make_token(struct exposure *exposure, const struct port_request *request)
{
    struct port_record *record = &exposure->record;

    if (!request->is_private)
        return;
    id_make_letters(exposure->token, PORT_TOKEN_LETTERS);
    (void)SHA256((const unsigned char *)exposure->token, PORT_TOKEN_LETTERS, record->token_hash);
    record->token_expires_at = request->token_ms ? (int64_t)clock_wall_ms() + request->token_ms : 0;
}

static uint16_t reserve(struct ports *ports)
{
    autolock(&ports->lock);
    return ports->has_host ? ports_reserve(ports) : 0;
}

static void give_back(struct ports *ports, uint16_t host_port)
{
    autolock(&ports->lock);
    ports_rest(ports, host_port);
}

/* Some program may have taken one of the range. */
static int open_host_port(struct exposure *exposure, struct error *err)
{
    struct ports *ports = exposure->ports;

    for (int i = 0; i < HOST_TRIES; i++) {
        uint16_t host_port = reserve(ports);
        if (host_port == 0)
            break;
        if (ports->host.open(ports->host.data, exposure->exposed, host_port, err) == 0) {
            exposure->record.host_port = host_port;
            return 0;
        }
        give_back(ports, host_port);
        if (!error_is(err, ERROR_CONFLICT))
            return -1;
    }
    return full(err, "no port of this machine is free for it: the operator's --port-range is "
                     "used up, or what was given up rests for a while; remove a port or try later");
}

static int put(struct exposure *exposure, const struct actor *actor,
               const struct port_request *request, struct error *err)
{
    struct exposed *exposed = exposure->exposed;
    struct port_record *record = &exposure->record;
    struct store *store = exposure->ports->store;

    record->id = exposed->id;
    record->sandbox_id = exposed->sandbox_id;
    record->port = exposed->port;
    record->protocol = request->protocol;
    record->is_private = request->is_private;
    bool has_key = request->is_private && !request->has_own_secret && *actor->key_id;
    record->key_id = has_key ? actor->key_id : NULL;
    record->created_at = exposed->created_at;
    if (exposure->is_new)
        return store_port_put(store, record, err);
    if (exposed->host_port)
        record->host_port = exposed->host_port;
    return store_port_change(store, record, err);
}

/* -1: the sandbox ended meanwhile. */
static int show(struct exposure *exposure, struct error *err)
{
    struct exposed *exposed = exposure->exposed;
    const struct port_record *record = &exposure->record;

    autolock(&exposure->ports->lock);
    if (exposed->is_gone)
        return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
    exposed->protocol = record->protocol;
    exposed->host_port = (uint16_t)record->host_port;
    exposed->is_private = record->is_private;
    exposed->token_expires_at = record->token_expires_at;
    memcpy(exposed->token_hash, record->token_hash, PORT_HASH);
    (void)snprintf(exposed->key_id, sizeof exposed->key_id, "%s",
                   record->key_id ? record->key_id : "");
    ports_index_token(exposure->ports, exposed, exposed->is_private);
    exposed->is_ready = true;
    return 0;
}

/* Nothing of a new one is left; an old one is as it was. */
static void undo(struct exposure *exposure)
{
    struct ports *ports = exposure->ports;
    struct exposed *exposed = exposure->exposed;
    struct error ignored = {0};

    if (!exposed)
        return;
    if (!exposure->is_new) {
        autolock(&ports->lock);
        exposed->is_ready = true;
        return;
    }
    {
        autolock(&ports->lock);
        exposed_free(ports_take(ports, exposed));
        if (exposure->record.host_port && ports->has_host)
            ports->host.close(ports->host.data, exposed);
        if (exposure->record.host_port)
            ports_rest(ports, (uint16_t)exposure->record.host_port);
    }
    (void)store_port_release(ports->store, exposed->id, (int64_t)clock_wall_ms(), &ignored);
}

static bool needs_host_port(const struct exposure *exposure, const struct port_request *request)
{
    bool is_named = exposure->ports->settings->has_port_names && request->protocol == PORT_HTTP;

    return request->port != PORT_ALL && !is_named && !exposure->exposed->host_port;
}

static int make(struct exposure *exposure, const struct actor *actor,
                const struct port_request *request, struct error *err)
{
    make_token(exposure, request);
    if (needs_host_port(exposure, request) && open_host_port(exposure, err) < 0)
        return -1;
    if (put(exposure, actor, request, err) < 0 || show(exposure, err) < 0)
        return -1;
    if (exposure->record.key_id) // whoever ended it meanwhile has not seen this one
        ports_end_tokens(exposure->ports, exposure->record.key_id);
    return 0;
}

/* Where it was open to all and is private now, those who are in are put out. */
static void cut_others(const struct exposure *exposure, const struct port_request *request)
{
    autolock(&exposure->ports->lock);
    if (!exposure->is_new && request->is_private && exposure->ports->has_host)
        exposure->ports->host.cut(exposure->ports->host.data, exposure->exposed);
}

int port_expose_new(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                    const struct port_request *request, struct port_info *out, struct error *err)
{
    struct exposure exposure = {.ports = ports};

    if (port_check(request, err) < 0)
        return -1;
    if (begin(&exposure, sandbox_id, request, err) < 0)
        return -1;
    int result = make(&exposure, actor, request, err);
    if (result < 0) {
        undo(&exposure);
    } else {
        cut_others(&exposure, request);
        exposed_tell(ports, exposure.exposed, out);
        memcpy(out->token, exposure.token, sizeof out->token);
    }
    exposed_free(exposure.exposed);
    return result;
}

int port_expose(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                const struct port_request *request, struct port_info *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (port_check(request, err) < 0 ||
        lookup_sandbox(ports->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        port_expose_new(ports, actor, sandbox_id, request, out, err) < 0)
        return -1;
    if (!sandbox_is_over(sandbox))
        return 0;
    // it ended before it was in the tables
    (void)port_remove(ports, actor, sandbox_id, (uint16_t)request->port, err);
    return sandbox_refuse_ending(err);
}

// ---- telling and removing ----

int port_list(struct ports *ports, const struct actor *actor, const char *sandbox_id,
              struct port_infos *out, struct error *err)
{
    autosandbox record = {0};

    if (lookup_record(ports->sandboxes, actor, sandbox_id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", sandbox_id);
    struct port_infos found = {.items = xcalloc(PORTS_OF_SANDBOX, sizeof *found.items)};
    autolock(&ports->lock);
    struct port_owner *owner = ports_owner(ports, sandbox_id);
    for (struct exposed *at = owner ? owner->first : NULL; at; at = at->next) {
        if (at->is_ready)
            exposed_put_info(at, &found.items[found.count++]);
    }
    *out = found;
    return 0;
}

bool port_first(struct ports *ports, const char *sandbox_id, struct port_info *out)
{
    autolock(&ports->lock);
    struct port_owner *owner = ports_owner(ports, sandbox_id);
    struct exposed *at = owner ? owner->first : NULL;
    while (at && (!at->is_ready || at->protocol != PORT_HTTP || at->port == PORT_ALL))
        at = at->next;
    if (at)
        exposed_put_info(at, out);
    return at != NULL;
}

static struct exposed *take_out(struct ports *ports, const char *sandbox_id, uint16_t port,
                                struct error *err)
{
    autolock(&ports->lock);
    struct exposed *found = ports_find(ports, sandbox_id, port);
    if (!found) {
        (void)error_refuse(err, ERROR_NOT_FOUND, "port", "port %u is not exposed", (unsigned)port);
        return NULL;
    }
    if (!found->is_ready) {
        (void)error_refuse(err, ERROR_BUSY, "port", "port %u is being exposed", (unsigned)port);
        return NULL;
    }
    if (ports->has_host)
        ports->host.close(ports->host.data, found);
    return ports_take(ports, found);
}

int port_remove(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                uint16_t port, struct error *err)
{
    autosandbox record = {0};
    int64_t now = (int64_t)clock_wall_ms();

    if (lookup_record(ports->sandboxes, actor, sandbox_id, &record, err) < 0)
        return -1;
    autoptr(exposed) gone = take_out(ports, sandbox_id, port, err);
    if (!gone || store_port_purge(ports->store, now - ports->settings->port_rest_ms, err) < 0)
        return -1;
    return store_port_release(ports->store, gone->id, now, err);
}
