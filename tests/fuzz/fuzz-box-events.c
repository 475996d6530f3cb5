/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a PID 1 that tells its engine anything. What the engine takes for an event is one that can be. */
#include "base/auto.h"
#include "base/mem.h"
#include "engine/launch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_exit(const struct process_exit *exit)
{
    check(exit->cause <= CAUSE_BOX_ENDED);
    check(exit->code >= 0 && exit->code <= 255 && exit->signal >= 0 && exit->signal <= 127);
    check(memchr(exit->text, '\0', sizeof exit->text) != NULL);
    for (const char *at = exit->text; *at; at++) // it comes to a terminal
        check((unsigned char)*at >= ' ' && *at != 0x7f);
}

/* Packets of the input, each behind its length in two bytes; some with a file attached. */
static void say_all(int sock, const uint8_t *data, size_t size)
{
    while (size > 2) {
        size_t length = data[0] | (size_t)(data[1] & 0x7f) << 8;
        if (length > size - 2)
            length = size - 2;
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
        struct iovec part = {(void *)(data + 2), length};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        memcpy(CMSG_DATA(&control.header), &sock, sizeof sock);
        if (data[1] & 0x80) {
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
        }
        if (sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return;
        data += 2 + length;
        size -= 2 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct box box = {.control = -1, .slot_fd = -1, .name = "1"};
    struct box_event event = {0};
    struct process_exit exit;
    struct error err = {0};
    int pair[2];

    if (size == 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    autofd own = pair[0], peer = pair[1];
    box.control = own;
    say_all(peer, data + 1, size - 1);
    (void)shutdown(peer, SHUT_WR);
    box.is_one_shot = true; // so that nothing is collected
    if (box_wait(&box, data[0], 0, &exit, &err) == 0) {
        check_exit(&exit);
        check(exit.id == data[0]);
    }
    do {
        event.kind = BOX_EVENT_NONE;
        if (box_next(&box, &event, 0, &err) < 0)
            check(err.text[0]);
        else if (event.kind == BOX_EVENT_EXIT)
            check_exit(&event.exit);
    } while (event.kind == BOX_EVENT_EXIT || event.kind == BOX_EVENT_OUTPUT);
    return 0;
}
