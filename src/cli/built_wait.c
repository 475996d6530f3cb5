/* SPDX-License-Identifier: Apache-2.0 */
/* Patience with a runtime that is being made; see built_wait.h. */
#include "cli/built_wait.h"

#include "cli/say.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 500

static void tell(struct built_wait *wait, const char *text)
{
    if (wait->is_quiet)
        return;
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K%.78s", text);
        (void)fflush(stderr);
        wait->has_line = true;
    } else if (!wait->was_said) {
        say_note("%s", text);
    }
    wait->was_said = true;
}

bool built_wait_again(struct built_wait *wait, struct burrow_error *err)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};

    if (strcmp(err->code, "runtime_not_ready") != 0) {
        if (wait->has_line)
            (void)fputs("\r\033[K", stderr);
        wait->has_line = false;
        return false;
    }
    tell(wait, err->text);
    (void)nanosleep(&pause, NULL);
    *err = (struct burrow_error){0};
    return true;
}
