/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command: what is run, and with what around it. One value from a request to PID 1.
 * Threads: plain values.
 */
#pragma once
#include "base/strings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Whoever holds one says whether what it points to is borrowed; NULL is the default of who runs it. */
struct command {
    const char *const *argv; // NULL-terminated
    const char *const *env;  // NAME=VALUE, NULL-terminated
    const char *directory;   // absolute
    const char *user;
    int64_t timeout_ms; // 0: none
};

/* ERROR_INVALID when there is nothing to run, or a variable is not NAME=VALUE. */
int command_check(const struct command *command, struct error *err);

/* Whether a user is given by numbers, "1000:1000", and which. */
bool command_user_ids(const char *user, uint32_t *uid, uint32_t *gid);

/* Moves what it points to: `from` is empty then. */
static inline struct command command_take(struct command *from)
{
    struct command taken = *from;
    *from = (struct command){0};
    return taken;
}

/* A copy that owns what it points to. */
struct command command_copy(const struct command *command);

/* For one that owns what it points to; its lists are of strings_list. */
static inline void command_clear(struct command *command)
{
    free((void *)command->argv);
    free((void *)command->env);
    free((char *)command->directory);
    free((char *)command->user);
    *command = (struct command){0};
}
