/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of control groups: each runs in every mode this machine can do, with its own root, and
 * whatever it leaves, also by failing anywhere, is removed before the next one and at exit. Needs
 * root.
 */
#pragma once
#include "engine/cgroup.h"
#include "engine/cgroup_impl.h"
#include "test.h"

#include <stdatomic.h>

#define PATIENCE_MS 20000
#define OWNER 300000u // an id nobody has

/* What processes in boxes and the test tell each other; zero when a test begins. */
struct shared {
    atomic_ullong counts[4]; // [3] is the outside counter's
    atomic_int sys;          // an errno
    char text[1024];
};
extern struct shared *shared;

extern struct cgroup_root *root; // of the running test
extern char root_name[64];
extern const struct limits no_limits;

/* One test per mode: TEST_MODES(title) { ... `root` is open ... } */
#define TEST_MODES(title)                                                                          \
    static void title(void);                                                                       \
    TEST_MODE(title, _on_v2, CGROUP_V2)                                                            \
    TEST_MODE(title, _on_hybrid, CGROUP_HYBRID)                                                    \
    TEST_MODE(title, _on_v1, CGROUP_V1)                                                            \
    static void title(void)
#define TEST_MODE(title, suffix, mode)                                                             \
    TEST(title##suffix)                                                                            \
    {                                                                                              \
        begin(mode);                                                                               \
        title();                                                                                   \
        clean_up();                                                                                \
    }

/* Skips without root; then nothing is open yet. */
void prepare(void);
/* Opens `root`; skips where the machine lacks the mode. */
void begin(enum cgroup_mode mode);
void clean_up(void);

int64_t deadline(void);
void nap(void);

/* clone3, into a v2 group unless into_fd is -1. */
pid_t clone_into(int into_fd, uint64_t flags);
/* In the child: joins v1 groups. */
void join_tasks(const int *tasks, unsigned count);
/* Runs `body` in a process born in the group's entry, and in `leaf` if given. */
pid_t start_in(struct cgroup *group, struct cgroup_leaf *leaf, void (*body)(void *), void *data);
pid_t start(struct cgroup *group, void (*body)(void *), void *data);
int status_of(pid_t pid);

struct cgroup *make(const char *name, const struct limits *limits, bool is_flat);
bool box_exists(const char *name); // in any tree
int count_fds(void);
void check_knob(enum controller controller, const char *path, const char *want);

/* A body: counts for ever. */
void count_up(void *count);
/* Waits until it has counted on by `steps`. */
bool counts_on(atomic_ullong *count, unsigned long long steps);
void start_outside_counter(void);
/* True when it stands while the outside counter goes on. */
bool stands_still(atomic_ullong *count);
