/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/chains.c: one layer in the place of many. */
#include "base/mem.h"
#include "fixture.h"
#include "store/chains.h"
#include "store/snapshots.h"
#include "test.h"

static const char *const names[] = {"c", "b", "a", NULL};
#define PACKED "c\nb\na\n"

static void put_layer(struct store *store, const char *name, const char *merged_of)
{
    const struct layer_record record = {
        .name = name, .merged_of = merged_of, .size_bytes = 1, .created_at = NOW};
    struct error err = {0};
    CHECK_OK(store_layer_put(store, &record, &err), err);
}

/* One that uses all layers in its packed list, each of one letter. */
static void put_snapshot(struct store *store, const char *id, const char *layers)
{
    const struct snapshot_record record = {
        .id = id,
        .owner = {.organisation = ORGANISATION},
        .runtime = "base:latest",
        .name = "s",
        .layers = layers,
        .env = "",
        .state = SNAPSHOT_READY,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = NOW,
        .updated_at = NOW,
    };
    struct error err = {0};

    CHECK_OK(store_snapshot_put(store, &record, &err), err);
    for (; *layers; layers += 2) {
        const char name[] = {layers[0], '\0'};
        CHECK_OK(store_layer_use(store, name, id, &err), err);
    }
}

static void remove_snapshot(struct store *store, const char *id)
{
    autosnapshot record = {0};
    struct error err = {0};

    CHECK_OK(store_snapshot_get(store, id, &record, &err), err);
    record.state = SNAPSHOT_DELETED;
    record.deleted_at = NOW;
    CHECK_OK(store_snapshot_update(store, &record, SNAPSHOT_PART_STATE, 0, &err), err);
    CHECK_OK(store_layer_release(store, id, &err), err);
}

static void check_layers(struct store *store, const char *id, const char *layers)
{
    autosnapshot record = {0};
    struct error err = {0};
    autofree char *count = xasprintf("SELECT count(*) FROM layer_uses WHERE user_id = '%s'", id);

    CHECK_OK(store_snapshot_get(store, id, &record, &err), err);
    CHECK_STR(record.layers, layers);
    if (record.state == SNAPSHOT_READY)
        CHECK_INT(fixture_number(store, count), strlen(layers) / 2);
}

static struct store *store_with_layers(void)
{
    struct store *store = fixture_store();
    for (const char *name = "abcdex"; *name; name++)
        put_layer(store, (const char[]){*name, '\0'}, NULL);
    return store;
}

TEST(those_that_end_with_the_layers_stand_on_the_one_instead_and_no_others)
{
    struct store *store = store_with_layers();
    struct error err = {0};
    int64_t changed = 0;

    put_snapshot(store, "exact", PACKED);
    put_snapshot(store, "higher", "e\nd\n" PACKED);
    put_snapshot(store, "shorter", "b\na\n");
    put_snapshot(store, "other", "c\nx\na\n");
    put_snapshot(store, "above", PACKED "x\n");
    put_snapshot(store, "deleted", PACKED);
    remove_snapshot(store, "deleted");
    CHECK_OK(store_layer_use(store, "b", "a reader", &err), err);
    put_layer(store, "m", PACKED);
    CHECK_OK(store_chain_replace(store, "m", PACKED, names, &changed, &err), err);
    CHECK_INT(changed, 2);
    check_layers(store, "exact", "m\n");
    check_layers(store, "higher", "e\nd\nm\n");
    check_layers(store, "shorter", "b\na\n");
    check_layers(store, "other", "c\nx\na\n");
    check_layers(store, "above", PACKED "x\n");
    check_layers(store, "deleted", PACKED);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM layer_uses WHERE layer = 'm'"), 2);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM layer_uses WHERE user_id = 'a reader'"),
              1);
    CHECK_OK(store_chain_replace(store, "m", PACKED, names, &changed, &err), err);
    CHECK_INT(changed, 0);
}

TEST(a_layer_is_found_by_what_it_was_made_of_and_by_nothing_else)
{
    struct store *store = store_with_layers();
    autolayer found = {0};
    struct error err = {0};

    CHECK(store_chain_find(store, PACKED, &found, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    put_layer(store, "m", PACKED);
    CHECK(store_chain_find(store, "b\na\n", &found, &err) < 0);
    CHECK_OK(store_chain_find(store, PACKED, &found, &err), err);
    CHECK_STR(found.name, "m");
}

TEST(a_layer_without_a_row_takes_nobodys_place)
{
    struct store *store = store_with_layers();
    struct error err = {0};
    int64_t changed = 0;

    put_snapshot(store, "exact", PACKED);
    CHECK(store_chain_replace(store, "m", PACKED, names, &changed, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    check_layers(store, "exact", PACKED);
}

TEST(long_and_uncounted_ones_are_listed)
{
    struct store *store = store_with_layers();
    autochains found = {0};
    autochains none = {0};
    struct error err = {0};

    put_snapshot(store, "long", "e\nd\n" PACKED);
    put_snapshot(store, "short", PACKED);
    CHECK_OK(store_chain_list_long(store, 3, &found, &err), err);
    CHECK_INT(found.count, 1);
    CHECK_STR(found.ids[0], "long");
    chain_list_clear(&found);
    CHECK_OK(store_chain_list_uncounted(store, NULL, &found, &err), err);
    CHECK_INT(found.count, 2);
    CHECK_OK(store_chain_list_uncounted(store, "another", &none, &err), err);
    CHECK_INT(none.count, 0);
}
