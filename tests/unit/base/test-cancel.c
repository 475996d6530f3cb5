/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cancel.h"

#include "test.h"

#include <pthread.h>
#include <sys/socket.h>

static void *receive(void *data)
{
    char byte;
    return (void *)(intptr_t)recv(*(int *)data, &byte, 1, 0);
}

TEST(a_wait_ends_when_nobody_wants_it_any_more)
{
    autoptr(cancel) cancel = cancel_new();
    int pair[2];
    pthread_t waiting;
    void *got = NULL;

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    cancel_add_socket(cancel, pair[0]);
    CHECK(!cancel_is_set(cancel));
    CHECK(pthread_create(&waiting, NULL, receive, &pair[0]) == 0);
    cancel_set(cancel);
    CHECK(pthread_join(waiting, &got) == 0);
    CHECK(got == NULL); // the end
    CHECK(cancel_is_set(cancel));
    cancel_forget_socket(cancel, pair[0]);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(a_wait_that_begins_afterwards_ends_at_once)
{
    autoptr(cancel) cancel = cancel_new();
    int pair[2];
    char byte;

    cancel_set(cancel);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    cancel_add_socket(cancel, pair[0]);
    CHECK_INT(recv(pair[0], &byte, 1, 0), 0);
    cancel_forget_socket(cancel, pair[0]);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(what_nobody_can_cancel_goes_on)
{
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    cancel_add_socket(NULL, pair[0]);
    CHECK(!cancel_is_set(NULL));
    CHECK(send(pair[0], "x", 1, MSG_NOSIGNAL) == 1);
    cancel_forget_socket(NULL, pair[0]);
    (void)close(pair[0]);
    (void)close(pair[1]);
}
