/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind cgroup.h share. Not for anybody else.
 * A group is always named by the directory fd of a tree and a path below it, so that a box holds no
 * fds.
 * Threads: any; as cgroup.h says.
 */
#pragma once
#include "engine/cgroup.h"

#include "base/lock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum controller {
    CONTROLLER_CPU,
    CONTROLLER_MEMORY,
    CONTROLLER_PIDS,
    CONTROLLER_FREEZER,
    CONTROLLER_CPUACCT,
    CONTROLLER_COUNT,
};

/* One hierarchy and our directory in it. */
struct cgroup_tree {
    char *path;  // of the directory, for messages and its removal
    int fd;      // of the directory
    bool is_new; // it was made when the root was opened
};

/* The version 1 groups of a box that has ended, empty, for the next one of this name. */
struct kept_group {
    char *name;
    ino_t tasks
        [CGROUP_MAX_TASKS]; // of the 'tasks' files: no two groups of the machine ever have the same
    struct limits limits;
};

struct cgroup_root {
    enum cgroup_mode mode;
    struct cgroup_tree trees[CONTROLLER_COUNT + 1]; // [0] is the one where boxes have run/
    unsigned n_trees;
    int knobs[CONTROLLER_COUNT]; // fd of the tree that has the controller's files (not owned), or
                                 // -1
    bool has_swap_limit;         // the kernel accounts swap
    bool has_socket_limit;       // version 1: it can limit what lies in sockets
    struct lock lock;            // guards these three; held for memory work only
    struct kept_group *kept;
    unsigned n_kept, max_kept;
};

struct cgroup {
    struct cgroup_root *root; // not owned
    char *name;
    bool is_flat;
    uid_t owner;
    struct cgroup_entry entry;
    ino_t tasks[CGROUP_MAX_TASKS]; // of the entry's files
    struct limits limits;          // it was made with
    _Atomic bool is_changed;       // or not made by this handle: its limits are not known
};

#define CGROUP_SUPERVISOR "supervisor"
#define CGROUP_PATH_MAX 512 // <box>/run/<leaf>/<knob>
#define CGROUP_DEADLINE_MS 10000

/* Letters, digits, '-' and '_': never a path, nor a file of the kernel's. */
int cgroup_check_name(const char *name, struct error *err);

/* Sleeps a little, longer each time: for what the kernel announces to nobody. */
void cgroup_pause(unsigned *tries);

/* Without trees. */
struct cgroup_root *cgroup_root_new(enum cgroup_mode mode);

/* A file of a group; `group` may be "" for the tree's directory itself. */
int knob_write(int dir_fd, const char *group, const char *knob, const char *text,
               struct error *err);
int knob_write_number(int dir_fd, const char *group, const char *knob, uint64_t number,
                      struct error *err);
int knob_read_number(int dir_fd, const char *group, const char *knob, uint64_t *out,
                     struct error *err);
/* The number behind `key` in a file of "key number" lines; a missing key is 0. */
int knob_read_field(int dir_fd, const char *group, const char *knob, const char *key, uint64_t *out,
                    struct error *err);
uint64_t knob_field(const char *text, const char *key);
/* Of a call on a group's files: somebody has removed the group. */
bool group_is_gone(const struct error *err);
bool knob_exists(int dir_fd, const char *group, const char *knob);

/* Calls `on_pid` for each number in a file of pids; the count of lines, or -1. */
int knob_each_pid(int dir_fd, const char *group, const char *knob,
                  void (*on_pid)(pid_t pid, void *data), void *data, struct error *err);
/* Calls `on_child` with the path of each group right below `group`, until one fails. */
int group_each_child(int dir_fd, const char *group,
                     int (*on_child)(int dir_fd, const char *child, void *data, struct error *err),
                     void *data, struct error *err);
/* Removes an empty group and those below it; waits for the dying until the deadline. Missing is
 * fine. */
int group_remove(int dir_fd, const char *group, int64_t deadline_ms, struct error *err);

/* Takes what is kept under this name; false: nothing is. `out` is the caller's to clear. */
bool kept_take(struct cgroup_root *root, const char *name, struct kept_group *out);
/* Keeps the version 1 groups of a box that is gone; false: there is no place, or they bear its traces. */
bool kept_put(const struct cgroup *group);
void kept_clear(struct kept_group *kept);

/* What is in use cannot be had back to fit. */
int cgroup_refuse_memory(uint64_t bytes, struct error *err);

/* is_fresh: the group was made just now, so nothing has to be lifted first. */
int v1_set_limits(struct cgroup_root *root, const char *box, const struct limits *limits,
                  bool is_fresh, struct error *err);
int v1_set_cpu(struct cgroup_root *root, const char *box, int64_t millicores, bool is_fresh,
               struct error *err);
int v1_usage(struct cgroup_root *root, const char *box, struct cgroup_usage *out,
             struct error *err);
int v1_freeze(int dir_fd, const char *group, struct error *err);
int v1_thaw(int dir_fd, const char *group, struct error *err);
/* `refuge` is a group above a frozen parent of `group`, where the dying can be thawed; or NULL. */
int v1_kill(int dir_fd, const char *group, const char *refuge, struct error *err);

int v2_set_limits(struct cgroup_root *root, const char *box, const struct limits *limits,
                  bool is_fresh, struct error *err);
int v2_set_cpu(struct cgroup_root *root, const char *box, int64_t millicores, bool is_fresh,
               struct error *err);
int v2_usage(struct cgroup_root *root, const char *box, struct cgroup_usage *out,
             struct error *err);
int v2_set_frozen(int dir_fd, const char *group, bool is_frozen, struct error *err);
int v2_kill(int dir_fd, const char *group, struct error *err);
