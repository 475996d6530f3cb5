/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/engine/link.c over real sockets. */
#include "engine/link.h"

#include "base/auto.h"
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static char buffer[LINK_MAX_MESSAGE + sizeof(struct link_header)] __attribute__((aligned(16)));

static void make_pair(int pair[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
}

TEST(a_message_arrives_with_its_payload_and_its_files)
{
    int pair[2];
    struct link_message message;
    const char payload[] = "hello";
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];

    int fds[2] = {left, right};
    CHECK(link_send(left, LINK_FILES, 0, 7, payload, sizeof payload, fds, 2) == 0);
    CHECK_INT(link_receive(right, buffer, sizeof buffer, &message, 0), 1);
    CHECK_INT(message.header.type, LINK_FILES);
    CHECK_INT(message.header.process, 7);
    CHECK_STR(message.payload, "hello");
    CHECK_INT(message.n_fds, 2);
    CHECK(fcntl(message.fds[0], F_GETFD) & FD_CLOEXEC);
    int kept = message.fds[1];
    message.fds[1] = -1;
    link_message_clear(&message);
    CHECK(fcntl(kept, F_GETFD) >= 0);
    (void)close(kept);
}

TEST(a_large_payload_travels_in_sealed_memory)
{
    int pair[2];
    struct link_message message;
    size_t size = 3u << 20;
    autofree char *payload = malloc(size);
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];

    for (size_t i = 0; i < size; i++)
        payload[i] = (char)(i * 31);
    int fds[1] = {left};
    CHECK(link_send(left, LINK_FILES, 0, 1, payload, (uint32_t)size, fds, 1) == 0);
    CHECK_INT(link_receive(right, buffer, sizeof buffer, &message, 0), 1);
    CHECK_INT(message.header.length, size);
    CHECK_INT(message.n_fds, 1);
    CHECK(memcmp(message.payload, payload, size) == 0);
    link_message_clear(&message);
}

TEST(more_than_the_maximum_is_refused_before_it_is_sent)
{
    int pair[2];
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];
    CHECK(link_send(left, LINK_FILES, 0, 1, "", LINK_MAX_PAYLOAD + 1, NULL, 0) < 0);
    CHECK_INT(errno, E2BIG);
}

TEST(memory_that_is_not_sealed_is_refused_and_its_files_closed)
{
    int pair[2];
    struct link_message message;
    struct link_header header = {.type = LINK_FILES, .flags = LINK_IN_MEMFD, .length = 4096};
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];
    autofd memory = memfd_create("open", MFD_CLOEXEC);
    CHECK(ftruncate(memory, 4096) == 0);

    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {&header, sizeof header};
    struct msghdr raw = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&raw);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(cmsg), &memory, sizeof memory);
    CHECK(sendmsg(left, &raw, 0) == sizeof header);

    int next = dup(0);
    (void)close(next);
    CHECK(link_receive(right, buffer, sizeof buffer, &message, 0) < 0);
    CHECK_INT(errno, EPROTO);
    int after = dup(0);
    CHECK_INT(after, next);
    (void)close(after);
}

TEST(a_receiver_without_room_for_files_knows_what_it_was_about)
{
    int pair[2];
    struct link_message message;
    struct rlimit before, none;
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];
    const int fds[] = {0, 1};

    CHECK(link_send(left, LINK_SPAWN, 0, 77, "x", 1, fds, 2) == 0);
    int next = dup(0);
    (void)close(next);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){(rlim_t)next + 1, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int got = link_receive(right, buffer, sizeof buffer, &message, 0);
    int code = errno;
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_INT(got, -1);
    CHECK_INT(code, EMFILE);
    CHECK_INT(message.header.type, LINK_SPAWN);
    CHECK_INT(message.header.process, 77);
    CHECK_INT(message.n_fds, 0);
    int after = dup(0);
    CHECK_INT(after, next); // the one there was room for was closed
    (void)close(after);
}

static void send_raw(int sock, struct link_header header, const void *payload, size_t length)
{
    char raw[512];
    memcpy(raw, &header, sizeof header);
    memcpy(raw + sizeof header, payload, length);
    CHECK(send(sock, raw, sizeof header + length, 0) == (ssize_t)(sizeof header + length));
}

TEST(lengths_and_types_that_lie_are_refused)
{
    static const struct link_header lies[] = {
        {.type = 0, .length = 4},
        {.type = LINK_TYPES, .length = 4},
        {.type = 0xffff, .length = 4},
        {.type = LINK_SIGNAL, .length = 5},
        {.type = LINK_SIGNAL, .length = 0xffffffff},
        {.type = LINK_SIGNAL, .flags = LINK_IN_MEMFD, .length = 4},
    };
    int pair[2];
    struct link_message message;
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        send_raw(left, lies[i], "abcd", 4);
        CHECK(link_receive(right, buffer, sizeof buffer, &message, 0) < 0);
        CHECK_INT(errno, EPROTO);
    }
}

static bool parse(const struct link_spawn *spawn, const char *strings, size_t length)
{
    char raw[256] __attribute__((aligned(16)));
    struct link_message message = {.header = {.type = LINK_SPAWN}, .payload = raw};
    struct link_spawn_view view;

    memcpy(raw, spawn, sizeof *spawn);
    memcpy(raw + sizeof *spawn, strings, length);
    message.header.length = (uint32_t)(sizeof *spawn + length);
    return link_spawn_parse(&message, &view);
}

TEST(a_spawn_is_taken_apart_only_when_every_string_ends_where_it_should)
{
    static const char strings[] = "user\0/cwd\0a\0b\0K=V"; // the last NUL is the literal's own
    struct link_spawn spawn = {.n_argv = 2, .n_env = 1, .strings = sizeof strings};

    CHECK(parse(&spawn, strings, sizeof strings));
    CHECK(!parse(&spawn, strings, sizeof strings - 1));
    spawn.strings = sizeof strings - 1;
    CHECK(!parse(&spawn, strings, sizeof strings - 1));
    spawn = (struct link_spawn){.n_argv = 2, .n_env = 2, .strings = sizeof strings};
    CHECK(!parse(&spawn, strings, sizeof strings));
    spawn = (struct link_spawn){.n_argv = 0xffffffff, .n_env = 1, .strings = sizeof strings};
    CHECK(!parse(&spawn, strings, sizeof strings));
    spawn = (struct link_spawn){.n_argv = 0, .n_env = 3, .strings = sizeof strings};
    CHECK(!parse(&spawn, strings, sizeof strings));
    spawn = (struct link_spawn){.n_argv = 2, .n_env = 1, .strings = sizeof strings, .fds = 1};
    CHECK(!parse(&spawn, strings, sizeof strings));
}

TEST(the_end_of_the_other_side_is_an_end_and_not_an_error)
{
    int pair[2];
    struct link_message message;
    make_pair(pair);
    autofd right = pair[1];
    (void)close(pair[0]);
    CHECK_INT(link_receive(right, buffer, sizeof buffer, &message, 0), 0);
    CHECK(link_send(right, LINK_HELLO, 0, 0, NULL, 0, NULL, 0) < 0);
    CHECK_INT(errno, EPIPE);
}

TEST(what_a_dead_peer_sent_is_received_though_it_read_nothing)
{
    int pair[2];
    struct link_message message;
    make_pair(pair);
    autofd left = pair[0];
    autofd right = pair[1];

    for (uint32_t i = 1; i <= 3; i++)
        CHECK(link_send(left, LINK_COLLECT, 0, i, NULL, 0, NULL, 0) == 0);
    CHECK(link_send(right, LINK_COLLECT, 0, 9, NULL, 0, NULL, 0) == 0);
    closep(&left);
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK_INT(link_receive(right, buffer, sizeof buffer, &message, 0), 1);
        CHECK_INT(message.header.process, i);
        link_message_clear(&message);
    }
    CHECK_INT(link_receive(right, buffer, sizeof buffer, &message, 0), 0);
}
