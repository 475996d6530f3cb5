/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation of burrow-ssh with the server; see sshd.h. */
#include "ssh/sshd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The server reads at once, or has gone. */
static void wait_for_room(void)
{
    struct pollfd control = {.fd = SSHD_CONTROL, .events = POLLOUT};

    (void)poll(&control, 1, -1);
}

void sshd_tell(uint16_t type, uint32_t channel, uint32_t value, const void *payload, size_t length)
{
    const struct ssh_wire_header header = {
        .type = type, .channel = channel, .value = value, .length = (uint32_t)length};

    while (ssh_wire_send(SSHD_CONTROL, &header, payload, NULL, 0) < 0) {
        if (errno != EAGAIN)
            _exit(0);
        wait_for_room();
    }
}

bool sshd_receive(struct sshd *sshd)
{
    int got = ssh_wire_receive(SSHD_CONTROL, sshd->message, MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN))
        _exit(0); // the server has ended, or has no more use for it
    return got > 0;
}

static void handle(struct sshd *sshd, struct ssh_wire_message *message)
{
    struct line *line = line_find(sshd, message->header.channel);

    if (line && line->outward) {
        forward_hear(line, message);
    } else if (line) {
        switch (message->header.type) {
        case SSH_WIRE_STARTED:
            line_start(line, message);
            break;
        case SSH_WIRE_REFUSED:
            line_refuse(line, message->payload);
            break;
        case SSH_WIRE_GREW:
            memcpy(&line->grown, message->payload, sizeof line->grown);
            break;
        case SSH_WIRE_TAKEN:
            line->is_input_under_way = false;
            break;
        case SSH_WIRE_EXITED:
            line_exit(line, (const struct ssh_wire_exit *)(const void *)message->payload);
            break;
        default:
            break;
        }
    }
    ssh_wire_message_clear(message);
}

void sshd_hear(struct sshd *sshd)
{
    while (sshd->waiting) {
        struct waiting *first = sshd->waiting;
        sshd->waiting = first->next;
        handle(sshd, &first->message);
        free(first);
    }
    while (sshd_receive(sshd))
        handle(sshd, sshd->message);
}

void sshd_keep(struct sshd *sshd)
{
    struct waiting **at = &sshd->waiting;
    struct waiting *kept = malloc(sizeof *kept);

    if (!kept)
        _exit(1);
    *kept = (struct waiting){0};
    memcpy(&kept->message, sshd->message, sizeof kept->message);
    while (*at)
        at = &(*at)->next;
    *at = kept;
}

int64_t sshd_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool sshd_await(struct sshd *sshd, uint32_t channel, uint16_t type, uint16_t other, int ms)
{
    struct pollfd control = {.fd = SSHD_CONTROL, .events = POLLIN};
    int64_t until = sshd_now_ms() + ms;

    for (;;) {
        while (sshd_receive(sshd)) {
            const struct ssh_wire_header *header = &sshd->message->header;
            if (header->channel == channel && (header->type == type || header->type == other))
                return true;
            sshd_keep(sshd);
        }
        int64_t left = until - sshd_now_ms();
        if (left <= 0)
            return false;
        (void)poll(&control, 1, (int)left);
    }
}
