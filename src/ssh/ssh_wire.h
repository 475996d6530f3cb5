/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server and burrow-ssh say to each other, one message at a time over a socket that keeps them apart, with descriptors sent along. burrow-ssh reads what
 * strangers send and may be theirs: the server believes nothing of it but what a stranger may ask for.
 * Threads: one per object; the socket in each direction.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SSH_WIRE_PAYLOAD 65536 // bytes, at most
#define SSH_WIRE_FDS 5
#define SSH_WIRE_INPUT 32768 // of input in one message
#define SSH_WIRE_CHANNELS 32 // of a connection that are open at once
#define SSH_WIRE_LISTENERS 8 // of a connection: what the client asked to be listened on
#define SSH_WIRE_USER 128    // bytes of a user's name
#define SSH_WIRE_HASH 32     // SHA-256 of a public key
#define SSH_WIRE_STRINGS 64  // in a SSH_WIRE_START: the kind of terminal, the command, variables

enum ssh_wire_type {
    // from the server
    SSH_WIRE_BEGIN = 1, // struct ssh_wire_begin and the host keys; the connection is attached
    SSH_WIRE_ANSWER,    // to SSH_WIRE_LOGIN: value is 1 where it is let in
    SSH_WIRE_STARTED, // its input, output and errors are attached; of a terminal, its spool. value is 1: behind them the agent's listener and leash
    SSH_WIRE_REFUSED, // a sentence; of SSH_WIRE_START, SSH_WIRE_CONNECT and SSH_WIRE_LISTEN
    SSH_WIRE_GREW,    // struct ssh_wire_grown: what a terminal has shown
    SSH_WIRE_TAKEN,   // of a terminal's input, all that was sent
    SSH_WIRE_EXITED,  // struct ssh_wire_exit
    SSH_WIRE_CONNECTED, // a socket is attached, connected or about to be
    SSH_WIRE_RESOLVER, // to SSH_WIRE_CONNECT with a name: a socket to who answers for names is attached
    SSH_WIRE_LISTENING, // value is the port; the listener is attached
    // from burrow-ssh
    SSH_WIRE_READY, // it has no rights any more
    SSH_WIRE_LOGIN, // struct ssh_wire_login
    SSH_WIRE_START, // struct ssh_wire_start and strings
    SSH_WIRE_INPUT_IS,
    SSH_WIRE_INPUT_ENDS,
    SSH_WIRE_RESIZE,  // struct ssh_wire_size
    SSH_WIRE_SIGNAL,  // value is its number
    SSH_WIRE_CONNECT, // value is the port; the payload is the host: an address, or a name
    SSH_WIRE_LISTEN,  // value is a port of the sandbox, 0: any
    SSH_WIRE_CLOSE,   // nobody is interested in the channel any more
    SSH_WIRE_TYPES
};

/* Channels are numbered by burrow-ssh from 1 on; no number is used twice in a connection. */
struct ssh_wire_header {
    uint16_t type;
    uint16_t pad;
    uint32_t channel; // 0: about the connection
    uint32_t value;
    uint32_t length; // of the payload
};

/* What the operator lets clients ask for. */
enum { SSH_WIRE_ALLOWS_LISTEN = 1, SSH_WIRE_ALLOWS_AGENT = 2 };

struct ssh_wire_begin {
    uint32_t is_trusted; // who connects has shown an API key: the method "none" will do
    uint32_t tries;      // how often it may fail to log in
    uint32_t allows;     // of SSH_WIRE_ALLOWS_…
    uint32_t keys[2];    // lengths of the host keys behind this, as PEM: Ed25519, ECDSA
};

struct ssh_wire_login {
    char user[SSH_WIRE_USER];     // ends with NUL
    uint8_t hash[SSH_WIRE_HASH];  // of the public key
    uint32_t is_signed, has_none; // has shown that it has the private key; without any
};

enum ssh_wire_program { SSH_WIRE_SHELL, SSH_WIRE_COMMAND, SSH_WIRE_SFTP, SSH_WIRE_PROGRAMS };

/* Followed by strings with a NUL behind each: the kind of terminal, the command, variables as NAME=VALUE. */
struct ssh_wire_start {
    uint32_t program; // enum ssh_wire_program
    uint32_t has_terminal, has_agent;
    uint16_t rows, cols;
    uint32_t n_strings;
};

struct ssh_wire_size {
    uint16_t rows, cols;
};

struct ssh_wire_grown {
    uint64_t first, size; // bytes before `first` are gone
    uint32_t is_complete, pad;
};

struct ssh_wire_exit {
    int32_t code, signal;
    char text[200]; // where it could not be run; ends with NUL
};

struct ssh_wire_message {
    struct ssh_wire_header header;
    char payload[SSH_WIRE_PAYLOAD + 1]; // a NUL follows
    int fds[SSH_WIRE_FDS];              // -1: none, or taken
    unsigned n_fds;
};

/* 0, or -1 with errno: EAGAIN where the other side does not read. */
int ssh_wire_send(int sock, const struct ssh_wire_header *header, const void *payload,
                  const int *fds, unsigned n_fds);

/* 1: a message; 0: the other side has gone; -1 with errno: EAGAIN, or EPROTO for what is none. Its descriptors are the message's. */
int ssh_wire_receive(int sock, struct ssh_wire_message *out, int flags);
void ssh_wire_message_clear(struct ssh_wire_message *message);
/* Takes a descriptor out of it. */
int ssh_wire_take(struct ssh_wire_message *message, unsigned index);

/* Whether header and payload fit each other: what `length` bytes there are of its type. */
bool ssh_wire_check(const struct ssh_wire_header *header, const void *payload);

/* The strings of a SSH_WIRE_START that was checked, ended by NULL. */
void ssh_wire_strings(const struct ssh_wire_message *message,
                      const char *out[SSH_WIRE_STRINGS + 1]);
