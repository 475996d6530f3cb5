/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's face: boxes are launched, run processes, are frozen, measured and ended.
 * A box is what the kernel holds: namespaces, control group, mounts, and a PID 1 of ours (burrow-init).
 * Calls block; none logs. The engine starts no threads. Structs passed in are borrowed for the call.
 *
 * Threads: any; of one box as told here.
 * All threads of a program may share an engine: any of them launches, adopts, fills, lists and sweeps while others
 * do; only engine_open, engine_free and engine_detach want to be alone with their data directory's engine. Of one
 * box, one thread at a time reads its events (box_next, box_wait). Meanwhile others may start, signal, resize and
 * collect processes (no two the same one), freeze, thaw and limit it (one of them at a time), measure it and open
 * files. box_end and box_free come last: nobody else is in a call on that box, or begins one. Any thread may do that,
 * also when the one that launched the box is gone.
 * The engine changes nothing of the process: not its working directory, umask or signal handlers; it waits only for
 * its own children, by pid.
 */
#pragma once
#include "base/auto.h"
#include "base/command.h"
#include "base/error.h"
#include "base/limits.h"
#include "engine/cgroup.h"
#include "engine/volume.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct engine;
struct box;

struct engine_options {
    const char *data_dir; // made when missing
    struct volume_options volume;
    const char *
        network_addresses; // of the gateway (gateway.h), as soon as a box with network is launched; NULL: the usual ones
    const char *network_uplink; // likewise
    bool is_long_lived;    // a server or benchmark: prepares what pays off only over many launches
    const char *fail_step; // tests: the launch step of this name fails
    int fail_errno;        // with this; 0: EIO
    const char *fail_file; // tests: names both, while it is there (fault.h); read at each launch
    bool is_death;     // tests: where a process of its own takes the step, that ends without a word
    uint64_t *step_ns; // benchmarks, one thread: when each of engine_launch_steps() began; or NULL
    const enum cgroup_mode *cgroup_mode; // tests: this one or none; NULL: what the machine has
};

int engine_open(const struct engine_options *options, struct engine **out, struct error *err);
void engine_free(struct engine *engine);

/* Makes ready network namespaces until `count` wait (64 at most); each launch takes one (or makes its own). */
int engine_fill_networks(struct engine *engine, unsigned count, struct error *err);

/* The same for boxes with network; needs the gateway. */
int engine_fill_wires(struct engine *engine, unsigned count, struct error *err);

struct gateway;
/* The way out of boxes with network, opened (and made where there is none) by the first who asks; the engine's. */
int engine_gateway(struct engine *engine, struct gateway **out, struct error *err);

/*
 * From now on what no guest can reach goes from box to box: the sockets on which PID 1 waits for another engine, and emptied version 1
 * control groups; of each at most `count` (128). Those that are unused when the engine goes are for engine_sweep.
 */
void engine_recycle(struct engine *engine, unsigned count);

/* ERROR_DENIED, with the sentence for people, unless this process is root's. */
int engine_need_root(struct error *err);

/* Ends and removes what dead owners left of boxes in this data directory. */
int engine_sweep(struct engine *engine, struct error *err);
/* A launch has met traces of an owner that died: time to sweep. */
bool engine_has_leftovers(const struct engine *engine);

/*
 * Slots of living BOX_STAY boxes of this data directory, whoever owns them; *slots is the caller's to free. For a server
 * that starts: it adopts those it knows, and adopts and ends those it does not. One may end meanwhile: then box_adopt
 * says ERROR_NOT_FOUND. Boxes that other threads are launching may be among them.
 */
int engine_list_staying(struct engine *engine, unsigned **slots, size_t *count, struct error *err);

/*
 * Lets go of what this machine's kernel keeps for a data directory between runs: sweeps, removes the control groups
 * and the run directory, unmounts the volume, also one whose file was removed. Files stay. ERROR_CONFLICT while boxes live (noun
 * "sandbox"), naming their processes. Other engines on the same data directory must be gone.
 */
int engine_detach(const char *data_dir, struct error *err);

/*
 * Kills every box of the data directory, whoever owns it, and waits up to 10 s for owners to let go. Scratches with a name stay; to
 * a server that starts later it is as if the machine had been restarted. No server may be running.
 */
int engine_end_boxes(const char *data_dir, struct error *err);

struct volume *engine_volume(struct engine *engine);
struct cgroup_root *engine_cgroups(struct engine *engine);

/* Names of all launch steps, NULL-terminated, in order: what fail_step may name. */
const char *const *engine_launch_steps(void);

enum box_owner_loss {
    BOX_END,  // its owner gone, everything in it ends
    BOX_STAY, // goes on; another process may box_adopt it
};

/* A host directory seen read-only in the box, as it is (not idmapped: what is not for everybody stays closed). */
struct box_bind {
    const char *host;
    const char *box;
};

/*
 * A host directory as root of the box may use it: with the rights that its owner has outside (host_dir.h). Its files are in no layer and
 * under no limit of the box's disk.
 */
struct box_mount {
    int fd;          // of the directory, O_PATH does; the caller's
    const char *box; // host_dir_check_target; made where it is missing
    bool is_read_only;
};
#define BOX_MAX_MOUNTS 8

struct box_spec {
    const char *const *layers; // host directories, top first: the read-only root
    size_t n_layers;
    const char *const *saved; // names of layers of the volume (layer.h), top first, over the root
    size_t n_saved;
    const struct box_bind *binds;
    size_t n_binds;
    const struct box_mount *mounts;
    size_t n_mounts;
    int hold_fd;          // PID 1 keeps a copy open (a runtime's lock); -1: none
    struct limits limits; // zero fields: none
    uint64_t max_inodes;  // that it makes, where the volume counts them; 0: no limit
    uint32_t max_files;   // per process; 0: 4096
    const char *hostname; // NULL: "burrow"
    enum box_owner_loss owner_loss;
    bool is_one_shot; // one process, then the end: no leaves, no care for fsync
    bool
        has_network; // an interface that ends in the gateway, through which nothing goes before gateway_admit; else loopback alone
    const char *scratch; // name of a scratch to keep; NULL: a fresh one, removed with the box
};

/*
 * Starts a box: when it returns, PID 1 serves. On failure nothing of it is left, but for a scratch that was there
 * before.
 */
int box_launch(struct engine *engine, const struct box_spec *spec, struct box **out,
               struct error *err);

/*
 * Takes over a living BOX_STAY box by its slot after a restart; `scratch` as at launch (NULL also for one nobody knows: a
 * kept scratch then stays where it is). ERROR_NOT_FOUND when it is gone; ERROR_TIMEOUT when its PID 1 does not answer.
 */
int box_adopt(struct engine *engine, unsigned slot, const char *scratch, struct box **out,
              struct error *err);
unsigned box_slot(const struct box *box);
/* Its PID 1, as the host numbers it. */
pid_t box_pid(const struct box *box);
/* Of an adopted box: how many processes it had then that were not collected. An OUTPUT or EXIT comes for each. */
unsigned box_process_count(const struct box *box);
/*
 * Closes what the launch left open. The first process does that too, since it takes the kernel longer than starting one. A box that has it
 * behind it, and any adopted one, holds one descriptor: that of box_event_fd.
 */
void box_settle(struct box *box);
/* Of one that was made ahead: a process was started in it that waits to be used (spare_boxes.h). It may have ended since. */
bool box_has_resident(const struct box *box);
/* The name of its scratch, a kept or a fresh one; the box's. */
const char *box_scratch(const struct box *box);

/*
 * Ends everything in the box and removes it from the kernel. A kept scratch stays (volume_scratch_remove, by any thread).
 * The handle can only be freed.
 */
int box_end(struct box *box, struct error *err);
/* Forgets the handle. A BOX_END box that was not ended is ended by that, and its rest swept later. */
void box_free(struct box *box);
DEFINE_AUTOPTR(engine)
DEFINE_AUTOPTR(box)

enum process_output {
    OUTPUT_PIPE,  // stdout/stderr_fd are write ends of pipes of ours; the reader relays
    OUTPUT_SPOOL, // stdout/stderr_fd are files PID 1 appends to
    OUTPUT_TTY,   // a terminal made in the box; box_spawn gives its other end
    OUTPUT_TTY_SPOOL, // the same, but what it shows is appended to the file stdout_fd by PID 1, which keeps the other end
};

struct process_spec {
    uint32_t id; // chosen by the caller, unique in the box while it is not collected; not 0
    /*
     * argv[0] is looked up in the PATH of env. HOME, USER and PATH are added to env where missing. The directory is made when missing;
     * NULL is the user's home. The user is a name, uid, name:group or uid:gid of the box; NULL is root. When the time is over,
     * everything it started is killed.
     */
    struct command command;
    enum process_output output;
    bool keeps_children; // what it started and left running goes on when it has been collected
    int program_fd; // is executed instead of looking argv[0] up: a file that the box need not have; 0: none
    int stdin_fd;        // read end of a pipe or socket of ours; -1: /dev/null
    bool has_input;      // instead of stdin_fd: a pipe made in the box, for box_open_input
    int stdout_fd;       // -1: /dev/null
    int stderr_fd;       // may equal stdout_fd; -1: /dev/null
    uint16_t rows, cols; // of a terminal
    bool has_timestamps; // OUTPUT_SPOOL: each line is prefixed with its time
    /*
     * OUTPUT_SPOOL: per stream, the rest is dropped and counted; 0: none. OUTPUT_TTY_SPOOL: at least so many of the newest are kept; what
     * is older becomes a hole, so offsets stay as they are.
     */
    uint64_t output_cap_bytes;
};

enum process_cause {
    CAUSE_EXIT,      // ended by itself or by a signal
    CAUSE_TIMEOUT,   // its timeout passed
    CAUSE_MEMORY,    // the kernel killed it for the box's memory limit
    CAUSE_NOT_FOUND, // no such command: code 127
    CAUSE_NOT_RUN,   // could not be executed, or its directory or user was refused: code 126
    CAUSE_BOX_ENDED, // the box ended under it
};

struct process_exit {
    uint32_t id;
    enum process_cause cause;
    int code;       // by convention: 0..255; 128+n by signal; 124 timeout; 126; 127; 137 memory
    int signal;     // or 0
    int sys;        // errno of CAUSE_NOT_FOUND and CAUSE_NOT_RUN
    char text[200]; // a sentence for causes other than CAUSE_EXIT
    uint64_t cpu_user_us, cpu_system_us, max_rss_bytes;
    uint64_t duration_us;
    uint64_t stdout_bytes, stderr_bytes; // OUTPUT_SPOOL: as produced, dropped ones included
    bool is_truncated;                   // not all of them were kept
    bool is_output_lost;                 // because the disk was full
};

/*
 * Starts a process. The fds in spec stay the caller's (close the pipe ends afterwards). *tty_fd gets the
 * terminal's master for OUTPUT_TTY (-1 where the user or the terminal could not be had); NULL otherwise. A command that cannot be executed is not an error here:
 * it ends at once with CAUSE_NOT_FOUND or CAUSE_NOT_RUN.
 */
int box_spawn(struct box *box, const struct process_spec *spec, int *tty_fd, struct error *err);
/* Makes ahead what a process with this id will need, so that starting it takes less time. One at a time; of another id it is undone by
 * the next box_spawn. A failure costs nothing but that. */
void box_prepare(struct box *box, uint32_t id);
/* After an adoption: what the owner before made ahead goes. No process has had `id` or one of the next few. */
void box_unprepare(struct box *box, uint32_t id);

/* Readable when box_next has something to say, beside ends that box_wait kept. */
int box_event_fd(const struct box *box);

enum box_event_kind {
    BOX_EVENT_NONE,   // nothing within timeout_ms
    BOX_EVENT_EXIT,   // `exit` holds it; reported until box_collect
    BOX_EVENT_OUTPUT, // OUTPUT_SPOOL grew
    BOX_EVENT_ENDED,  // PID 1 is gone
};

struct box_event {
    enum box_event_kind kind;
    struct process_exit exit; // BOX_EVENT_EXIT
    uint32_t id;              // BOX_EVENT_OUTPUT
    uint64_t stdout_bytes, stderr_bytes;
};

/* The next event; waits up to timeout_ms (-1: for ever). */
int box_next(struct box *box, struct box_event *out, int timeout_ms, struct error *err);

/* Waits for one process's end and collects it; ends of others meanwhile are kept for box_next and box_wait. */
int box_wait(struct box *box, uint32_t id, int timeout_ms, struct process_exit *out,
             struct error *err);

/* Forgets an ended process; its leaf goes. */
int box_collect(struct box *box, uint32_t id, struct error *err);

/* To the process's group, or (is_whole_tree) to all it started. SIGKILL to the whole tree cannot be escaped. */
int box_signal(struct box *box, uint32_t id, int signal, bool is_whole_tree, struct error *err);
int box_resize(struct box *box, uint32_t id, uint16_t rows, uint16_t cols, struct error *err);

/*
 * The input of a process with OUTPUT_TTY_SPOOL or has_input: a stream socket that PID 1 moves into it. Send with MSG_DONTWAIT: it takes
 * as much as it has room for (BOX_INPUT_BYTES, about), while the process does not read. EPIPE: nobody will. Closing it ends nothing: PID 1 holds the
 * input, and whoever adopts the box opens it again; what was sent before comes first. ERROR_COMPLETE when the process has
 * no input, or has it no longer; ERROR_TIMEOUT when PID 1 does not answer.
 */
#define BOX_INPUT_BYTES 65536
int box_open_input(struct box *box, uint32_t id, int *out_fd, struct error *err);
/* No more comes behind what was sent. In a terminal that is its end-of-file character, as from Ctrl-D, and the input stays open. */
int box_end_input(struct box *box, uint32_t id, struct error *err);

int box_freeze(struct box *box, struct error *err);
int box_thaw(struct box *box, struct error *err);
int box_usage(struct box *box, struct cgroup_usage *out, struct error *err);
/* Bytes its files take; may trail by a moment. */
int box_disk_usage(struct box *box, uint64_t *bytes, struct error *err);
/*
 * Changes the limits while everything goes on, and what programs in it take for the machine with them. Zero fields are lifted. ERROR_STATE about
 * "memory" when more is in use than can be taken back; nobody is killed for it. On failure some may be set: set those from before again.
 */
int box_set_limits(struct box *box, const struct limits *limits, struct error *err);

/*
 * Gives a living box without network what has_network gives to a new one, but for /etc/resolv.conf: *resolver, in the machine's order, is who answers for names. What
 * it had from a try that failed is made anew.
 */
int box_join_network(struct box *box, uint32_t *resolver, struct error *err);
/* So many bytes a second at most that leave a box with network; 0: as many as there are. */
int box_set_network_rate(struct box *box, uint64_t bytes_per_second, struct error *err);

/* The limit of the CPU alone, and not what programs are told of it: for a moment in which PID 1 needs more than its guests leave it. */
int box_set_cpu(struct box *box, int64_t millicores, struct error *err);

/*
 * A socket of the box's own network to this port of its loopback, whether or not it has a way out; non-blocking, connected or about to
 * be. BOX_NOBODY_LISTENS: nobody does, and *out is left alone. ERROR_GONE when it has ended. Does not wait: for loops too. The calling
 * thread is in the box's network for a moment.
 */
#define BOX_NOBODY_LISTENS 1
int box_connect(struct box *box, uint16_t port, int *out, struct error *err);
/* The same to another address, by the box's own way out and what that allows; it may take its time to be connected. */
struct sockaddr;
int box_connect_address(struct box *box, const struct sockaddr *address, int *out,
                        struct error *err);
/* To who answers for names there: a socket for datagrams, as the guest could make one. ERROR_STATE, noun "network", where it has none. */
int box_open_resolver(struct box *box, int *out, struct error *err);
/* Listens on a port of the box's loopback, 0: any; *port becomes which. ERROR_CONFLICT, noun "port": somebody does already. Does not wait. */
int box_listen(struct box *box, uint16_t *port, int *out, struct error *err);
/* A local socket without a name, of the box's network: names in no file system that it is given are the box's own. */
int box_make_local(struct box *box, int *out, struct error *err);
/* The same to a local socket of this name, which is in no file system: up to 107 bytes, filled up with NUL. */
int box_connect_name(struct box *box, const char *name, int *out, struct error *err);

/*
 * Opens a conversation about files inside, with `user`'s rights (NULL: root); relative paths start at `base`
 * (NULL: the user's home). engine/files.h speaks it.
 */
int box_files(struct box *box, const char *user, const char *base, int *out_fd, struct error *err);
