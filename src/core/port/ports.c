/* SPDX-License-Identifier: Apache-2.0 */
/* The room of exposed ports: what it knows, in memory and from an earlier server; see port.h. */
#include "core/port/port.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "core/port/port_impl.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/sandboxes.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

struct exposed *exposed_new(const char *sandbox_id, uint16_t port)
{
    struct exposed *exposed = xnew(struct exposed);

    exposed->refs = 1;
    (void)snprintf(exposed->sandbox_id, sizeof exposed->sandbox_id, "%s", sandbox_id);
    exposed->port = port;
    return exposed;
}

struct exposed *exposed_ref(struct exposed *exposed)
{
    atomic_fetch_add(&exposed->refs, 1);
    return exposed;
}

void exposed_free(struct exposed *exposed)
{
    if (exposed && atomic_fetch_sub(&exposed->refs, 1) == 1)
        free(exposed);
}

void exposed_put_info(const struct exposed *exposed, struct port_info *out)
{
    *out = (struct port_info){
        .port = exposed->port,
        .protocol = exposed->protocol,
        .host_port = exposed->host_port,
        .is_private = exposed->is_private,
        .token_expires_at = exposed->is_private ? exposed->token_expires_at : 0,
        .created_at = exposed->created_at,
    };
    memcpy(out->sandbox_id, exposed->sandbox_id, sizeof out->sandbox_id);
}

void exposed_tell(struct ports *ports, const struct exposed *exposed, struct port_info *out)
{
    autolock(&ports->lock);
    exposed_put_info(exposed, out);
}

bool exposed_is_gone(const struct exposed *exposed)
{
    return exposed->is_gone;
}

void exposed_attach(struct exposed *exposed, void *what)
{
    exposed->attached = what;
}

void *exposed_attached(const struct exposed *exposed)
{
    return exposed->attached;
}

void port_infos_clear(struct port_infos *infos)
{
    free(infos->items);
    *infos = (struct port_infos){0};
}

// ---- tables ----

struct port_owner *ports_owner(struct ports *ports, const char *sandbox_id)
{
    struct id_entry *entry = id_table_find(&ports->owners, sandbox_id, id_hash(sandbox_id));

    return entry ? (struct port_owner *)((char *)entry - offsetof(struct port_owner, known)) : NULL;
}

struct exposed *ports_find(struct ports *ports, const char *sandbox_id, uint16_t port)
{
    struct port_owner *owner = ports_owner(ports, sandbox_id);
    struct exposed *at = owner ? owner->first : NULL;

    while (at && at->port != port)
        at = at->next;
    return at;
}

void ports_index_token(struct ports *ports, struct exposed *exposed, bool is_indexed)
{
    if (exposed->by_token.id) {
        id_table_remove(&ports->tokens, &exposed->by_token);
        exposed->by_token = (struct id_entry){0};
    }
    if (!is_indexed)
        return;
    for (size_t i = 0; i < (TOKEN_KEY - 1) / 2; i++)
        (void)snprintf(exposed->token_key + 2 * i, 3, "%02x", exposed->token_hash[i]);
    exposed->by_token =
        (struct id_entry){.id = exposed->token_key, .hash = id_hash(exposed->token_key)};
    id_table_put(&ports->tokens, &exposed->by_token);
}

void ports_add(struct ports *ports, struct exposed *exposed)
{
    struct port_owner *owner = ports_owner(ports, exposed->sandbox_id);

    if (!owner) {
        owner = xnew(struct port_owner);
        memcpy(owner->sandbox_id, exposed->sandbox_id, sizeof owner->sandbox_id);
        owner->known =
            (struct id_entry){.id = owner->sandbox_id, .hash = id_hash(owner->sandbox_id)};
        id_table_put(&ports->owners, &owner->known);
    }
    struct exposed **end = &owner->first;
    while (*end)
        end = &(*end)->next;
    *end = exposed_ref(exposed);
    owner->count++;
    if (exposed->is_private)
        ports_index_token(ports, exposed, true);
}

struct exposed *ports_take(struct ports *ports, struct exposed *exposed)
{
    struct port_owner *owner = ports_owner(ports, exposed->sandbox_id);
    struct exposed **at = owner ? &owner->first : NULL;

    while (at && *at && *at != exposed)
        at = &(*at)->next;
    if (!at || !*at)
        return NULL; // somebody else was quicker
    *at = exposed->next;
    exposed->next = NULL;
    exposed->is_gone = true;
    ports_index_token(ports, exposed, false);
    if (exposed->host_port)
        ports_rest(ports, exposed->host_port);
    if (--owner->count == 0) {
        id_table_remove(&ports->owners, &owner->known);
        free(owner);
    }
    return exposed;
}

struct exposed *exposed_find(struct ports *ports, const char *sandbox_id, uint16_t port)
{
    autolock(&ports->lock);
    struct exposed *found = ports_find(ports, sandbox_id, port);
    if (!found)
        found = ports_find(ports, sandbox_id, PORT_ALL);
    return found && found->is_ready ? exposed_ref(found) : NULL;
}

// ---- tokens ----

static void hash_token(const char *token, unsigned char hash[PORT_HASH])
{
    (void)SHA256((const unsigned char *)token, strlen(token), hash);
}

static bool is_good(const struct exposed *exposed, const unsigned char hash[PORT_HASH])
{
    bool is_late =
        exposed->token_expires_at && exposed->token_expires_at <= (int64_t)clock_wall_ms();

    return !is_late && CRYPTO_memcmp(hash, exposed->token_hash, PORT_HASH) == 0;
}

struct exposed *exposed_find_token(struct ports *ports, const char *token, uint16_t port)
{
    struct exposed wanted = {0};
    char key[TOKEN_KEY];

    hash_token(token, wanted.token_hash);
    for (size_t i = 0; i < (TOKEN_KEY - 1) / 2; i++)
        (void)snprintf(key + 2 * i, 3, "%02x", wanted.token_hash[i]);
    autolock(&ports->lock);
    struct id_entry *entry = id_table_find(&ports->tokens, key, id_hash(key));
    struct exposed *found =
        entry ? (struct exposed *)((char *)entry - offsetof(struct exposed, by_token)) : NULL;
    bool is_it = found && found->is_ready && is_good(found, wanted.token_hash) &&
                 (found->port == port || found->port == PORT_ALL);
    return is_it ? exposed_ref(found) : NULL;
}

bool exposed_opens(struct ports *ports, const struct exposed *exposed, const char *token)
{
    unsigned char hash[PORT_HASH];

    if (token)
        hash_token(token, hash);
    autolock(&ports->lock);
    return !exposed->is_private || (token && is_good(exposed, hash));
}

// ---- ports of the machine ----

struct host_slot *ports_slot(struct ports *ports, uint16_t host_port)
{
    int64_t index = (int64_t)host_port - ports->settings->port_range_first;

    return index >= 0 && (size_t)index < ports->n_slots ? &ports->slots[index] : NULL;
}

/* In turn, so that one that was given up is not taken again soon even where its time of rest is short. */
uint16_t ports_reserve(struct ports *ports)
{
    int64_t now = (int64_t)clock_wall_ms();

    for (size_t i = 0; i < ports->n_slots; i++) {
        size_t index = (ports->next_slot + i) % ports->n_slots;
        struct host_slot *slot = &ports->slots[index];
        bool is_resting =
            slot->released_at && now - slot->released_at < ports->settings->port_rest_ms;
        if (slot->is_used || is_resting)
            continue;
        slot->is_used = true;
        ports->next_slot = index + 1;
        return (uint16_t)(ports->settings->port_range_first + (int64_t)index);
    }
    return 0;
}

void ports_rest(struct ports *ports, uint16_t host_port)
{
    struct host_slot *slot = ports_slot(ports, host_port);

    if (slot)
        *slot = (struct host_slot){.released_at = (int64_t)clock_wall_ms()};
}

// ---- sandboxes that are over ----

struct release {
    struct ports *ports;
    char id[ID_TEXT];
};

static void record_release(void *data)
{
    autofree struct release *release = data;
    struct error err = {0};

    if (store_port_release(release->ports->store, release->id, (int64_t)clock_wall_ms(), &err) < 0)
        log_warn("an exposed port that is none any more could not be recorded as such",
                 F("error", (const char *)err.text)); // the next server finds its sandbox over
}

/* Whoever listens is told under the lock, so that nothing is opened behind its back. */
static void on_over(void *data, const char *sandbox_id)
{
    struct ports *ports = data;

    autolock(&ports->lock);
    for (struct port_owner *owner; (owner = ports_owner(ports, sandbox_id));) {
        struct exposed *gone = ports_take(ports, owner->first);
        struct release *release = xnew(struct release);
        release->ports = ports;
        memcpy(release->id, gone->id, sizeof release->id);
        if (ports->has_host)
            ports->host.close(ports->host.data, gone);
        exposed_free(gone);
        workers_run(ports->sandboxes->remover, WORKERS_SLOW, record_release, release);
    }
}

// ---- keys that are over ----

struct ended_key {
    struct ports *ports;
    char id[ID_TEXT];
};

/* A fault of the machine ends nothing. */
static bool is_key_over(struct ports *ports, const char *key_id)
{
    struct error err = {0};
    struct actor actor = {0};

    if (key_get_actor(ports->sandboxes->accounts, key_id, &actor, &err) < 0)
        return error_is(&err, ERROR_UNAUTHORIZED);
    return !(actor.scopes & SCOPE_RUN);
}

/* The next whose token is still good and was made by this key; a reference. */
static struct exposed *end_one(struct ports *ports, struct exposed **all, size_t count,
                               size_t *place, const char *key_id, int64_t now)
{
    autolock(&ports->lock);
    for (; *place < count; ++*place) {
        struct exposed *exposed = all[*place];
        if (!exposed->is_private || strcmp(exposed->key_id, key_id) != 0 ||
            (exposed->token_expires_at && exposed->token_expires_at <= now))
            continue;
        exposed->token_expires_at = now;
        if (ports->has_host)
            ports->host.cut(ports->host.data, exposed);
        return exposed_ref(exposed);
    }
    return NULL;
}

static size_t copy_all(struct ports *ports, struct exposed ***out);

void ports_end_tokens(struct ports *ports, const char *key_id)
{
    autofree struct exposed **all = NULL;
    int64_t now = (int64_t)clock_wall_ms();
    struct exposed *exposed;
    size_t place = 0;

    if (!is_key_over(ports, key_id))
        return;
    size_t count = copy_all(ports, &all);
    while ((exposed = end_one(ports, all, count, &place, key_id, now))) {
        struct error err = {0};
        if (store_port_end_token(ports->store, exposed->id, key_id, now, &err) < 0)
            log_warn("the end of a port's token could not be recorded",
                     F("error", (const char *)err.text)); // the next server looks at its key
        exposed_free(exposed);
    }
    for (size_t i = 0; i < count; i++)
        exposed_free(all[i]);
}

static void on_ended_key(void *data)
{
    autofree struct ended_key *ended = data;

    ports_end_tokens(ended->ports, ended->id);
}

void ports_look_at_key(struct ports *ports, const char *key_id)
{
    struct ended_key *ended = xnew(struct ended_key);

    ended->ports = ports;
    (void)snprintf(ended->id, sizeof ended->id, "%s", key_id);
    workers_run(ports->sandboxes->recorders, WORKERS_SLOW, on_ended_key, ended);
}

// ---- opening and closing ----

static bool is_living(struct ports *ports, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);

    return sandbox && !sandbox_is_over(sandbox);
}

static void adopt(struct ports *ports, const struct port_record *record)
{
    autoptr(exposed) exposed = exposed_new(record->sandbox_id, (uint16_t)record->port);
    struct host_slot *slot = ports_slot(ports, (uint16_t)record->host_port);

    (void)snprintf(exposed->id, sizeof exposed->id, "%s", record->id);
    exposed->created_at = record->created_at;
    exposed->host_port = (uint16_t)record->host_port;
    exposed->protocol = record->protocol;
    exposed->is_private = record->is_private;
    exposed->token_expires_at = record->token_expires_at;
    memcpy(exposed->token_hash, record->token_hash, PORT_HASH);
    (void)snprintf(exposed->key_id, sizeof exposed->key_id, "%s",
                   record->key_id ? record->key_id : "");
    exposed->is_ready = true;
    if (slot)
        slot->is_used = true;
    ports_add(ports, exposed);
}

static int load(struct ports *ports, struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms();
    autoports found = {0};

    if (store_port_purge(ports->store, now - ports->settings->port_rest_ms, err) < 0 ||
        store_port_list(ports->store, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.count; i++) {
        struct port_record *record = &found.rows[i];
        struct host_slot *slot = ports_slot(ports, (uint16_t)record->host_port);
        if (record->released_at == 0 && is_living(ports, record->sandbox_id)) {
            if (record->key_id && is_key_over(ports, record->key_id))
                record->token_expires_at = 1; // long ago
            autolock(&ports->lock);
            adopt(ports, record);
            continue;
        }
        if (record->released_at == 0) {
            record->released_at = now;
            if (store_port_release(ports->store, record->id, now, err) < 0)
                return -1;
        }
        if (slot && !slot->is_used && slot->released_at < record->released_at)
            slot->released_at = record->released_at;
    }
    return 0;
}

int ports_open(const struct core_settings *settings, struct sandboxes *sandboxes,
               struct ports **out, struct error *err)
{
    struct ports *ports = xnew(struct ports);

    ports->settings = settings;
    ports->sandboxes = sandboxes;
    ports->store = sandboxes->store;
    lock_init(&ports->lock, LOCK_PORTS);
    ports->n_slots = (size_t)(settings->port_range_last - settings->port_range_first + 1);
    ports->slots = xcalloc(ports->n_slots, sizeof *ports->slots);
    *out = ports;
    if (load(ports, err) < 0)
        return error_wrap(err, "read which ports are exposed");
    sandboxes->end_watch = (struct sandbox_end_watch){on_over, ports};
    return 0;
}

void ports_free(struct ports *ports)
{
    if (!ports)
        return;
    {
        autolock(&ports->lock);
        for (size_t i = 0; i < ports->owners.n_buckets; i++) {
            struct id_entry **bucket = &ports->owners.buckets[i];
            while (*bucket) {
                struct port_owner *owner =
                    (struct port_owner *)((char *)*bucket - offsetof(struct port_owner, known));
                exposed_free(ports_take(ports, owner->first));
            }
        }
        id_table_clear(&ports->owners);
        id_table_clear(&ports->tokens);
    }
    lock_clear(&ports->lock);
    free(ports->slots);
    free(ports);
}

/* References to all; the caller's, as is the array. */
static size_t copy_all(struct ports *ports, struct exposed ***out)
{
    size_t count = 0;

    autolock(&ports->lock);
    *out = xcalloc(ports->owners.count * PORTS_OF_SANDBOX + 1, sizeof **out);
    for (size_t i = 0; i < ports->owners.n_buckets; i++) {
        for (struct id_entry *at = ports->owners.buckets[i]; at; at = at->next) {
            struct port_owner *owner =
                (struct port_owner *)((char *)at - offsetof(struct port_owner, known));
            for (struct exposed *one = owner->first; one; one = one->next)
                (*out)[count++] = exposed_ref(one);
        }
    }
    return count;
}

void ports_set_host(struct ports *ports, const struct port_host *host)
{
    autofree struct exposed **all = NULL;
    size_t count;

    {
        autolock(&ports->lock);
        ports->has_host = host != NULL;
        if (host)
            ports->host = *host;
    }
    count = host ? copy_all(ports, &all) : 0;
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        if (all[i]->host_port && host->open(host->data, all[i], all[i]->host_port, &err) < 0)
            log_warn("an exposed port is not reached: its port of this machine cannot be had",
                     F_SANDBOX(all[i]->sandbox_id), F("port", (uint64_t)all[i]->port),
                     F("hostPort", (uint64_t)all[i]->host_port),
                     F("error", (const char *)err.text));
        exposed_free(all[i]);
    }
}
