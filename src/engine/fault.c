/* SPDX-License-Identifier: Apache-2.0 */
/* Launch steps that fail for tests; see fault.h. */
#include "engine/fault.h"

#include <errno.h>
#include <stdio.h>

void fault_set(const char *step, int code, struct fault *out)
{
    *out = (struct fault){.code = code ? code : EIO};
    if (step)
        (void)snprintf(out->step, sizeof out->step, "%s", step);
}

void fault_read(const char *path, struct fault *out)
{
    FILE *file = fopen(path, "re");

    *out = (struct fault){0};
    if (!file)
        return;
    if (fscanf(file, "%31s %d", out->step, &out->code) != 2)
        *out = (struct fault){0};
    (void)fclose(file);
}
