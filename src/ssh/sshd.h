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

#define SSHD_CONTROL 0 // the server's socket
#define SSHD_LISTENERS (SSH_WIRE_LISTENERS + SSH_WIRE_CHANNELS)
#define SSHD_PIECE 32768   // bytes moved at once
#define SSHD_VARIABLES 32  // of a channel
#define SSHD_TEXT 512      // bytes of one variable
#define SSHD_COMMAND 49152 // bytes of a command

struct sshd;
struct outward;

/* A channel. */
struct line {
    struct line *next;
    struct sshd *sshd;
    uint32_t number; // what the server knows it by
    ssh_channel channel;
    struct ssh_channel_callbacks_struct callbacks;

    bool has_terminal, is_forward, wants_agent;
    bool is_answered;            // somebody in the sandbox asked for it
    bool is_opening;             // such a one, and the client has not said yes
    bool is_unwanted;            // to be closed; one that is opening when the client has spoken
    const struct listener *from; // of such a one; NULL: its listener is gone
    bool is_asked, is_started;   // the server knows of it; its descriptors are here
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
    struct outward *outward; // of a forward that leads nowhere yet; else NULL

    bool is_kept; // libssh has some from the client that was not taken
    char *held;   // from the client, not taken by in_fd yet
    size_t held_at, held_length;
    char *back; // for the client, not taken by libssh yet
    size_t back_at, back_length;
    bool is_back_error;
};

/* Somebody in the sandbox may connect here, and the client is asked to answer. */
struct listener {
    struct listener *next;
    uint32_t number; // what the server knows it by; of an agent's, that of its session
    char *address;   // as the client asked for it; NULL: of an agent
    uint16_t port;
    int fd;    // -1: nobody can come by it any more
    int leash; // of an agent's; its file goes when this is closed
};

struct sshd {
    ssh_bind bind;
    ssh_session session;
    ssh_event event;
    struct ssh_server_callbacks_struct callbacks;
    bool is_trusted, is_in, is_over;
    uint32_t tries, allows;
    struct listener *listeners;
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
/* Whether a message has come, which is in sshd->message then. */
bool sshd_receive(struct sshd *sshd);
/* Keeps that message for sshd_hear. */
void sshd_keep(struct sshd *sshd);
int64_t sshd_now_ms(void);
/* Waits for one of two messages about a channel, and keeps others for sshd_hear. False: none came in time; else sshd->message has it. */
bool sshd_await(struct sshd *sshd, uint32_t channel, uint16_t type, uint16_t other, int ms);

/* sshd_socket.c: reads more of this descriptor than libssh asks for, and keeps it for libssh. */
void sshd_read_ahead(int fd);
/* Whether libssh has some to read that no poll of the kernel's tells of. */
bool sshd_has_ahead(void);

/* sshd_session.c: logging in, and what clients ask for. */
int sshd_begin(struct sshd *sshd, const struct ssh_wire_message *message, int fd);
/* What a channel's client may ask for on it. */
void line_set_callbacks(struct line *line);
/* Why something was refused, for who asks (ssh -v): the refusals of libssh have no words. */
void sshd_explain(struct sshd *sshd, const char *why);

/* sshd_forward.c: where forwards lead to. */
/* A forward was asked for; 1: it is refused, and the client was told why. */
int forward_ask(struct sshd *sshd, ssh_message message);
/* What the server says about one that leads nowhere yet. */
void forward_hear(struct line *line, struct ssh_wire_message *message);
/* Goes on with it as far as it can. */
void forward_move(struct line *line);
/* What it waits for, one at most; *until_ms becomes less where it waits for a time before that. */
unsigned forward_poll(const struct line *line, struct pollfd *out, int64_t *until_ms);
void forward_free(struct line *line);

/* sshd_listen.c: what others in the sandbox may ask the client for. */
/* A global request of the client's; 1: it is refused. */
int listen_ask(struct sshd *sshd, ssh_message message);
/* The agent of a session; takes the descriptors. */
void listen_agent(struct line *session, int fd, int leash);
/* Those of a session that has ended, and whoever came by them. */
void listen_end(struct sshd *sshd, uint32_t number);
/* Descriptors to wait for, SSHD_LISTENERS at most: none while there is no room for who would come. */
unsigned listen_poll(const struct sshd *sshd, struct pollfd *out);
/* After poll, before anything else: closes those that do not listen, as whoever in the sandbox holds an agent's too can bring about. poll would tell of them for ever. */
void listen_end_broken(struct sshd *sshd, const struct pollfd *fds, unsigned count);
void listen_accept(struct sshd *sshd);
/* Goes on with one that the client has to say yes to. */
void listen_move(struct line *line);

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
