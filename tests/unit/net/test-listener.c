/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listener.h"
#include "net/peer.h"

#include "test.h"

#include <arpa/inet.h>

static void on_accept(void *owner, int fd)
{
    (void)close(fd);
}

static const struct listener_events events = {.on_accept = on_accept};

TEST(an_address_that_is_none_is_refused_with_what_one_looks_like)
{
    static const char *bad[] = {
        "",       "4747",     "localhost:80", "127.0.0.1:",    "127.0.0.1:65536", "[::1]",
        "::1:80", "[::g]:80", "127.0.0.1:-1", "127.0.0.1:80x", "1.2.3:80",        "127.0.0.1: 80"};
    autoptr(loop) loop = NULL;
    struct error err = {0};

    CHECK_OK(loop_new(&loop, &err), err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct listener *listener = NULL;
        if (listener_open_tcp(loop, bad[i], &events, NULL, &listener, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(listener == NULL);
    }
}

TEST(a_port_that_is_taken_is_an_error_that_names_it)
{
    autoptr(loop) loop = NULL;
    struct listener *first = NULL;
    struct listener *second = NULL;
    struct error err = {0};

    CHECK_OK(loop_new(&loop, &err), err);
    CHECK_OK(listener_open_tcp(loop, "127.0.0.1:0", &events, NULL, &first, &err), err);
    CHECK(listener_open_tcp(loop, listener_address(first), &events, NULL, &second, &err) < 0);
    CHECK(strstr(err.text, listener_address(first)) && strstr(err.text, "Address already in use"));
    listener_free(first);
}

TEST(a_peer_is_written_as_people_write_it)
{
    struct peer peer = {.port = 80};
    char text[PEER_TEXT];

    CHECK(inet_pton(AF_INET6, "2001:db8::1", &peer.address) == 1);
    CHECK_STR(peer_format(&peer, text), "[2001:db8::1]:80");
    CHECK(inet_pton(AF_INET6, "::ffff:192.0.2.7", &peer.address) == 1);
    CHECK_STR(peer_format(&peer, text), "192.0.2.7:80");
    peer = (struct peer){.is_local = true, .uid = 5, .pid = 77};
    CHECK_STR(peer_format(&peer, text), "uid 5 pid 77");
}
