/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/sandbox_labels.c, and of names of sandboxes in src/store/sandbox_table.c. */
#include "base/label.h"
#include "base/mem.h"
#include "fixture.h"
#include "test.h"

static void put(struct store *store, const struct sandbox_record *record)
{
    struct error err = {0};
    CHECK_OK(store_sandbox_put(store, record, &err), err);
}

static const char *const label_sets[][4] = {
    {NULL},
    {"team=blue", NULL},
    {"team=red", NULL},
    {"team=blue", "tier=", NULL},
    {"team=green", "tier=web", "note=a, b", NULL},
    {"tier=web", NULL},
};

static void put_all(struct store *store)
{
    for (unsigned i = 0; i < sizeof label_sets / sizeof *label_sets; i++) {
        char id[] = "s0";
        id[1] = (char)('0' + i);
        struct sandbox_record record = fixture_sandbox(id);
        record.labels = label_sets[i];
        put(store, &record);
    }
}

/* Which of the above, as digits. */
static void choose(struct store *store, const char *text, char out[16])
{
    autoselector selector = {0};
    autosandboxes found = {0};
    struct error err = {0};
    struct sandbox_filter filter = {
        .owner.organisation = ORGANISATION, .labels = &selector, .page.limit = 100};

    CHECK_OK(label_selector_parse(text, &selector, &err), err);
    CHECK_OK(store_sandbox_list(store, &filter, &found, &err), err);
    CHECK_INT(found.total, found.count);
    for (size_t i = 0; i < found.count; i++) {
        CHECK(label_selector_matches(&selector, found.rows[i].labels));
        out[i] = found.rows[i].id[1];
    }
    out[found.count] = '\0';
}

TEST(lists_are_narrowed_by_labels)
{
    struct store *store = fixture_store();
    const struct {
        const char *text, *found;
    } cases[] = {
        {"", "012345"},
        {"team=blue", "13"},
        {"team!=blue", "0245"},
        {"team", "1234"},
        {"!team", "05"},
        {"team in (blue,green)", "134"},
        {"team notin (blue,green)", "025"},
        {"tier=", "3"},
        {"tier!=,team", "124"},
        {"team=blue,!tier", "1"},
        {"note=\"a, b\"", "4"},
        {"team=nobody", ""},
    };

    put_all(store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[16] = "";
        choose(store, cases[i].text, found);
        CHECK_STR(found, cases[i].found);
    }
}

TEST(the_largest_selector_fits_a_query)
{
    struct store *store = fixture_store();
    char found[16] = "";

    put_all(store);
    choose(store,
           "a!=1,b!=2,c!=3,d!=4,e!=5,f!=6,g!=7,h!=8,i!=9,j!=1,k!=2,l!=3,m!=4,n!=5,"
           "team in (1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,blue),tier",
           found);
    CHECK_STR(found, "3");
}

TEST(labels_are_replaced_together)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s0");
    autosandbox got = {0};
    struct error err = {0};
    char found[16] = "";

    record.labels = (const char *const[]){"team=blue", "tier=web", NULL};
    put(store, &record);
    record.labels = (const char *const[]){"team=red", NULL};
    CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_LABELS, SANDBOX_ALIVE, &err), err);
    CHECK_OK(store_sandbox_get(store, "s0", &got, &err), err);
    CHECK_STR(got.labels[0], "team=red");
    CHECK(got.labels[1] == NULL);
    choose(store, "team=red,!tier", found);
    CHECK_STR(found, "0");
    record.labels = (const char *const[]){"team=green", NULL};
    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_LABELS, SANDBOX_OVER, &err) < 0);
    CHECK_INT(err.reason, ERROR_STATE);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandbox_labels"), 1);
    choose(store, "team=green", found);
    CHECK_STR(found, "");
}

TEST(labels_go_with_their_sandbox)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s0");
    struct error err = {0};
    int64_t removed = 0;

    record.labels = (const char *const[]){"team=blue", NULL};
    put(store, &record);
    record.state = SANDBOX_ENDED;
    record.ended_at = NOW;
    CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandbox_labels"), 1);
    CHECK_OK(store_sandbox_purge(store, NOW + 1000, 10, 10, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandbox_labels"), 0);
}

static struct sandbox_record named(const char *id, const char *name)
{
    struct sandbox_record record = fixture_sandbox(id);
    record.name = name;
    return record;
}

TEST(a_name_is_taken_while_its_sandbox_lives)
{
    struct store *store = fixture_store();
    struct sandbox_record first = named("a", "box");
    struct sandbox_record second = named("b", "box");
    struct sandbox_record nameless = named("c", NULL);
    struct sandbox_record stranger = named("d", "box");
    struct error err = {0};

    put(store, &first);
    CHECK_OK(store_sandbox_check_name(store, &first, &err), err); // its own
    CHECK(store_sandbox_check_name(store, &second, &err) < 0);
    CHECK_INT(err.reason, ERROR_EXISTS);
    CHECK_STR(err.noun, "name");
    CHECK_STR(err.text, "name: another sandbox that is alive is called 'box'");
    CHECK_OK(store_sandbox_check_name(store, &nameless, &err), err);
    stranger.owner.organisation = "org2";
    CHECK_OK(store_sandbox_check_name(store, &stranger, &err), err);
    second.owner.project = "other"; // a project is no owner
    CHECK(store_sandbox_check_name(store, &second, &err) < 0);
    first.state = SANDBOX_ENDED;
    first.ended_at = NOW;
    CHECK_OK(store_sandbox_update(store, &first, SANDBOX_PART_STATE, 0, &err), err);
    CHECK_OK(store_sandbox_check_name(store, &second, &err), err);
}

TEST(a_name_stands_for_the_one_living_sandbox_that_has_it)
{
    struct store *store = fixture_store();
    const struct owner owner = {.organisation = ORGANISATION};
    const struct owner stranger = {.organisation = "org2"};
    struct sandbox_record first = named("a", "box");
    struct sandbox_record second = named("b", "box");
    struct error err = {0};
    char id[ID_TEXT] = "";

    CHECK(store_sandbox_find_name(store, &owner, "box", id, &err) < 0);
    CHECK_INT(err.reason, ERROR_NOT_FOUND);
    put(store, &first);
    CHECK_OK(store_sandbox_find_name(store, &owner, "box", id, &err), err);
    CHECK_STR(id, "a");
    CHECK(store_sandbox_find_name(store, &stranger, "box", id, &err) < 0);
    put(store, &second);
    CHECK(store_sandbox_find_name(store, &owner, "box", id, &err) < 0);
    CHECK_INT(err.reason, ERROR_AMBIGUOUS);
    CHECK_STR(err.noun, "sandbox");
    first.state = SANDBOX_ENDED;
    first.ended_at = NOW;
    CHECK_OK(store_sandbox_update(store, &first, SANDBOX_PART_STATE, 0, &err), err);
    CHECK_OK(store_sandbox_find_name(store, &owner, "box", id, &err), err);
    CHECK_STR(id, "b");
}
