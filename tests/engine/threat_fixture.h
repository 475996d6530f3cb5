/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of attacks, on top of box_fixture.h: a layer with the attacker (attacker.c) in it,
 * layers made by hand, commands run to their end, and host directories whose every change is
 * noticed. What is returned as text or path stays until the program ends.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/files.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CANARY_TEXT "burrow-canary-5f1d9c"

/* An absolute path below this run's directory. */
const char *place(const char *name);

/* What the attacker needs, as a layer: /attacker, /etc/passwd, /etc/group. */
const char *attacker_layer(void);
/* A fresh, empty directory for a hostile layer; *fd is it, open. */
const char *hostile_layer(int *fd);

/* A host directory with a file `canary` and more in it, the target of attacks. Fresh in each test.
 */
const char *canary_dir(void);
/* A sum over every name, mode, owner, time and byte below a host directory. */
uint64_t inventory(const char *dir);
uint64_t file_sum(const char *path);

void put_file(int dir_fd, const char *path, const char *text, mode_t mode);
void put_attacker(int dir_fd, const char *path, mode_t mode);

/* A spec with `top` (NULL: none) over the attacker's layer, and no limits. */
struct box_spec spec_with(const char *top);
/* A box with just the attacker's layer. */
struct box *launch_attacker(void);

struct outcome {
    struct process_exit exit;
    char *output; // stdout and stderr; NUL-terminated
    size_t length;
};

struct threat_command {
    const char *user, *directory;
    const char *const *env;
    const char *const *argv;
    enum process_output output; // OUTPUT_PIPE or OUTPUT_TTY
};

/* Runs a command to its end. */
struct outcome run_command(struct box *box, const struct threat_command *command);
struct outcome run_attacker_as(struct box *box, const char *user, const char *const *argv);
#define RUN(box, ...) run_attacker_as(box, NULL, (const char *const[]){__VA_ARGS__, NULL})
#define RUN_AS(box, user, ...) run_attacker_as(box, user, (const char *const[]){__VA_ARGS__, NULL})

/* Starts a command whose output nobody reads, and does not wait; its id. */
uint32_t start_command(struct box *box, const char *user, const char *const *argv);

/* Runs the attacker: it tells what was not refused as promised, and then the test fails with its
 * words. */
void attack_as(const char *file, int line, struct box *box, const char *user,
               const char *const *argv);
#define ATTACK(box, ...)                                                                           \
    attack_as(__FILE__, __LINE__, box, NULL, (const char *const[]){"/attacker", __VA_ARGS__, NULL})
#define ATTACK_AS(box, user, ...)                                                                  \
    attack_as(__FILE__, __LINE__, box, user, (const char *const[]){"/attacker", __VA_ARGS__, NULL})

/* What a box must not learn or show. */
void check_no_canary(const struct outcome *outcome);
/* PID 1 still does its work. */
void check_serves(struct box *box);
