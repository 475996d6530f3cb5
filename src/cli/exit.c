/* SPDX-License-Identifier: Apache-2.0 */
/* Errors become exit codes here and nowhere else; see exit.h. */
#include "cli/exit.h"

#include <stdio.h>

int exit_code_of(enum error_kind kind)
{
    static const int codes[] = {
        [ERROR_NONE] = EXIT_DONE,          [ERROR_INVALID] = EXIT_USAGE,
        [ERROR_NOT_FOUND] = EXIT_FAILED,   [ERROR_DENIED] = EXIT_FAILED,
        [ERROR_CONFLICT] = EXIT_FAILED,    [ERROR_LIMIT] = EXIT_FAILED,
        [ERROR_TIMEOUT] = EXIT_TIMEOUT,    [ERROR_GONE] = EXIT_FAILED,
        [ERROR_UNAVAILABLE] = EXIT_FAILED, [ERROR_SYSTEM] = EXIT_FAILED,
    };
    return (unsigned)kind < sizeof codes / sizeof *codes ? codes[kind] : EXIT_FAILED;
}

void exit_tell(const struct error *err)
{
    (void)fprintf(stderr, "burrow: %s\n", err->text);
}
