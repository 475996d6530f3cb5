/* SPDX-License-Identifier: Apache-2.0 */
/* How burrow tells of a failure; see exit.h. */
#include "cli/exit.h"

#include "data/failure.h"

#include <stdio.h>

void exit_tell(const struct error *err)
{
    (void)fprintf(stderr, "burrow: %s\n", err->text);
}

void exit_tell_as(const struct error *err, bool is_json)
{
    exit_tell(err);
    if (is_json)
        failure_print(err, stdout);
}
