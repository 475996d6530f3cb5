/* SPDX-License-Identifier: Apache-2.0 */
/* How far something is; see progress_bar.h. */
#include "cli/progress_bar.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/say.h"
#include "cli/terminal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 1000
#define STEP_MS 200
#define BAR 24

void progress_init(struct progress *progress, const char *what, uint64_t total, bool is_off)
{
    *progress = (struct progress){.what = what, .total = total, .since_ms = clock_monotonic_ms()};
    progress->is_off = is_off || !isatty(STDERR_FILENO);
}

/* So much of a text as is not more than so many bytes, whole characters. */
static int part_of(const char *text, size_t most)
{
    size_t length = strlen(text);

    if (length <= most)
        return (int)length;
    while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return (int)most;
}

/* How far it is, how fast, and for how long still: "[###   ] 1.0 MiB of 2.0 MiB  512 KiB/s  2.0s left". */
static char *tell(const struct progress *progress, uint64_t taken_ms)
{
    char done[SAY_TEXT], total[SAY_TEXT], rate[SAY_TEXT], left[SAY_TEXT];
    uint64_t speed = progress->done * 1000 / taken_ms;

    (void)say_size((int64_t)progress->done, done);
    (void)say_size((int64_t)speed, rate);
    if (!progress->total || progress->done > progress->total)
        return xasprintf("%s  %s/s", done, rate);
    unsigned full = (unsigned)(progress->done * BAR / progress->total);
    uint64_t rest = progress->total - progress->done;
    bool has_rest = speed != 0;
    return xasprintf("[%.*s%*s] %s of %s  %s/s%s%s%s", (int)full, "########################",
                     (int)(BAR - full), "", done, say_size((int64_t)progress->total, total), rate,
                     has_rest ? "  " : "",
                     has_rest ? say_duration((int64_t)(rest * 1000 / speed), left) : "",
                     has_rest ? " left" : "");
}

char *progress_pace(unsigned from, unsigned permille, uint64_t taken_ms)
{
    uint64_t done = permille > from ? permille - from : 0;
    char left[SAY_TEXT];

    if (taken_ms < PATIENCE_MS || done == 0 || permille > 1000)
        return xasprintf("%3u%%", permille / 10);
    uint64_t speed = done * 1000 / taken_ms; // thousandths a second
    (void)say_duration((int64_t)(taken_ms * (1000 - permille) / done), left);
    return xasprintf("%3u%%  %" PRIu64 ".%" PRIu64 "%%/s  %s left", permille / 10, speed / 10,
                     speed % 10, left);
}

/* In one line of the terminal, whose first part gives way: a line that wraps could not be drawn over. */
static void draw(const struct progress *progress, uint64_t taken_ms)
{
    autofree char *name = say_clean(progress->what), *rest = tell(progress, taken_ms);
    uint16_t rows, cols;

    terminal_size(STDERR_FILENO, &rows, &cols);
    size_t room = cols > 1 ? cols - 1u : 1;
    size_t left = room > strlen(rest) + 2 ? room - strlen(rest) - 2 : 0;
    int shown = part_of(name, left);
    (void)fprintf(stderr, "\r%.*s%s%.*s\033[K", shown, name, shown ? "  " : "", part_of(rest, room),
                  rest);
}

static bool is_due(const struct progress *progress, uint64_t now)
{
    return !progress->is_off && now - progress->since_ms >= PATIENCE_MS &&
           now - progress->drawn_ms >= STEP_MS;
}

bool progress_wants_total(struct progress *progress)
{
    if (progress->total || progress->has_looked || !is_due(progress, clock_monotonic_ms()))
        return false;
    progress->has_looked = true;
    return true;
}

void progress_set(struct progress *progress, uint64_t done)
{
    progress->done = done;
    uint64_t now = progress->is_off ? 0 : clock_monotonic_ms();
    if (!is_due(progress, now))
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
