/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where attacks take place: two boxes of one engine, made as every box is, with burrow-attacker in a layer that both share, small
 * limits, a neighbour that must not be disturbed, and a file of the host that must not be read or changed. When it goes,
 * nothing of it stays; what a killed one left the next one removes.
 * Threads: one thread.
 */
#pragma once
#include "attack/attack.h"

#include <stdbool.h>
#include <stdint.h>

#define RANGE_ATTACKER "/burrow-attack/attacker" // in both boxes
#define RANGE_SHARED "/burrow-attack/shared"     // a file of their layer, for everybody to write
#define RANGE_LINKED "/burrow-attack/linked"     // another one
#define RANGE_USER "1000:1000"                   // an ordinary user of the boxes
#define RANGE_SECRET "burrow-secret-5f1d9c"      // what a process of the second box knows
#define RANGE_CANARY "burrow-canary-5f1d9c"      // what the file of the host holds
#define RANGE_MAX_FILES 1024                     // that a process may open: not the default

struct range_options {
    // Its layers, binds and hold_fd are what the boxes are made of. Their names must outlive the range, the lists need not.
    const struct box_spec *spec;
    const char *data_dir;     // the engine's; files of the range are made in it
    bool (*is_stopped)(void); // asked while waiting; NULL: never
    bool has_no_limits;       // tests: boxes without limits, so that something is open
};

struct range {
    struct engine *engine;
    struct box_spec spec; // of both boxes, but for the name
    const char **layers;
    struct box_bind *binds;
    struct box *a; // attacks
    struct box *b; // minds its own business
    uint32_t next_id;
    uint32_t neighbour;   // a process of b that waits
    char *data_dir;       // absolute
    char *place;          // a directory of our own in it
    char *canary;         // a file there
    struct limits limits; // what the boxes were promised, also when they have none
    bool (*is_stopped)(void);
};

int range_open(struct engine *engine, const struct range_options *options, struct range **out,
               struct error *err);
void range_free(struct range *range); /* ends the boxes, removes the files */
DEFINE_AUTOPTR(range)

/* Whether whoever asked for the attacks wants no more of them. */
bool range_is_stopped(const struct range *range);
/* Makes a box anew that has ended, and the neighbour. */
int range_mend(struct range *range, struct error *err);

/*
 * Runs burrow-attacker in a box to its end, as `user` (NULL: root), and judges what it says. How it ended goes to *exit (or NULL).
 * For more than a judgement: range_finish leaves that to the caller.
 */
void range_attack(struct range *range, struct box *box, const char *user,
                  struct attack_result *result, const char *const *argv);
#define INSIDE(range, box, user, result, ...)                                                      \
    range_attack(range, box, user, result, (const char *const[]){RANGE_ATTACKER, __VA_ARGS__, NULL})

struct range_outcome {
    struct process_exit exit;
    char output[8192];
};
int range_finish(struct range *range, struct box *box, const char *user, const char *const *argv,
                 struct range_outcome *out, struct error *err);

/* Starts it, waits for its first line (without the end of line) and leaves it there; its id. 0, judged untried, where that fails. */
uint32_t range_start(struct range *range, struct box *box, const char *user,
                     struct attack_result *result, const char *const *argv, char *line,
                     size_t size);
#define START(range, box, user, result, line, ...)                                                 \
    range_start(range, box, user, result,                                                          \
                (const char *const[]){RANGE_ATTACKER, __VA_ARGS__, NULL}, line, sizeof(line))
/* Ends it with all it started. */
void range_stop(struct range *range, struct box *box, uint32_t id, struct attack_result *result);

/* The other box still starts processes, and the neighbour lives; else it is open. */
void range_check_neighbour(struct range *range, struct attack_result *result);
/* The same, and PID 1 of the attacking box serves too. */
void range_check_others(struct range *range, struct attack_result *result);
