/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of whole boxes: an engine on a data directory of its own, a layer that holds one static program (guest.c),
 * and short ways to start boxes and processes. Whatever a test leaves, also by failing anywhere, is removed
 * before the next one and at exit. Needs root.
 */
#pragma once
#include "engine/box.h"
#include "test.h"

#include <sys/types.h>

#define PATIENCE_MS 60000 // a virtual machine on a busy host is slow

extern struct engine *engine; // of the running test
extern char data_dir[];       // its data directory
extern char layer_dir[];      // the root layer: /bin/guest, /etc/passwd, /etc/group

/* One test on an engine of this machine's cgroup mode: BOX_TEST(title) { ... } */
#define BOX_TEST(title)                                                                            \
    static void title##_body(void);                                                                \
    TEST(title)                                                                                    \
    {                                                                                              \
        begin_box_test(NULL);                                                                      \
        title##_body();                                                                            \
        end_box_test();                                                                            \
    }                                                                                              \
    static void title##_body(void)

/* One test per cgroup mode that the machine can do. */
#define BOX_TEST_MODES(title)                                                                      \
    static void title(void);                                                                       \
    BOX_TEST_MODE(title, _on_v2, CGROUP_V2)                                                        \
    BOX_TEST_MODE(title, _on_hybrid, CGROUP_HYBRID)                                                \
    BOX_TEST_MODE(title, _on_v1, CGROUP_V1)                                                        \
    static void title(void)
#define BOX_TEST_MODE(title, suffix, mode)                                                         \
    TEST(title##suffix)                                                                            \
    {                                                                                              \
        begin_box_test(&(enum cgroup_mode){mode});                                                 \
        title();                                                                                   \
        end_box_test();                                                                            \
    }

/* The last test of a program: everything the others made is gone from the machine. */
#define NOTHING_IS_LEFT_TEST                                                                       \
    TEST(nothing_of_all_this_is_left)                                                              \
    {                                                                                              \
        check_nothing_is_left();                                                                   \
    }

void begin_box_test(const enum cgroup_mode *mode);
void end_box_test(void);
void check_nothing_is_left(void);
bool is_in_vm(void);

/* A spec over the layer, without limits, kept, BOX_END. */
struct box_spec plain_spec(void);
struct box *launch(const struct box_spec *spec);
struct box *launch_plain(void);
/* Ends it, checks that this works, forgets it. */
void end(struct box *box);
/* For tests that end or free a box by themselves: the fixture forgets it. */
void disown(const struct box *box);
/* The other way: the fixture ends it when the test is over. */
struct box *own(struct box *box);

/* Another engine, on the same data directory unless `more` names one. */
struct engine *open_engine(const struct engine_options *more);
void close_engine(struct engine *other);

/* All but id, argv and outputs is taken from `how` (NULL: nothing special); a stdin_fd of 0 stands for none. */
uint32_t start(struct box *box, const struct process_spec *how, const char *command);
uint32_t start_argv(struct box *box, const struct process_spec *how, const char *const *argv);
/* Waits for its end and collects it. */
struct process_exit finish(struct box *box, uint32_t id);
/* start, finish. */
struct process_exit run(struct box *box, const char *command);
struct process_exit run_as(struct box *box, const struct process_spec *how, const char *command);
/* Runs it and fails the test unless it exits with 0. */
void run_well(struct box *box, const char *command);

/* What process `id` has written so far; NUL-terminated, valid until the next call for the same id. */
const char *output_of(uint32_t id);
const char *errors_of(uint32_t id);
size_t output_size(uint32_t id);
const char *last_output(void); // of the process started last
/* Waits until stdout contains `text`. */
void await_output(uint32_t id, const char *text);
/* start, then waits for "ready\n". */
uint32_t start_ready(struct box *box, const struct process_spec *how, const char *command);

/* Names of processes in the box, one a line. */
const char *processes_in(struct box *box);

/* The first 8 bytes of a file in the box, through box_files. */
uint64_t count_in(struct box *box, const char *path);

uint32_t next_id(void);
/* "WORD WORD" as argv of the guest, in place; argv has 64 places. */
void split_words(char *text, const char **argv);
void forget_outputs(void);

int count_fds(void);
int64_t now_ms(void);
void nap(void); // a few milliseconds, in loops that wait for what nobody announces
/* Runs `claim` until it is true or patience ends. */
#define AWAIT(claim)                                                                               \
    do {                                                                                           \
        int64_t end_ = now_ms() + PATIENCE_MS;                                                     \
        while (!(claim) && now_ms() < end_)                                                        \
            nap();                                                                                 \
        CHECK(claim);                                                                              \
    } while (0)
