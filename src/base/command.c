/* SPDX-License-Identifier: Apache-2.0 */
/* A command; see command.h. */
#include "base/command.h"

int command_check(const struct command *command, struct error *err)
{
    if (!command->argv || !command->argv[0] || !*command->argv[0])
        return error_set(err, ERROR_INVALID, "the command is empty");
    return strings_check_env(command->env, err);
}
