/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what reads and writes images without touching a file: src/runtime/oci_user.c, oci_tar.c, oci_fetch.c's sources. */
#include "base/buffer.h"
#include "runtime/oci_fetch.h"
#include "runtime/oci_tar.h"
#include "runtime/oci_user.h"
#include "runtime/oci_writer.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>

TEST(users_become_numbers)
{
    static const char passwd[] =
        "root:x:0:0:root:/root:/bin/sh\nbad\n:x:1:2::\nworker:x:4711:4712::/srv:\n"
        "far:x:70000:70000::/:\nlast:x:5:6";
    static const char group[] = "root:x:0:\nothers:x:4800:worker\n";
    static const struct {
        const char *user, *ids;
    } rows[] = {
        {"root", "0:0"},
        {"worker", "4711:4712"},
        {"worker:others", "4711:4800"},
        {"4711", "4711:4712"},
        {"77", "77:0"},
        {"77:88", "77:88"},
        {"77:others", "77:4800"},
        {"last", "5:6"},
        {"65535:65535", "65535:65535"},
        {"nobody", NULL},
        {"worker:nogroup", NULL},
        {"far", NULL},
        {"65536", NULL},
        {"99999999999", NULL},
        {"-1", NULL},
        {"", NULL},
        {"4711:", "4711:4712"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char ids[OCI_USER_TEXT] = "";
        bool is_known = oci_user_resolve(rows[i].user, passwd, group, ids);
        CHECK_INT(is_known, rows[i].ids != NULL);
        if (rows[i].ids)
            CHECK_STR(ids, rows[i].ids);
    }
}

TEST(places_of_images_are_checked)
{
    static const char *const good[] = {"docker://registry.example/a/b:1", "oci:/x", "oci:/x:latest",
                                       "docker-archive:/x.tar", "oci-archive:/x.tar"};
    static const char *const bad[] = {"",          "docker://", "oci:",     "oci:x",
                                      "ftp://x",   "--help",    "oci:/a b", "docker://a\nb",
                                      "oci:/a\"b", "oci:/a\\b", "dir:/etc", "containers-storage:x"};
    struct error err = {0};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_INT(oci_check_source(good[i], &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_INT(oci_check_source(bad[i], &err), -1);
}

static int gather(void *data, const void *bytes, size_t length, struct error *err)
{
    return buffer_add(data, bytes, length, err);
}

TEST(long_names_and_attributes_stand_before_their_entry)
{
    char name[300], text[64];
    struct oci_attribute attribute = {"user.note", "value", 5};
    struct files_item item = {.path = name, .target = "", .mode = S_IFREG | 0640, .size = 1};
    autobuffer out = {0};
    struct error err = {0};

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_INT(oci_tar_entry(&item, &attribute, 1, gather, &out, &err), 0);
    CHECK_INT(out.length, 3 * OCI_TAR_BLOCK);
    CHECK_INT(out.data[156], 'x');
    (void)snprintf(text, sizeof text, "%zu path=nnn", strlen(name) + 10);
    CHECK(strncmp(out.data + OCI_TAR_BLOCK, text, strlen(text)) == 0);
    CHECK(strstr(out.data + OCI_TAR_BLOCK, "SCHILY.xattr.user.note=value\n") != NULL);
    CHECK_INT(out.data[2 * OCI_TAR_BLOCK + 156], '0');
    CHECK_STR(out.data + 2 * OCI_TAR_BLOCK + 100, "0000640");
}

TEST(short_names_need_one_block)
{
    struct files_item item = {.path = "a", .target = "b", .mode = S_IFLNK | 0777};
    autobuffer out = {0};
    struct error err = {0};

    CHECK_INT(oci_tar_entry(&item, NULL, 0, gather, &out, &err), 0);
    CHECK_INT(out.length, OCI_TAR_BLOCK);
    CHECK_STR(out.data, "a");
    CHECK_STR(out.data + 157, "b");
    CHECK_INT(out.data[156], '2');
}
