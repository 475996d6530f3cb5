/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a burrow-ssh that tells the server anything. What is taken for a message is one that can be, and all that it points to is in it. */
#include "ssh/ssh_wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_start(const struct ssh_wire_message *message)
{
    const char *strings[SSH_WIRE_STRINGS + 1];
    const char *end = message->payload + message->header.length;
    size_t count = 0;

    ssh_wire_strings(message, strings);
    for (; strings[count]; count++) {
        check(strings[count] >= message->payload && strings[count] < end);
        check(strings[count] + strlen(strings[count]) < end);
    }
    check(count >= 2 && count <= SSH_WIRE_STRINGS);
}

static void check_message(const struct ssh_wire_message *message)
{
    struct ssh_wire_login login;

    check(message->header.type > 0 && message->header.type < SSH_WIRE_TYPES);
    check(message->header.length <= SSH_WIRE_PAYLOAD && message->n_fds <= SSH_WIRE_FDS);
    check(message->payload[message->header.length] == '\0');
    if (message->header.type == SSH_WIRE_START)
        check_start(message);
    if (message->header.type == SSH_WIRE_LOGIN) {
        memcpy(&login, message->payload, sizeof login);
        check(memchr(login.user, '\0', sizeof login.user) != NULL);
    }
    if (message->header.type == SSH_WIRE_CONNECT)
        check(strlen(message->payload) == message->header.length);
}

/* Packets of the input, each behind its length in two bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ssh_wire_message message;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    for (size_t at = 0; at + 2 <= size;) {
        size_t length = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        if (length > size - at)
            length = size - at;
        if (send(pair[0], data + at, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
        at += length;
        if (ssh_wire_receive(pair[1], &message, MSG_DONTWAIT) > 0) {
            check_message(&message);
            ssh_wire_message_clear(&message);
        }
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    return 0;
}
