/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a sandbox while it lives; see sandbox_modify.h. */
#include "core/sandbox/sandbox_modify.h"

#include "base/clock.h"
#include "base/label.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "base/strings.h"
#include "core/account/ceiling.h"
#include "core/account/key.h"
#include "core/event/hub.h"
#include "core/network/outlet.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "core/sandbox/sandbox_limits_impl.h"
#include "core/sandbox/sandbox_network.h"
#include "core/sandbox/sandbox_trust.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ENV_MAX (256u << 10)
#define NAME_MOST 128 // bytes
#define ID_PREFIX "sbx_"

const char *sandbox_name_fault(const char *name)
{
    size_t length = strlen(name);
    char id[ID_TEXT];

    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            length = 0;
    }
    if (length == 0 || length > NAME_MOST || !isalnum((unsigned char)name[0]))
        return "must be 1 to 128 letters, digits, '.', '_' and '-', and start with a letter or a "
               "digit";
    bool is_id = strncmp(name, ID_PREFIX, strlen(ID_PREFIX)) == 0 || id_from_uuid(name, id);
    return is_id ? "must not look like an id" : NULL;
}

// ---- to a record ----

static void set_text(const char **to, const char *text)
{
    free((char *)*to);
    *to = text ? xstrdup(text) : NULL;
}

static int apply_about(const struct sandbox_changes *changes, struct sandbox_record *record,
                       unsigned *parts, struct error *err)
{
    const char *fault = changes->is_name_unique && changes->has_name && changes->name
                            ? sandbox_name_fault(changes->name)
                            : NULL;

    if (fault)
        return error_refuse(err, ERROR_INVALID, "name", "name: %s", fault);
    if (changes->has_name)
        set_text(&record->name, changes->name);
    if (changes->has_description)
        set_text(&record->description, changes->description);
    if (changes->has_metadata)
        set_text(&record->metadata, changes->metadata);
    if (changes->has_name || changes->has_description || changes->has_metadata)
        *parts |= SANDBOX_PART_ABOUT;
    return 0;
}

/* NAME=VALUE lists, in one allocation. */
static const char *const *change_pairs(const char *const *before, const struct env_change *changes,
                                       size_t n_changes)
{
    autostrings pairs = {0};

    strings_merge(&pairs, before);
    for (size_t i = 0; i < n_changes; i++)
        strings_set(&pairs, changes[i].name, changes[i].value);
    autofree char *packed = strings_pack((const char *const *)pairs.items);
    return strings_list(packed);
}

static int apply_labels(const struct sandbox_changes *changes, struct sandbox_record *record,
                        unsigned *parts, struct error *err)
{
    if (changes->n_labels == 0)
        return 0;
    for (size_t i = 0; i < changes->n_labels; i++) {
        const char *fault = label_name_fault(changes->labels[i].name);
        if (fault)
            return error_refuse(err, ERROR_INVALID, "labels", "labels: the name '%.80s' %s",
                                changes->labels[i].name, fault);
    }
    const char *const *labels = change_pairs(record->labels, changes->labels, changes->n_labels);
    free((void *)record->labels);
    record->labels = labels;
    *parts |= SANDBOX_PART_LABELS;
    return labels_check(labels, err);
}

static int apply_env(const struct sandbox_changes *changes, struct sandbox_record *record,
                     unsigned *parts, struct error *err)
{
    if (changes->n_env == 0)
        return 0;
    for (size_t i = 0; i < changes->n_env; i++) {
        if (!*changes->env[i].name || strchr(changes->env[i].name, '='))
            return error_refuse(err, ERROR_INVALID, "env",
                                "'%.80s' cannot be the name of a variable", changes->env[i].name);
    }
    const char *const *env = change_pairs(record->command.env, changes->env, changes->n_env);
    free((void *)record->command.env);
    record->command.env = env;
    autofree char *packed = strings_pack(env);
    if (strlen(packed) > ENV_MAX)
        return error_refuse(err, ERROR_INVALID, "env", "the environment is at most %u KiB",
                            ENV_MAX >> 10);
    *parts |= SANDBOX_PART_ENV;
    return 0;
}

static int apply_limits(const struct core_settings *settings, const struct sandbox_changes *changes,
                        struct sandbox_record *record, unsigned *parts, struct error *err)
{
    const struct limits none = {0};

    if (limits_equal(&changes->limits, &none))
        return 0;
    if (limits_check(&changes->limits, err) < 0 ||
        limits_check_most(&changes->limits, &settings->ceilings.sandbox, "this server", true, err) <
            0)
        return -1;
    record->limits = limits_or_default(&changes->limits, &record->limits);
    *parts |= SANDBOX_PART_LIMITS;
    return 0;
}

/* When it ends at the latest. */
static int64_t last_moment(const struct core_settings *settings,
                           const struct sandbox_record *record, int64_t asked)
{
    int64_t lifetime_ms = settings->ceilings.lifetime_ms;
    int64_t last = record->created_at + lifetime_ms;

    return lifetime_ms == 0 || (asked != 0 && asked < last) ? asked : last;
}

static int apply_deadlines(const struct core_settings *settings,
                           const struct sandbox_changes *changes, struct sandbox_record *record,
                           unsigned *parts, struct error *err)
{
    const struct ceilings *most = &settings->ceilings;

    if (changes->has_idle_timeout) {
        if (ceiling_check_time("idle-timeout", changes->idle_timeout_ms, most->idle_timeout_ms,
                               err) < 0)
            return -1;
        record->idle_timeout_ms = ceiling_time(changes->idle_timeout_ms, most->idle_timeout_ms);
    }
    if (changes->has_execution_timeout) {
        if (ceiling_check_time("execution-timeout", changes->execution_timeout_ms,
                               most->execution_timeout_ms, err) < 0)
            return -1;
        record->command.timeout_ms =
            ceiling_time(changes->execution_timeout_ms, most->execution_timeout_ms);
    }
    if (changes->has_paused_timeout)
        record->paused_timeout_ms = changes->paused_timeout_ms;
    if (changes->has_expires_at) {
        if (changes->expires_at != 0 && changes->expires_at <= (int64_t)clock_wall_ms())
            return error_refuse(err, ERROR_INVALID, "expiresAt", "expiresAt: must be to come");
        record->expires_at = last_moment(settings, record, changes->expires_at);
    }
    if (changes->has_on_idle)
        record->on_idle = changes->on_idle;
    if (changes->front_data) {
        free((char *)record->front_data);
        record->front_data = xstrdup(changes->front_data);
        *parts |= SANDBOX_PART_FRONT;
    }
    if (changes->has_idle_timeout || changes->has_execution_timeout ||
        changes->has_paused_timeout || changes->has_expires_at || changes->has_on_idle)
        *parts |= SANDBOX_PART_DEADLINES;
    return 0;
}

static int apply_network(const struct core_settings *settings,
                         const struct sandbox_changes *changes, struct sandbox_record *record,
                         unsigned *parts, struct error *err)
{
    if (!network_change_says(changes->network))
        return 0;
    if (network_wish_change(settings, changes->network, &record->network, err) < 0)
        return -1;
    record->network_generation++;
    *parts |= SANDBOX_PART_NETWORK;
    return 0;
}

int sandbox_changes_apply(const struct core_settings *settings,
                          const struct sandbox_changes *changes, struct sandbox_record *record,
                          unsigned *parts, struct error *err)
{
    *parts = 0;
    if (apply_about(changes, record, parts, err) < 0 ||
        apply_labels(changes, record, parts, err) < 0 ||
        apply_env(changes, record, parts, err) < 0 ||
        apply_limits(settings, changes, record, parts, err) < 0 ||
        apply_deadlines(settings, changes, record, parts, err) < 0 ||
        apply_network(settings, changes, record, parts, err) < 0)
        return -1;
    if (record->asked && (*parts & (SANDBOX_PART_LIMITS | SANDBOX_PART_DEADLINES))) {
        free((char *)take(record->asked)); // how it was spelled once is not what it is any more
        *parts |= SANDBOX_PART_ASKED;
    }
    return 0;
}

// ---- to one that lives ----

#define AT(member) offsetof(struct sandbox_changes, member)
static const struct {
    size_t has; // offset of a bool
    const char *name;
} said[] = {
    {AT(has_name), "name"},
    {AT(has_description), "description"},
    {AT(has_metadata), "metadata"},
    {AT(has_idle_timeout), "idle_timeout"},
    {AT(has_execution_timeout), "execution_timeout"},
    {AT(has_paused_timeout), "paused_timeout"},
    {AT(has_expires_at), "expires_at"},
    {AT(has_on_idle), "on_idle"},
};
#undef AT

/* "name,labels" */
static void list_changes(const struct sandbox_changes *changes, char out[EVENT_FACT])
{
    const char *names[ARRAY_SIZE(said) + 2];
    size_t count = 0, used = 0;

    for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
        if (*(const bool *)((const char *)changes + said[i].has))
            names[count++] = said[i].name;
    }
    if (changes->n_labels)
        names[count++] = "labels";
    if (changes->n_env)
        names[count++] = "env";
    out[0] = '\0';
    for (size_t i = 0; i < count && used < EVENT_FACT; i++)
        used += (size_t)snprintf(out + used, EVENT_FACT - used, "%s%s", i ? "," : "", names[i]);
}

static int64_t count_rules(const char *const *rules)
{
    int64_t count = 0;

    while (rules && rules[count])
        count++;
    return count;
}

static int put_network_event(struct sandbox *sandbox, const struct sandbox_record *next,
                             struct error *err)
{
    struct event event = {.type = EVENT_NETWORK, .reason = "changed", .now = next->updated_at};

    event_fact(&event, "enabled", next->network.is_enabled ? "true" : "false");
    event_number(&event, "generation", next->network_generation);
    event_number(&event, "allow", count_rules(next->network.allow));
    event_number(&event, "deny", count_rules(next->network.deny));
    event_fact(&event, "default", network_default_allows(&next->network) ? "allow" : "deny");
    event_fact(&event, "observe", next->network.is_observed ? "true" : "false");
    return event_put(sandbox, &event, err);
}

/* One that tells what is different now; limits and the network have an event of their own, with figures. */
static int put_events(struct sandbox *sandbox, const struct sandbox_changes *changes,
                      const struct sandbox_record *next, unsigned parts, struct error *err)
{
    struct event changed = {.type = EVENT_CHANGE, .reason = "asked", .now = next->updated_at};
    struct event limits = {.type = EVENT_LIMITS, .reason = "changed", .now = next->updated_at};
    char names[EVENT_FACT];
    const unsigned own = SANDBOX_PART_LIMITS | SANDBOX_PART_NETWORK;

    list_changes(changes, names);
    event_fact(&changed, "changed", names);
    if ((parts & ~own) && event_put(sandbox, &changed, err) < 0)
        return -1;
    if ((parts & SANDBOX_PART_NETWORK) && put_network_event(sandbox, next, err) < 0)
        return -1;
    if (!(parts & SANDBOX_PART_LIMITS))
        return 0;
    event_number(&limits, "memory_bytes", next->limits.memory_bytes);
    event_number(&limits, "cpu_millicores", next->limits.cpu_millicores);
    event_number(&limits, "disk_bytes", next->limits.disk_bytes);
    event_number(&limits, "processes", next->limits.max_processes);
    return event_put(sandbox, &limits, err);
}

static int put(struct sandbox *sandbox, const struct sandbox_changes *changes,
               const struct sandbox_record *next, unsigned parts, struct error *err)
{
    struct store *store = sandbox->sandboxes->store;
    bool is_name_checked = changes->has_name && changes->is_name_unique;
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 (!is_name_checked || store_sandbox_check_name(store, next, err) == 0) &&
                 store_sandbox_update(store, next, parts, SANDBOX_ALIVE, err) == 0 &&
                 put_events(sandbox, changes, next, parts, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static void swap_text(const char **a, const char **b)
{
    const char *before = *a;
    *a = *b;
    *b = before;
}

static void swap_list(const char *const **a, const char *const **b)
{
    const char *const *before = *a;
    *a = *b;
    *b = before;
}

/* What readers and the monitor see from here on. `next` has the old texts then. */
static void show(struct sandbox *sandbox, struct sandbox_record *next)
{
    struct sandbox_record *record = &sandbox->record;

    autolock(&sandbox->lock);
    swap_text(&record->name, &next->name);
    swap_text(&record->description, &next->description);
    swap_text(&record->metadata, &next->metadata);
    swap_text(&record->asked, &next->asked);
    swap_text(&record->front_data, &next->front_data);
    swap_list(&record->labels, &next->labels);
    swap_list(&record->command.env, &next->command.env);
    record->limits = next->limits;
    const struct network_wish network = record->network;
    record->network = next->network;
    next->network = network;
    record->network_generation = next->network_generation;
    record->command.timeout_ms = next->command.timeout_ms;
    record->idle_timeout_ms = next->idle_timeout_ms;
    record->paused_timeout_ms = next->paused_timeout_ms;
    record->on_idle = next->on_idle;
    record->expires_at = next->expires_at;
    record->updated_at = next->updated_at;
    sandbox->expires_ms = clock_monotonic_at(next->expires_at);
}

/* The caller holds record_lock. */
static int check_asked(struct sandbox *sandbox, const struct sandbox_changes *changes,
                       struct error *err)
{
    autosandbox record = {0};
    autoclear(sandbox_info) now = {0};

    if (!changes->check)
        return 0;
    sandbox_copy(sandbox, &record);
    sandbox_info_take(&now, &record);
    return changes->check(changes->check_data, &now, err);
}

/* The caller holds the box, where limits change. */
static int record_changes(struct sandbox *sandbox, const struct actor *actor,
                          const struct sandbox_changes *changes, struct sandbox_info *out,
                          struct error *err)
{
    const struct core_settings *settings = sandbox->sandboxes->settings;
    autosandbox next = {0};
    autosandbox told = {0};
    unsigned parts = 0;

    autolock(&sandbox->record_lock);
    if (sandbox_is_in(sandbox, SANDBOX_ENDING))
        return sandbox_refuse_ending(err);
    sandbox_copy(sandbox, &next);
    if (check_asked(sandbox, changes, err) < 0 ||
        sandbox_changes_apply(settings, changes, &next, &parts, err) < 0 ||
        actor_need_labels(actor, next.labels, err) < 0)
        return -1;
    if (parts) {
        int64_t now = (int64_t)clock_wall_ms(); // every change has a time of its own
        next.updated_at = now > next.updated_at ? now : next.updated_at + 1;
        if (put(sandbox, changes, &next, parts, err) < 0)
            return -1;
        show(sandbox, &next);
    }
    sandbox_copy(sandbox, &told);
    sandbox_info_take(out, &told);
    return 0;
}

/* What it would be; the caller holds the box. */
static int want_network(struct sandbox *sandbox, const struct actor *actor,
                        const struct sandbox_changes *changes, struct network_wish *wanted,
                        struct error *err)
{
    struct sandboxes *sandboxes = sandbox->sandboxes;
    autosandbox now = {0};

    sandbox_copy(sandbox, &now);
    network_wish_copy(wanted, &now.network);
    if (network_wish_change(sandboxes->settings, changes->network, wanted, err) < 0)
        return -1;
    if (!wanted->is_enabled)
        return 0;
    const struct key_wish wish = {now.runtime, now.labels, wanted, network_default_allows(wanted)};
    if (key_rules_check(sandboxes->accounts, actor, &wish, err) < 0)
        return -1;
    return now.network.is_enabled ? 0 : outlets_ready(sandboxes->outlets, err);
}

/*
 * In force first, where it may fail, then recorded: a change that nobody was told of may be lost, one that was told is in force. Where it fails, what was
 * there before is in force again, or nothing at all. The caller holds the box.
 */
static int modify_network(struct sandbox *sandbox, const struct actor *actor,
                          const struct sandbox_changes *changes, struct sandbox_info *out,
                          struct error *err)
{
    struct outlets *outlets = sandbox->sandboxes->outlets;
    struct error ignored = {0};
    autowish wanted = {0};

    if (!network_change_says(changes->network))
        return record_changes(sandbox, actor, changes, out, err);
    if (want_network(sandbox, actor, changes, &wanted, err) < 0)
        return -1;
    bool lives = sandbox->box && !sandbox->is_box_over;
    bool has_outlet = lives && outlet_is_there(outlets, box_slot(sandbox->box));
    bool joins = lives && !has_outlet && wanted.is_enabled;
    if (joins && sandbox_join_network(sandbox, err) < 0)
        return -1;
    const struct core_settings *settings = sandbox->sandboxes->settings;
    int64_t rate = joins ? 0 : network_rate(settings, &sandbox->record.network);
    bool sets_rate = network_rate(settings, &wanted) != rate;
    bool begins_to_observe = wanted.is_observed && !sandbox->record.network.is_observed;
    if (((!has_outlet && !joins) ||
         sandbox_admit_as(sandbox, &wanted, sandbox->record.network_generation + 1, sets_rate,
                          err) == 0) &&
        record_changes(sandbox, actor, changes, out, err) == 0) {
        if (begins_to_observe)
            sandbox_network_forget(sandbox);
        return 0;
    }
    if (joins || (has_outlet &&
                  sandbox_admit_as(sandbox, &sandbox->record.network,
                                   sandbox->record.network_generation, sets_rate, &ignored) < 0))
        outlet_remove(outlets, box_slot(sandbox->box));
    return -1;
}

/* Limits are set in the box first, where they may be refused, and set back when the rest fails. */
static int modify_limits(struct sandbox *sandbox, const struct actor *actor,
                         const struct sandbox_changes *changes, struct sandbox_info *out,
                         struct error *err)
{
    struct accounts *accounts = sandbox->sandboxes->accounts;
    struct error ignored = {0};
    const struct limits before = sandbox->record.limits; // changed by those who hold the box alone
    const struct limits wanted = limits_or_default(&changes->limits, &before);
    if (sandbox_limits_check_use(sandbox, &before, &wanted, err) < 0 ||
        quota_change(accounts, actor, &sandbox->share, &wanted, err) < 0)
        return -1;
    if (sandbox_limits_apply(sandbox, &wanted, err) == 0 &&
        modify_network(sandbox, actor, changes, out, err) == 0)
        return 0;
    (void)sandbox_limits_apply(sandbox, &before, &ignored); // there was room for it until now
    (void)quota_change(accounts, NULL, &sandbox->share, &before, &ignored);
    return -1;
}

static bool has_box(struct sandbox *sandbox)
{
    autobox held = sandbox_hold_box(sandbox);

    return sandbox->box && !sandbox->is_box_over;
}

static int modify_box(struct sandbox *sandbox, const struct actor *actor,
                      const struct sandbox_changes *changes, bool has_limits,
                      struct sandbox_info *out, struct error *err)
{
    autobox held = sandbox_hold_box(sandbox);

    if (sandbox_is_in(sandbox, SANDBOX_ENDING))
        return sandbox_refuse_ending(err);
    return (has_limits ? modify_limits : modify_network)(sandbox, actor, changes, out, err);
}

int sandbox_modify(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   const struct sandbox_changes *changes, struct sandbox_info *out,
                   struct error *err)
{
    const struct limits none = {0};
    struct error untold = {0};
    bool has_limits = !limits_equal(&changes->limits, &none);
    autoptr(sandbox) sandbox = NULL;

    if (limits_check(&changes->limits, err) < 0 ||
        limits_check_most(&changes->limits, &sandboxes->settings->ceilings.sandbox, "this server",
                          true, err) < 0 ||
        lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    if (changes->has_name && changes->name) // of one whose end was told the name is free
        lookup_settle_named(sandboxes, &sandbox->record.owner, changes->name);
    sandbox_touch(sandbox);
    int result = has_limits || network_change_says(changes->network)
                     ? modify_box(sandbox, actor, changes, has_limits, out, err)
                     : record_changes(sandbox, actor, changes, out, err);
    if (result == 0 && changes->network && changes->network->has_secrets && has_box(sandbox) &&
        sandbox_trust(sandbox, &untold) < 0)
        log_warn("a sandbox may not trust the certificate for its secrets", F_SANDBOX(sandbox->id),
                 F("error", (const char *)untold.text));
    sandbox_touch(sandbox); // so that the monitor looks at its deadlines as they are now
    if (result == 0) {
        lookup_used(sandboxes, sandbox->id, out);
        hub_announce(sandboxes->hub, sandbox->id);
    }
    return result;
}
