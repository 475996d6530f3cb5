/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the SSH server share. Everything here is the loop's, but for what an errand has while a worker has it.
 * Threads: the loop.
 */
#pragma once
#include "base/id.h"
#include "base/id_table.h"
#include "core/core.h"
#include "core/execution/execution.h"
#include "core/port/port.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/listener.h"
#include "net/peer.h"
#include "ssh/ssh_server.h"
#include "ssh/ssh_wire.h"

#include <pthread.h>
#include <stdatomic.h>

#define SSH_SPARES 2 // processes that wait for a connection
#define SSH_AGENT_PATH 108

#define SSH_TOO_MUCH "the server has too much to do; try again"

struct ssh_agent;
struct stream;

/* A burrow-ssh. */
struct ssh_process {
    struct ssh_server *server;
    struct ssh_process *next, **place; // of all that live
    struct ssh_connection *connection; // NULL: a spare, or its connection has ended
    pid_t pid;
    int pidfd, control;
    struct loop_watch *watch;
    bool is_spare, is_killed;
};

/* A channel that burrow-ssh told of. Counted: those who announce changes may be about to post. */
struct ssh_channel {
    _Atomic unsigned refs;
    atomic_bool is_posted;
    struct loop *loop;
    struct ssh_connection *connection; // NULL: it is closed
    struct ssh_channel *next;
    uint32_t number;
    bool is_terminal, is_listener, is_started, is_exit_told;
    bool is_asking; // a worker looks at its execution, or writes its input
    char execution_id[ID_TEXT];
    struct watch *watch, *stream_watch;
    struct stream *stream; // of a terminal
    struct ssh_wire_grown told;
    struct ssh_agent *agent; // that its session waits for; else NULL
    char *input;             // of a terminal, on its way
    size_t input_at, input_length;
};

struct ssh_connection {
    _Atomic unsigned refs;
    atomic_bool is_posted;
    struct ssh_server *server;
    struct ssh_connection *next, **place; // NULL place: it has ended
    struct ssh_process *process;          // NULL: not yet, or no longer
    struct loop_watch *watch;             // of the control socket
    int fd;                               // the client's, until burrow-ssh has it
    uint64_t since_ms;
    struct peer peer;
    char peer_text[PEER_TEXT];
    bool is_tunnel, is_in, is_behind;
    bool is_asking; // a worker looks whether it may log in
    bool is_paced;  // others of its address came just before: it waits for a process
    uint32_t failures;
    struct actor actor;
    char sandbox_id[ID_TEXT];
    char fingerprint[SSH_HOST_KEY_FINGERPRINT];
    struct loop_timer grace, answer;
    struct watch *sandbox_watch;
    struct ssh_channel *channels;
    unsigned n_channels;
    uint32_t last_number;
};

/* What one address has left. */
struct ssh_pace {
    uint64_t group, since_ms;
    double left;
};
#define SSH_PACES 256

struct ssh_server {
    struct ssh_settings settings;
    struct ssh_host_key keys[SSH_HOST_KEYS];
    char program[4096];
    struct loop *loop;
    struct workers *workers;
    pthread_t thread;
    bool is_started, is_stopping;
    struct listener *listeners[SSH_ADDRESSES];
    size_t n_listeners;
    struct ssh_connection *connections;
    size_t n_connections;
    struct ssh_process *processes;
    size_t n_spares, n_spares_coming;
    struct watch *keys_watch;
    atomic_bool is_keys_posted;
    struct loop_timer touch;
    struct loop_timer pace; // set while somebody waits by ssh_pace.c
    struct ssh_pace paces[SSH_PACES];
    uint64_t pace_secret;
    struct ssh_wire_message *message; // that is being read
};

/* Work that may wait, for one connection. */
struct ssh_errand {
    struct ssh_server *server;
    struct ssh_connection *connection;       // a reference; NULL: of none
    uint32_t channel;                        // by its number
    struct ssh_channel *asker;               // a reference to the one that has it, where one has
    void (*work)(struct ssh_errand *errand); // on a worker
    void (*end)(struct ssh_errand *errand);  // on the loop; the connection may have ended meanwhile
    int result;
    struct error err;
    // What it is about; each uses what it needs.
    struct actor actor;
    char sandbox_id[ID_TEXT];
    char fingerprint[SSH_HOST_KEY_FINGERPRINT];
    char execution_id[ID_TEXT];
    struct ssh_wire_login login;
    struct ssh_wire_message *message; // owned
    struct execution_info info;       // owned
    struct stream *stream;            // owned
    struct ssh_process process;
    struct sockaddr_storage address;
    char agent_path[SSH_AGENT_PATH]; // "": it has none
    uint32_t value;
    uint64_t asked_ms;
    size_t taken;
    bool is_over;
    int fds[SSH_WIRE_FDS]; // owned
};

/* ssh_server.c */
struct ssh_errand *ssh_errand_new(struct ssh_connection *connection, uint32_t channel,
                                  void (*work)(struct ssh_errand *),
                                  void (*end)(struct ssh_errand *));
/* Takes the errand. False: there are too many, and it will not be done. */
bool ssh_errand_send(struct ssh_errand *errand, enum workers_lane lane);
void ssh_process_kill(struct ssh_process *process);
/* A process for the connection, now or soon. */
void ssh_server_equip(struct ssh_connection *connection);

/* ssh_pace.c: how fast one address gets processes, which cost far more than to connect does. */
void ssh_pace_init(struct ssh_server *server);
/* Equips the connection, at once or when it is its turn. */
void ssh_pace_equip(struct ssh_connection *connection);

/* ssh_connection.c */
void ssh_connection_accept(struct ssh_server *server, int fd, const struct actor *actor,
                           const char *sandbox_id);
void ssh_connection_attach(struct ssh_connection *connection, struct ssh_process *process);
/* Ends it; `why` is logged. Again is no error. */
void ssh_connection_end(struct ssh_connection *connection, const char *why);
void ssh_connection_unref(struct ssh_connection *connection);
struct ssh_connection *ssh_connection_ref(struct ssh_connection *connection);
/* Asks again whether it may be there: its key may have gone, or may less. Ends it where it cannot be asked. */
void ssh_connection_recheck(struct ssh_connection *connection);
/* False: it could not be sent now, or ever. */
bool ssh_connection_tell(struct ssh_connection *connection, const struct ssh_wire_header *header,
                         const void *payload, const int *fds, unsigned n_fds);

/* ssh_channel.c */
struct ssh_channel *ssh_channel_find(struct ssh_connection *connection, uint32_t number);
/* The one that asked, while it is open: another may have its number by now. */
struct ssh_channel *ssh_channel_of(const struct ssh_errand *errand);
struct ssh_channel *ssh_channel_ref(struct ssh_channel *channel); // NULL is fine for both
void ssh_channel_unref(struct ssh_channel *channel);
struct ssh_channel *ssh_channel_new(struct ssh_connection *connection, uint32_t number);
/* Tells burrow-ssh why it will not be, and closes it. */
void ssh_channel_refuse(struct ssh_channel *channel, const char *why);
void ssh_channel_start(struct ssh_connection *connection, struct ssh_wire_message *message);
void ssh_channel_input(struct ssh_channel *channel, const struct ssh_wire_message *message);
void ssh_channel_order(struct ssh_channel *channel, const struct ssh_wire_message *message);
void ssh_channel_close(struct ssh_channel *channel);
/* Starts what the message asks for, which it takes. The agent, or NULL, gives up its descriptors to it. */
void ssh_channel_launch(struct ssh_channel *channel, struct ssh_wire_message *message,
                        struct ssh_agent *agent);
/* Tells what has changed. */
void ssh_channel_advance(struct ssh_channel *channel);

/* ssh_forward.c: connections to ports of the sandbox, and out of it. */
void ssh_forward_connect(struct ssh_connection *connection, struct ssh_wire_message *message);
/* And from one of its ports to the client. */
void ssh_forward_listen(struct ssh_connection *connection, struct ssh_wire_message *message);

/* ssh_agent.c: a socket for the client's agent in the sandbox, made as the session's user. */
struct ssh_agent {
    struct ssh_channel *channel;
    struct ssh_wire_message *message; // what is started once the agent is there; owned
    int listener, leash; // owned. Once the leash is closed, so is the socket, and its file goes
    struct loop_watch *watch; // of the leash
    struct loop_timer patience;
    char path[SSH_AGENT_PATH]; // in the sandbox; ends with NUL
    size_t used;
};
/* Makes one for the channel and then launches it, with the agent or without; takes the message. */
void ssh_agent_start(struct ssh_channel *channel, struct ssh_wire_message *message);
void ssh_agent_free(struct ssh_agent *agent);
