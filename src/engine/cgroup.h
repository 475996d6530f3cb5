/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box's control group: where its CPU, memory and process limits live, and the handle by which
 * all of it is measured, frozen or killed at once.
 * One contract over three worlds: pure v2; hybrid (limits in v1, and a v2 tree beside it for
 * freeze, kill and CLONE_INTO_CGROUP); pure v1. Calls block for file writes; none logs.
 *
 * The tree of a box:  <root>/<box>        carries the limits; PID 1 is in it
 *                     <root>/<box>/run/N  one leaf per process, only when asked for
 * On hybrid this tree is in v2 and each v1 hierarchy has <box> only; on pure v1 leaves are freezer
 * groups. A box made with `is_flat` has no run/: everything is in <box> itself (one-shot boxes).
 * PID 1 makes its cgroup namespace while in <box>, so that its leaves are inside of it: a cgroup2 mounted with
 * nsdelegate (systemd does) refuses to clone into groups outside one's own namespace. No controller is enabled
 * below <box>, so v2's rule against processes in inner groups does not apply.
 *
 * Threads: any; a group only after cgroup_entry_done, and nobody else is in a call on it while it is removed.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_mode { CGROUP_V2, CGROUP_HYBRID, CGROUP_V1 };

struct cgroup_root; /* burrow's own place in every hierarchy it uses */
struct cgroup;      /* one box */

struct cgroup_usage {
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint64_t cpu_usec;
    uint64_t throttled_usec;
    uint64_t oom_kills; // processes the kernel killed for the memory limit
    uint64_t procs;
    uint64_t procs_refused; // forks refused by max_processes
};

/* A CPU limit as the kernel takes it. */
struct cpu_share {
    uint64_t quota_usec; // 0: none
    uint64_t period_usec;
};
struct cpu_share cpu_share_of(int64_t cpu_millicores);

/*
 * What a child needs to put itself into a group. All fds stay the group's.
 */
#define CGROUP_MAX_TASKS 5
struct cgroup_entry {
    int into_fd;                 // v2 directory for CLONE_INTO_CGROUP, or -1
    int tasks[CGROUP_MAX_TASKS]; // v1 'tasks' files: the single-threaded child writes "0" to each,
                                 // in order
    unsigned n_tasks;
};

/* One process's leaf. fds are the caller's (close them with cgroup_leaf_close). -1 where the mode
 * has none. */
struct cgroup_leaf {
    int into_fd;    // v2: directory for CLONE_INTO_CGROUP
    int kill_fd;    // v2: cgroup.kill, opened for writing: write "1"
    int tasks_fd;   // v1: freezer 'tasks': the child writes "0"
    int freezer_fd; // v1: freezer.state, read and write
    int procs_fd;   // v1: cgroup.procs, for reading
};

/*
 * Finds the hierarchies in /proc/self/mountinfo and makes `name` below our own group in each. On
 * pure v2, beside our own group where that is the leaf `supervisor` of one that was delegated to us
 * (systemd's Delegate=yes with DelegateSubgroup=supervisor), else below the top of the mount; cpu,
 * memory and pids are enabled there, and the processes that stand in the way of "no internal
 * processes" are moved to the leaf `supervisor` beside it. ERROR_UNAVAILABLE names what is missing
 * and how to get it.
 */
int cgroup_root_open(const char *name, struct cgroup_root **out, struct error *err);
/* The same with this mode or not at all. */
int cgroup_root_open_as(const char *name, enum cgroup_mode mode, struct cgroup_root **out,
                        struct error *err);
void cgroup_root_free(struct cgroup_root *root); /* forgets; directories stay */
/* Removes the (empty) directories of the root. Groups still in it are an error. */
int cgroup_root_remove(struct cgroup_root *root, struct error *err);
/*
 * Where its directories are depends on the groups this process was started in. For whoever is started elsewhere, they are noted in a file (`name` in
 * `dir_fd`, locked meanwhile), once.
 */
int cgroup_root_note(const struct cgroup_root *root, int dir_fd, const char *name,
                     struct error *err);
/* Whether opening it has made a directory. */
bool cgroup_root_is_new(const struct cgroup_root *root);
/*
 * The other roots that were noted there and still exist, at least in part; *roots is the caller's, to be freed one by one. The file then has these and `own`.
 * No group is made in such a root; but those in it can be opened, ended and swept.
 */
int cgroup_roots_open(int dir_fd, const char *name, const struct cgroup_root *own,
                      struct cgroup_root ***roots, size_t *count, struct error *err);
/* Removes the directories of another root as far as they are empty, not also `own`'s, and have not changed for so long: who has just made them may be
 * about to put a box there. */
void cgroup_root_retire(struct cgroup_root *root, const struct cgroup_root *own, int64_t calm_ms);
/* Whether a box of this name has its group here, in every tree. */
bool cgroup_root_has(const struct cgroup_root *root, const char *name);
/*
 * From now on up to `count` boxes that are removed leave their version 1 groups, empty, for the next box of the same name; only on
 * hybrid, where making and removing them is most of what a group costs. A group that shows anything of what was in it (memory, kills, refusals)
 * is not kept. Others who use the name remove what they find there; cgroup_sweep does too.
 */
void cgroup_root_keep(struct cgroup_root *root, unsigned count);
/*
 * What all boxes of the root together may have: memory and processes (0: as it is), and how much processor time against others on the machine
 * (1 to 10000, 100 is what everybody has). ERROR_STATE about "memory" where version 1 has more in use than can be taken back: that limit then
 * stays as it was, and the others are set.
 */
struct cgroup_share {
    int64_t memory_bytes;
    int64_t max_processes;
    int64_t cpu_weight;
};
int cgroup_root_share(struct cgroup_root *root, const struct cgroup_share *share,
                      struct error *err);
/* machine_size, with no more memory than the groups that the root is in have. */
struct limits cgroup_root_machine(const struct cgroup_root *root);
/* On version 2: so much memory of this process is not taken for what others need, where it sits in `supervisor` beside the root. Elsewhere
 * and where it fails nothing is done. */
void cgroup_root_protect(const struct cgroup_root *root, uint64_t bytes);
enum cgroup_mode cgroup_root_mode(const struct cgroup_root *root);
const char *cgroup_mode_name(enum cgroup_mode mode); /* "v2", "hybrid", "v1" */

/*
 * Makes the group of box `name` with its limits (of memory, CPU and processes). Whatever stood there under that name is killed and
 * removed first (the caller owns the name). Unless is_flat, the files a process with uid `owner`
 * needs for moving its children into leaves (v2 cgroup.procs of <box>, run/) are given to `owner`.
 * On failure nothing of it remains.
 */
int cgroup_create(struct cgroup_root *root, const char *name, const struct limits *limits,
                  bool is_flat, uid_t owner, struct cgroup **out, struct error *err);

/* Opens an existing group again, after a restart; its entry is empty. ERROR_NOT_FOUND when it is
 * gone. */
int cgroup_open(struct cgroup_root *root, const char *name, struct cgroup **out, struct error *err);

/*
 * Changes limits of a living group. Zero fields are lifted. Less memory than is in use is had by taking back what can be (caches);
 * where that is not enough it is ERROR_STATE about "memory", nobody is killed, and the limit stays. Fewer processes than there are
 * only keeps new ones from being started.
 */
int cgroup_set_limits(struct cgroup *group, const struct limits *limits, struct error *err);

/* That of the CPU alone; 0 lifts it. */
int cgroup_set_cpu(struct cgroup *group, int64_t millicores, struct error *err);

/* Where PID 1 is born. */
const struct cgroup_entry *cgroup_entry(const struct cgroup *group);
/* PID 1 is born: closes the entry's fds. From here on a group holds no fd at all. */
void cgroup_entry_done(struct cgroup *group);

/* A file that says how many processes were killed for memory ("oom_kill N"); for reading, the caller's. -1: none. */
int cgroup_oom_open(const struct cgroup *group);

/* A leaf run/<name>, its v2 cgroup.procs given to the owner: made, and opened. Or one by one: of a leaf that cannot be opened nothing stays. */
int cgroup_leaf_make(struct cgroup *group, const char *name, struct error *err);
int cgroup_leaf_open(struct cgroup *group, const char *name, struct cgroup_leaf *out,
                     struct error *err);
int cgroup_leaf_create(struct cgroup *group, const char *name, struct cgroup_leaf *out,
                       struct error *err);
void cgroup_leaf_close(struct cgroup_leaf *leaf);
/* A list of the leaf's processes, as the reader's process namespace numbers them; for reading, the caller's. -1: none. */
int cgroup_leaf_procs_open(const struct cgroup *group, const char *name);
/* Kills what is left in the leaf and removes it. Missing is fine. */
int cgroup_leaf_remove(struct cgroup *group, const char *name, struct error *err);
/* Removes it where nothing is left in it; else it goes with the group. */
void cgroup_leaf_drop(struct cgroup *group, const char *name);

int cgroup_usage(struct cgroup *group, struct cgroup_usage *out, struct error *err);

/* Calls `on_pid` for each process in the group and its leaves, as this process's namespace numbers them; 0: one it does not show. */
int cgroup_each_process(struct cgroup *group, void (*on_pid)(pid_t pid, void *data), void *data,
                        struct error *err);

/* Freezes run/ (a flat box: everything) and returns once frozen; thaw likewise. */
int cgroup_freeze(struct cgroup *group, struct error *err);
int cgroup_thaw(struct cgroup *group, struct error *err);

/*
 * Kills every process in the group, frozen or not, and returns once it is empty (10 s at most:
 * ERROR_TIMEOUT). Nobody can be let in afterwards: kernels that know cgroup.kill's sequence number
 * (seen on 6.18) also kill who is cloned into a group that was killed before. The same goes for a
 * leaf.
 */
int cgroup_kill(struct cgroup *group, struct error *err);

/* Kills, then removes the directories. The handle can only be freed afterwards. */
int cgroup_remove(struct cgroup *group, struct error *err);
void cgroup_free(struct cgroup *group); /* forgets the handle */

/* Calls `is_owned(name, data)` for each box group that exists; false: it is killed and removed. */
int cgroup_sweep(struct cgroup_root *root, bool (*is_owned)(const char *name, void *data),
                 void *data, struct error *err);

/* Calls `is_unused(name, data)` for each name under which there is nothing but what was kept (cgroup_root_keep); true: it is removed. */
void cgroup_sweep_kept(struct cgroup_root *root, bool (*is_unused)(const char *name, void *data),
                       void *data);

DEFINE_AUTOPTR(cgroup_root)
DEFINE_AUTOPTR(cgroup)
