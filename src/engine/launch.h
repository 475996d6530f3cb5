/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the engine: what is known of a box while it is being started. The host half (launch.c) prepares
 * everything that needs the host's view; the box half (enter.c) runs in a child that shares this memory until it executes
 * burrow-init, so it may only make async-signal-safe calls and answers through `failed_*`.
 * Threads: one per object; the launch and the box, while any thread may share the engine.
 */
#pragma once
#include "engine/box.h"
#include "base/lock.h"
#include "engine/fault.h"
#include "engine/low_fds.h"
#include "engine/network.h"
#include "engine/slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#define ENGINE_RUN_DIR "/run/burrow"
#define LAUNCH_MAX_LAYERS 128
#define LAUNCH_MAX_BINDS 16
#define ENGINE_KEPT_IDS 256
#define ENGINE_RECYCLED 128
#define BOX_SPENT_FDS 16

struct fixtures;

/* A network namespace with an interface that ends in the gateway, made ahead. */
struct wire {
    int network_fd;
    uint32_t index; // of the gateway's end
};

/* The socket of a slot whose box stayed until it ended: the next box there gets it. */
struct kept_listener {
    unsigned slot;
    int fd;
    ino_t file; // by which it is found
    struct timespec made_at;
};

/* Threads share it: what is neither atomic nor guarded does not change once it is open. */
struct engine {
    char *data_dir;
    char name[32]; // of our control groups: "burrow-" and what tells data directories apart
    struct volume *volume;
    struct cgroup_root *cgroups;
    struct cgroup_root **other_cgroups; // where processes started in other groups have theirs
    size_t n_other_cgroups;
    struct fixtures *fixtures;
    int slots_fd;
    int holder_fd; // by which a long-lived engine holds the slots of its boxes; or -1
    struct slot_set own_slots;
    _Atomic int run_fd;    // /run/burrow/<name>: sockets of BOX_STAY boxes; -1 until it is needed
    int init_fd;           // burrow-init, sealed
    int mount_parent_fd;   // a mount namespace with next to nothing in it, or -1
    int network_parent_fd; // a network namespace to make others from, or -1
    struct low_fds *low;   // of a long-lived engine; or NULL
    struct lock lock;      // guards these eight; held for memory work only
    int networks[64];      // made ahead
    unsigned n_networks;
    struct wire wires[64]; // the same for boxes with network
    unsigned n_wires;
    struct gateway *gateway;                  // or NULL: until it is needed
    char *gateway_addresses, *gateway_uplink; // as the settings have them; or NULL
    struct network_maker *first_network;      // being made since engine_open; or NULL
    struct kept_listener listeners[ENGINE_RECYCLED];
    unsigned n_listeners;
    _Atomic unsigned max_recycled; // of each kind of thing that goes from box to box
    // User namespaces of free slots, kept from box to box: they hold nothing but the map. Who takes one puts -1.
    _Atomic int ids[SLOT_COUNT];
    _Atomic int n_ids;
    bool keeps_ids;
    unsigned n_cpus;            // of the machine
    bool has_layer_fds;         // overlay takes layers by fd (Linux 6.13)
    bool is_dumpable;           // this process was, when the engine was opened
    bool is_spared;             // it has an oom_score_adj below 0
    _Atomic bool has_leftovers; // a slot was found dirty
    struct fault fault;
    char *fail_file;
    bool is_death;
    uint64_t *step_ns;
};

/* The end of a process that box_wait met while it waited for another. */
struct kept_exit {
    struct kept_exit *next;
    struct process_exit exit;
};

struct box {
    struct engine *engine;
    unsigned slot;
    int slot_fd; // -1: held by the engine's holder_fd, or not at all
    bool has_slot;
    char name[16];    // the slot as text: its control group
    char scratch[80]; // its scratch
    bool is_scratch_kept;
    bool is_one_shot;
    bool has_network;  // of an adopted box: it may have
    bool has_resident; // see box_has_resident
    enum box_owner_loss owner_loss;
    struct cgroup *cgroup;
    int control; // to PID 1
    pid_t pid;
    _Atomic pid_t init_pid;  // the same of an adopted box, once somebody had to know; else 0
    bool is_child;           // of this process: must be reaped
    ino_t ids_file;          // of its user namespace, by which it is known again; 0: not to be kept
    ino_t listener_file;     // likewise of its listener
    unsigned n_processes;    // when it was adopted
    _Atomic bool is_frozen;  // by this handle
    struct limits seen;      // what its programs take for the machine
    bool is_seen_known;      // not of an adopted box
    struct kept_exit *exits; // of whoever reads events
    _Atomic uint32_t
        ahead_id; // of the process whose leaf box_prepare made; 0: none. Who takes the leaf puts 0
    // Of the launch. Closing them takes the kernel longer than starting a process, so it is done beside one.
    int spent[BOX_SPENT_FDS];
    _Atomic unsigned n_spent; // who takes them puts 0
};

/* Keeps a user namespace for the next box of the slot, or closes it. */
void engine_keep_ids(struct engine *engine, unsigned slot, int *fd);
/* Lets go of the box's slot, if it has one; `is_clean`: nothing of it is left. */
void box_drop_slot(struct box *box, bool is_clean);

struct launch {
    struct engine *engine;
    const struct box_spec *spec;
    struct box *box;
    uint32_t first_id;
    int userns_fd;
    int network_fd;
    bool is_slot_dirty; // something of a box before may be left
    int scratch_fd;
    bool is_scratch_made; // by this launch
    int control_peer;     // PID 1's end
    int listener_fd;
    int oom_fd;
    int oom_adj_fd;                // opened by the box half
    int layers[LAUNCH_MAX_LAYERS]; // detached idmapped mounts, top first
    unsigned n_layers;
    int saved;  // the same of the directory the volume's layers lie in
    int shared; // and of the one that all layers of the runtime lie in
    int upper;  // the same of the scratch
    int dev, meminfo;
    int binds[LAUNCH_MAX_BINDS];
    unsigned n_binds;
    int mounts[BOX_MAX_MOUNTS];
    unsigned n_mounts;
    volatile unsigned n_attached;          // of these, by the box half
    int init_fd, mount_parent_fd, hold_fd; // as the box half finds the engine's and the caller's
    struct cgroup_entry entry;             // likewise
    int fds_end; // the box half shares the launcher's descriptors until it leaves with those below this; 0: it has a copy of its own
    uint64_t secret;
    const char *hostname;
    uint32_t max_files;
    int view;           // directory of the fixtures' view
    unsigned n_cpus;    // to run on; 0: all
    bool has_leftovers; // undoing failed
    const char *volatile failed_step;
    volatile int failed_errno;
    struct fault fault;
};

/* What every step begins with: true when it was made to fail. `index` counts through both halves. */
bool launch_step_begins(struct launch *launch, const char *name, unsigned index);

/* How many steps the host half has. */
extern const unsigned launch_host_steps;

/* The network namespace of a living box; the caller's to close. */
int box_open_network(struct box *box, int *out, struct error *err);
/* What the gateway has of a box goes; nothing where it has none. */
int box_leave_network(struct box *box, struct error *err);

/* The gateway if there is one, else this one from now on (NULL: none). */
struct gateway *engine_keep_gateway(struct engine *engine, struct gateway *opened);

/* A wire for one box, not from those made ahead. */
int engine_make_wire(struct engine *engine, struct wire *out, struct error *err);

/* Opens (makes) the directory of sockets, unless it is open. */
int engine_open_run_dir(struct engine *engine, struct error *err);

/* Opens the places where other processes have made groups of this data directory, unless they are open. */
int engine_open_places(struct engine *engine, struct error *err);
/* The group of the box in this slot, wherever it was made. */
int engine_open_group(struct engine *engine, const char *name, struct cgroup **out,
                      struct error *err);

/* The box half: never returns. */
_Noreturn void launch_enter(struct launch *launch);

/* Names of its steps, NULL-terminated. */
const char *const *launch_enter_steps(void);
