/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the engine and burrow-init, over a SOCK_SEQPACKET socket; both ends compile this file.
 * The engine trusts burrow-init little (a guest may have broken into it) and burrow-init trusts the
 * engine fully; still both check every length. Nothing here allocates; usable in both programs.
 * Threads: one per object; the socket in each direction.
 */
#pragma once
#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINK_VERSION 4
#define LINK_MAX_MESSAGE 65536 // larger payloads travel in a memfd
#define LINK_MAX_PAYLOAD (4u << 20)
#define LINK_MAX_FDS 10

/*
 * A capability that PID 1 is started with and keeps from its guests: tracing wants all that the traced one has (ptrace(2)), so
 * PID 1 is out of reach even while its memory is open to debuggers. Good for nothing else in a box's user namespace.
 */
#define LINK_INIT_MARK CAP_WAKE_ALARM

enum link_type {
    LINK_BOOT = 1, // engine, once, before PID 1 runs: struct link_boot
    LINK_HELLO,    // init: PID 1 is up (struct link_hello)
    LINK_SPAWN,    // engine: start a process (struct link_spawn + strings)
    LINK_STARTED,  // init: answer to a SPAWN on its SPAWN_ANSWER (the terminal's fd is attached)
    LINK_EXITED,   // init: struct link_exit
    LINK_OUTPUT,   // init: struct link_output
    LINK_SIGNAL,   // engine: struct link_signal (a list of the leaf's processes may be attached)
    LINK_RESIZE,   // engine: struct link_resize
    LINK_COLLECT,  // engine: forget process
    LINK_FILES,    // engine: serve files on the attached socket (payload: user)
    LINK_INPUT, // engine: what comes on the attached socket is the process's input; INPUT_IS_OPEN comes back on it, or it is closed
    LINK_END_INPUT, // engine: behind what came there, no more
    LINK_TYPES
};

struct link_header {
    uint16_t type;
    uint16_t flags;
    uint32_t process; // which process it is about, or 0
    uint32_t length;  // of the payload behind it (or in the memfd)
    uint32_t pad;
};
#define LINK_IN_MEMFD 1u // the payload is in the last attached fd

/* The fds burrow-init is born with. */
enum boot_fd {
    BOOT_CONTROL = 3, // the engine's socket
    BOOT_LISTENER,    // where another engine may come (BOX_STAY)
    BOOT_SLOT,        // locked while the box lives
    BOOT_HOLD,        // something else to keep open
    BOOT_OOM,         // the box's count of processes killed for memory
    BOOT_OOM_ADJ,     // PID 1's own oom_score_adj
    BOOT_FDS_END
};

struct link_boot {
    uint64_t secret; // lets clone3 through the filter
    uint32_t fds;    // bit per enum boot_fd
    uint32_t is_one_shot;
    uint32_t owner_loss; // enum box_owner_loss
    uint32_t max_files;
    uint32_t drops_set_ids; // it writes into directories of the host: init/set_ids.h
};

struct link_hello {
    uint32_t version;
    uint32_t n_processes; // EXITED and OUTPUT messages about them follow, after an adoption
    uint32_t is_one_shot;
};

/* Which fds are attached to a SPAWN, in this order. */
enum link_spawn_fd {
    SPAWN_STDIN,
    SPAWN_STDOUT,
    SPAWN_STDERR,
    SPAWN_LEAF_INTO,    // v2 leaf directory
    SPAWN_LEAF_KILL,    // v2 cgroup.kill
    SPAWN_LEAF_TASKS,   // v1
    SPAWN_LEAF_FREEZER, // v1
    SPAWN_LEAF_PROCS,   // v1
    SPAWN_ANSWER,       // a socket for LINK_STARTED, with OUTPUT_TTY and no SPAWN_STDOUT
    SPAWN_PROGRAM,      // what is executed, whatever argv[0] is
    SPAWN_FDS
};

struct link_spawn {
    uint32_t fds;    // bit per enum link_spawn_fd
    uint32_t output; // enum process_output
    uint32_t flags;  // SPAWN_TIMESTAMPS, SPAWN_ONE_OUTPUT
    uint16_t rows, cols;
    uint64_t timeout_ms;
    uint64_t output_cap_bytes;
    uint32_t n_argv;
    uint32_t n_env;
    uint32_t strings; // bytes of NUL-terminated strings behind: user, directory, argv..., env...
};
#define SPAWN_TIMESTAMPS 1u
#define SPAWN_ONE_OUTPUT 2u // stderr goes where stdout goes; no own fd attached
#define SPAWN_INPUT 4u      // its input is a pipe of PID 1's, for LINK_INPUT

#define INPUT_IS_OPEN 'y'

struct link_exit {
    uint32_t cause; // enum process_cause
    int32_t code;
    int32_t signal;
    int32_t sys;
    uint32_t truncation; // OUTPUT_IS_CUT, OUTPUT_IS_LOST; 0: all of it was kept
    uint32_t pad;
    uint64_t cpu_user_us, cpu_system_us, max_rss_bytes, duration_us;
    uint64_t stdout_bytes, stderr_bytes;
    char text[200]; // NUL-terminated
};

#define OUTPUT_IS_CUT 1u  // at its cap
#define OUTPUT_IS_LOST 2u // some of it: the disk was full

struct link_output {
    uint64_t stdout_bytes, stderr_bytes;
};

struct link_signal {
    int32_t signal;
    uint32_t is_whole_tree;
};

struct link_resize {
    uint16_t rows, cols;
};

struct link_message {
    struct link_header header;
    const void *payload; // header.length bytes, inside the receiver's buffer or mapped memfd
    int fds[LINK_MAX_FDS];
    unsigned n_fds;
    void *mapped; // of LINK_IN_MEMFD; link_message_clear unmaps
};

/* Sends header, payload and fds as one message. -1 with errno. */
int link_send(int sock, uint16_t type, uint16_t flags, uint32_t process, const void *payload,
              uint32_t length, const int *fds, unsigned n_fds);

/*
 * Receives one message into `buffer` (LINK_MAX_MESSAGE + header). 1: a message; 0: end; -1 with errno (EAGAIN;
 * EPROTO for anything malformed; EMFILE where there was no room for its fds: then *out has its header and nothing else).
 * All received fds are close-on-exec and the message's.
 */
int link_receive(int sock, void *buffer, size_t size, struct link_message *out, int recv_flags);

/* Closes fds not taken (set to -1 when you take one) and unmaps. */
void link_message_clear(struct link_message *message);

/* A SPAWN taken apart. Pointers go into the message's payload; argv and env are given as first string + count. */
struct link_spawn_view {
    const struct link_spawn *spawn;
    const char *user;      // "" for root
    const char *directory; // "" for the user's home
    const char *argv;      // n_argv strings one behind the other
    const char *env;       // n_env strings
};
/* False when lengths, counts or terminators do not fit. */
bool link_spawn_parse(const struct link_message *message, struct link_spawn_view *out);
/* Takes the fd of one kind out of a SPAWN with these bits; -1 when it is not there. */
int link_spawn_take(struct link_message *message, uint32_t bits, enum link_spawn_fd kind);
