/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/snapshots.c and checkpoints.c: whose a tag is, and who needs which layer. */
#include "fixture.h"
#include "store/checkpoints.h"
#include "store/snapshots.h"
#include "test.h"

static struct snapshot_record snapshot(const char *id, const char *tenant, const char *tag)
{
    return (struct snapshot_record){
        .id = id,
        .owner = {.organisation = ORGANISATION, .tenant = tenant},
        .state = SNAPSHOT_READY,
        .name = "name",
        .tag = tag,
        .runtime = "base:latest",
        .layers = "",
        .env = "",
        .created_at = NOW,
        .updated_at = NOW,
    };
}

static void check_tag(struct store *store, const char *id, const char *tag)
{
    autosnapshot got = {0};
    struct error err = {0};

    CHECK_OK(store_snapshot_get(store, id, &got, &err), err);
    CHECK_STR(got.tag ? got.tag : "none", tag);
}

TEST(a_tag_is_taken_from_those_of_the_same_owner_alone)
{
    struct store *store = fixture_store();
    struct snapshot_record old = snapshot("old", NULL, "v1"), other = snapshot("other", "t", "v1");
    struct snapshot_record fresh = snapshot("fresh", NULL, "v1"),
                           theirs = snapshot("theirs", "t", "v1");
    struct error err = {0};

    CHECK_OK(store_snapshot_put(store, &old, &err), err);
    CHECK_OK(store_snapshot_put(store, &other, &err), err);
    CHECK_OK(store_snapshot_put(store, &fresh, &err), err);
    CHECK_OK(store_snapshot_take_tag(store, &fresh, &err), err);
    check_tag(store, "old", "none");
    check_tag(store, "other", "v1");
    check_tag(store, "fresh", "v1");
    CHECK_OK(store_snapshot_put(store, &theirs, &err), err);
    CHECK_OK(store_snapshot_take_tag(store, &theirs, &err), err);
    check_tag(store, "other", "none");
    check_tag(store, "fresh", "v1");
}

static void put_checkpoint(struct store *store, const char *id, const char *layer)
{
    struct layer_record row = {.name = layer, .created_at = NOW};
    struct checkpoint_record record = {
        .id = id, .sandbox_id = "s", .name = id, .parent = "", .layer = layer, .created_at = NOW};
    struct error err = {0};

    CHECK_OK(store_layer_put(store, &row, &err), err);
    CHECK_OK(store_layer_use(store, layer, id, &err), err);
    CHECK_OK(store_checkpoint_put(store, &record, &err), err);
}

TEST(a_layer_goes_when_its_checkpoints_have)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    put_checkpoint(store, "c1", "l1");
    put_checkpoint(store, "c2", "l2");
    CHECK(store_layer_remove(store, "l1", &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(store_layer_release(store, "c1", &err), err);
    CHECK_OK(store_checkpoint_remove(store, "c1", &err), err);
    CHECK(store_checkpoint_remove(store, "c1", &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(store_layer_remove(store, "l1", &err), err);
    CHECK_OK(store_checkpoint_remove_all(store, "s", &err), err);
    autocheckpoints left = {0};
    CHECK_OK(store_checkpoint_list(store, "s", &left, &err), err);
    CHECK_INT(left.count, 0);
    CHECK_OK(store_layer_remove(store, "l2", &err), err);
    CHECK(store_layer_remove(store, "l2", &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}
