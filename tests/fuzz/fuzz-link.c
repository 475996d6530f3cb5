/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what both ends of the link to PID 1 do with a message: received over a real socket, then taken apart. */
#include "base/auto.h"
#include "engine/link.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every string of a SPAWN, as PID 1 does. */
static size_t measure(const struct link_spawn_view *view)
{
    size_t sum = strlen(view->user) + strlen(view->directory);
    const char *at = view->argv;
    for (uint32_t i = 0; i < view->spawn->n_argv; i++, at += strlen(at) + 1)
        sum += strlen(at);
    for (uint32_t i = 0; i < view->spawn->n_env; i++, at += strlen(at) + 1)
        sum += strlen(at);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char buffer[LINK_MAX_MESSAGE + sizeof(struct link_header)] __attribute__((aligned(16)));
    struct link_message message;
    struct link_spawn_view view;
    int pair[2];

    if (size == 0 || size > sizeof buffer ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    if (send(pair[0], data, size, 0) == (ssize_t)size &&
        link_receive(pair[1], buffer, sizeof buffer, &message, MSG_DONTWAIT) == 1) {
        if (link_spawn_parse(&message, &view) && measure(&view) > size)
            abort();
        link_message_clear(&message);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    return 0;
}
