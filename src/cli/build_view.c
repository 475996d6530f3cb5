/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a build to people and programs; see build_view.h. */
#include "cli/build_view.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/progress_bar.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "data/json_writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define REDRAW_MS 80
#define BAR_WIDTH 24
#define LAST_LINES 8

struct showing {
    const struct build_view *view;
    const struct runtime_definition *definition;
    bool is_terminal;
    uint64_t started_ms, drawn_ms;
    const char *phase; // the last one told
};

static void draw_bar(const struct showing *showing, const struct runtime_progress *progress)
{
    char line[512], bar[BAR_WIDTH + 1];
    unsigned filled = progress->permille * BAR_WIDTH / 1000;
    autofree char *pace =
        progress_pace(0, progress->permille, clock_monotonic_ms() - showing->started_ms);
    uint16_t rows, cols;

    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', filled < BAR_WIDTH ? filled : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    (void)snprintf(line, sizeof line, "%s:%s [%s] %s  %s%s%s", showing->definition->name,
                   showing->definition->tags[0], bar, pace, progress->phase,
                   *progress->detail ? ": " : "", progress->detail);
    quote_scrub(line);
    terminal_size(STDERR_FILENO, &rows, &cols);
    (void)fprintf(stderr, "\r%.*s\033[K", cols > 1 ? cols - 1 : 1, line);
    (void)fflush(stderr);
}

static void clear_bar(const struct showing *showing)
{
    if (showing->is_terminal && showing->drawn_ms)
        (void)fprintf(stderr, "\r\033[K");
}

static void on_progress(void *data, const struct runtime_progress *progress)
{
    struct showing *showing = data;
    bool is_new_phase = !showing->phase || strcmp(showing->phase, progress->phase) != 0;
    uint64_t now = clock_monotonic_ms();

    showing->phase = progress->phase;
    if (!showing->is_terminal) {
        if (is_new_phase)
            (void)fprintf(stderr, "%s:%s: %s\n", showing->definition->name,
                          showing->definition->tags[0], progress->phase);
    } else if (is_new_phase || now - showing->drawn_ms >= REDRAW_MS) {
        showing->drawn_ms = now;
        draw_bar(showing, progress);
    }
}

static void on_wait(void *data)
{
    struct showing *showing = data;

    (void)fprintf(stderr, "%s:%s: another burrow is building; waiting for it\n",
                  showing->definition->name, showing->definition->tags[0]);
}

static void on_note(void *data, const char *note)
{
    const struct showing *showing = data;

    autofree char *clean = say_clean(note);

    clear_bar(showing);
    (void)fprintf(stderr, "%s:%s: %s\n", showing->definition->name, showing->definition->tags[0],
                  clean);
}

/* As other commands of runtimes tell it. */
static void print_json(const struct showing *showing, const struct runtime_status *status,
                       bool was_ready)
{
    autofree char *name =
        xasprintf("%s:%s", showing->definition->name, showing->definition->tags[0]);
    autobuffer text = {0};
    struct json_writer json;
    struct error err;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    json_key(&json, "name");
    json_string(&json, name);
    json_key(&json, "unchanged");
    json_bool(&json, was_ready);
    json_key(&json, "sizeBytes");
    json_natural(&json, status->bytes);
    json_key(&json, "files");
    json_natural(&json, status->files);
    json_key(&json, "durationMs");
    json_natural(&json, clock_monotonic_ms() - showing->started_ms);
    json_map_end(&json);
    if (json_writer_finish(&json, &err) == 0)
        puts(text.data);
}

static void tell_result(const struct showing *showing, bool was_ready)
{
    const struct runtime_definition *definition = showing->definition;
    struct runtime_status status;

    if (showing->view->is_result_hidden)
        return;
    runtime_status(showing->view->data_dir, definition, &status);
    if (showing->view->is_json) {
        print_json(showing, &status, was_ready);
        return;
    }
    printf("%s:%s is %sready: %" PRIu64 " MiB in %" PRIu64 " files", definition->name,
           definition->tags[0], was_ready ? "already " : "", status.bytes >> 20, status.files);
    if (!was_ready)
        printf(", %" PRIu64 " s", (clock_monotonic_ms() - showing->started_ms + 500) / 1000);
    putchar('\n');
}

// The end of the log, where a failed tool said why.
static void tell_last_lines(const struct showing *showing)
{
    autofree char *path = runtime_log_path(showing->view->data_dir, showing->definition);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[4096];
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0)
        return;
    off_t from = info.st_size > (off_t)sizeof text ? info.st_size - (off_t)sizeof text : 0;
    ssize_t length = pread(fd, text, sizeof text - 1, from);
    if (length <= 0)
        return;
    text[length] = '\0';
    char *start = text + length;
    for (int lines = 0; start > text; start--)
        if (start[-1] == '\n' && ++lines > LAST_LINES)
            break;
    char *rest = NULL;
    for (char *line = strtok_r(start, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        quote_scrub(line);
        (void)fprintf(stderr, "  | %s\n", line);
    }
    (void)fprintf(stderr, "  (all of it: %s)\n", path);
}

static int open_signals(sigset_t *before, struct error *err)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &signals, before);
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_sys(err, "watch for signals") : fd;
}

static int read_signal(int signal_fd)
{
    struct signalfd_siginfo info;
    return read(signal_fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int build_view_run(const struct build_view *view, const struct runtime_definition *definition,
                   int *out_signal, struct error *err)
{
    struct showing showing = {.view = view,
                              .definition = definition,
                              .is_terminal = isatty(STDERR_FILENO),
                              .started_ms = clock_monotonic_ms()};
    struct runtime_build_options options = {
        .data_dir = view->data_dir,
        .mirror = view->mirror,
        .registry = view->registry,
        .image_timeout_ms = view->image_timeout_ms,
        .is_forced = view->is_forced,
        .on_progress = view->is_quiet ? NULL : on_progress,
        .on_wait = view->is_quiet ? NULL : on_wait,
        .on_note = on_note,
        .data = &showing,
    };
    sigset_t before;
    bool was_ready = false;

    *out_signal = 0;
    autofd signal_fd = open_signals(&before, err);
    if (signal_fd < 0)
        return -1;
    options.cancel_fd = signal_fd;
    int result = runtime_build(definition, &options, &was_ready, err);
    *out_signal = read_signal(signal_fd);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    clear_bar(&showing);
    if (result == 0 && !view->is_quiet)
        tell_result(&showing, was_ready);
    if (result < 0 && error_is(err, ERROR_TOOL))
        tell_last_lines(&showing);
    return result;
}
