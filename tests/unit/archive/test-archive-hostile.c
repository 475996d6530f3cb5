/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that want something: out of their directory, all memory, all disk, all time. The real burrow-archive meets them. Needs root. */
#include "archive/unpacker.h"
#include "archive_fixture.h"
#include "base/fd.h"

#include <signal.h>
#include <sys/stat.h>

static void check_refused(const struct unpacked *out, enum error_reason reason)
{
    CHECK_INT(out->result, -1);
    CHECK_INT(out->err.reason, reason);
    CHECK_STR(out->err.noun, "archive");
}

/* "good", the entry, "after": only the first comes out, and the sentence ends as given. */
static void check_tar(const struct tar_entry *entry, const char *why)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    tar_add_file(&tar, "good", "1");
    tar_add(&tar, entry);
    tar_add_file(&tar, "after", "2");
    tar_end(&tar);
    unpack(&task, &tar, &out);
    check_refused(&out, ERROR_REFUSED);
    CHECK_STR(out.text.data, "100644 good: 1\n");
    if (!strstr(out.err.text, why))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", out.err.text, why);
}

static void check_zip(const struct zip_entry *entry, const char *why)
{
    struct archive_task task = plain_task();
    autozip zip = {0};
    autounpacked out;
    zip_add(&zip,
            &(struct zip_entry){.name = "good", .content = "1", .length = 1, .mode = 0100644});
    zip_add(&zip, entry);
    zip_add(&zip,
            &(struct zip_entry){.name = "zafter", .content = "2", .length = 1, .mode = 0100644});
    zip_end(&zip);
    unpack(&task, &zip.bytes, &out);
    check_refused(&out, ERROR_REFUSED);
    CHECK_STR(out.text.data, "100644 good: 1\n");
    if (!strstr(out.err.text, why))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", out.err.text, why);
}

TEST(names_that_lead_out_are_refused_with_all_that_follow)
{
    static const char *const names[] = {"../x", "a/../../x", "a/..", "..", "./../x", "a/b/../x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_tar(&(struct tar_entry){.name = names[i]}, "would lead out of the directory");
        check_zip(&(struct zip_entry){.name = names[i], .mode = 0100644},
                  "would lead out of the directory");
    }
}

TEST(absolute_names_are_refused)
{
    check_tar(&(struct tar_entry){.name = "/etc/passwd"}, "has an absolute path");
    check_tar(&(struct tar_entry){.name = "//x"}, "has an absolute path");
    check_zip(&(struct zip_entry){.name = "/etc/passwd", .mode = 0100644}, "has an absolute path");
}

TEST(names_hidden_in_extended_headers_are_refused_too)
{
    struct archive_task task = plain_task();
    autobuffer pax = {0}, gnu = {0};
    autounpacked from_pax, from_gnu;
    tar_add_pax(&pax, "path", "../x", 4);
    tar_add_file(&pax, "innocent", "1");
    tar_end(&pax);
    unpack(&task, &pax, &from_pax);
    check_refused(&from_pax, ERROR_REFUSED);
    tar_add_gnu(&gnu, 'L', "/x");
    tar_add_file(&gnu, "innocent", "1");
    tar_end(&gnu);
    unpack(&task, &gnu, &from_gnu);
    check_refused(&from_gnu, ERROR_REFUSED);
}

TEST(hard_links_to_outside_are_refused)
{
    check_tar(&(struct tar_entry){.name = "h", .type = '1', .link = "/etc/shadow"},
              "has an absolute path");
    check_tar(&(struct tar_entry){.name = "h", .type = '1', .link = "../x"},
              "would lead out of the directory");
    check_tar(&(struct tar_entry){.name = "h", .type = '1', .link = "./"},
              "hard link to the directory itself");
}

TEST(devices_and_fifos_are_refused)
{
    static const char types[] = {'3', '4', '6'};
    for (size_t i = 0; i < sizeof types; i++)
        check_tar(&(struct tar_entry){.name = "dev", .type = types[i]},
                  "is neither file, directory nor link");
}

TEST(a_name_longer_than_a_name_can_be_is_refused)
{
    struct archive_task task = plain_task();
    char name[400];
    autobuffer tar = {0};
    autounpacked out;
    memset(name, 'n', sizeof name);
    tar_add_pax(&tar, "path", name, sizeof name);
    tar_add_file(&tar, "x", "1");
    tar_end(&tar);
    unpack(&task, &tar, &out);
    check_refused(&out, ERROR_REFUSED);
    CHECK(strstr(out.err.text, "has too long a name"));
}

TEST(a_nul_in_a_name_hides_nothing)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autozip zip = {0};
    autounpacked from_tar, from_zip;
    tar_add_pax(&tar, "path", "a\0/../../b", 10);
    tar_add_file(&tar, "x", "1");
    tar_end(&tar);
    unpack(&task, &tar, &from_tar);
    CHECK(from_tar.result < 0 || strcmp(from_tar.text.data, "100644 a: 1\n") == 0);
    zip_add(&zip, &(struct zip_entry){.name = "a\0/../../b", .name_length = 10, .mode = 0100644});
    zip_end(&zip);
    unpack(&task, &zip.bytes, &from_zip);
    CHECK(from_zip.result < 0 || strcmp(from_zip.text.data, "100644 a\n") == 0);
}

TEST(links_are_kept_as_they_are_and_names_through_them_are_left_to_the_box)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    tar_add(&tar, &(struct tar_entry){.name = "l", .type = '2', .link = "/etc"});
    tar_add_file(&tar, "l/passwd", "root");
    tar_end(&tar);
    unpack(&task, &tar, &out);
    CHECK_INT(out.result, 0);
    CHECK_STR(out.text.data, "120777 l -> /etc\n100644 l/passwd: root\n");
}

TEST(attributes_and_owners_do_not_come_along)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    tar_add_pax(&tar, "SCHILY.xattr.trusted.overlay.redirect", "/etc", 4);
    tar_add_pax(&tar, "SCHILY.xattr.security.capability", "\1\0\0\2", 4);
    tar_add(&tar, &(struct tar_entry){.name = ".wh.x", .mode = 06755});
    tar_end(&tar);
    unpack(&task, &tar, &out);
    CHECK_INT(out.result, 0);
    CHECK_STR(out.text.data, "106755 .wh.x\n"); // the box drops the set-id bits
}

TEST(what_unpacks_to_more_than_allowed_is_stopped_before_it_does)
{
    struct archive_task task = plain_task();
    size_t length = 64 << 20;
    char *zeros = calloc(1, length);
    autobuffer tar = {0};
    autozip zip = {0};
    autounpacked from_tar, from_zip;
    CHECK(zeros);
    tar_add_file(&tar, "small", "1");
    tar_add(&tar, &(struct tar_entry){.name = "bomb", .content = zeros, .length = length});
    tar_end(&tar);
    gzip(&tar);
    CHECK(tar.length < 100000);
    unpack(&task, &tar, &from_tar);
    check_refused(&from_tar, ERROR_TOO_LARGE);
    CHECK_INT(from_tar.bytes, 1);
    zip_add(&zip, &(struct zip_entry){.name = "bomb",
                                      .content = zeros,
                                      .length = length,
                                      .mode = 0100644,
                                      .is_deflated = true});
    zip_end(&zip);
    unpack(&task, &zip.bytes, &from_zip);
    check_refused(&from_zip, ERROR_TOO_LARGE);
    CHECK_INT(from_zip.bytes, 0);
    free(zeros);
}

TEST(a_content_longer_than_its_entry_says_is_stopped)
{
    struct archive_task task = plain_task();
    size_t length = 64 << 20;
    char *zeros = calloc(1, length);
    autozip zip = {0};
    autounpacked out;
    CHECK(zeros);
    zip_add(&zip, &(struct zip_entry){.name = "liar",
                                      .content = zeros,
                                      .length = length,
                                      .size = 10,
                                      .mode = 0100644,
                                      .is_deflated = true});
    zip_end(&zip);
    free(zeros);
    unpack(&task, &zip.bytes, &out);
    CHECK_INT(out.result, -1);
    CHECK_INT(error_kind(&out.err), ERROR_INVALID);
    CHECK(out.bytes <= 10);
}

TEST(a_file_of_exabytes_with_nothing_in_it_is_refused)
{
    struct archive_task task = plain_task();
    autobuffer plain = {0}, sparse = {0};
    autounpacked from_plain, from_sparse;
    tar_add(&plain, &(struct tar_entry){.name = "huge", .size = 1ull << 60, .is_numeric = true});
    unpack(&task, &plain, &from_plain);
    check_refused(&from_plain, ERROR_TOO_LARGE);
    tar_add_pax(&sparse, "GNU.sparse.size", "1152921504606846976", 19);
    tar_add_pax(&sparse, "GNU.sparse.map", "0,1,1152921504606846975,1", 25);
    tar_add_file(&sparse, "sparse", "ab");
    tar_end(&sparse);
    unpack(&task, &sparse, &from_sparse);
    CHECK_INT(from_sparse.result, -1);
    CHECK(from_sparse.bytes <= 16);
}

TEST(more_entries_than_allowed_are_refused)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    for (int i = 0; i < 1001; i++)
        tar_add_file(&tar, "same", "");
    tar_end(&tar);
    unpack(&task, &tar, &out);
    check_refused(&out, ERROR_TOO_LARGE);
    CHECK_INT(out.records, 1000);
}

TEST(an_archive_that_goes_on_for_ever_after_its_end_is_refused)
{
    struct archive_task task = plain_task();
    size_t length = 64 << 20;
    char *zeros = calloc(1, length);
    autobuffer tar = {0};
    autounpacked out;
    struct error err = {0};
    CHECK(zeros);
    tar_add_file(&tar, "a", "1");
    CHECK_OK(buffer_add(&tar, zeros, length, &err), err);
    free(zeros);
    gzip(&tar);
    unpack(&task, &tar, &out);
    check_refused(&out, ERROR_TOO_LARGE);
}

TEST(a_header_that_wants_all_memory_gets_it_not)
{
    struct archive_task task = plain_task();
    static const char types[] = {'x', 'g', 'L', 'K'};
    for (size_t i = 0; i < sizeof types; i++) {
        autobuffer tar = {0};
        autounpacked out;
        tar_add(&tar, &(struct tar_entry){
                          .name = "h", .type = types[i], .size = 1ull << 40, .is_numeric = true});
        tar_add_file(&tar, "a", "1");
        tar_end(&tar);
        unpack(&task, &tar, &out);
        CHECK_INT(out.result, -1);
        CHECK_STR(out.err.noun, "archive");
    }
}

TEST(what_is_no_archive_is_refused)
{
    struct archive_task task = plain_task();
    static const char *const texts[] = {"",
                                        "x",
                                        "hello world, this is no archive\n",
                                        "PK",
                                        "PK\3\4",
                                        "\x1f\x8b",
                                        "\x1f\x8b\x08",
                                        "7z\xbc\xaf\x27\x1c junk",
                                        "#!/bin/sh\nexit 0\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (task.format = ARCHIVE_ANY; task.format <= ARCHIVE_ZIP; task.format++) {
            autobuffer bytes = {0};
            autounpacked out;
            struct error err = {0};
            CHECK_OK(buffer_add(&bytes, texts[i], strlen(texts[i]), &err), err);
            unpack(&task, &bytes, &out);
            CHECK_INT(out.result, -1);
            CHECK_INT(error_kind(&out.err), ERROR_INVALID);
            CHECK_STR(out.err.noun, "archive");
            CHECK_INT(out.records, 0);
        }
    }
}

TEST(an_encrypted_zip_is_refused)
{
    check_zip(&(struct zip_entry){.name = "secret",
                                  .content = "0123456789abcdef",
                                  .length = 16,
                                  .mode = 0100644,
                                  .is_encrypted = true},
              "is encrypted");
}

static void make_archive(struct buffer *out, bool is_zip)
{
    autozip zip = {0};
    struct error err = {0};
    static const char text[] =
        "some text that is long enough to be compressed, compressed, compressed";
    if (!is_zip) {
        tar_add_file(out, "a", text);
        tar_add(out, &(struct tar_entry){.name = "l", .type = '2', .link = "a"});
        tar_add_file(out, "d/b", text);
        tar_end(out);
        gzip(out);
        return;
    }
    zip_add(&zip, &(struct zip_entry){.name = "a",
                                      .content = text,
                                      .length = sizeof text - 1,
                                      .mode = 0100644,
                                      .is_deflated = true});
    zip_add(&zip, &(struct zip_entry){.name = "l", .content = "a", .length = 1, .mode = 0120777});
    zip_add(&zip, &(struct zip_entry){
                      .name = "d/b", .content = text, .length = sizeof text - 1, .mode = 0100644});
    zip_end(&zip);
    CHECK_OK(buffer_add(out, zip.bytes.data, zip.bytes.length, &err), err);
}

TEST(a_cut_off_archive_is_never_taken_for_a_whole_one)
{
    struct archive_task task = plain_task();
    for (int is_zip = 0; is_zip < 2; is_zip++) {
        autobuffer whole = {0};
        make_archive(&whole, is_zip);
        for (size_t length = 1; length < whole.length; length += 1 + whole.length / 40) {
            struct buffer part = {.data = whole.data, .length = length};
            autounpacked out;
            unpack(&task, &part, &out);
            check_refused(&out, ERROR_REFUSED);
        }
    }
}

/* Of tar.gz every bit of content is under a sum; of a zip the contents are, and names are checked like any others. */
TEST(flipped_bits_are_found_or_harmless)
{
    struct archive_task task = plain_task();
    for (int is_zip = 0; is_zip < 2; is_zip++) {
        autobuffer bytes = {0};
        autounpacked good;
        make_archive(&bytes, is_zip);
        unpack(&task, &bytes, &good);
        CHECK_INT(good.result, 0);
        for (size_t at = is_zip ? 0 : 10; at < bytes.length; at += 1 + bytes.length / 80) {
            autounpacked out;
            bytes.data[at] ^= (char)(1 << at % 8);
            unpack(&task, &bytes, &out);
            bytes.data[at] ^= (char)(1 << at % 8);
            if (!is_zip && out.result == 0)
                CHECK_STR(out.text.data, good.text.data);
            if (out.result < 0)
                CHECK_STR(out.err.noun, "archive");
        }
    }
}

TEST(a_wrong_sum_of_a_content_is_found)
{
    struct archive_task task = plain_task();
    autozip zip = {0};
    autounpacked out;
    zip_add(&zip,
            &(struct zip_entry){.name = "a", .content = "content", .length = 7, .mode = 0100644});
    zip_end(&zip);
    char *content = memmem(zip.bytes.data, zip.bytes.length, "content", 7);
    CHECK(content);
    content[0] = 'C';
    unpack(&task, &zip.bytes, &out);
    check_refused(&out, ERROR_REFUSED);
}

TEST(one_that_stops_working_is_given_up)
{
    struct archive_task task = plain_task();
    autoptr(unpacker) unpacker = NULL;
    autobuffer tar = {0};
    struct files_item item;
    struct error err = {0};
    for (int i = 0; i < 20000; i++)
        tar_add_file(&tar, "x", "1");
    tar_end(&tar);
    task.timeout_ms = 200;
    task.max_entries = 100000;
    autofd fd = file_of(&tar);
    CHECK_OK(unpacker_open(&task, fd, &unpacker, &err), err);
    CHECK(kill(unpacker_pid(unpacker), SIGSTOP) == 0);
    int got = 1;
    while (got > 0) {
        got = unpacker_next(unpacker, &item, &err);
        while (got > 0 && item.size) {
            char byte;
            CHECK(unpacker_fill(unpacker, &byte, 1, &err) == 1 || error_is(&err, ERROR_LIMIT));
            item.size--;
        }
    }
    CHECK_INT(got, -1);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.text, "the archive takes too long to be worked through");
}

TEST(one_that_dies_is_noticed)
{
    struct archive_task task = plain_task();
    autoptr(unpacker) unpacker = NULL;
    autobuffer tar = {0};
    struct files_item item;
    struct error err = {0};
    for (int i = 0; i < 20000; i++)
        tar_add_file(&tar, "x", "");
    tar_end(&tar);
    task.max_entries = 100000;
    autofd fd = file_of(&tar);
    CHECK_OK(unpacker_open(&task, fd, &unpacker, &err), err);
    CHECK(kill(unpacker_pid(unpacker), SIGKILL) == 0);
    int got = 1;
    while (got > 0)
        got = unpacker_next(unpacker, &item, &err);
    CHECK_INT(got, -1);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK_STR(err.noun, "archive");
}
