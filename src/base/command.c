/* SPDX-License-Identifier: Apache-2.0 */
/* A command; see command.h. */
#include "base/command.h"

#include "base/mem.h"

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
