/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets over real sockets: messages both ways, limits, and clients that do not behave. */
#include "net/websocket.h"

#include "base/clock.h"
#include "base/mem.h"
#include "test.h"
#include "unit/net/net_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define ASK "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

static const struct websocket_limits usual = {
    .message_bytes = 1 << 20, .text_bytes = 1 << 16, .fragments = 100, .ping_ms = 60000};
static const struct websocket_limits hasty = {
    .message_bytes = 1 << 20, .text_bytes = 1 << 16, .fragments = 100, .ping_ms = 30};

static const struct websocket_limits patient = { // a slow machine answers within that
    .message_bytes = 1 << 20,
    .text_bytes = 1 << 16,
    .fragments = 100,
    .ping_ms = 1000};

/* Sends back what comes. Texts are orders: "hold" and "flood"; "bye" closes it. */
struct echo {
    struct fixture *fixture;
    struct websocket *socket;
    bool is_flooding;
};

static atomic_int opened, ended, holding, full, held_bytes;
static struct echo *last;
static const struct websocket_limits *used_limits;

static const struct websocket_message binary = {
    .opcode = WEBSOCKET_BINARY, .prefix = "\x01", .prefix_length = 1};
static const struct websocket_message text = {.opcode = WEBSOCKET_TEXT};

static bool on_binary(void *data, const char *bytes, size_t length, bool is_first, bool is_last)
{
    struct echo *echo = data;

    (void)is_first;
    (void)is_last;
    if (atomic_load(&holding)) {
        atomic_fetch_add(&held_bytes, (int)length);
        return false;
    }
    (void)websocket_send(echo->socket, &binary, bytes, length);
    return true;
}

static void flood(struct echo *echo)
{
    const struct file_range range = {.fd = echo->fixture->file_fd, .length = FILE_BYTES};

    while (echo->is_flooding) {
        enum response_room room = websocket_send_file(echo->socket, &binary, &range);
        if (room == RESPONSE_FULL)
            atomic_fetch_add(&full, 1);
        if (room != RESPONSE_TAKEN)
            return;
    }
}

static bool on_text(void *data, const char *bytes, size_t length)
{
    struct echo *echo = data;

    if (strcmp(bytes, "bye") == 0)
        websocket_close(echo->socket, WEBSOCKET_GOING_AWAY, "so long");
    else if (strcmp(bytes, "hold") == 0)
        atomic_store(&holding, 1);
    else if (strcmp(bytes, "flood") == 0)
        echo->is_flooding = true;
    else
        (void)websocket_send(echo->socket, &text, bytes, length);
    flood(echo);
    return true;
}

static void on_room(void *data)
{
    flood(data);
}

static void on_end(void *data)
{
    atomic_fetch_add(&ended, 1);
    free(data);
}

static const struct websocket_events echo_events = {
    .on_binary = on_binary, .on_text = on_text, .on_room = on_room, .on_end = on_end};

static void on_socket(struct fixture *fixture, struct response *response)
{
    struct echo *echo = xnew(struct echo);
    static const struct http_header headers[] = {{"Upgrade", "websocket"}, {0}};

    echo->fixture = fixture;
    echo->socket = websocket_open(&(struct websocket_request){.loop = fixture->loop,
                                                              .response = response,
                                                              .headers = headers,
                                                              .limits = used_limits,
                                                              .events = &echo_events,
                                                              .data = echo});
    last = echo;
    atomic_fetch_add(&opened, 1);
    response_free(response);
}

static struct fixture *start(const struct websocket_limits *limits, const struct http_limits *http)
{
    struct fixture *fixture = fixture_new(http);

    fixture->on_socket = on_socket;
    used_limits = limits;
    atomic_store(&opened, 0);
    atomic_store(&ended, 0);
    atomic_store(&holding, 0);
    atomic_store(&full, 0);
    atomic_store(&held_bytes, 0);
    return fixture;
}

/* ---- the client's side ---- */

static void read_exactly(int fd, void *data, size_t length)
{
    size_t at = 0;

    while (at < length) {
        ssize_t got = recv(fd, (char *)data + at, length - at, 0);
        CHECK(got > 0);
        if (got <= 0)
            return;
        at += (size_t)got;
    }
}

static void read_head(int fd, char *head, size_t room)
{
    size_t length = 0;

    head[0] = '\0';
    while (!strstr(head, "\r\n\r\n") && length + 1 < room) {
        read_exactly(fd, head + length, 1);
        head[++length] = '\0';
    }
}

static int open_socket(struct fixture *fixture)
{
    char head[1024];
    int fd = client_connect(fixture);

    client_say(fd, ASK);
    read_head(fd, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 101 Switching Protocols\r\n", 34) == 0);
    return fd;
}

static size_t make_frame(unsigned first, const void *data, size_t length, uint8_t *out)
{
    size_t used = frames_head(first & 0x0f, length, out);

    out[0] = (uint8_t)first;
    out[1] |= 0x80;
    memset(out + used, 0, 4); // a mask that changes nothing
    memcpy(out + used + 4, data, length);
    return used + 4 + length;
}

static void send_frame(int fd, unsigned first, const char *data)
{
    uint8_t frame[1024];

    client_send(fd, frame, make_frame(first, data, strlen(data), frame));
}

struct got {
    unsigned first;
    uint64_t length;
    char data[256]; // its beginning
};

static struct got read_frame(int fd)
{
    struct got got = {0};
    uint8_t head[10] = {0};
    char rest[65536];

    read_exactly(fd, head, 2);
    unsigned bytes = head[1] == 126 ? 2 : head[1] == 127 ? 8 : 0;
    read_exactly(fd, head + 2, bytes);
    got.first = head[0];
    got.length = bytes ? 0 : head[1];
    for (unsigned i = 0; i < bytes; i++)
        got.length = got.length << 8 | head[2 + i];
    size_t shown = got.length < sizeof got.data - 1 ? (size_t)got.length : sizeof got.data - 1;
    read_exactly(fd, got.data, shown);
    for (uint64_t left = got.length - shown; left;) {
        size_t part = left < sizeof rest ? (size_t)left : sizeof rest;
        read_exactly(fd, rest, part);
        left -= part;
    }
    return got;
}

static void check_closed(int fd, unsigned code)
{
    struct got got = read_frame(fd);

    CHECK_INT(got.first, 0x88);
    CHECK_INT((uint8_t)got.data[0] << 8 | (uint8_t)got.data[1], (int)code);
    (void)shutdown(fd, SHUT_WR);
    CHECK(client_is_closed(fd));
}

TEST(a_request_becomes_a_socket_and_messages_go_both_ways)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = client_connect(fixture);
    char head[1024];

    client_say(fd, ASK);
    read_head(fd, head, sizeof head);
    CHECK(strstr(head, "\r\nConnection: Upgrade\r\n"));
    CHECK(strstr(head, "\r\nUpgrade: websocket\r\n"));
    CHECK(!strstr(head, "Content-Length") && !strstr(head, "chunked"));
    send_frame(fd, 0x81, "hello");
    struct got got = read_frame(fd);
    CHECK_INT(got.first, 0x81);
    CHECK_STR(got.data, "hello");
    send_frame(fd, 0x82, "bytes");
    got = read_frame(fd);
    CHECK_INT(got.first, 0x82);
    CHECK_STR(got.data, "\x01"
                        "bytes");
    send_frame(fd, 0x88, "\x03\xe8");
    check_closed(fd, 1000);
    fixture_wait(&ended, 1);
}

TEST(what_came_with_the_request_is_not_lost)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = client_connect(fixture);
    uint8_t all[1024];
    char head[1024];

    size_t used = sizeof ASK - 1;
    memcpy(all, ASK, used);
    used += make_frame(0x81, "early", 5, all + used);
    client_send(fd, all, used);
    read_head(fd, head, sizeof head);
    CHECK_STR(read_frame(fd).data, "early");
}

TEST(a_ping_is_answered_and_a_flood_of_them_costs_no_more_than_what_is_read)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = open_socket(fixture);
    static uint8_t many[7 * 100000];
    size_t used = 0;

    for (int i = 0; i < 100000; i++)
        used += make_frame(0x89, "x", 1, many + used);
    size_t before = memory_kib();
    client_send(fd, many, used);
    send_frame(fd, 0x89, "last");
    for (struct got got = read_frame(fd); strcmp(got.data, "last") != 0; got = read_frame(fd)) {
        CHECK_INT(got.first, 0x8a);
        CHECK_STR(got.data, "x");
    }
    CHECK(memory_kib() < before + 4096);
}

TEST(frames_against_the_rules_end_it_with_a_code)
{
    static const struct {
        const char *bytes;
        size_t length;
        unsigned code;
    } cases[] = {
        {"\x81\x05hello", 7, 1002},
        {"\xf1\x80"
         "abcd",
         6, 1002},
        {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
         "abcd",
         14, 1009},
        {"\x81\x81\0\0\0\0\xff", 7, 1007},
    };
    autoptr(fixture) fixture = start(&usual, NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autofd fd = open_socket(fixture);
        client_send(fd, cases[i].bytes, cases[i].length);
        check_closed(fd, cases[i].code);
    }
    fixture_wait(&ended, ARRAY_SIZE(cases));
}

TEST(the_server_closes_with_its_reason)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = open_socket(fixture);

    send_frame(fd, 0x81, "bye");
    struct got got = read_frame(fd);
    CHECK_INT(got.first, 0x88);
    CHECK_STR(got.data + 2, "so long");
    send_frame(fd, 0x88, "\x03\xe9");
    (void)shutdown(fd, SHUT_WR);
    CHECK(client_is_closed(fd));
    fixture_wait(&ended, 1);
}

static void release(void *data)
{
    (void)data;
    atomic_store(&holding, 0);
    websocket_resume(last->socket);
}

TEST(while_what_came_is_held_the_client_is_not_read_from)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = open_socket(fixture);
    static uint8_t frame[64 << 10];
    static char data[60000];
    size_t total = 0;

    send_frame(fd, 0x81, "hold");
    size_t length = make_frame(0x82, data, sizeof data, frame), at = 0;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    while (poll(&ready, 1, 300) == 1 && total < (64u << 20)) { // until no more is taken
        ssize_t sent = send(fd, frame + at, length - at, MSG_DONTWAIT);
        if (sent > 0) {
            at = (at + (size_t)sent) % length;
            total += (size_t)sent;
        }
    }
    CHECK(total < (64u << 20));
    fixture_wait(&held_bytes, 1);
    CHECK(atomic_load(&held_bytes) <= 16 << 10); // one read
    loop_post(fixture->loop, release, NULL);
    CHECK_INT(read_frame(fd).first, 0x82);
}

TEST(a_client_that_does_not_read_costs_no_memory)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    autofd fd = open_socket(fixture);
    size_t before = memory_kib();

    send_frame(fd, 0x81, "flood");
    fixture_wait(&full, 1);
    CHECK(memory_kib() < before + 4096);
    CHECK_INT(read_frame(fd).length, FILE_BYTES + 1); // and is served on when it reads
    CHECK_INT(read_frame(fd).length, FILE_BYTES + 1);
}

TEST(a_client_that_never_reads_is_given_up)
{
    struct http_limits http = quick_limits();
    http.write_ms = http.stranger_ms = 100;
    autoptr(fixture) fixture = start(&usual, &http);
    autofd fd = open_socket(fixture);

    send_frame(fd, 0x81, "flood");
    fixture_wait(&ended, 1);
}

TEST(a_silent_client_is_pinged_and_stays_as_long_as_it_answers)
{
    autoptr(fixture) fixture = start(&patient, NULL);
    autofd fd = open_socket(fixture);

    for (int i = 0; i < 3; i++) {
        CHECK_INT(read_frame(fd).first, 0x89);
        send_frame(fd, 0x8a, "");
    }
}

/* On the loop: keeps it busy for longer than a client has to answer. */
static void stall(void *data)
{
    uint64_t until_ms = clock_monotonic_ms() + patient.ping_ms + 100;

    atomic_store((atomic_int *)data, 1);
    while (clock_monotonic_ms() < until_ms)
        (void)poll(NULL, 0, 10);
}

TEST(an_answer_that_waits_while_the_loop_is_busy_came_in_time)
{
    autoptr(fixture) fixture = start(&patient, NULL);
    autofd fd = open_socket(fixture);
    atomic_int is_stalled = 0;

    CHECK_INT(read_frame(fd).first, 0x89);
    loop_post(fixture->loop, stall, &is_stalled);
    fixture_wait(&is_stalled, 1);
    send_frame(fd, 0x8a, "");
    CHECK_INT(read_frame(fd).first, 0x89);
}

TEST(a_client_that_answers_no_ping_is_gone)
{
    autoptr(fixture) fixture = start(&hasty, NULL);
    autofd fd = open_socket(fixture);

    fixture_wait(&ended, 1);
    CHECK_INT(read_frame(fd).first, 0x89);
    CHECK(client_is_closed(fd));
}

TEST(a_client_that_goes_without_a_word_ends_it_also_while_it_is_not_read_from)
{
    autoptr(fixture) fixture = start(&usual, NULL);
    int quiet = open_socket(fixture), busy = open_socket(fixture);
    static char data[900];
    uint8_t frame[1024];

    (void)close(quiet);
    fixture_wait(&ended, 1);
    send_frame(busy, 0x81, "hold");
    size_t length = make_frame(0x82, data, sizeof data, frame);
    for (int i = 0; i < 500; i++) // more than is kept for it
        client_send(busy, frame, length);
    fixture_wait(&held_bytes, 1);
    (void)close(busy);
    fixture_wait(&ended, 2);
}
