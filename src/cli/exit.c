/* SPDX-License-Identifier: Apache-2.0 */
/* How burrow tells of a failure; see exit.h. */
#include "cli/exit.h"

#include "base/auto.h"
#include "data/json_writer.h"

#include <stdio.h>

void exit_tell(const struct error *err)
{
    (void)fprintf(stderr, "burrow: %s\n", err->text);
}

void exit_tell_as(const struct error *err, bool is_json)
{
    autofree char *text = is_json ? json_failure(err->text) : NULL;

    exit_tell(err);
    if (text)
        (void)puts(text);
}
