/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/keys.c, accounts.c and idempotency.c. */
#include "store/keys.h"

#include "fixture.h"
#include "store/idempotency.h"
#include "test.h"

static struct key_record key_of(const char *id, unsigned char byte)
{
    struct key_record key = {.id = id,
                             .prefix = "bk_12",
                             .organisation = ORGANISATION,
                             .scopes = "[]",
                             .created_at = NOW + byte};
    memset(key.hash, byte, sizeof key.hash);
    return key;
}

TEST(a_key_is_found_by_its_hash)
{
    struct store *store = fixture_store();
    struct key_record key = key_of("k1", 0), other = key_of("k2", 0xff);
    unsigned char hash[KEY_HASH] = {0};
    autokey got = {0}, none = {0};
    struct error err = {0};

    CHECK_OK(store_key_put(store, &key, &err), err);
    CHECK_OK(store_key_put(store, &other, &err), err);
    CHECK_OK(store_key_find(store, hash, &got, &err), err); // all zeros: bytes, not text
    CHECK_STR(got.id, "k1");
    hash[31] = 1;
    CHECK(store_key_find(store, hash, &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "key");
}

TEST(tokens_that_end_do_not_crowd_out_a_key)
{
    struct store *store = fixture_store();
    struct key_record key = key_of("k1", 1), token = key_of("a1", 2);
    struct sandbox_record sandbox = fixture_sandbox("s");
    autokeys ended = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    token.sandbox_id = "s";
    token.expires_at = NOW + 5;
    CHECK_OK(store_key_put(store, &token, &err), err);
    CHECK_OK(store_key_put(store, &key, &err), err);
    CHECK_OK(store_key_revoke(store, "k1", NOW + 6, &err), err);
    CHECK_OK(store_key_list_ended(store, NOW, NOW + 10, &ended, &err), err);
    CHECK_INT(ended.count, 2);
    CHECK_STR(ended.rows[0].id, "k1");
}

TEST(a_hash_belongs_to_one_key_and_a_key_to_an_organisation)
{
    struct store *store = fixture_store();
    struct key_record key = key_of("k1", 1), twin = key_of("k2", 1), homeless = key_of("k3", 3);
    struct error err = {0};

    homeless.organisation = "nobody";
    CHECK_OK(store_key_put(store, &key, &err), err);
    CHECK(store_key_put(store, &twin, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(store_key_put(store, &homeless, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
}

TEST(a_key_is_revoked_once_and_stays_in_the_list)
{
    struct store *store = fixture_store();
    struct key_record key = key_of("k1", 1), next = key_of("k2", 2);
    struct page page = {10, 0};
    autokeys list = {0}, nobodys = {0};
    struct error err = {0};

    CHECK_OK(store_key_put(store, &next, &err), err);
    CHECK_OK(store_key_put(store, &key, &err), err);
    CHECK_OK(store_key_revoke(store, "k1", NOW, &err), err);
    CHECK(store_key_revoke(store, "k1", NOW + 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(store_key_revoke(store, "k9", NOW, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(store_key_list(store, ORGANISATION, &page, &list, &err), err);
    CHECK_INT(list.total, 2);
    CHECK_STR(list.rows[0].id, "k1");
    CHECK_INT(list.rows[0].revoked_at, NOW);
    CHECK_OK(store_key_list(store, "nobody", &page, &nobodys, &err), err);
    CHECK_INT(nobodys.total, 0);
}

TEST(use_is_noted_to_the_minute)
{
    struct store *store = fixture_store();
    struct key_record key = key_of("k1", 1);
    struct error err = {0};

    CHECK_OK(store_key_put(store, &key, &err), err);
    CHECK_OK(store_key_used(store, "k1", NOW, &err), err);
    CHECK_OK(store_key_used(store, "k1", NOW + 59999, &err), err);
    CHECK_INT(fixture_number(store, "SELECT used_at FROM keys"), NOW);
    CHECK_OK(store_key_used(store, "k1", NOW + 60000, &err), err);
    CHECK_INT(fixture_number(store, "SELECT used_at FROM keys"), NOW + 60000);
}

TEST(organisations_are_listed_oldest_first)
{
    struct store *store = fixture_store();
    struct organisation_record second = {"org0", "Them", NOW + 1};
    struct page page = {10, 0};
    autoorganisations list = {0};
    autoorganisation got = {0};
    struct error err = {0};

    CHECK_OK(store_organisation_put(store, &second, &err), err);
    CHECK(store_organisation_put(store, &second, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(store_organisation_list(store, &page, &list, &err), err);
    CHECK_INT(list.total, 2);
    CHECK_STR(list.rows[0].name, "Us");
    CHECK_OK(store_organisation_get(store, "org0", &got, &err), err);
    CHECK_STR(got.name, "Them");
}

TEST(ssh_keys_come_and_go)
{
    struct store *store = fixture_store();
    struct ssh_key_record key = {ORGANISATION, "SHA256:x", "ssh-ed25519",    "me@here",
                                 "AAAA",       NOW,        .name = "laptop", .member = "alice"};
    const struct owner all = {.organisation = ORGANISATION},
                       bobs = {.organisation = ORGANISATION, .member = "bob"},
                       alices = {.organisation = ORGANISATION, .member = "alice"},
                       others = {.organisation = "another", .member = "alice"};
    struct page page = {10, 0};
    autosshkeys list = {0}, none = {0}, gone = {0};
    autosshkeyrecord got = {0}, used = {0}, other = {0};
    bool was_there = false;
    struct error err = {0};

    CHECK_OK(store_ssh_key_put(store, &key, &err), err);
    CHECK(store_ssh_key_put(store, &key, &err) < 0);
    CHECK(error_is(&err, ERROR_CONFLICT));
    CHECK_OK(store_ssh_key_list(store, &all, &page, &list, &err), err);
    CHECK_INT(list.total, 1);
    CHECK_STR(list.rows[0].comment, "me@here");
    CHECK_STR(list.rows[0].organisation, ORGANISATION);
    CHECK_OK(store_ssh_key_list(store, &bobs, &page, &none, &err), err);
    CHECK_INT(none.total, 0);
    CHECK_OK(store_ssh_key_rename(store, &alices, "SHA256:x", "desk", &err), err);
    CHECK_OK(store_ssh_key_used(store, &alices, "SHA256:x", NOW, &err), err);
    CHECK_OK(store_ssh_key_get(store, &alices, "SHA256:x", &got, &err), err);
    CHECK_STR(got.name, "desk");
    CHECK_INT(got.used_at, NOW);
    CHECK_OK(store_ssh_key_used(store, &alices, "SHA256:x", NOW + 59000, &err), err);
    CHECK_OK(store_ssh_key_get(store, &alices, "SHA256:x", &used, &err), err);
    CHECK_INT(used.used_at, NOW); // to the minute
    CHECK(store_ssh_key_get(store, &others, "SHA256:x", &other, &err) < 0);
    CHECK_OK(store_ssh_key_remove(store, &alices, "SHA256:x", &was_there, &err), err);
    CHECK(was_there);
    CHECK_OK(store_ssh_key_remove(store, &alices, "SHA256:x", &was_there, &err), err);
    CHECK(!was_there);
    CHECK_OK(store_ssh_key_list(store, &all, &page, &gone, &err), err);
    CHECK_INT(gone.count, 0);
}

TEST(an_ssh_key_is_each_owners_for_himself)
{
    struct store *store = fixture_store();
    struct ssh_key_record alices = {ORGANISATION, "SHA256:same", "ssh-ed25519",    "",
                                    "AAAA",       NOW,           .member = "alice"};
    struct ssh_key_record nobodys = alices;
    const struct owner alice = {.organisation = ORGANISATION, .member = "alice"},
                       nobody = {.organisation = ORGANISATION};
    autosshkeys both = {0}, left = {0};
    autosshkeyrecord kept = {0};
    bool was_there = false;
    struct error err = {0};

    nobodys.member = NULL;
    nobodys.created_at++;
    CHECK_OK(store_ssh_key_put(store, &nobodys, &err), err);
    CHECK(store_ssh_key_put(store, &nobodys, &err) < 0);
    CHECK(error_is(&err, ERROR_CONFLICT));
    CHECK_OK(store_ssh_key_put(store, &alices, &err), err);
    CHECK_OK(store_ssh_key_rename(store, &alice, "SHA256:same", "hers", &err), err);
    CHECK_OK(store_ssh_key_list_same(store, ORGANISATION, "SHA256:same", 10, &both, &err), err);
    CHECK_INT(both.count, 2);
    CHECK_STR(both.rows[0].member, "alice");
    CHECK(!both.rows[1].member && !both.rows[1].name);
    CHECK_OK(store_ssh_key_remove(store, &alice, "SHA256:same", &was_there, &err), err);
    CHECK(was_there);
    CHECK_OK(store_ssh_key_get(store, &nobody, "SHA256:same", &kept, &err), err);
    CHECK_OK(store_ssh_key_remove(store, &nobody, "SHA256:same", &was_there, &err), err);
    CHECK_OK(store_ssh_key_list_same(store, ORGANISATION, "SHA256:same", 10, &left, &err), err);
    CHECK_INT(left.count, 0);
}

static struct idempotency_record request(const char *key, unsigned char byte)
{
    struct idempotency_record record = {
        .organisation = ORGANISATION, .realm = "create", .key = key, .created_at = NOW};
    memset(record.request_hash, byte, sizeof record.request_hash);
    return record;
}

static bool claim(struct store *store, const struct idempotency_record *record,
                  enum idempotency_state state)
{
    autoidempotency got = {0};
    bool is_new = false;
    struct error err = {0};

    CHECK_OK(store_idempotency_claim(store, record, &is_new, &got, &err), err);
    CHECK_INT(got.state, state);
    return is_new;
}

TEST(a_request_with_a_key_is_done_once)
{
    struct store *store = fixture_store();
    struct idempotency_record record = request("once", 1);
    autoidempotency again = {0};
    bool is_new = true;
    struct error err = {0};

    CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    CHECK(!claim(store, &record, IDEMPOTENCY_PENDING));
    record.subject_id = "s";
    record.answer = "{}";
    CHECK_OK(store_idempotency_finish(store, &record, &err), err);
    CHECK_OK(store_idempotency_claim(store, &record, &is_new, &again, &err), err);
    CHECK(!is_new);
    CHECK_INT(again.state, IDEMPOTENCY_DONE);
    CHECK_STR(again.subject_id, "s");
    CHECK_STR(again.answer, "{}");
    CHECK(store_idempotency_finish(store, &record, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
}

TEST(a_key_with_another_request_is_refused)
{
    struct store *store = fixture_store();
    struct idempotency_record record = request("k", 1), other = request("k", 2);
    autoidempotency got = {0};
    bool is_new = false;
    struct error err = {0};

    CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    CHECK(store_idempotency_claim(store, &other, &is_new, &got, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_MISMATCH);
    other.realm = "elsewhere";
    CHECK(claim(store, &other, IDEMPOTENCY_PENDING));
    other.organisation = "somebody else";
    CHECK(claim(store, &other, IDEMPOTENCY_PENDING));
}

TEST(a_key_whose_work_failed_can_be_used_again)
{
    struct store *store = fixture_store();
    struct idempotency_record record = request("k", 1), done = request("d", 1);
    int64_t released = 0;
    struct error err = {0};

    CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    CHECK_OK(store_idempotency_release(store, ORGANISATION, "create", "k", &err), err);
    CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    CHECK(claim(store, &done, IDEMPOTENCY_PENDING));
    CHECK_OK(store_idempotency_finish(store, &done, &err), err);
    CHECK_OK(store_idempotency_release(store, ORGANISATION, "create", "d", &err), err); // no effect
    CHECK_OK(store_idempotency_release_all(store, &released, &err), err);
    CHECK_INT(released, 1);
    CHECK(!claim(store, &done, IDEMPOTENCY_DONE));
}

TEST(a_key_and_what_was_made_with_it_are_there_together_or_not_at_all)
{
    struct store *store = fixture_store();
    struct idempotency_record record = request("k", 1);
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    record.subject_id = "s";
    {
        autotransaction together = {0};
        CHECK_OK(store_begin(store, STORE_DURABLE, &together, &err), err);
        CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
        CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    } // lost
    CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 0);
}

TEST(old_requests_are_forgotten)
{
    struct store *store = fixture_store();
    struct idempotency_record a = request("a", 1), b = request("b", 1), c = request("c", 1);
    int64_t removed = 0;
    struct error err = {0};

    b.created_at = NOW + 1;
    c.created_at = NOW + 9;
    CHECK(claim(store, &a, IDEMPOTENCY_PENDING));
    CHECK(claim(store, &b, IDEMPOTENCY_PENDING));
    CHECK(claim(store, &c, IDEMPOTENCY_PENDING));
    CHECK_OK(store_idempotency_purge(store, NOW + 5, 100, 1, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_OK(store_idempotency_purge(store, NOW + 5, 100, 10, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK(claim(store, &a, IDEMPOTENCY_PENDING));
    CHECK(!claim(store, &c, IDEMPOTENCY_PENDING));
}

TEST(no_more_than_so_many_requests_are_kept)
{
    struct store *store = fixture_store();
    int64_t removed = 0;
    struct error err = {0};

    for (int64_t i = 0; i < 9; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        struct idempotency_record record = request(name, 1);
        record.created_at = NOW + i;
        CHECK(claim(store, &record, IDEMPOTENCY_PENDING));
    }
    CHECK_OK(store_idempotency_purge(store, NOW, 9, 100, &removed, &err), err);
    CHECK_INT(removed, 0);
    CHECK_OK(store_idempotency_purge(store, NOW, 3, 2, &removed, &err), err);
    CHECK_INT(removed, 2);
    CHECK_OK(store_idempotency_purge(store, NOW, 3, 100, &removed, &err), err);
    CHECK_INT(removed, 3);
    CHECK_INT(fixture_number(store, "SELECT min(created_at) FROM idempotency"), NOW + 5);
}
