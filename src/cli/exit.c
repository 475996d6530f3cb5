/* SPDX-License-Identifier: Apache-2.0 */
/* How burrow tells of a failure; see exit.h. */
#include "cli/exit.h"

#include <stdio.h>

void exit_tell(const struct error *err)
{
    (void)fprintf(stderr, "burrow: %s\n", err->text);
}
