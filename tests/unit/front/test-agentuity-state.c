/* SPDX-License-Identifier: Apache-2.0 */
#include "front/agentuity/render.h"

#include "front/agentuity/content_type.h"
#include "web/reference.h"
#include "test.h"

#include <sys/stat.h>

#define ID "0123456789abcdefghjkmnpqrs"
#define OTHER "zyxwvtsrqpnmkjhgfedcba9876"
#define CREATED "\"createdAt\":\"1970-01-01T00:00:01.500Z\""

static const struct organisation_info organisation = {.id = "acme", .name = "Acme"};
static const struct organisation_info spaced = {.id = "acme", .name = "Acme & Sons"};

/* One object, as text. */
#define CHECK_JSON(write, want)                                                                    \
    do {                                                                                           \
        autobuffer text = {0};                                                                     \
        struct json_writer writer;                                                                 \
        struct json_writer *json = &writer;                                                        \
        struct error err = {0};                                                                    \
        json_writer_init(json, &text);                                                             \
        write;                                                                                     \
        CHECK_OK(json_writer_finish(json, &err), err);                                             \
        CHECK_STR(text.data, want);                                                                \
    } while (0)

static struct snapshot_info plain_info(void)
{
    return (struct snapshot_info){
        .id = ID,
        .name = "n",
        .state = SNAPSHOT_READY,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = 1500,
    };
}

TEST(a_plain_snapshot_has_no_null_in_it_and_counts_nothing_yet)
{
    struct snapshot_info info = plain_info();
    struct snapshot_view view = {.info = &info, .is_own = true};

    CHECK_JSON(render_snapshot(json, &view),
               "{\"snapshotId\":\"snp_" ID
               "\",\"name\":\"n\",\"fullName\":\"n\",\"public\":false," CREATED
               ",\"user\":{\"id\":\"user_local\"},\"sizeBytes\":0,\"fileCount\":0}");
}

TEST(others_are_not_told_whose_a_snapshot_is_nor_where_it_came_from)
{
    struct snapshot_info info = plain_info();
    struct snapshot_view view = {.info = &info};

    info.parent_id = info.sandbox_id = OTHER;
    info.key_id = "k";
    CHECK_JSON(render_snapshot(json, &view),
               "{\"snapshotId\":\"snp_" ID
               "\",\"name\":\"n\",\"fullName\":\"n\",\"public\":false," CREATED
               ",\"sizeBytes\":0,\"fileCount\":0}");
}

TEST(a_snapshot_tells_all_that_is_known)
{
    struct snapshot_info info = plain_info();
    struct snapshot_file file = {.path = "a/b.JSON", .size = 3, .mode = S_IFREG | 0644};
    struct snapshot_files files = {.files = &file, .count = 1};
    struct snapshot_view view = {
        .info = &info, .organisation = &organisation, .files = &files, .is_own = true};

    memset(file.sha256, 'a', 64);
    info.tag = "v1";
    info.description = "d";
    info.message = "m";
    info.parent_id = OTHER;
    info.sandbox_id = OTHER;
    info.key_id = "k";
    info.upload_secret = "never told";
    info.size_bytes = 7;
    info.file_count = 1;
    info.metadata = "{\"a\":\"b\"}";
    info.git = "{\"branch\":\"main\"}";
    CHECK_JSON(render_snapshot(json, &view),
               "{\"snapshotId\":\"snp_" ID
               "\",\"name\":\"n\",\"tag\":\"v1\",\"fullName\":\"n:v1\",\"message\":\"m\","
               "\"public\":false,\"parentSnapshotId\":\"snp_" OTHER "\"," CREATED
               ",\"org\":{\"id\":\"org_acme\",\"name\":\"Acme\",\"slug\":\"Acme\"},"
               "\"user\":{\"id\":\"user_k\"},\"description\":\"d\",\"sizeBytes\":7,\"fileCount\":1,"
               "\"sandboxId\":\"sbx_" OTHER
               "\",\"userMetadata\":{\"a\":\"b\"},\"git\":{\"branch\":\"main\"},"
               "\"files\":[{\"path\":\"a/b.JSON\",\"size\":3,\"sha256\":"
               "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
               "\"contentType\":\"application/json\",\"mode\":420}]}");
}

TEST(a_public_snapshot_is_named_with_its_organisation)
{
    struct snapshot_info info = plain_info();
    struct snapshot_view view = {.info = &info, .organisation = &spaced};
    autobuffer text = {0};
    struct json_writer json;

    info.is_public = true;
    info.tag = "v1";
    json_writer_init(&json, &text);
    render_snapshot(&json, &view);
    CHECK(strstr(text.data, "\"fullName\":\"@acme/n:v1\""));
    CHECK(strstr(text.data, "\"orgName\":\"Acme & Sons\",\"orgSlug\":\"acme\""));
}

TEST(an_ancestor_says_whether_it_is_deleted)
{
    struct snapshot_info info = plain_info();
    struct snapshot_view view = {.info = &info, .is_own = true};

    info.state = SNAPSHOT_DELETED;
    CHECK_JSON(render_ancestor(json, &view),
               "{\"snapshotId\":\"snp_" ID
               "\",\"name\":\"n\",\"fullName\":\"n\",\"public\":false," CREATED
               ",\"user\":{\"id\":\"user_local\"},\"deleted\":true}");
}

TEST(a_private_origin_names_its_user_and_a_public_one_its_organisation)
{
    struct snapshot_info info = plain_info();
    struct snapshot_view view = {.info = &info, .organisation = &organisation};

    CHECK_JSON(render_origin(json, &view),
               "{\"id\":\"snp_" ID "\",\"name\":\"n\",\"fullName\":\"n\",\"public\":false,"
               "\"user\":{\"id\":\"user_local\"}}");
    info.is_public = true;
    CHECK_JSON(render_origin(json, &view),
               "{\"id\":\"snp_" ID "\",\"name\":\"n\",\"fullName\":\"@Acme/n\",\"public\":true,"
               "\"org\":{\"id\":\"org_acme\",\"name\":\"Acme\",\"slug\":\"Acme\"}}");
}

TEST(a_sandbox_of_a_forgotten_snapshot_still_has_what_clients_need)
{
    struct sandbox_info info = {.id = ID, .snapshot = OTHER};
    struct sandbox_view view = {.info = &info, .region = "local"};
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    render_sandbox_entry(&json, &view);
    CHECK(strstr(text.data, "\"snapshot\":{\"id\":\"snp_" OTHER
                            "\",\"public\":false,\"user\":{\"id\":\"user_local\"}}"));
}

TEST(a_paused_sandbox_tells_its_end_only_when_it_has_one)
{
    struct sandbox_info info = {.id = ID, .state = SANDBOX_PAUSED, .paused_at = 1000};

    CHECK_JSON((json_map_begin(json), render_paused(json, &info), json_map_end(json)),
               "{\"sandboxId\":\"sbx_" ID "\",\"status\":\"suspended\"}");
    info.paused_timeout_ms = 500;
    CHECK_JSON((json_map_begin(json), render_paused(json, &info), json_map_end(json)),
               "{\"sandboxId\":\"sbx_" ID
               "\",\"status\":\"suspended\",\"terminatesAt\":\"1970-01-01T00:00:01.500Z\"}");
}

TEST(the_first_checkpoint_has_an_empty_parent)
{
    struct checkpoint_info info = {.id = ID, .name = "n", .created_at = 1500, .size_bytes = 9};

    CHECK_JSON(render_checkpoint(json, &info), "{\"id\":\"ckpt_" ID "\",\"name\":\"n\"," CREATED
                                               ",\"parent\":\"\",\"sizeBytes\":9}");
    info.parent = "before";
    CHECK_JSON(render_checkpoint(json, &info), "{\"id\":\"ckpt_" ID "\",\"name\":\"n\"," CREATED
                                               ",\"parent\":\"before\",\"sizeBytes\":9}");
}

TEST(only_what_is_spelled_as_an_id_is_one)
{
    CHECK_STR(reference_of("snp_" ID, "snp_"), ID);
    CHECK_STR(reference_of("snp_name", "snp_"), "snp_name");
    CHECK_STR(reference_of("ckpt_" ID, "snp_"), "ckpt_" ID);
    CHECK_STR(reference_of("", "snp_"), "");
    CHECK(reference_is_id("ckpt_" ID, "ckpt_"));
    CHECK(!reference_is_id(ID, "ckpt_"));
}

TEST(types_go_by_the_end_of_the_name)
{
    CHECK_STR(content_type_of("a.b/c"), "application/octet-stream");
    CHECK_STR(content_type_of("x.tar.gz"), "application/gzip");
    CHECK_STR(content_type_of("README.MD"), "text/markdown");
    CHECK_STR(content_type_of("noend."), "application/octet-stream");
    CHECK_STR(content_type_of(""), "application/octet-stream");
}
