/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the kernel's network; see netlink.h. */
#include "engine/netlink.h"

#include "base/mem.h"

#include <endian.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 32768

void messages_clear(struct messages *messages)
{
    free(messages->data);
    *messages = (struct messages){0};
}

/* Zeroed room at the end, a multiple of four bytes. */
static void *add(struct messages *messages, size_t length)
{
    size_t wanted = NLMSG_ALIGN(length);

    if (messages->length + wanted > messages->size) {
        messages->size = (messages->length + wanted) * 2;
        messages->data = xrealloc(messages->data, messages->size, 1);
    }
    char *place = messages->data + messages->length;
    memset(place, 0, wanted);
    messages->length += wanted;
    if (messages->length > messages->begun + sizeof(struct nlmsghdr)) {
        struct nlmsghdr *message = (struct nlmsghdr *)(void *)(messages->data + messages->begun);
        message->nlmsg_len = (uint32_t)(messages->length - messages->begun);
    }
    return place;
}

void message_begin(struct messages *messages, uint16_t type, uint16_t flags, const void *header,
                   size_t length)
{
    messages->begun = messages->length;
    struct nlmsghdr *message = add(messages, sizeof *message);
    message->nlmsg_len = sizeof *message;
    message->nlmsg_type = type;
    message->nlmsg_flags = flags | NLM_F_REQUEST;
    message->nlmsg_seq = ++messages->sequence;
    memcpy(add(messages, length), header, length);
}

void message_put(struct messages *messages, uint16_t attribute, const void *data, size_t length)
{
    struct nlattr *place = add(messages, NLA_HDRLEN + length);
    place->nla_type = attribute;
    place->nla_len = (uint16_t)(NLA_HDRLEN + length);
    if (length > 0)
        memcpy((char *)place + NLA_HDRLEN, data, length);
}

void message_put_u8(struct messages *messages, uint16_t attribute, uint8_t value)
{
    message_put(messages, attribute, &value, sizeof value);
}

void message_put_u32(struct messages *messages, uint16_t attribute, uint32_t value)
{
    message_put(messages, attribute, &value, sizeof value);
}

void message_put_be32(struct messages *messages, uint16_t attribute, uint32_t value)
{
    message_put_u32(messages, attribute, htobe32(value));
}

void message_put_be64(struct messages *messages, uint16_t attribute, uint64_t value)
{
    value = htobe64(value);
    message_put(messages, attribute, &value, sizeof value);
}

void message_put_text(struct messages *messages, uint16_t attribute, const char *text)
{
    message_put(messages, attribute, text, strlen(text) + 1);
}

size_t message_open(struct messages *messages, uint16_t attribute)
{
    size_t at = messages->length;
    message_put(messages, attribute | NLA_F_NESTED, NULL, 0);
    return at;
}

void message_close(struct messages *messages, size_t opened)
{
    struct nlattr *place = (struct nlattr *)(void *)(messages->data + opened);
    place->nla_len = (uint16_t)(messages->length - opened);
}

void attributes_find(const void *data, size_t length, struct attribute *out, unsigned count)
{
    const char *at = data;

    memset(out, 0, count * sizeof *out);
    while (length >= NLA_HDRLEN) {
        struct nlattr attribute;
        memcpy(&attribute, at, sizeof attribute);
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > length)
            return;
        unsigned type = attribute.nla_type & NLA_TYPE_MASK;
        if (type < count)
            out[type] = (struct attribute){at + NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN};
        size_t step = NLA_ALIGN(attribute.nla_len);
        if (step > length)
            return;
        at += step;
        length -= step;
    }
}

uint32_t attribute_u32(const struct attribute *attribute)
{
    uint32_t value = 0;
    if (attribute->data && attribute->length >= sizeof value)
        memcpy(&value, attribute->data, sizeof value);
    return value;
}

uint32_t attribute_be32(const struct attribute *attribute)
{
    return be32toh(attribute_u32(attribute));
}

uint64_t attribute_be64(const struct attribute *attribute)
{
    uint64_t value = 0;
    if (attribute->data && attribute->length >= sizeof value)
        memcpy(&value, attribute->data, sizeof value);
    return be64toh(value);
}

int netlink_socket_in(int ns_fd, int family, int type, int protocol)
{
    if (ns_fd < 0)
        return socket(family, type | SOCK_CLOEXEC, protocol);
    autofd own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(ns_fd, CLONE_NEWNET) < 0)
        return -1;
    int sock = socket(family, type | SOCK_CLOEXEC, protocol);
    int code = errno;
    if (setns(own, CLONE_NEWNET) < 0)
        abort(); // this thread would go on in a network that is not its own
    errno = code;
    return sock;
}

/* One answer: 1 when it was the last, 0 when more come, -1 with *code. */
static int read_one(const struct nlmsghdr *message, uint32_t last, on_message *fn, void *data,
                    int *code)
{
    struct nlmsgerr answer;

    if (message->nlmsg_type == NLMSG_DONE)
        return 1;
    if (message->nlmsg_type != NLMSG_ERROR) {
        if (fn)
            fn(message, data);
        return 0;
    }
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof answer.error)) {
        *code = EPROTO;
        return -1;
    }
    memcpy(&answer.error, NLMSG_DATA(message), sizeof answer.error);
    if (answer.error != 0) {
        *code = -answer.error;
        return -1;
    }
    return message->nlmsg_seq == last;
}

static int read_answers(int sock, uint32_t last, on_message *fn, void *data)
{
    autofree char *buffer = xcalloc(1, ANSWER_BYTES);
    int code = 0;

    for (;;) {
        ssize_t got = recv(sock, buffer, ANSWER_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        size_t left = (size_t)got;
        for (const struct nlmsghdr *at = (const void *)buffer; NLMSG_OK(at, left);
             at = NLMSG_NEXT(at, left)) {
            int state = read_one(at, last, fn, data, &code);
            if (state != 0)
                return state < 0 ? code : 0;
        }
    }
}

int netlink_talk(int sock, struct messages *messages, on_message *fn, void *data)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent = -1;

    do
        sent =
            sendto(sock, messages->data, messages->length, 0, (const void *)&kernel, sizeof kernel);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno;
    return read_answers(sock, messages->sequence, fn, data);
}

int netlink_ask(int ns_fd, int protocol, struct messages *messages, on_message *fn, void *data)
{
    autofd sock = netlink_socket_in(ns_fd, AF_NETLINK, SOCK_RAW, protocol);
    if (sock < 0)
        return errno;
    return netlink_talk(sock, messages, fn, data);
}
