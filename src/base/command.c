/* SPDX-License-Identifier: Apache-2.0 */
/* A command; see command.h. */
#include "base/command.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

int command_check(const struct command *command, struct error *err)
{
    if (!command->argv || !command->argv[0] || !*command->argv[0])
        return error_set(err, ERROR_INVALID, "the command is empty");
    return strings_check_env(command->env, err);
}

struct command command_copy(const struct command *command)
{
    return (struct command){
        .argv = strings_copy(command->argv),
        .env = strings_copy(command->env),
        .directory = command->directory ? xstrdup(command->directory) : NULL,
        .user = command->user ? xstrdup(command->user) : NULL,
        .timeout_ms = command->timeout_ms,
    };
}

bool command_user_ids(const char *user, uint32_t *uid, uint32_t *gid)
{
    char rest;

    return user && sscanf(user, "%" SCNu32 ":%" SCNu32 "%c", uid, gid, &rest) == 2;
}
