/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A burrow-archive that was taken over and says what it likes. This program plays it: started by the code under test, it sends
 * the packets that stand in the "archive" and goes.
 */
#include "archive/packer.h"
#include "archive/records.h"
#include "archive/unpacker.h"
#include "archive_fixture.h"
#include "base/auto.h"
#include "base/fd.h"

#include <sys/socket.h>
#include <sys/stat.h>

/* Each packet stands behind its length. Runs before main: there nobody would know these arguments. */
__attribute__((constructor)) static void play(int argc, char **argv)
{
    uint8_t packet[2 * FILES_MAX_FRAME];
    uint32_t length;
    if (argc != 5 || strcmp(argv[0], "burrow-archive") != 0)
        return;
    while (fd_read_full(1, &length, sizeof length) == sizeof length && length <= sizeof packet &&
           fd_read_full(1, packet, length) == (ssize_t)length)
        if (send(0, packet, length, MSG_NOSIGNAL) < 0)
            _exit(1);
    _exit(0);
}

static void say_raw(struct buffer *script, const void *packet, uint32_t length)
{
    struct error err = {0};
    CHECK_OK(buffer_add(script, &length, sizeof length, &err), err);
    CHECK_OK(buffer_add(script, packet, length, &err), err);
}

static void say(struct buffer *script, uint16_t type, const void *data, size_t length)
{
    uint8_t packet[FILES_MAX_FRAME];
    struct files_header header = {.type = type, .length = (uint32_t)length};
    memcpy(packet, &header, sizeof header);
    if (length)
        memcpy(packet + sizeof header, data, length);
    say_raw(script, packet, (uint32_t)(sizeof header + length));
}

static void say_item(struct buffer *script, const struct files_item *item)
{
    uint8_t room[FILES_MAX_FRAME];
    say(script, FILES_ITEM, room, files_item_write(item, room));
}

static void say_error(struct buffer *script, uint32_t kind, const char *text)
{
    uint8_t room[FILES_MAX_TEXT];
    struct files_failure failure = {.sys = 13, .kind = kind};
    memcpy(room, &failure, sizeof failure);
    memcpy(room + sizeof failure, text, strlen(text) + 1);
    say(script, FILES_ERROR, room, sizeof failure + strlen(text) + 1);
}

static struct archive_task liar_task(void)
{
    return (struct archive_task){
        .program = "/proc/self/exe", .max_bytes = 1000, .max_entries = 3, .timeout_ms = 60000};
}

static void hear(const struct buffer *script, struct unpacked *out)
{
    struct archive_task task = liar_task();
    unpack(&task, script, out);
}

TEST(an_honest_one_is_believed)
{
    autobuffer script = {0};
    autounpacked out;
    struct files_total total = {0};
    say(&script, RECORDS_READY, NULL, 0);
    say_item(&script, &(struct files_item){.path = "a", .target = "", .mode = S_IFREG, .size = 2});
    say(&script, FILES_DATA, "hi", 2);
    say(&script, FILES_END, &total, sizeof total);
    hear(&script, &out);
    CHECK_INT(out.result, 0);
    CHECK_STR(out.text.data, "100000 a: hi\n");
}

TEST(records_that_no_archive_has_are_not_believed)
{
    static const struct files_item items[] = {
        {.path = "../x", .target = "", .mode = S_IFREG},
        {.path = "/x", .target = "", .mode = S_IFREG},
        {.path = "", .target = "", .mode = S_IFDIR},
        {.path = "a//b", .target = "", .mode = S_IFREG},
        {.path = "a", .target = "", .mode = S_IFCHR},
        {.path = "a", .target = "", .mode = S_IFIFO},
        {.path = "a", .target = "", .mode = 0},
        {.path = "a", .target = "", .mode = S_IFREG | 1u << 20},
        {.path = "a", .target = "b", .mode = S_IFREG},
        {.path = "a", .target = "", .mode = S_IFLNK},
        {.path = "a", .target = "", .mode = S_IFDIR, .size = 1},
        {.path = "a", .target = "b", .mode = S_IFLNK, .size = 1},
        {.path = "a", .target = "../b", .mode = S_IFREG, .is_hard_link = true},
        {.path = "a", .target = "b", .mode = S_IFDIR, .is_hard_link = true},
        {.path = "a", .target = "", .mode = S_IFREG, .size = 1001},
        {.path = "a", .target = "", .mode = S_IFREG, .size = UINT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        autobuffer script = {0};
        autounpacked out;
        say(&script, RECORDS_READY, NULL, 0);
        say_item(&script, &items[i]);
        hear(&script, &out);
        CHECK_INT(out.result, -1);
        CHECK_INT(error_kind(&out.err), ERROR_INVALID);
        CHECK_STR(out.err.noun, "archive");
        CHECK_INT(out.err.reason, ERROR_DAMAGED);
        CHECK_INT(out.records, 0);
    }
}

static void check_not_believed(const struct buffer *script, unsigned records)
{
    autounpacked out;
    hear(script, &out);
    CHECK_INT(out.result, -1);
    CHECK_INT(error_kind(&out.err), ERROR_INVALID);
    CHECK_INT(out.records, records);
}

TEST(frames_out_of_their_place_are_not_believed)
{
    struct files_item item = {.path = "a", .target = "", .mode = S_IFREG, .size = 2};
    struct files_total total = {0};
    autobuffer data = {0}, second = {0}, longer = {0}, early_end = {0}, request = {0}, raw = {0};
    say(&data, RECORDS_READY, NULL, 0); // data of no file
    say(&data, FILES_DATA, "hi", 2);
    check_not_believed(&data, 0);
    say(&second, RECORDS_READY, NULL, 0); // a record instead of data
    say_item(&second, &item);
    say_item(&second, &item);
    check_not_believed(&second, 1);
    say(&longer, RECORDS_READY, NULL, 0); // more data than announced
    say_item(&longer, &item);
    say(&longer, FILES_DATA, "hello", 5);
    check_not_believed(&longer, 1);
    say(&early_end, RECORDS_READY, NULL, 0); // the end instead of data
    say_item(&early_end, &item);
    say(&early_end, FILES_END, &total, sizeof total);
    check_not_believed(&early_end, 1);
    say(&request, RECORDS_READY, NULL, 0);
    say(&request, FILES_REMOVE, "x", 1);
    check_not_believed(&request, 0);
    say(&raw, RECORDS_READY, NULL, 0);
    say_raw(&raw, "\1\0\0", 3);
    check_not_believed(&raw, 0);
}

TEST(more_records_or_bytes_than_agreed_are_not_believed)
{
    struct files_item dir = {.path = "a", .target = "", .mode = S_IFDIR};
    struct files_item half = {.path = "a", .target = "", .mode = S_IFREG, .size = 600};
    char content[600] = {0};
    autobuffer records = {0}, bytes = {0};
    say(&records, RECORDS_READY, NULL, 0);
    for (int i = 0; i < 4; i++)
        say_item(&records, &dir);
    check_not_believed(&records, 3);
    say(&bytes, RECORDS_READY, NULL, 0);
    for (int i = 0; i < 2; i++) {
        say_item(&bytes, &half);
        say(&bytes, FILES_DATA, content, sizeof content);
    }
    check_not_believed(&bytes, 1);
}

TEST(one_that_goes_without_a_word_is_an_error)
{
    struct files_item item = {.path = "a", .target = "", .mode = S_IFREG, .size = 2};
    autobuffer silent = {0}, ready = {0}, half = {0};
    autounpacked out;
    hear(&silent, &out);
    CHECK_INT(out.result, -1);
    CHECK_INT(error_kind(&out.err), ERROR_UNAVAILABLE);
    say(&ready, RECORDS_READY, NULL, 0);
    check_not_believed(&ready, 0);
    say(&half, RECORDS_READY, NULL, 0);
    say_item(&half, &item);
    say(&half, FILES_DATA, "h", 1);
    check_not_believed(&half, 1);
}

TEST(its_errors_have_few_kinds_and_clean_text)
{
    static const struct {
        uint32_t said;
        enum error_reason heard;
    } kinds[] = {
        {ERROR_INVALID, ERROR_INVALID}, {ERROR_LIMIT, ERROR_LIMIT},    {ERROR_SYSTEM, ERROR_SYSTEM},
        {ERROR_GONE, ERROR_INVALID},    {ERROR_DENIED, ERROR_INVALID}, {ERROR_NONE, ERROR_INVALID},
        {12345, ERROR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        autobuffer script = {0};
        autounpacked out;
        say(&script, RECORDS_READY, NULL, 0);
        say_error(&script, kinds[i].said, "bad\033[31m\n");
        hear(&script, &out);
        CHECK_INT(out.result, -1);
        CHECK_INT(error_kind(&out.err), kinds[i].heard);
        CHECK_INT(out.err.sys, 0);
        CHECK_STR(out.err.noun, "archive");
        CHECK_STR(out.err.text, "bad?[31m?");
    }
}

/* Its first words decide: a file with a script cannot be its archive too, so it is killed instead of heard. */
TEST(a_packer_that_goes_without_a_word_is_an_error)
{
    struct archive_task task = liar_task();
    struct error err = {0};
    uint64_t size = 77;
    autobuffer none = {0};
    autofd archive = file_of(&none);
    autoptr(packer) packer = packer_new(&task, file_of(&none));
    CHECK(packer_finish(packer, archive, &size, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK_INT(size, 77);
}
