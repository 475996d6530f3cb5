/* SPDX-License-Identifier: Apache-2.0 */
/* How burrow tells of a failure; see exit.h. */
#include "cli/exit.h"

#include "base/quote.h"
#include "data/failure.h"

#include <stdio.h>

void exit_tell(const struct error *err)
{
    struct error clean = *err; // tools and packages are quoted in it

    quote_scrub(clean.text);
    (void)fprintf(stderr, "burrow: %s\n", clean.text);
}

void exit_tell_as(const struct error *err, bool is_json)
{
    exit_tell(err);
    if (is_json)
        failure_print(err, stdout);
}
