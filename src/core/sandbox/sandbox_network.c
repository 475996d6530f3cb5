/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a sandbox; see sandbox_network.h. */
#include "core/sandbox/sandbox_network.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "core/network/outlet.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "engine/files.h"
#include "store/network_seen.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define RESOLVER_PATIENCE_MS 10000

int sandbox_admit_as(struct sandbox *sandbox, const struct network_wish *wish, int64_t generation,
                     bool sets_rate, struct error *err)
{
    struct sandboxes *sandboxes = sandbox->sandboxes;
    int64_t rate = network_rate(sandboxes->settings, wish);

    if (sets_rate && box_set_network_rate(sandbox->box, (uint64_t)rate, err) < 0)
        return -1;
    return outlet_admit(sandboxes->outlets, box_slot(sandbox->box), sandbox->id, wish, generation,
                        err);
}

int sandbox_admit(struct sandbox *sandbox, bool is_new, struct error *err)
{
    autowish wish = {0};
    int64_t generation = 0;

    {
        autolock(&sandbox->lock);
        if (!sandbox->record.network.is_enabled)
            return 0;
        network_wish_copy(&wish, &sandbox->record.network);
        generation = sandbox->record.network_generation;
    }
    bool sets_rate = is_new && network_rate(sandbox->sandboxes->settings, &wish) != 0;
    return sandbox_admit_as(sandbox, &wish, generation, sets_rate, err);
}

/* What the sandbox has of its own there is its owner's, who asked for this. One that cannot be written leaves names to whoever cannot write it. */
static void name_resolver(struct sandbox *sandbox, uint32_t address)
{
    struct in_addr place = {htonl(address)};
    char text[40], dotted[INET_ADDRSTRLEN];
    autofd conversation = -1;
    struct error err = {0};

    int length = snprintf(text, sizeof text, "nameserver %s\n",
                          inet_ntop(AF_INET, &place, dotted, sizeof dotted));
    if (box_files(sandbox->box, NULL, "/", &conversation, &err) < 0 ||
        files_set_timeout(conversation, RESOLVER_PATIENCE_MS, &err) < 0 ||
        files_write_buffer(conversation, "/etc/resolv.conf", 0644, FILES_PARENTS, text,
                           (size_t)length, &err) < 0)
        log_warn("a sandbox that got a network does not know who answers for names",
                 F_SANDBOX(sandbox->id), F("error", (const char *)err.text));
}

int sandbox_join_network(struct sandbox *sandbox, struct error *err)
{
    uint32_t resolver = 0;

    if (outlets_ready(sandbox->sandboxes->outlets, err) < 0 ||
        box_join_network(sandbox->box, &resolver, err) < 0)
        return -1;
    name_resolver(sandbox, resolver);
    return 0;
}

// ---- looking ----

void network_info_clear(struct network_info *info)
{
    for (size_t i = 0; i < info->n_secrets; i++) {
        free(info->secrets[i].host);
        free(info->secrets[i].header);
        free(info->secrets[i].env);
    }
    free(info->secrets);
    free(info->allow_always);
    free(info->deny_always);
    free(info->baseline);
    network_wish_clear(&info->wish);
    *info = (struct network_info){0};
}

static void tell_secrets(const char *const *secrets, struct network_info *out)
{
    size_t count = 0;

    while (secrets && secrets[count])
        count++;
    out->secrets = xcalloc(count + 1, sizeof *out->secrets);
    out->n_secrets = count;
    for (size_t i = 0; i < count; i++) {
        struct network_secret_about about;
        network_secret_about(secrets[i], &about);
        out->secrets[i] = (struct network_secret_info){
            .host = xstrdup(about.host),
            .header = xstrdup(about.header),
            .env = about.env[0] ? xstrdup(about.env) : NULL,
        };
    }
}

static char *copy_text(const char *text)
{
    return text && *text ? xstrdup(text) : NULL;
}

int sandbox_network_get(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        struct network_info *out, struct error *err)
{
    const struct network_settings *network = &sandboxes->settings->network;
    autosandbox record = {0};

    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", id);
    *out = (struct network_info){
        .is_default_allow = network_default_allows(&record.network),
        .rate_bytes = network_rate(sandboxes->settings, &record.network),
        .generation = record.network_generation,
        .is_active = record.network.is_enabled && record.box_slot != SANDBOX_NO_SLOT &&
                     !(sandbox_in(record.state) & SANDBOX_OVER),
        .egress_bytes = record.egress_bytes,
        .refused = record.network_refused,
        .allow_always = copy_text(network->allow_always),
        .deny_always = copy_text(network->deny_always),
        .baseline = copy_text(network->baseline),
    };
    tell_secrets(record.network.secrets, out);
    network_wish_copy(&out->wish, &record.network);
    free((void *)out->wish.secrets);
    out->wish.secrets = NULL;
    return 0;
}

// ---- why ----

static int read_protocol(const char *text, enum policy_protocol *out, struct error *err)
{
    static const enum policy_protocol all[] = {POLICY_TCP, POLICY_UDP, POLICY_ICMP};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (strcmp(policy_protocol_name(all[i]), text) == 0) {
            *out = all[i];
            return 0;
        }
    }
    return error_refuse(err, ERROR_INVALID, "protocol",
                        "protocol: '%.40s' is none of tcp, udp and icmp", text);
}

static int read_question(const struct network_question *from, char name[POLICY_NAME_LENGTH],
                         struct policy_question *out, struct error *err)
{
    struct in_addr address;

    *out = (struct policy_question){.port = (uint16_t)from->port};
    if (inet_pton(AF_INET, from->host, &address) == 1) {
        out->address = ntohl(address.s_addr);
    } else if (policy_fold_name(from->host, strlen(from->host), name)) {
        out->name = name;
    } else {
        return error_refuse(err, ERROR_INVALID, "host",
                            "host: '%.100s' is neither a name nor an address of version 4",
                            from->host);
    }
    if (from->port == 0 && out->name && !from->protocol)
        return 0; // a lookup
    return read_protocol(from->protocol ? from->protocol : "tcp", &out->protocol, err);
}

int sandbox_network_why(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        const struct network_question *question, struct network_answer *out,
                        struct error *err)
{
    struct policy_question asked;
    struct policy_verdict verdict = {0};
    char name[POLICY_NAME_LENGTH];
    autosandbox record = {0};
    autopolicy policy = {0};

    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", id);
    if (read_question(question, name, &asked, err) < 0 ||
        network_wish_policy(sandboxes->settings, &record.network, &policy, err) < 0)
        return -1;
    policy_decide(&policy, &asked, &verdict);
    *out =
        (struct network_answer){.is_allowed = verdict.is_allowed, .would_deny = verdict.would_deny};
    (void)snprintf(out->tier, sizeof out->tier, "%s", policy_tier_name(verdict.tier));
    (void)snprintf(out->rule, sizeof out->rule, "%s", verdict.rule);
    (void)snprintf(out->reason, sizeof out->reason, "%s", verdict.reason);
    (void)snprintf(out->remedy, sizeof out->remedy, "%s", verdict.remedy);
    return 0;
}

// ---- what was refused ----

void network_seen_infos_clear(struct network_seen_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        free(infos->items[i].host);
        free(infos->items[i].protocol);
        free(infos->items[i].rule);
    }
    free(infos->items);
    *infos = (struct network_seen_infos){0};
}

static char *take_text(const char **text)
{
    return (char *)(uintptr_t)take(*text);
}

int sandbox_network_seen(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                         bool is_refused, struct network_seen_infos *out, struct error *err)
{
    autosandbox record = {0};
    autoseen found = {0};

    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", id);
    if (store_network_list(sandboxes->store, id, is_refused, &found, err) < 0)
        return -1;
    *out = (struct network_seen_infos){xcalloc(found.count + 1, sizeof *out->items), found.count};
    for (size_t i = 0; i < found.count; i++) {
        struct network_seen *row = &found.rows[i];
        out->items[i] = (struct network_seen_info){
            .host = take_text(&row->host),
            .protocol = take_text(&row->protocol),
            .rule = take_text(&row->rule),
            .port = row->port,
            .attempts = row->attempts,
            .first_at = row->first_at,
            .last_at = row->last_at,
        };
    }
    return 0;
}

void sandbox_network_forget(struct sandbox *sandbox)
{
    struct error err = {0};

    if (store_network_forget(sandbox->sandboxes->store, sandbox->id, &err) < 0)
        log_warn("what a sandbox was refused is still noted", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
}
