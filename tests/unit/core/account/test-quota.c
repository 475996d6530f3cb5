/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account/quota.c and scope.c: what is counted, what is refused, and that no two get the last of something. */
#include "core/account/quota.h"

#include "../core_rig.h"

#include <pthread.h>

#define MIB (INT64_C(1) << 20)

static struct accounts *open_accounts(void)
{
    struct accounts *accounts = NULL;
    struct error err = {0};

    CHECK_OK(accounts_open(fixture_store(), &accounts, &err), err);
    return accounts;
}

static struct actor actor_with(const struct quota *quota)
{
    struct actor actor = rig_actor();

    (void)snprintf(actor.key_id, sizeof actor.key_id, "key1");
    actor.quota = *quota;
    return actor;
}

static struct quota_share share_of(int64_t memory)
{
    struct quota_share share = {.key_id = "key1", .organisation = ORGANISATION};

    share.limits = (struct limits){.memory_bytes = memory, .cpu_millicores = 100, .disk_bytes = 1};
    return share;
}

TEST(the_last_place_is_refused_with_figure_bound_and_use)
{
    autoptr(accounts) accounts = open_accounts();
    struct actor actor = actor_with(&(struct quota){.sandboxes = 2, .memory_bytes = 300 * MIB});
    struct quota_share a = share_of(100 * MIB), b = share_of(201 * MIB), c = share_of(100 * MIB),
                       d = share_of(1);
    struct error err = {0};

    CHECK_OK(quota_take(accounts, &actor, &a, &err), err);
    CHECK(quota_take(accounts, &actor, &b, &err) < 0);
    CHECK_INT(err.reason, ERROR_QUOTA);
    CHECK(strstr(err.text, "the key's quota for memory is 300Mi: 100Mi in use, 201Mi more"));
    CHECK_OK(quota_take(accounts, &actor, &c, &err), err);
    CHECK(quota_take(accounts, &actor, &d, &err) < 0);
    CHECK(strstr(err.text, "sandboxes is 2: 2 in use"));
    quota_give(accounts, &a);
    quota_give(accounts, &a); // once is enough
    CHECK_OK(quota_take(accounts, &actor, &d, &err), err);
}

TEST(what_is_not_limited_does_not_fit_into_a_quota)
{
    autoptr(accounts) accounts = open_accounts();
    struct actor actor = actor_with(&(struct quota){.memory_bytes = 300 * MIB});
    struct quota_share share = share_of(0);
    struct error err = {0};

    CHECK(quota_take(accounts, &actor, &share, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK(!share.is_taken);
}

TEST(one_that_is_there_already_is_counted_whatever_the_quota)
{
    autoptr(accounts) accounts = open_accounts();
    struct actor actor = actor_with(&(struct quota){.sandboxes = 1});
    struct quota_share a = share_of(MIB), b = share_of(MIB), c = share_of(MIB);
    struct quota_state key, organisation;
    struct error err = {0};

    CHECK_OK(quota_take(accounts, NULL, &a, &err), err);
    CHECK_OK(quota_take(accounts, NULL, &b, &err), err);
    CHECK(quota_take(accounts, &actor, &c, &err) < 0);
    CHECK_OK(quota_get(accounts, &actor, &key, &organisation, &err), err);
    CHECK_INT(key.used.sandboxes, 2);
    CHECK_INT(organisation.used.memory_bytes, 2 * MIB);
}

TEST(limits_that_change_are_counted_and_smaller_ones_always_fit)
{
    autoptr(accounts) accounts = open_accounts();
    struct actor actor = actor_with(&(struct quota){.memory_bytes = 300 * MIB});
    struct quota_share share = share_of(200 * MIB);
    struct limits more = {.memory_bytes = 301 * MIB}, fits = {.memory_bytes = 300 * MIB},
                  less = {.memory_bytes = MIB};
    struct quota_state key, organisation;
    struct error err = {0};

    CHECK_OK(quota_take(accounts, &actor, &share, &err), err);
    CHECK(quota_change(accounts, &actor, &share, &more, &err) < 0);
    CHECK_INT(share.limits.memory_bytes, 200 * MIB);
    CHECK_OK(quota_change(accounts, &actor, &share, &fits, &err), err);
    actor.quota.memory_bytes = 10 * MIB; // it was lowered meanwhile
    CHECK_OK(quota_change(accounts, &actor, &share, &less, &err), err);
    CHECK_OK(quota_get(accounts, &actor, &key, &organisation, &err), err);
    CHECK_INT(key.used.memory_bytes, MIB);
    quota_give(accounts, &share);
    CHECK_OK(quota_change(accounts, &actor, &share, &more, &err), err); // it has ended: nothing
    CHECK_OK(quota_get(accounts, &actor, &key, &organisation, &err), err);
    CHECK_INT(key.used.memory_bytes, 0);
}

#define THREADS 8
#define ROUNDS 2000
#define PLACES 3

struct race {
    struct accounts *accounts;
    struct actor actor;
    _Atomic int inside, most;
};

static void *take_and_give(void *data)
{
    struct race *race = data;

    for (int i = 0; i < ROUNDS; i++) {
        struct quota_share share = share_of(MIB);
        struct error err = {0};
        if (quota_take(race->accounts, &race->actor, &share, &err) < 0)
            continue;
        int now = ++race->inside, most = race->most;
        while (now > most && !atomic_compare_exchange_weak(&race->most, &most, now))
            ;
        race->inside--;
        quota_give(race->accounts, &share);
    }
    return NULL;
}

TEST(many_at_once_never_have_more_than_there_may_be)
{
    autoptr(accounts) accounts = open_accounts();
    struct race race = {.accounts = accounts,
                        .actor = actor_with(&(struct quota){.sandboxes = PLACES})};
    struct quota_state key, organisation;
    struct error err = {0};
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, take_and_give, &race), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK(race.most <= PLACES && race.most > 0);
    CHECK_OK(quota_get(accounts, &race.actor, &key, &organisation, &err), err);
    CHECK_INT(key.used.sandboxes, 0);
    CHECK_INT(organisation.used.sandboxes, 0);
}

TEST(runs_of_a_day_are_counted_where_they_are_bounded)
{
    autoptr(accounts) accounts = open_accounts();
    struct actor free_actor = actor_with(&(struct quota){0});
    struct actor actor = actor_with(&(struct quota){.runs_per_day = 2});
    bool is_counted = true;
    struct error err = {0};

    CHECK_OK(quota_run(accounts, &free_actor, &is_counted, &err), err);
    CHECK(!is_counted);
    CHECK_OK(quota_run(accounts, &actor, &is_counted, &err), err);
    CHECK(is_counted);
    CHECK_OK(quota_run(accounts, &actor, &is_counted, &err), err);
    CHECK(quota_run(accounts, &actor, &is_counted, &err) < 0);
    CHECK_INT(err.reason, ERROR_QUOTA);
    quota_unrun(accounts, actor.key_id, actor.organisation); // it could not be started
    CHECK_OK(quota_run(accounts, &actor, &is_counted, &err), err);
}

TEST(scopes_are_written_and_read)
{
    const char *const words[] = {"run", "read", NULL}, *const wrong[] = {"fly", NULL};
    const char *list[SCOPES_MADE + 1];
    char text[SCOPES_TEXT];
    unsigned scopes = 0;
    struct error err = {0};

    CHECK_OK(scopes_of(words, &scopes, &err), err);
    CHECK_INT(scopes, SCOPE_READ | SCOPE_RUN);
    CHECK_STR(scopes_write(scopes, text), "read run");
    CHECK_STR(scopes_write(SCOPES_ALL, text), "read run manage admin organisation");
    CHECK_INT(scopes_read(text), SCOPES_ALL);
    CHECK_INT(scopes_read(""), 0);
    CHECK_INT(scopes_read("read flying run"), SCOPE_READ | SCOPE_RUN);
    scopes_list(SCOPE_ADMIN, list);
    CHECK_STR(list[0], "admin");
    CHECK(!list[1]);
    CHECK(scopes_of(wrong, &scopes, &err) < 0);
}

TEST(a_key_sees_its_owners_rows_and_a_token_its_sandboxs)
{
    const struct owner alices = {.organisation = ORGANISATION, .member = "alice"};
    const struct owner nobodys = {.organisation = ORGANISATION};
    const struct owner others = {.organisation = "org2", .member = "alice"};
    struct actor alice = {.organisation = ORGANISATION, .member = "alice", .scopes = SCOPE_READ};
    struct actor all = rig_actor(), nobody = {.organisation = ORGANISATION, .scopes = SCOPE_READ};
    struct actor token = all;

    CHECK(actor_sees(&alice, &alices) && !actor_sees(&alice, &nobodys));
    CHECK(!actor_sees(&alice, &others) && !actor_sees(&all, &others));
    CHECK(actor_sees(&all, &alices) && actor_sees(&all, &nobodys));
    CHECK(!actor_sees(&nobody, &alices) && !actor_sees(&nobody, &nobodys));
    (void)snprintf(token.sandbox, sizeof token.sandbox, "s1");
    CHECK(actor_sees_in(&token, &alices, "s1"));
    CHECK(!actor_sees_in(&token, &alices, "s2") && !actor_sees_in(&token, &alices, NULL));
    CHECK(!actor_sees(&token, &alices));
    CHECK_STR(actor_filter(&alice).member, "alice");
    CHECK(!actor_filter(&all).member);
    CHECK_STR(actor_filter(&nobody).member, "");
}
