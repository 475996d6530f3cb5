/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-ssh: one connection of SSH. It reads what a stranger sends, with libssh, and asks the server for everything that needs a decision; bytes of commands go
 * through descriptors that the server hands it. What its files share.
 * Threads: one thread; the program has no other.
 */
#pragma once
#include "ssh/ssh_wire.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define SSHD_CONTROL 0     // the server's socket
#define SSHD_PIECE 32768   // bytes moved at once
#define SSHD_VARIABLES 32  // of a channel
#define SSHD_TEXT 512      // bytes of one variable
#define SSHD_COMMAND 49152 // bytes of a command

struct sshd;

/* A channel. */
struct line {
    struct line *next;
    struct sshd *sshd;
    uint32_t number; // what the server knows it by
    ssh_channel channel;
    struct ssh_channel_callbacks_struct callbacks;

    bool has_terminal, is_forward;
    bool is_asked, is_started; // the server knows of it; its descriptors are here
    bool has_exit, is_exit_told, is_remote_eof, is_eof_told, is_closed;
    struct ssh_wire_exit exit;
    char kind[64]; // of its terminal
    struct ssh_wire_size size;
    char *variables[SSHD_VARIABLES];
    unsigned n_variables;

    int in_fd;      // what the client sends goes there; -1: nowhere any more
    int out_fds[2]; // from there to the client: output, errors
    int spool_fd;   // of a terminal, what it shows
    uint64_t shown; // of that, so much was sent
    struct ssh_wire_grown grown;
    bool is_input_under_way; // the server has some, and has not said that it was taken

    bool is_kept; // libssh has some from the client that was not taken
    char *held;   // from the client, not taken by in_fd yet
    size_t held_at, held_length;
    char *back; // for the client, not taken by libssh yet
    size_t back_at, back_length;
    bool is_back_error;
};

struct sshd {
    ssh_bind bind;
    ssh_session session;
    ssh_event event;
    struct ssh_server_callbacks_struct callbacks;
    bool is_trusted, is_in, is_over;
    uint32_t tries;
    uint32_t last_number;
    unsigned n_lines;
    struct line *lines;
    struct ssh_wire_message *message; // that is being read
    struct waiting {
        struct waiting *next;
        struct ssh_wire_message message;
    } * waiting; // came while another was waited for
    char piece[SSHD_PIECE];
};

/* sshd_control.c: the conversation with the server. Ends the program where the server has gone. */
void sshd_tell(uint16_t type, uint32_t channel, uint32_t value, const void *payload, size_t length);
/* Handles what has come. */
void sshd_hear(struct sshd *sshd);
/* Waits for one of two messages about a channel, and keeps others for sshd_hear. False: none came in time; else sshd->message has it. */
bool sshd_await(struct sshd *sshd, uint32_t channel, uint16_t type, uint16_t other, int ms);

/* sshd_session.c: logging in, and what clients ask for. */
int sshd_begin(struct sshd *sshd, const struct ssh_wire_message *message, int fd);

/* sshd_line.c: bytes of channels. */
struct line *line_new(struct sshd *sshd);
struct line *line_find(struct sshd *sshd, uint32_t number);
void line_start(struct line *line, struct ssh_wire_message *message);
void line_connect(struct line *line, int fd);
/* It will not be: says why. */
void line_refuse(struct line *line, const char *why);
void line_exit(struct line *line, const struct ssh_wire_exit *exit);
/* What came of the client; how much of it was taken. */
int line_take(struct line *line, const char *data, size_t length);
void line_end_input(struct line *line);
/* Frees those that are over. */
void line_sweep(struct sshd *sshd);
/* Descriptors that it waits for, up to four. */
unsigned line_poll(struct line *line, struct pollfd *out);
/* Moves what can be moved. */
void line_move(struct line *line);
/* True: something can be moved without waiting for a descriptor. */
bool line_is_ready(struct line *line);
