/* SPDX-License-Identifier: Apache-2.0 */
/* How far something is; see progress_bar.h. */
#include "cli/progress_bar.h"

#include "base/clock.h"
#include "cli/say.h"

#include <unistd.h>

#define PATIENCE_MS 1000
#define STEP_MS 200
#define BAR 24

void progress_init(struct progress *progress, const char *what, uint64_t total, bool is_off)
{
    *progress = (struct progress){.what = what, .total = total, .since_ms = clock_monotonic_ms()};
    progress->is_off = is_off || !isatty(STDERR_FILENO);
}

static void draw(const struct progress *progress, uint64_t taken_ms)
{
    char done[SAY_TEXT], total[SAY_TEXT], rate[SAY_TEXT], left[SAY_TEXT];
    uint64_t speed = progress->done * 1000 / taken_ms;

    (void)say_size((int64_t)progress->done, done);
    (void)say_size((int64_t)speed, rate);
    if (!progress->total || progress->done > progress->total) {
        (void)fprintf(stderr, "\r%s  %s  %s/s\033[K", progress->what, done, rate);
        return;
    }
    unsigned full = (unsigned)(progress->done * BAR / progress->total);
    (void)fprintf(stderr, "\r%s  [%.*s%*s] %s of %s  %s/s", progress->what, (int)full,
                  "########################", (int)(BAR - full), "", done,
                  say_size((int64_t)progress->total, total), rate);
    if (speed)
        (void)fprintf(
            stderr, "  %s left",
            say_duration((int64_t)((progress->total - progress->done) / speed * 1000), left));
    (void)fputs("\033[K", stderr);
}

void progress_set(struct progress *progress, uint64_t done)
{
    progress->done = done;
    if (progress->is_off)
        return;
    uint64_t now = clock_monotonic_ms();
    if (now - progress->since_ms < PATIENCE_MS || now - progress->drawn_ms < STEP_MS)
        return;
    progress->drawn_ms = now;
    progress->is_shown = true;
    draw(progress, now - progress->since_ms);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        (void)fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
