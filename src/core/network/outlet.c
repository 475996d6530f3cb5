/* SPDX-License-Identifier: Apache-2.0 */
/* The ways out of boxes; see outlet.h. */
#include "core/network/outlet.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/settings.h"
#include "egress/egress.h"
#include "engine/box.h"
#include "engine/gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SLOTS 16384
#define LOOK_EVERY_MS 1000 // egress_fd changes when others start the program again
#define RESTORE_EVERY_MS 500
#define POLICY_TEXT_MOST ((size_t)1 << 20)

struct outlet {
    char sandbox_id[ID_TEXT]; // "": none
};

struct outlets {
    const struct core_settings *settings;
    struct engine *engine;
    void (*on_refusal)(void *data, const struct outlet_refusal *refusal);
    void *data;

    struct lock opening;     // held while the next three are made; they stay
    struct gateway *gateway; // the engine's
    struct egress *egress;
    bool has_thread;
    _Atomic bool is_open;

    pthread_t thread;
    int stop_fd;
    _Atomic bool is_ending;
    _Atomic uint32_t generation; // of the gateway: another for each admission

    struct lock lock; // guards the table
    struct outlet *table;
};

struct outlets *outlets_new(const struct core_settings *settings, struct engine *engine)
{
    struct outlets *outlets = xnew(struct outlets);

    outlets->settings = settings;
    outlets->engine = engine;
    outlets->stop_fd = -1;
    outlets->generation = (uint32_t)clock_wall_ms(); // an earlier server's numbers are behind it
    outlets->table = xcalloc(SLOTS, sizeof *outlets->table);
    lock_init(&outlets->opening, LOCK_OUTLETS);
    lock_init(&outlets->lock, LOCK_OUTLET_TABLE);
    return outlets;
}

void outlets_stop(struct outlets *outlets)
{
    const uint64_t one = 1;

    outlets->is_ending = true;
    if (!outlets->has_thread)
        return;
    (void)!write(outlets->stop_fd, &one, sizeof one);
    (void)pthread_join(outlets->thread, NULL);
    outlets->has_thread = false;
}

void outlets_free(struct outlets *outlets)
{
    if (!outlets)
        return;
    outlets_stop(outlets);
    egress_free(outlets->egress);
    closep(&outlets->stop_fd);
    lock_clear(&outlets->lock);
    lock_clear(&outlets->opening);
    free(outlets->table);
    free(outlets);
}

void outlets_on_refusal(struct outlets *outlets,
                        void (*on_refusal)(void *data, const struct outlet_refusal *refusal),
                        void *data)
{
    outlets->on_refusal = on_refusal;
    outlets->data = data;
}

// ---- the table ----

static void set_owner(struct outlets *outlets, unsigned slot, const char *sandbox_id)
{
    autolock(&outlets->lock);
    (void)snprintf(outlets->table[slot].sandbox_id, sizeof outlets->table[slot].sandbox_id, "%s",
                   sandbox_id);
}

static bool get_owner(struct outlets *outlets, unsigned slot, char id[ID_TEXT])
{
    id[0] = '\0';
    if (slot >= SLOTS)
        return false;
    autolock(&outlets->lock);
    (void)snprintf(id, ID_TEXT, "%s", outlets->table[slot].sandbox_id);
    return id[0] != '\0';
}

bool outlet_is_there(struct outlets *outlets, unsigned slot)
{
    char id[ID_TEXT];

    return get_owner(outlets, slot, id);
}

// ---- refusals ----

static const char *protocol_name(const struct egress_refusal *refusal)
{
    return refusal->protocol ? policy_protocol_name(refusal->protocol) : "dns";
}

static void pass_on(struct outlets *outlets, const struct egress_refusal *refusal)
{
    const struct in_addr address = {htonl(refusal->address)};
    char host[POLICY_NAME_LENGTH], id[ID_TEXT];

    if (!get_owner(outlets, refusal->slot, id))
        return; // it is over
    if (refusal->name[0])
        (void)snprintf(host, sizeof host, "%s", refusal->name);
    else if (!inet_ntop(AF_INET, &address, host, sizeof host))
        return;
    const struct outlet_refusal told = {
        .sandbox_id = id,
        .host = host,
        .port = refusal->port,
        .protocol = protocol_name(refusal),
        .rule = refusal->rule,
        .tier = policy_tier_name(refusal->tier),
        .remedy = refusal->remedy,
        .attempts = refusal->count,
        .is_refused = !refusal->would_deny,
    };
    outlets->on_refusal(outlets->data, &told);
}

/* False: the program has ended. */
static bool hear_refusals(struct outlets *outlets)
{
    struct egress_refusal refusal;
    int result;

    while ((result = egress_next_refusal(outlets->egress, &refusal)) == 1 && !outlets->is_ending)
        pass_on(outlets, &refusal);
    return result >= 0;
}

static void restore(struct outlets *outlets)
{
    struct error err = {0};

    if (egress_restore(outlets->egress, &err) < 0) {
        log_warn("burrow-egress could not be started again; names are refused until it is",
                 F("error", (const char *)err.text));
        return;
    }
    log_info("burrow-egress was started again and told of all sandboxes");
}

static void *listen_on(void *data)
{
    struct outlets *outlets = data;

    thread_set_name("network");
    while (!outlets->is_ending) {
        struct pollfd fds[] = {{outlets->stop_fd, POLLIN, 0},
                               {egress_fd(outlets->egress), POLLIN, 0}};
        (void)poll(fds, 2, LOOK_EVERY_MS);
        if (outlets->is_ending || hear_refusals(outlets))
            continue;
        restore(outlets);
        (void)poll(fds, 1, RESTORE_EVERY_MS);
    }
    return NULL;
}

// ---- opening ----

static int open_all(struct outlets *outlets, struct error *err)
{
    const struct network_settings *network = &outlets->settings->network;
    const struct egress_settings settings = {
        .data_dir = outlets->settings->data_dir,
        .addresses = network->addresses,
        .resolvers = network->dns,
        .proxy = network->proxy,
    };

    if (!outlets->gateway && engine_gateway(outlets->engine, &outlets->gateway, err) < 0)
        return -1;
    if (!outlets->egress && egress_open(&settings, &outlets->egress, err) < 0)
        return -1;
    if (outlets->stop_fd < 0)
        outlets->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (outlets->stop_fd < 0)
        return error_sys(err, "make an event for the network");
    int code = pthread_create(&outlets->thread, NULL, listen_on, outlets);
    if (code)
        return error_sys_code(err, code, "start the thread of the network");
    outlets->has_thread = true;
    return 0;
}

int outlets_ready(struct outlets *outlets, struct error *err)
{
    if (outlets->is_open)
        return 0;
    autolock(&outlets->opening);
    if (outlets->is_open)
        return 0;
    if (open_all(outlets, err) < 0) {
        (void)error_wrap(err, "give sandboxes a network");
        return error_about(err, "network.enabled");
    }
    outlets->is_open = true;
    return 0;
}

// ---- boxes ----

struct secrets {
    struct egress_secret items[NETWORK_SECRETS_MOST];
    struct network_secret_about about[NETWORK_SECRETS_MOST];
    char *values[NETWORK_SECRETS_MOST];
    size_t count;
};

static void secrets_clear(struct secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++)
        network_secret_wipe(&secrets->values[i]);
}

/* One that cannot be opened is left out: then its host gets requests without it, and says so. */
static void open_secrets(struct outlets *outlets, const char *sandbox_id, const char *const *sealed,
                         struct secrets *out)
{
    struct error err = {0};

    for (; sealed && *sealed && out->count < NETWORK_SECRETS_MOST; sealed++) {
        struct network_secret_about *about = &out->about[out->count];
        char **value = &out->values[out->count];
        network_secret_about(*sealed, about);
        if (network_secret_open(outlets->settings->data_dir, *sealed, value, &err) < 0) {
            log_warn("a secret of a sandbox cannot be used", F("sandbox", sandbox_id),
                     F("error", (const char *)err.text));
            continue;
        }
        out->items[out->count++] =
            (struct egress_secret){.host = about->host, .header = about->header, .value = *value};
    }
}

static int tell_egress(struct outlets *outlets, unsigned slot, const char *sandbox_id,
                       const struct network_wish *wish, const struct policy *policy,
                       int64_t generation, struct error *err)
{
    __attribute__((cleanup(secrets_clear))) struct secrets secrets = {0};
    autobuffer text = {.maximum = POLICY_TEXT_MOST};

    open_secrets(outlets, sandbox_id, wish->secrets, &secrets);
    if (policy_write(policy, &text, err) < 0)
        return -1;
    const struct egress_box box = {
        .slot = slot,
        .generation = (uint64_t)generation,
        .policy = text.data,
        .secrets = secrets.items,
        .n_secrets = secrets.count,
    };
    return egress_set(outlets->egress, &box, err);
}

static int tell_gateway(struct outlets *outlets, unsigned slot, const struct policy *policy,
                        struct error *err)
{
    struct policy_kernel kernel = {0};

    policy_compile(policy, &kernel);
    int result = gateway_admit(outlets->gateway, slot, &kernel, ++outlets->generation, err);
    policy_kernel_clear(&kernel);
    return result;
}

int outlet_admit(struct outlets *outlets, unsigned slot, const char *sandbox_id,
                 const struct network_wish *wish, int64_t generation, struct error *err)
{
    autopolicy policy = {0};

    if (slot >= SLOTS)
        return error_set(err, ERROR_SYSTEM, "a sandbox in slot %u cannot have a network", slot);
    if (outlets_ready(outlets, err) < 0 ||
        network_wish_policy(outlets->settings, wish, &policy, err) < 0)
        return -1;
    policy.has_secrets = wish->secrets && *wish->secrets;
    if (tell_egress(outlets, slot, sandbox_id, wish, &policy, generation, err) < 0 ||
        tell_gateway(outlets, slot, &policy, err) < 0)
        return error_wrap(err, "open the sandbox's network");
    set_owner(outlets, slot, sandbox_id);
    return 0;
}

void outlet_remove(struct outlets *outlets, unsigned slot)
{
    struct error err = {0};

    if (!outlet_is_there(outlets, slot))
        return;
    set_owner(outlets, slot, "");
    if (gateway_dismiss(outlets->gateway, slot, &err) < 0)
        log_warn("a sandbox's network could not be closed", F("slot", slot),
                 F("error", (const char *)err.text));
    if (egress_remove(outlets->egress, slot, &err) < 0)
        log_warn("burrow-egress still knows a sandbox that is gone", F("slot", slot),
                 F("error", (const char *)err.text));
}

int outlet_bytes(struct outlets *outlets, unsigned slot, int64_t *bytes, struct error *err)
{
    struct gateway_counters counters = {0};

    if (gateway_counters(outlets->gateway, slot, &counters, err) < 0)
        return -1;
    *bytes = (int64_t)counters.sent_bytes;
    return 0;
}

int outlets_certificate(struct outlets *outlets, struct buffer *out, struct error *err)
{
    return outlets_ready(outlets, err) < 0 ? -1 : egress_certificate(outlets->egress, out, err);
}
