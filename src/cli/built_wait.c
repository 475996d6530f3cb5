/* SPDX-License-Identifier: Apache-2.0 */
/* Patience with a runtime that is being made; see built_wait.h. */
#include "cli/built_wait.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/progress_bar.h"
#include "cli/say.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 500
#define BAR 24

/* "… (installing packages, 30 %) …", as the server says how far it is: a bar with the rate and the time that is left. The caller frees it. */
static char *bar_of(struct built_wait *wait, const char *text)
{
    const char *state = strrchr(text, '(');
    const char *comma = state ? strrchr(state, ',') : NULL;
    unsigned percent = 0;

    if (!comma || sscanf(comma, ", %3u %%", &percent) != 1 || percent > 100)
        return xstrdup(text);
    uint64_t now = clock_monotonic_ms();
    if (!wait->since_ms || percent < wait->first_percent) {
        wait->since_ms = now;
        wait->first_percent = percent;
    }
    autofree char *pace =
        progress_pace(wait->first_percent * 10, percent * 10, now - wait->since_ms);
    unsigned full = percent * BAR / 100;
    return xasprintf("[%.*s%*s] %s  %.*s", (int)full, "########################", (int)(BAR - full),
                     "", pace, (int)(comma - state - 1), state + 1);
}

static void tell(struct built_wait *wait, const char *text)
{
    uint16_t rows, cols;

    if (wait->is_quiet)
        return;
    if (isatty(STDERR_FILENO)) {
        autofree char *line = bar_of(wait, text);
        quote_scrub(line);
        terminal_size(STDERR_FILENO, &rows, &cols);
        (void)fprintf(stderr, "\r%.*s\033[K", cols > 1 ? cols - 1 : 1, line);
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
