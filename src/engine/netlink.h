/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the kernel's network: written into one buffer, sent at once, answered before the call returns. No library: `burrow`
 * is static, and what is needed of one is little.
 * Threads: one per object; a list of messages and a socket are their caller's.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* Messages on their way. Zero: none. A failed allocation ends the program, so what goes in is bounded by the caller. */
struct messages {
    char *data;
    size_t length, size;
    size_t begun;      // where the last message begins
    uint32_t sequence; // of the last message
};

void messages_clear(struct messages *messages);

/* Begins a message with its fixed header; the one before is whole. Every one is a request. */
void message_begin(struct messages *messages, uint16_t type, uint16_t flags, const void *header,
                   size_t length);
void message_put(struct messages *messages, uint16_t attribute, const void *data, size_t length);
void message_put_u8(struct messages *messages, uint16_t attribute, uint8_t value);
void message_put_u32(struct messages *messages, uint16_t attribute, uint32_t value);
/* In network byte order. */
void message_put_be32(struct messages *messages, uint16_t attribute, uint32_t value);
void message_put_be64(struct messages *messages, uint16_t attribute, uint64_t value);
void message_put_text(struct messages *messages, uint16_t attribute, const char *text);
/* An attribute that holds others, until message_close with what this returned. */
size_t message_open(struct messages *messages, uint16_t attribute);
void message_close(struct messages *messages, size_t opened);

/* An attribute of a message that came. */
struct attribute {
    const void *data; // NULL: it was not there
    size_t length;
};

/* Finds the attributes below `count` in the bytes behind a message's header, or in one that holds others. */
void attributes_find(const void *data, size_t length, struct attribute *out, unsigned count);
uint32_t attribute_u32(const struct attribute *attribute);
uint32_t attribute_be32(const struct attribute *attribute);
uint64_t attribute_be64(const struct attribute *attribute);

typedef void on_message(const struct nlmsghdr *message, void *data);

/* A socket of the network namespace `ns_fd` (-1: the caller's own); -1 with errno. Of any family. */
int netlink_socket_in(int ns_fd, int family, int type, int protocol);

/*
 * Sends all and waits until the last one, which must ask for NLM_F_ACK or NLM_F_DUMP, is answered. 0, or the error number of the
 * first that was refused. `fn` sees what comes before; NULL: nobody.
 */
int netlink_talk(int sock, struct messages *messages, on_message *fn, void *data);

/* Both, in a namespace: an error is told with `doing`. */
int netlink_ask(int ns_fd, int protocol, struct messages *messages, on_message *fn, void *data);

#define automessages __attribute__((cleanup(messages_clear), unused)) struct messages
