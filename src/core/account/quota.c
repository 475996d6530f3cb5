/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what keys and organisations have in use; see quota.h. */
#include "core/account/quota.h"

#include "base/clock.h"
#include "base/id_table.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/options.h"
#include "core/account/account_impl.h"
#include "store/space_counts.h"
#include "store/usage_days.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

/* What one key or organisation has. */
struct holder {
    struct id_entry entry; // first
    char id[ID_TEXT];
    struct quota used; // runs_per_day: of `day`
    int64_t day;       // 0: nobody has asked for its runs yet
    int64_t saving;    // bytes that are being saved
};

struct quotas {
    struct lock lock; // guards everything
    struct id_table holders;
    struct quota ceilings; // of the organisation
    unsigned n_saved;      // that are on record, or were given up half way, since the start
};

struct quotas *quotas_new(void)
{
    struct quotas *quotas = xnew(struct quotas);
    lock_init(&quotas->lock, LOCK_QUOTAS);
    return quotas;
}

void quotas_free(struct quotas *quotas)
{
    if (!quotas)
        return;
    for (size_t i = 0; i < quotas->holders.n_buckets; i++) {
        while (quotas->holders.buckets[i]) {
            struct id_entry *entry = quotas->holders.buckets[i];
            id_table_remove(&quotas->holders, entry);
            free(entry);
        }
    }
    id_table_clear(&quotas->holders);
    lock_clear(&quotas->lock);
    free(quotas);
}

void quotas_set_ceilings(struct quotas *quotas, const struct quota *ceilings)
{
    autolock(&quotas->lock);
    quotas->ceilings = *ceilings;
}

/* ---- the figures ---- */

static const struct figure {
    size_t at;    // in struct quota
    size_t limit; // in struct limits
    const char *name;
    enum option_type type;
} figures[] = {
    {offsetof(struct quota, sandboxes), 0, "sandboxes", OPTION_INTEGER},
    {offsetof(struct quota, memory_bytes), offsetof(struct limits, memory_bytes), "memory",
     OPTION_SIZE},
    {offsetof(struct quota, cpu_millicores), offsetof(struct limits, cpu_millicores), "cpu",
     OPTION_CPU},
    {offsetof(struct quota, disk_bytes), offsetof(struct limits, disk_bytes), "disk", OPTION_SIZE},
    {offsetof(struct quota, processes), offsetof(struct limits, max_processes), "processes",
     OPTION_INTEGER},
    {offsetof(struct quota, runs_per_day), 0, "runs per day", OPTION_INTEGER},
};
#define RUNS (ARRAY_SIZE(figures) - 1) // the last one

static int64_t figure_of(const struct quota *quota, const struct figure *figure)
{
    return *(const int64_t *)((const char *)quota + figure->at);
}

bool quota_is_less(const struct quota *bounds, const struct quota *before)
{
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        int64_t bound = figure_of(bounds, &figures[i]), old = figure_of(before, &figures[i]);
        if (bound && (!old || bound < old))
            return true;
    }
    return false;
}

static struct quota amounts_of(const struct limits *limits, int64_t sandboxes)
{
    return (struct quota){.sandboxes = sandboxes,
                          .memory_bytes = limits->memory_bytes,
                          .cpu_millicores = limits->cpu_millicores,
                          .disk_bytes = limits->disk_bytes,
                          .processes = limits->max_processes};
}

static void add(struct quota *to, const struct quota *more, int sign)
{
    int64_t *into = (int64_t *)to;
    const int64_t *from = (const int64_t *)more;

    for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
        into[i] += sign * from[i];
}

static int refuse(const char *whose, const struct figure *figure, int64_t bound, int64_t used,
                  int64_t more, struct error *err)
{
    char most[DURATION_TEXT], have[DURATION_TEXT], wanted[DURATION_TEXT];

    return error_refuse(
        err, ERROR_QUOTA, "quota", "the %s's quota for %s is %s: %s in use, %s more asked for",
        whose, figure->name, option_number(figure->type, bound, most),
        option_number(figure->type, used, have), option_number(figure->type, more, wanted));
}

/* Figures that do not grow are not looked at: what has less than before is always fine. */
static int check(const char *whose, const struct quota *bounds, const struct quota *used,
                 const struct quota *more, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        const struct figure *figure = &figures[i];
        int64_t bound = figure_of(bounds, figure);
        int64_t wanted = figure_of(more, figure);
        if (bound && wanted > 0 && figure_of(used, figure) > bound - wanted)
            return refuse(whose, figure, bound, figure_of(used, figure), wanted, err);
    }
    return 0;
}

/* A sandbox without a limit would have all of what is bounded. */
static int check_limited(const char *whose, const struct quota *bounds, const struct limits *limits,
                         struct error *err)
{
    for (size_t i = 1; i < RUNS; i++) {
        int64_t limit = *(const int64_t *)((const char *)limits + figures[i].limit);
        if (figure_of(bounds, &figures[i]) && limit == 0)
            return error_refuse(err, ERROR_INVALID, figures[i].name,
                                "the %s has a quota for %s: ask for a limit", whose,
                                figures[i].name);
    }
    return 0;
}

/* ---- holders; the caller holds the lock ---- */

static struct holder *find_holder(struct quotas *quotas, const char *id)
{
    return (struct holder *)id_table_find(&quotas->holders, id, id_hash(id));
}

static struct holder *need_holder(struct quotas *quotas, const char *id)
{
    struct holder *holder = find_holder(quotas, id);

    if (holder)
        return holder;
    holder = xnew(struct holder);
    (void)snprintf(holder->id, sizeof holder->id, "%s", id);
    holder->entry.id = holder->id;
    holder->entry.hash = id_hash(id);
    id_table_put(&quotas->holders, &holder->entry);
    return holder;
}

static void charge(struct quotas *quotas, const char *id, const struct quota *more, int sign)
{
    if (!*id)
        return;
    struct holder *holder = need_holder(quotas, id);
    add(&holder->used, more, sign);
    if (holder->used.sandboxes > 0 || holder->day || holder->saving)
        return;
    id_table_remove(&quotas->holders, &holder->entry);
    free(holder);
}

static struct quota used_by(struct quotas *quotas, const char *id)
{
    const struct holder *holder = *id ? find_holder(quotas, id) : NULL;
    return holder ? holder->used : (struct quota){0};
}

/* ---- what is saved ---- */

/* Bytes on the disk outside of sandboxes; 0 where nobody asks. */
struct saved {
    int64_t key, organisation;
    unsigned n_saved; // before anybody looked
};

static struct quota ceilings_of(struct quotas *quotas)
{
    autolock(&quotas->lock);
    return quotas->ceilings;
}

static unsigned count_saved(struct quotas *quotas)
{
    autolock(&quotas->lock);
    return quotas->n_saved;
}

static int load_saved(struct accounts *accounts, const struct actor *actor, const char *key_id,
                      const char *organisation, struct saved *out, struct error *err)
{
    bool has_key = actor && *key_id && actor->quota.disk_bytes;
    bool has_ceiling = actor && ceilings_of(accounts->quotas).disk_bytes;

    *out = (struct saved){.n_saved = count_saved(accounts->quotas)};
    if (has_key && store_saved_bytes(accounts->store, organisation, key_id, &out->key, err) < 0)
        return -1;
    return has_ceiling
               ? store_saved_bytes(accounts->store, organisation, NULL, &out->organisation, err)
               : 0;
}

/*
 * The lock, with what is saved as it is now; NULL: it could not be read. What is recorded while the database is read may be in neither of the two sums, and then it is
 * read again.
 */
static struct lock *lock_with_saved(struct accounts *accounts, const struct actor *actor,
                                    const char *key_id, const char *organisation, struct saved *out,
                                    struct error *err)
{
    struct quotas *quotas = accounts->quotas;

    for (;;) {
        if (load_saved(accounts, actor, key_id, organisation, out, err) < 0)
            return NULL;
        lock_take(&quotas->lock);
        if (out->n_saved == quotas->n_saved)
            return &quotas->lock;
        lock_release(&quotas->lock);
    }
}
#define autoheld __attribute__((cleanup(lock_releasep))) struct lock *

// Under the lock.
static void add_saved(struct quotas *quotas, const char *id, int64_t bytes, struct quota *used)
{
    const struct holder *holder = *id ? find_holder(quotas, id) : NULL;

    used->disk_bytes += bytes + (holder ? holder->saving : 0);
}

/* ---- sandboxes ---- */

static int check_both(struct quotas *quotas, const struct actor *actor,
                      const struct quota_share *share, const struct quota *more,
                      const struct saved *saved, struct error *err)
{
    struct quota key = used_by(quotas, share->key_id);
    struct quota organisation = used_by(quotas, share->organisation);
    // Of another key's sandbox, only the organisation's bounds are known here.
    bool is_own = strcmp(actor->key_id, share->key_id) == 0;

    add_saved(quotas, share->key_id, saved->key, &key);
    add_saved(quotas, share->organisation, saved->organisation, &organisation);
    if (is_own && check("key", &actor->quota, &key, more, err) < 0)
        return -1;
    return check("organisation", &quotas->ceilings, &organisation, more, err);
}

static int check_limits(struct quotas *quotas, const struct actor *actor,
                        const struct limits *limits, struct error *err)
{
    if (check_limited("key", &actor->quota, limits, err) < 0)
        return -1;
    return check_limited("organisation", &quotas->ceilings, limits, err);
}

int quota_take(struct accounts *accounts, const struct actor *actor, struct quota_share *share,
               struct error *err)
{
    struct quotas *quotas = accounts->quotas;
    const struct quota more = amounts_of(&share->limits, 1);
    struct saved saved;

    autoheld held =
        lock_with_saved(accounts, actor, share->key_id, share->organisation, &saved, err);
    if (!held)
        return -1;
    if (actor && (check_limits(quotas, actor, &share->limits, err) < 0 ||
                  check_both(quotas, actor, share, &more, &saved, err) < 0))
        return -1;
    charge(quotas, share->key_id, &more, 1);
    charge(quotas, share->organisation, &more, 1);
    share->is_taken = true;
    return 0;
}

void quota_give(struct accounts *accounts, struct quota_share *share)
{
    struct quotas *quotas = accounts->quotas;

    autolock(&quotas->lock);
    const struct quota less = amounts_of(&share->limits, 1);
    if (!share->is_taken)
        return;
    share->is_taken = false;
    charge(quotas, share->key_id, &less, -1);
    charge(quotas, share->organisation, &less, -1);
}

int quota_change(struct accounts *accounts, const struct actor *actor, struct quota_share *share,
                 const struct limits *limits, struct error *err)
{
    struct quotas *quotas = accounts->quotas;
    struct quota more = amounts_of(limits, 0);
    struct saved saved;

    autoheld held =
        lock_with_saved(accounts, actor, share->key_id, share->organisation, &saved, err);
    if (!held)
        return -1;
    if (!share->is_taken)
        return 0; // it has ended meanwhile
    const struct quota before = amounts_of(&share->limits, 0);
    add(&more, &before, -1);
    if (actor && (check_limits(quotas, actor, limits, err) < 0 ||
                  check_both(quotas, actor, share, &more, &saved, err) < 0))
        return -1;
    charge(quotas, share->key_id, &more, 1);
    charge(quotas, share->organisation, &more, 1);
    share->limits = *limits;
    return 0;
}

/* ---- files that are saved ---- */

static void add_saving(struct quotas *quotas, const char *id, int64_t bytes)
{
    if (!*id)
        return;
    need_holder(quotas, id)->saving += bytes;
    charge(quotas, id, &(struct quota){0}, 1); // forgets a holder that has nothing
}

static void change_saving(struct quotas *quotas, const struct quota_saving *saving, int sign)
{
    autolock(&quotas->lock);
    add_saving(quotas, saving->key_id, sign * saving->bytes);
    add_saving(quotas, saving->organisation, sign * saving->bytes);
}

/* `counted` of the bytes are among those that are being saved already. */
static int check_saved(struct accounts *accounts, const struct actor *actor, const char *key_id,
                       int64_t bytes, int64_t counted, struct error *err)
{
    const struct quota more = {.disk_bytes = bytes};
    struct quota_share whose = {0};
    struct saved saved;

    (void)snprintf(whose.key_id, sizeof whose.key_id, "%s", key_id);
    memcpy(whose.organisation, actor->organisation, sizeof whose.organisation);
    autoheld held = lock_with_saved(accounts, actor, key_id, actor->organisation, &saved, err);
    if (!held)
        return -1;
    saved.key -= counted;
    saved.organisation -= counted;
    return check_both(accounts->quotas, actor, &whose, &more, &saved, err);
}

int quota_check_saved(struct accounts *accounts, const struct actor *actor, const char *key_id,
                      struct error *err)
{
    return check_saved(accounts, actor, key_id, 1, 0, err);
}

int quota_save(struct accounts *accounts, const struct actor *actor, const char *key_id,
               uint64_t bytes, struct quota_saving *saving, struct error *err)
{
    // Counted first, then looked at: of two at once none is left out, and one may be counted twice.
    *saving =
        (struct quota_saving){.bytes = bytes < INT64_MAX / 4 ? (int64_t)bytes : INT64_MAX / 4};
    (void)snprintf(saving->key_id, sizeof saving->key_id, "%s", key_id);
    memcpy(saving->organisation, actor->organisation, sizeof saving->organisation);
    change_saving(accounts->quotas, saving, 1);
    if (check_saved(accounts, actor, key_id, saving->bytes, saving->bytes, err) == 0)
        return 0;
    change_saving(accounts->quotas, saving, -1);
    saving->bytes = 0;
    return -1;
}

void quota_saved(struct accounts *accounts, struct quota_saving *saving)
{
    struct quotas *quotas = accounts->quotas;

    {
        autolock(&quotas->lock);
        quotas->n_saved++; // first: whoever still finds it among those being saved has it
    }
    change_saving(quotas, saving, -1);
    saving->bytes = 0;
}

/* ---- commands ---- */

static int64_t today(void)
{
    int64_t now = (int64_t)clock_wall_ms();
    return now - now % DAY_MS;
}

static bool knows_runs(struct quotas *quotas, const char *id, int64_t day)
{
    autolock(&quotas->lock);
    const struct holder *holder = find_holder(quotas, id);
    return holder && holder->day == day;
}

/* What was run today before anybody counted: by an earlier server, or before there was a bound. */
static int load_runs(struct accounts *accounts, const char *key_id, const char *organisation,
                     int64_t day, struct error *err)
{
    const char *id = key_id ? key_id : organisation;
    int64_t runs = 0;

    if (knows_runs(accounts->quotas, id, day))
        return 0;
    if (store_usage_runs(accounts->store, organisation, key_id, day, &runs, err) < 0)
        return -1;
    autolock(&accounts->quotas->lock);
    struct holder *holder = need_holder(accounts->quotas, id);
    if (holder->day == day)
        return 0; // somebody else was quicker
    holder->day = day;
    holder->used.runs_per_day = runs;
    return 0;
}

int quota_run(struct accounts *accounts, const struct actor *actor, bool *is_counted,
              struct error *err)
{
    static const struct quota one = {.runs_per_day = 1};
    struct quotas *quotas = accounts->quotas;
    const struct quota ceilings = ceilings_of(quotas);
    bool has_key = *actor->key_id && actor->quota.runs_per_day;
    int64_t day = today();

    *is_counted = !actor->is_stranger && (has_key || ceilings.runs_per_day);
    if (!*is_counted)
        return 0;
    if ((*actor->key_id && load_runs(accounts, actor->key_id, actor->organisation, day, err) < 0) ||
        load_runs(accounts, NULL, actor->organisation, day, err) < 0)
        return -1;
    struct quota_share whose = {0};
    memcpy(whose.key_id, actor->key_id, sizeof whose.key_id);
    memcpy(whose.organisation, actor->organisation, sizeof whose.organisation);
    autolock(&quotas->lock);
    if (check_both(quotas, actor, &whose, &one, &(struct saved){0}, err) < 0)
        return -1;
    charge(quotas, whose.key_id, &one, 1);
    charge(quotas, whose.organisation, &one, 1);
    return 0;
}

static void unrun(struct quotas *quotas, const char *id)
{
    struct holder *holder = id && *id ? find_holder(quotas, id) : NULL;

    if (holder && holder->day == today() && holder->used.runs_per_day > 0)
        holder->used.runs_per_day--;
}

void quota_unrun(struct accounts *accounts, const char *key_id, const char *organisation)
{
    autolock(&accounts->quotas->lock);
    unrun(accounts->quotas, key_id);
    unrun(accounts->quotas, organisation);
}

/* ---- what is told ---- */

static struct quota copy_used(struct quotas *quotas, const char *id, int64_t day)
{
    autolock(&quotas->lock);
    const struct holder *holder = *id ? find_holder(quotas, id) : NULL;
    struct quota used = used_by(quotas, id);
    if (!holder || holder->day != day)
        used.runs_per_day = -1; // not known here
    return used;
}

static int get_used(struct accounts *accounts, const char *key_id, const char *organisation,
                    struct quota *out, struct error *err)
{
    int64_t day = today();
    struct quota used = copy_used(accounts->quotas, key_id ? key_id : organisation, day);

    int64_t saved = 0;

    if ((used.runs_per_day < 0 && store_usage_runs(accounts->store, organisation, key_id, day,
                                                   &used.runs_per_day, err) < 0) ||
        store_saved_bytes(accounts->store, organisation, key_id, &saved, err) < 0)
        return -1;
    used.disk_bytes += saved;
    *out = used;
    return 0;
}

int quota_get(struct accounts *accounts, const struct actor *actor, struct quota_state *key,
              struct quota_state *organisation, struct error *err)
{
    *key = (struct quota_state){.bounds = actor->quota};
    *organisation = (struct quota_state){.bounds = ceilings_of(accounts->quotas)};
    if (*actor->key_id &&
        get_used(accounts, actor->key_id, actor->organisation, &key->used, err) < 0)
        return -1;
    return get_used(accounts, NULL, actor->organisation, &organisation->used, err);
}
