/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/key.c. */
#include "core/account/key.h"

#include "base/clock.h"
#include "../core_rig.h"
#include "store/keys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct accounts *open_keys(void)
{
    struct accounts *accounts = NULL;
    struct error err = {0};

    CHECK_OK(accounts_open(fixture_store(), &accounts, &err), err);
    return accounts;
}

static void make(struct accounts *accounts, const char *name, char text[KEY_TEXT], char id[ID_TEXT])
{
    struct key_request request = {.name = name, .is_admin = true};
    struct error err = {0};
    autoclear(key_info) key = {0};

    CHECK_OK(key_create(accounts, &request, text, &key, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", key.id);
}

static enum error_reason check(struct accounts *accounts, const char *text)
{
    struct actor actor;
    struct error err = {0};

    return key_check(accounts, text, &actor, &err) < 0 ? error_kind(&err) : ERROR_NONE;
}

TEST(the_first_to_open_makes_an_organisation_and_others_find_it)
{
    struct error err = {0};
    struct actor first, second;
    struct store *store;

    fixture_fresh();
    store = fixture_open();
    autoptr(accounts) one = NULL;
    autoptr(accounts) other = NULL;
    CHECK_OK(accounts_open(store, &one, &err), err);
    CHECK_OK(accounts_open(store, &other, &err), err);
    accounts_local_actor(one, &first);
    accounts_local_actor(other, &second);
    CHECK(id_is_valid(first.organisation));
    CHECK_STR(second.organisation, first.organisation);
    CHECK(first.is_admin);
    CHECK_STR(first.key_id, "");
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM organisations"), 1);
}

TEST(a_made_key_is_256_bits_shown_once_and_kept_as_a_hash)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], other[KEY_TEXT], id[ID_TEXT];
    struct page page = {10, 0};
    struct error err = {0};
    struct actor actor;
    autoclear(key_infos) list = {0};
    autokey kept = {0};

    make(accounts, "laptop", text, id);
    make(accounts, "server", other, id);
    CHECK_INT(strlen(text), 4 + 52);
    CHECK(strncmp(text, "brw_", 4) == 0);
    CHECK(strcmp(text, other) != 0);
    CHECK_OK(key_list(accounts, &page, &list, &err), err);
    CHECK_INT(list.total, 2);
    // within one millisecond either may come first
    const struct key_info *made = &list.items[strcmp(list.items[0].name, "laptop") != 0];
    CHECK_STR(made->name, "laptop");
    CHECK_INT(strlen(made->prefix), 12);
    CHECK(strncmp(made->prefix, text, 12) == 0);
    autoptr(store) elsewhere = NULL;
    CHECK_OK(store_open(fixture_directory(), &elsewhere, &err), err);
    CHECK_OK(store_key_get(elsewhere, made->id, &kept, &err), err);
    CHECK(!memmem(kept.hash, KEY_HASH, text + 4, 8));
    CHECK_OK(key_check(accounts, text, &actor, &err), err);
    CHECK_STR(actor.key_id, made->id);
    CHECK_STR(actor.organisation, ORGANISATION);
    CHECK(actor.is_admin);
    CHECK(!actor.tenant);
}

TEST(every_wrong_key_is_refused_in_the_same_words)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT], revoked[KEY_TEXT], first[sizeof((struct error *)0)->text];
    struct key_request expired = {.name = "old", .expires_at = NOW};
    char old[KEY_TEXT], longest[4096];
    struct error err = {0};
    struct actor actor;
    autoclear(key_info) record = {0};

    make(accounts, "a", text, id);
    make(accounts, "b", revoked, id);
    CHECK_OK(key_revoke(accounts, id, &err), err);
    CHECK_OK(key_create(accounts, &expired, old, &record, &err), err);
    text[20] = text[20] == 'a' ? 'b' : 'a';
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *const wrong[] = {text, revoked, old, "", "brw_", longest, NULL};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(key_check(accounts, wrong[i], &actor, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_DENIED);
        CHECK_INT(err.reason, ERROR_UNAUTHORIZED);
        if (i == 0)
            memcpy(first, err.text, sizeof first);
        CHECK_STR(err.text, first);
        CHECK(key_check(accounts, wrong[i], &actor, &err) < 0); // from memory
        CHECK_STR(err.text, first);
    }
}

TEST(checks_are_answered_from_memory_for_a_while)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT];
    struct actor actor = {0};
    struct error err = {0};

    make(accounts, "a", text, id);
    CHECK_INT(key_check_quick(accounts, text, &actor), KEY_UNKNOWN);
    CHECK_OK(key_check(accounts, text, &actor, &err), err);
    actor = (struct actor){0};
    CHECK_INT(key_check_quick(accounts, text, &actor), KEY_VALID);
    CHECK_STR(actor.key_id, id);
    key_forget_checks(accounts);
    CHECK_INT(key_check_quick(accounts, text, &actor), KEY_UNKNOWN);
    CHECK_INT(check(accounts, "nothing of this kind"), ERROR_DENIED);
    CHECK_INT(key_check_quick(accounts, "nothing of this kind", &actor), KEY_WRONG);
}

TEST(a_key_revoked_by_another_process_stops_within_a_second)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT];
    struct error err = {0};
    uint64_t asked, last_good = 0;

    make(accounts, "a", text, id);
    CHECK_INT(check(accounts, text), ERROR_NONE);
    autoptr(store) elsewhere = NULL;
    CHECK_OK(store_open(fixture_directory(), &elsewhere, &err), err);
    CHECK_OK(store_key_revoke(elsewhere, id, NOW, &err), err);
    uint64_t revoked = clock_monotonic_ms();
    while ((asked = clock_monotonic_ms()) < revoked + 60000 && check(accounts, text) == ERROR_NONE)
        last_good = asked; // whoever asks later than a second after it is refused
    CHECK(last_good <= revoked + 1000);
    CHECK_INT(check(accounts, text), ERROR_DENIED);
    CHECK_INT(key_check_quick(accounts, text, &(struct actor){0}), KEY_WRONG);
}

TEST(a_key_revoked_here_stops_at_once)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT];
    struct error err = {0};

    make(accounts, "a", text, id);
    CHECK_INT(check(accounts, text), ERROR_NONE);
    CHECK_OK(key_revoke(accounts, id, &err), err);
    CHECK_INT(check(accounts, text), ERROR_DENIED);
    CHECK(key_revoke(accounts, id, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
}

struct awaited {
    char id[ID_TEXT];
    atomic_bool is_told;
};

static void on_ended(void *data, const char *key_id, const char *token_id)
{
    struct awaited *awaited = data;

    if (!token_id && strcmp(key_id, awaited->id) == 0)
        atomic_store(&awaited->is_told, true);
}

TEST(ends_of_other_keys_do_not_put_off_that_one_is_told_of)
{
    autoptr(accounts) accounts = open_keys();
    struct awaited awaited = {0};
    struct error err = {0};
    char text[KEY_TEXT], id[ID_TEXT];

    make(accounts, "a", text, awaited.id);
    key_watch_ends(accounts, on_ended, &awaited);
    CHECK_OK(key_revoke(accounts, awaited.id, &err), err);
    uint64_t deadline = clock_monotonic_ms() + 60000;
    for (uint64_t pause; !atomic_load(&awaited.is_told) && clock_monotonic_ms() < deadline;) {
        make(accounts, "another", text, id);
        CHECK_OK(key_revoke(accounts, id, &err), err);
        for (pause = clock_monotonic_ms() + 50; clock_monotonic_ms() < pause;)
            (void)usleep(1000);
    }
    CHECK(atomic_load(&awaited.is_told));
    key_watch_ends(accounts, NULL, NULL);
}

static void set_quota(struct accounts *accounts, const char *id, struct quota quota)
{
    const struct key_change change = {.has_quota = true, .quota = quota};
    autoclear(key_info) changed = {0};
    struct actor root;
    struct error err = {0};

    accounts_local_actor(accounts, &root);
    CHECK_OK(key_change(accounts, &root, id, &change, &changed, &err), err);
}

struct order {
    char ids[2][ID_TEXT];
    atomic_int n_told[2];
};

static void on_ended_in_order(void *data, const char *key_id, const char *token_id)
{
    struct order *order = data;

    for (size_t i = 0; !token_id && i < ARRAY_SIZE(order->ids); i++) {
        if (strcmp(key_id, order->ids[i]) == 0)
            atomic_fetch_add(&order->n_told[i], 1);
    }
}

TEST(a_key_that_may_have_more_is_not_cut_off)
{
    autoptr(accounts) accounts = open_keys();
    struct order order = {0};
    char text[KEY_TEXT];

    make(accounts, "more", text, order.ids[0]);
    make(accounts, "less", text, order.ids[1]);
    for (size_t i = 0; i < 2; i++)
        set_quota(accounts, order.ids[i], (struct quota){.sandboxes = 2, .runs_per_day = 5});
    key_watch_ends(accounts, on_ended_in_order, &order);
    set_quota(accounts, order.ids[0], (struct quota){.sandboxes = 3, .runs_per_day = 5});
    set_quota(accounts, order.ids[0], (struct quota){.sandboxes = 3}); // no bound is more than any
    set_quota(accounts, order.ids[1], (struct quota){.sandboxes = 9, .runs_per_day = 4});
    uint64_t deadline = clock_monotonic_ms() + 60000;
    while (!atomic_load(&order.n_told[1]) && clock_monotonic_ms() < deadline)
        (void)usleep(1000);
    CHECK_INT(atomic_load(&order.n_told[1]), 1);
    CHECK_INT(atomic_load(&order.n_told[0]), 0); // those before it would have been told first
    key_watch_ends(accounts, NULL, NULL);
}

TEST(a_key_is_revoked_by_what_lists_show_of_it)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT], shown[13];
    struct key_request twin = {.text = "same-beginning-000000001"};
    autoclear(key_info) one = {0}, other = {0};
    struct error err = {0};

    make(accounts, "a", text, id);
    (void)snprintf(shown, sizeof shown, "%s", text);
    CHECK_OK(key_revoke(accounts, shown, &err), err);
    CHECK_INT(check(accounts, text), ERROR_DENIED);
    CHECK(key_revoke(accounts, shown, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(key_revoke(accounts, text, &err) < 0); // whole keys do not belong on command lines
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(key_create(accounts, &twin, NULL, &one, &err), err);
    twin.text = "same-beginning-000000002";
    CHECK_OK(key_create(accounts, &twin, NULL, &other, &err), err);
    CHECK(key_revoke(accounts, "same", &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.text, "2 keys begin with 'same'; name one by its id");
}

TEST(a_chosen_key_must_be_long_and_printable)
{
    autoptr(accounts) accounts = open_keys();
    static const char *const bad[] = {"", "nineteen-characters", "with a space in its middle",
                                      "tab\tin-the-middle-of-it",
                                      "\xc3\xbcmlauts-are-not-for-headers"};
    struct error err = {0};
    autoclear(key_info) key = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct key_request request = {.text = bad[i]};
        CHECK(key_create(accounts, &request, NULL, &key, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_STR(err.noun, "key");
    }
    char long_one[300];
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    struct key_request request = {.text = long_one};
    CHECK(key_create(accounts, &request, NULL, &key, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

TEST(choosing_the_same_key_again_is_fine_until_it_is_revoked)
{
    autoptr(accounts) accounts = open_keys();
    struct key_request request = {.name = "env", .text = "twenty-characters-ok", .is_admin = true};
    autoclear(key_info) first = {0}, again = {0}, third = {0};
    struct error err = {0};

    CHECK_OK(key_create(accounts, &request, NULL, &first, &err), err);
    CHECK_OK(key_create(accounts, &request, NULL, &again, &err), err);
    CHECK_STR(again.id, first.id);
    CHECK_STR(first.prefix, "twen");
    CHECK_INT(check(accounts, request.text), ERROR_NONE);
    CHECK_OK(key_revoke(accounts, first.id, &err), err);
    CHECK(key_create(accounts, &request, NULL, &third, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.text, "key 'twen' has been revoked; choose another one");
}

TEST(a_key_works_until_it_expires)
{
    autoptr(accounts) accounts = open_keys();
    int64_t expires_at = (int64_t)clock_wall_ms() + 1500;
    struct key_request request = {.expires_at = expires_at};
    char text[KEY_TEXT];
    struct error err = {0};
    struct actor actor;
    autoclear(key_info) key = {0};

    CHECK_OK(key_create(accounts, &request, text, &key, &err), err);
    CHECK_OK(key_check(accounts, text, &actor, &err), err);
    CHECK(!actor.is_admin);
    int64_t asked = 0, last_good = 0;
    do { // from memory too, although that knows it for longer
        last_good = asked;
        asked = (int64_t)clock_wall_ms();
    } while (check(accounts, text) == ERROR_NONE && asked < expires_at + 600);
    CHECK(last_good > 0 && last_good <= expires_at);
    CHECK((int64_t)clock_wall_ms() >= expires_at);
}

TEST(the_use_of_a_key_is_noted)
{
    struct accounts *accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT];
    struct error err = {0};
    autokey key = {0};

    make(accounts, "a", text, id);
    CHECK_INT(check(accounts, text), ERROR_NONE);
    accounts_free(accounts); // waits for what is to be noted
    CHECK_OK(store_key_get(fixture_open(), id, &key, &err), err);
    CHECK(key.used_at >= key.created_at);
}

struct checking {
    struct accounts *accounts;
    const char *text;
    unsigned wrong;
};

static void *check_often(void *data)
{
    struct checking *checking = data;
    char other[40];

    for (int i = 0; i < 2000; i++) {
        (void)snprintf(other, sizeof other, "no-such-key-number-%p-%d", data, i % 700);
        checking->wrong += check(checking->accounts, checking->text) != ERROR_NONE;
        checking->wrong += check(checking->accounts, other) != ERROR_DENIED;
    }
    return NULL;
}

TEST(threads_check_good_and_wrong_keys_at_once)
{
    autoptr(accounts) accounts = open_keys();
    char text[KEY_TEXT], id[ID_TEXT];
    struct checking checking[4];
    pthread_t threads[4];

    make(accounts, "a", text, id);
    for (int i = 0; i < 4; i++) {
        checking[i] = (struct checking){accounts, text, 0};
        CHECK(pthread_create(&threads[i], NULL, check_often, &checking[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK_INT(checking[i].wrong, 0);
}

static enum error_reason make_by(struct accounts *accounts, const struct actor *maker,
                                 const char *member, unsigned scopes)
{
    struct key_request request = {.maker = maker, .member = member, .scopes = scopes};
    autoclear(key_info) key = {0};
    char text[KEY_TEXT];
    struct error err = {0};

    return key_create(accounts, &request, text, &key, &err) < 0 ? err.reason : ERROR_NONE;
}

TEST(a_key_makes_none_mightier_than_itself)
{
    autoptr(accounts) accounts = open_keys();
    struct actor root, lesser;

    accounts_local_actor(accounts, &root);
    lesser = root;
    (void)snprintf(lesser.member, sizeof lesser.member, "alice");
    lesser.scopes = SCOPE_READ | SCOPE_ADMIN;
    CHECK_INT(make_by(accounts, &root, "bob", SCOPES_ALL), ERROR_NONE);
    CHECK_INT(make_by(accounts, &lesser, NULL, SCOPE_READ), ERROR_NONE);
    CHECK_INT(make_by(accounts, &lesser, NULL, SCOPE_READ | SCOPE_RUN), ERROR_DENIED);
    CHECK_INT(make_by(accounts, &lesser, NULL, SCOPE_ORGANISATION), ERROR_DENIED);
    CHECK_INT(make_by(accounts, &lesser, "bob", SCOPE_READ), ERROR_DENIED);
    lesser.quota.sandboxes = 1;
    CHECK_INT(make_by(accounts, &lesser, NULL, SCOPE_READ), ERROR_DENIED);
    lesser.quota.sandboxes = 0;
    (void)snprintf(lesser.sandbox, sizeof lesser.sandbox, "s");
    CHECK_INT(make_by(accounts, &lesser, NULL, SCOPE_READ), ERROR_DENIED);
    CHECK_INT(make_by(accounts, &root, NULL, SCOPE_READ), ERROR_INVALID); // it would see nothing
}

TEST(what_a_key_may_do_changes_at_once)
{
    autoptr(accounts) accounts = open_keys();
    struct key_request request = {.member = "alice", .scopes = SCOPE_READ};
    struct key_change change = {
        .has_scopes = true, .scopes = SCOPE_RUN, .has_quota = true, .quota = {.sandboxes = 3}};
    autoclear(key_info) key = {0};
    autoclear(key_info) changed = {0};
    char text[KEY_TEXT];
    struct actor root, actor;
    struct error err = {0};

    accounts_local_actor(accounts, &root);
    CHECK_OK(key_create(accounts, &request, text, &key, &err), err);
    CHECK_OK(key_check(accounts, text, &actor, &err), err);
    CHECK_INT(actor.scopes, SCOPE_READ);
    CHECK_STR(actor.member, "alice");
    CHECK_OK(key_change(accounts, &root, key.id, &change, &changed, &err), err);
    CHECK_INT(key_check_quick(accounts, text, &actor), KEY_UNKNOWN);
    CHECK_OK(key_check(accounts, text, &actor, &err), err);
    CHECK_INT(actor.scopes, SCOPE_RUN);
    CHECK_INT(actor.quota.sandboxes, 3);
    CHECK(!actor.is_admin);
    CHECK_OK(key_revoke(accounts, key.id, &err), err);
    CHECK(key_change(accounts, &root, key.id, &change, &changed, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
}
