/* SPDX-License-Identifier: Apache-2.0 */
/* The asking end of file conversations against a PID 1 that lies. */
#include "base/auto.h"
#include "engine/files.h"
#include "test.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The answer is put into the socket before anything is asked: no second thread is needed. */
struct liar {
    int conv, peer;
};

static struct liar liar_make(void)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    return (struct liar){pair[0], pair[1]};
}

static void liar_clear(struct liar *liar)
{
    closep(&liar->conv);
    closep(&liar->peer);
}
#define autoliar __attribute__((cleanup(liar_clear))) struct liar

static void say(struct liar *liar, uint16_t type, const void *data, size_t length)
{
    struct iovec part = {(void *)data, length};
    CHECK(files_frame_send(liar->peer, type, 0, &part, 1) == 0);
}

static void say_item(struct liar *liar, struct files_item item)
{
    static uint8_t room[FILES_MAX_FRAME];
    say(liar, FILES_ITEM, room, files_item_write(&item, room));
}

static void say_end(struct liar *liar)
{
    struct files_total total = {0};
    say(liar, FILES_END, &total, sizeof total);
}

static int take_item(void *data, const struct files_item *item, struct error *err)
{
    ++*(int *)data;
    return 0;
}

static int take_data(void *data, const void *bytes, size_t length, struct error *err)
{
    return 0;
}

#define NONSENSE "the sandbox sent an answer about files that makes no sense"

/* The record whole, with as much of its bytes as there is. */
static void say_record(struct liar *liar, struct files_item item, const void *content,
                       size_t length)
{
    static uint8_t room[FILES_MAX_FRAME];
    size_t size = files_item_write(&item, room);
    memcpy(room + size, content, length);
    say(liar, FILES_RECORDS, room, size + length);
}

/* An EXPORT answered with this one record is refused before the callback sees it, in either form. */
static void check_record_refused_as(struct files_item item, bool is_whole)
{
    autoliar liar = liar_make();
    struct error err = {0};
    int items = 0;
    if (!item.target)
        item.target = "";
    static const char bytes[2000];
    if (is_whole)
        say_record(&liar, item, bytes, item.size < sizeof bytes ? item.size : 0);
    else
        say_item(&liar, item);
    say_end(&liar);
    CHECK(files_export(liar.conv, "/", 1000, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    CHECK_INT(items, 0);
    // and nothing can be asked afterwards
    CHECK(files_stat(liar.conv, "/", true, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
}

static void check_record_refused(struct files_item item)
{
    check_record_refused_as(item, false);
    check_record_refused_as(item, true);
}

TEST(records_that_would_mislead_who_unpacks_them_are_refused)
{
    static const char *const paths[] = {"../x", "/x", "a/../x", ".", "", "a//b", "a/", "..", "./a"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        check_record_refused((struct files_item){.path = paths[i], .mode = S_IFREG});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFCHR});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFBLK});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFIFO});
    check_record_refused((struct files_item){.path = "a", .mode = 0});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFREG, .size = 1001});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFREG, .size = UINT64_MAX});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFDIR, .size = 1});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFREG, .target = "b"});
    check_record_refused((struct files_item){.path = "a", .mode = S_IFLNK, .target = ""});
    check_record_refused(
        (struct files_item){.path = "a", .mode = S_IFREG, .target = "b", .is_hard_link = true});
}

TEST(more_bytes_than_asked_for_are_refused)
{
    autoliar liar = liar_make();
    struct error err = {0};
    say_item(&liar, (struct files_item){.path = "", .target = ""});
    say(&liar, FILES_DATA, "12345678", 8);
    say_end(&liar);
    CHECK(files_read(liar.conv, "x", 0, 7, NULL, take_data, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
}

TEST(more_entries_than_asked_for_are_refused)
{
    autoliar liar = liar_make();
    struct error err = {0};
    int items = 0;
    for (int i = 0; i < 3; i++)
        say_item(&liar, (struct files_item){.path = "a", .target = ""});
    say_end(&liar);
    CHECK(files_list(liar.conv, "x", false, 2, take_item, &items, NULL, &err) < 0);
    CHECK_INT(items, 2);
}

TEST(an_export_whose_data_is_short_is_refused)
{
    autoliar liar = liar_make();
    struct error err = {0};
    int items = 0;
    say_item(&liar, (struct files_item){.path = "a", .target = "", .mode = S_IFREG, .size = 9});
    say(&liar, FILES_DATA, "12345678", 8);
    say_end(&liar);
    CHECK(files_export(liar.conv, "x", 99, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
}

TEST(whole_records_whose_bytes_are_short_or_too_many_are_refused)
{
    const struct files_item item = {.path = "a", .target = "", .mode = S_IFREG, .size = 8};
    struct error err = {0};
    int items = 0;
    autoliar short_one = liar_make();
    say_record(&short_one, item, "1234567", 7);
    say_end(&short_one);
    CHECK(files_export(short_one.conv, "x", 99, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    CHECK_INT(items, 0);

    autoliar long_one = liar_make(); // what stands behind the bytes is no record
    say_record(&long_one, item, "123456789", 9);
    say_end(&long_one);
    CHECK(files_export(long_one.conv, "x", 99, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);

    autoliar many = liar_make(); // each may come, both may not
    say_record(&many, item, "12345678", 8);
    say_record(&many, item, "12345678", 8);
    say_end(&many);
    items = 0;
    CHECK(files_export(many.conv, "x", 15, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    CHECK_INT(items, 1);
}

TEST(whole_records_between_the_bytes_of_another_are_refused)
{
    autoliar liar = liar_make();
    struct error err = {0};
    int items = 0;
    say_item(&liar, (struct files_item){.path = "a", .target = "", .mode = S_IFREG, .size = 9});
    say_record(&liar, (struct files_item){.path = "b", .target = "", .mode = S_IFREG}, "", 0);
    say_end(&liar);
    CHECK(files_export(liar.conv, "x", 99, take_item, take_data, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    CHECK_INT(items, 1);
}

TEST(frames_with_nothing_in_them_are_refused)
{
    static const uint16_t types[] = {FILES_ITEM, FILES_RECORDS, FILES_DATA};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        autoliar liar = liar_make();
        struct error err = {0};
        say(&liar, types[i], "", 0);
        say_end(&liar);
        CHECK(files_export(liar.conv, "x", 99, take_item, take_data, &(int){0}, NULL, &err) < 0);
        CHECK_STR(err.text, NONSENSE);
    }
}

TEST(whole_records_are_no_answer_to_a_listing)
{
    autoliar liar = liar_make();
    struct error err = {0};
    int items = 0;
    say_record(&liar, (struct files_item){.path = "a", .target = "", .mode = S_IFREG}, "", 0);
    say_end(&liar);
    CHECK(files_list(liar.conv, "x", false, 9, take_item, &items, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    CHECK_INT(items, 0);
}

TEST(answers_that_do_not_belong_to_the_question_are_refused)
{
    struct error err = {0};
    static const uint16_t types[] = {FILES_DATA, FILES_ITEM, FILES_READ, FILES_COMMIT, FILES_ERROR};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        autoliar liar = liar_make();
        say(&liar, types[i], "123", 3);
        CHECK(files_mkdir(liar.conv, "x", 0700, 0, &err) < 0);
        CHECK_STR(err.text, NONSENSE);
    }
    autoliar short_end = liar_make();
    say(&short_end, FILES_END, "123", 3);
    CHECK(files_mkdir(short_end.conv, "x", 0700, 0, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
    autoliar no_item = liar_make();
    say_end(&no_item);
    CHECK(files_stat(no_item.conv, "x", true, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
}

TEST(packets_that_are_no_frames_are_refused)
{
    struct error err = {0};
    struct files_header wrong = {.type = FILES_END, .length = 1};
    autoliar liar = liar_make();
    CHECK(send(liar.peer, &wrong, sizeof wrong, 0) > 0);
    CHECK(files_mkdir(liar.conv, "x", 0700, 0, &err) < 0);
    CHECK_STR(err.text, NONSENSE);

    autoliar large = liar_make();
    static uint8_t bytes[FILES_MAX_FRAME + 1];
    struct files_header header = {.type = FILES_DATA, .length = sizeof bytes - sizeof header};
    memcpy(bytes, &header, sizeof header);
    CHECK(send(large.peer, bytes, sizeof bytes, 0) > 0);
    CHECK(files_read(large.conv, "x", 0, UINT64_MAX, NULL, take_data, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, NONSENSE);
}

TEST(an_errors_sentence_is_bounded_and_made_printable)
{
    autoliar liar = liar_make();
    struct error err = {0};
    struct {
        struct files_failure failure;
        char text[FILES_MAX_TEXT];
    } answer = {.failure = {.sys = 1 << 20, .kind = 99}};
    memset(answer.text, '\033', sizeof answer.text - 1);
    say(&liar, FILES_ERROR, &answer, sizeof answer);
    CHECK(files_mkdir(liar.conv, "x", 0700, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_SYSTEM);
    CHECK_INT(err.sys, 0);
    CHECK_INT(strspn(err.text, "?"), sizeof err.text - 1);
}

static int count_fds(void)
{
    autodir dir = opendir("/proc/self/fd");
    int count = 0;
    CHECK(dir != NULL);
    while (readdir(dir))
        count++;
    return count;
}

TEST(fds_attached_to_an_answer_are_not_taken)
{
    autoliar liar = liar_make();
    struct error err = {0};
    struct {
        struct files_header header;
        struct files_total total;
    } answer = {.header = {.type = FILES_END, .length = sizeof answer.total}};
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {&answer, sizeof answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &(int){0}, sizeof(int));
    int before = count_fds();
    CHECK(sendmsg(liar.peer, &message, 0) > 0);
    CHECK_OK(files_mkdir(liar.conv, "x", 0700, 0, &err), err);
    CHECK_INT(count_fds(), before);
}

TEST(a_silent_box_is_waited_for_only_as_long_as_said)
{
    autoliar liar = liar_make();
    struct error err = {0};
    CHECK_OK(files_set_timeout(liar.conv, 20, &err), err);
    CHECK(files_mkdir(liar.conv, "x", 0700, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_TIMEOUT);
    CHECK_STR(err.text, "the sandbox took too long to answer about files");
}

TEST(a_box_that_ended_is_said_to_be_gone)
{
    autoliar liar = liar_make();
    struct error err = {0};
    closep(&liar.peer);
    CHECK(files_mkdir(liar.conv, "x", 0700, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    CHECK(files_write_buffer(liar.conv, "x", 0700, 0, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
}

static int stop_at_once(void *data, const struct files_item *item, struct error *err)
{
    return error_set(err, ERROR_LIMIT, "enough");
}

TEST(a_callback_that_stops_ends_the_conversation)
{
    autoliar liar = liar_make();
    struct error err = {0};
    say_item(&liar, (struct files_item){.path = "a", .target = ""});
    say_end(&liar);
    CHECK(files_list(liar.conv, "x", false, 9, stop_at_once, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, "enough");
    CHECK(files_stat(liar.conv, "x", false, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
}
