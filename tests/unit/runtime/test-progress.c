/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/runtime/progress.c and src/runtime/manifest.c on the texts they read. */
#include "runtime/progress.h"

#include "base/mem.h"
#include "runtime/manifest.h"
#include "test.h"

TEST(progress_goes_forward_through_a_build)
{
    static const struct {
        const char *line, *phase, *detail;
        unsigned at_least;
    } lines[] = {
        {"I: running apt-get update...", "reading package lists", "", 10},
        {"Get:1 http://m.test/debian bookworm InRelease [151 kB]", "reading package lists", "", 10},
        {"I: downloading packages with apt...", "downloading essential packages", "", 50},
        {"0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.",
         "downloading essential packages", "", 50},
        {"Get:1 http://m.test/debian bookworm/main amd64 libc6 amd64 2.36 [2759 kB]",
         "downloading essential packages", "libc6", 80},
        {"I: extracting archives...", "extracting essential packages", "", 110},
        {"I: installing essential packages...", "installing essential packages", "", 220},
        {"Unpacking libc6:amd64 (2.36-9) ...", "installing essential packages", "libc6", 270},
        {"Setting up bash (5.2.15-2+b13) ...", "installing essential packages", "bash", 320},
        {"I: installing remaining packages inside the chroot...", "installing packages", "", 420},
        {"0 upgraded, 4 newly installed, 0 to remove and 0 not upgraded.", "installing packages",
         "", 420},
        {"Need to get 0 B/45.5 MB of archives.", "installing packages", "", 420},
        {"Unpacking git (1:2.39.5-0+deb12u2) ...", "installing packages", "git", 590},
        {"I: cleaning package lists...", "cleaning up", "", 850},
    };
    struct progress_reader reader;
    unsigned last = 0;

    progress_start(&reader);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        (void)progress_read(&reader, lines[i].line);
        CHECK_STR(reader.now.phase, lines[i].phase);
        CHECK_STR(reader.now.detail, lines[i].detail);
        CHECK(reader.now.permille >= lines[i].at_least);
        CHECK(reader.now.permille >= last && reader.now.permille <= 1000);
        last = reader.now.permille;
    }
}

TEST(odd_lines_do_no_harm)
{
    static const char *const lines[] = {"",
                                        "Get:",
                                        "Get:1",
                                        "Unpacking ",
                                        "Setting up ",
                                        "x upgraded, 99999999999999 newly installed",
                                        "I: installing remaining packages",
                                        "Get:1 a b c",
                                        "Unpacking :::(((",
                                        "I: running apt-get update"};
    struct progress_reader reader;

    progress_start(&reader);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            (void)progress_read(&reader, lines[i]);
            CHECK(reader.now.permille <= 1000);
        }
}

TEST(a_manifest_reads_back_as_it_was_written)
{
    char *env[] = {"PATH=/usr/bin:/bin", "A=b c", NULL};
    struct manifest_bind binds[] = {{"/usr", "/usr"}, {"/a b", "/c"}};
    struct manifest_watch watches[] = {{"/var/lib/x y", 1, 2, -3}};
    struct manifest written = {.name = "n",
                               .tag = "t",
                               .kind = "host",
                               .dir = ".t-1",
                               .made = "2024-01-02T03:04:05Z",
                               .definition = 0xdeadbeef,
                               .files = 1,
                               .bytes = 2,
                               .digest = UINT64_MAX,
                               .env = env,
                               .n_env = 2,
                               .binds = binds,
                               .n_binds = 2,
                               .watches = watches,
                               .n_watches = 1};
    autoptr(manifest) read = NULL;
    autobuffer text = {0};
    struct error err = {0};

    CHECK_OK(manifest_format(&written, &text, &err), err);
    CHECK_OK(manifest_parse(xstrdup(text.data), &read, &err), err);
    CHECK_STR(read->dir, ".t-1");
    CHECK(read->digest == UINT64_MAX && read->definition == 0xdeadbeef);
    CHECK_STR(read->env[1], "A=b c");
    CHECK(read->env[2] == NULL);
    CHECK_STR(read->binds[1].host, "/a b");
    CHECK_STR(read->binds[1].box, "/c");
    CHECK_STR(read->watches[0].path, "/var/lib/x y");
    CHECK(read->watches[0].mtime_ns == -3);
}

TEST(no_text_of_a_manifest_becomes_a_line_of_its_own)
{
    char trick[] = "/srv\nbind /etc\t/srv\n%41";
    char *words[] = {trick, NULL};
    struct manifest written = {.name = "n",
                               .tag = "t",
                               .kind = "oci",
                               .dir = ".t-1",
                               .made = "2024-01-02T03:04:05Z",
                               .command = words,
                               .n_command = 1,
                               .user = trick,
                               .directory = trick};
    autoptr(manifest) read = NULL;
    autobuffer text = {0};
    struct error err = {0};

    CHECK_OK(manifest_format(&written, &text, &err), err);
    CHECK_OK(manifest_parse(xstrdup(text.data), &read, &err), err);
    CHECK_INT(read->n_binds, 0);
    CHECK_STR(read->directory, trick);
    CHECK_STR(read->user, trick);
    CHECK_STR(read->command[0], trick);
}

TEST(a_manifest_that_could_not_be_read_back_is_not_written)
{
    autofree char *lines = xcalloc(1, 30001);
    char *words[] = {lines, NULL};
    struct manifest written = {.name = "n",
                               .tag = "t",
                               .kind = "oci",
                               .dir = ".t-1",
                               .made = "2024-01-02T03:04:05Z",
                               .command = words,
                               .n_command = 1};
    autobuffer text = {0};
    struct error err = {0};

    memset(lines, '\n', 30000); // three bytes each
    CHECK(manifest_format(&written, &text, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}

TEST(damaged_manifests_are_refused)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "burrow-runtime 2\nname x\n",
                                      "burrow-runtime 1\n",
                                      "burrow-runtime 1\nname\n",
                                      "burrow-runtime 1\nfiles x\n",
                                      "burrow-runtime 1\nbind /usr\n",
                                      "burrow-runtime 1\nwatch 1 2\n",
                                      "burrow-runtime 1\nsurprise 1\n",
                                      "burrow-runtime 1\nname a\ntag b\nkind c\ndir d\n"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        autoptr(manifest) manifest = NULL;
        struct error err = {0};
        CHECK(manifest_parse(xstrdup(bad[i]), &manifest, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
}
