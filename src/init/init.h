/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-init, PID 1 of every box: starts processes, keeps their ends, appends their output to spools, kills them
 * when their time is over, and reaps whatever is orphaned. One thread and one ppoll loop; conversations about files have a thread each.
 * It runs as root of the box under the same filter and capabilities as its guests, and is protected from them by
 * being PID 1 (signals) and not dumpable (ptrace, /proc/1). It never waits for a guest.
 * Threads: one thread; PID 1's loop.
 */
#pragma once
#include "engine/box.h"
#include "engine/link.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define INIT_MAX_PROCESSES 4096
#define OUTPUT_EVERY_US 5000 // the engine is told of growing output, at most

/* Bytes of one of a process's outputs on their way from a pipe to a spool file. */
struct output {
    int pipe_fd; // read end, not blocking; -1: closed
    int end_fd; // write end, until the process ends: it closes one after the other, and PID 1 would wake for each; -1: none
    int spool_fd;    // -1: nowhere
    uint64_t offset; // where the next byte goes in the spool, once there was one
    uint64_t produced;
    uint64_t cap;     // 0: none
    uint64_t written; // of the cap
    bool has_timestamps;
    bool is_inside_line;
    bool is_disk_low;  // found so before the present bytes
    bool is_truncated; // at the cap
    bool is_lost;      // some of it, for want of room on the disk
    bool is_terminal;  // past the cap the oldest goes, not the newest
    uint64_t dropped;  // of a terminal: all before this
};

/* Bytes on their way from the engine to a process: what the socket holds is all that waits. */
struct input {
    int sink_fd;  // write end of its pipe, or its terminal; not blocking; -1: it takes none
    int sock_fd;  // where they come from; -1: nobody sends any now
    int later_fd; // of the next engine, until all of the one before is through
    bool is_full; // the process has to read first
    bool is_ending;
    bool is_terminal;
};

struct spawn; // spawn.c: what a child reads until it executes

struct process {
    struct process *next;
    uint32_t id;
    pid_t pid;
    uint64_t started_us;
    uint64_t deadline_us; // 0: none
    struct output outputs[2];
    struct input input;
    int terminal_fd; // our copy of the master, for resizing; -1: none
    int screen_fd; // the other end of a terminal with a spool, so that it does not hang up while its process lives
    int kill_fd;              // v2 leaf
    int freezer_fd, procs_fd; // v1 leaf
    struct spawn *spawn;      // until it has executed or ended
    uint64_t oom_kills;       // of the box, when it was started
    bool is_timed_out;
    bool is_killed; // by the engine's wish
    bool has_ended;
    bool is_reported; // the end was sent over the current connection
    bool has_new_output;
    struct link_exit end;
};

struct init {
    int control; // -1: nobody there
    int listener;
    int oom_fd, oom_adj_fd;
    int nothing_fd; // /dev/null to read from, once a process needed it; -1: none did
    uint64_t secret;
    uint64_t oom_kills; // seen so far
    uint64_t oom_ends;  // explained by them
    bool
        is_rank_raised; // PID 1 stands where its children begin, for the kernel's choice when memory runs out
    uint64_t settle_us,
        settle_at_us; // the next look whether that can end: how long it waits, and when it is
    uint32_t max_files;
    bool is_one_shot;
    bool is_control_full; // wait until the engine has read
    bool is_staying;
    bool drops_set_ids;
    unsigned n_processes;
    struct process *processes;
    uint64_t output_announced_us; // when OUTPUT was last sent
    struct spawn *spare;
};

/* main.c */
uint64_t init_now_us(void);

/* spawn.c */
/* Starts what a SPAWN message asks for; takes the fds it uses. What fails is in process->end, and has_ended is set. */
void spawn_start(struct init *init, struct process *process, struct link_message *message,
                 const struct link_spawn_view *view);
/* Once the child is reaped: true when it could not execute, and process->end says why. Gives the memory back. */
bool spawn_finish(struct init *init, struct process *process);
/* Gives back the memory of those that have executed since, and PID 1 its own rank once all have. */
void spawn_settle(struct init *init);

/* output.c */
/* Moves what is there, within bounds; false when the pipe has ended. */
bool output_pump(struct output *output);
void output_drain(struct output *output);
void output_close(struct output *output);

/* process_input.c */
/* Takes the socket; false when the process takes no input. */
bool input_attach(struct input *input, int sock);
/* Moves what is there and fits. */
void input_pump(struct input *input);
/* No more will come behind what is there. */
void input_end(struct input *input);
void input_close(struct input *input);

/* process.c */
struct process *process_find(struct init *init, uint32_t id);
void process_remove(struct init *init, struct process *process);
/* Kills all it started: its leaf, or (without one) everything in the box. */
void process_kill_tree(struct init *init, struct process *process);
/* procs_fd lists its leaf's processes for is_whole_tree; -1: its group, or (one-shot) everything in the box. */
void process_signal(struct init *init, struct process *process, int signal, bool is_whole_tree,
                    int procs_fd);
/* How many processes of the box the kernel has killed for memory. */
uint64_t process_count_oom_kills(struct init *init);
/* Reaps all that has ended. */
void process_reap(struct init *init);

/* serve.c */
/* One message from the engine: 1; 0: none is there; -1: the connection has ended. */
int serve_control(struct init *init);
/* Tells the engine what it has not been told yet. */
void serve_output(struct init *init);
void serve_hello(struct init *init);
