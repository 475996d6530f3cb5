/* SPDX-License-Identifier: Apache-2.0 */
/* What commands say, but for tables (table.c); see say.h. */
#include "cli/say.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/exit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- failures ----

int say_fail(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
{
    va_list arguments;

    *err = (struct burrow_error){.kind = kind};
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    quote_scrub(err->text);
    return -1;
}

int say_fail_sys(struct burrow_error *err, const char *format, ...)
{
    int sys = errno;
    va_list arguments;

    *err = (struct burrow_error){.kind = BURROW_LOCAL, .sys = sys};
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    quote_scrub(err->text);
    size_t length = strlen(err->text);
    (void)snprintf(err->text + length, sizeof err->text - length, ": %s", strerror(sys));
    return -1;
}

int say_exit_code(const struct burrow_error *err)
{
    static const int codes[] = {
        [BURROW_INVALID] = EXIT_USAGE,         [BURROW_NOT_FOUND] = EXIT_NO_SUCH,
        [BURROW_DENIED] = EXIT_DENIED,         [BURROW_CONFLICT] = EXIT_CONFLICT,
        [BURROW_LIMIT] = EXIT_LIMIT,           [BURROW_TIMEOUT] = EXIT_TIMEOUT,
        [BURROW_GONE] = EXIT_NO_SUCH,          [BURROW_SERVER] = EXIT_FAILED,
        [BURROW_UNREACHABLE] = EXIT_NO_SERVER, [BURROW_BROKEN] = EXIT_NO_SERVER,
        [BURROW_PROTOCOL] = EXIT_NO_SERVER,    [BURROW_LOCAL] = EXIT_FAILED,
        [BURROW_CANCELLED] = EXIT_INTERRUPTED,
    };
    bool is_known = err->kind > BURROW_OK && (size_t)err->kind < ARRAY_SIZE(codes);
    if (err->kind == BURROW_LOCAL && err->sys == EPIPE)
        return EXIT_SIGNAL + 13; // as the shell says of who was ended by SIGPIPE
    return is_known ? codes[err->kind] : EXIT_FAILED;
}

/* What to do next, where neither the server nor the sentence says it. */
static const char *next_step(const struct burrow_error *err)
{
    if (err->status == 401) // the server tells of headers
        return "set BURROW_API_KEY, or 'burrow context add' the server with a key; 'burrow key "
               "create' makes one";
    if (*err->remedy && strcmp(err->code, "invalid_request") != 0) // whose sentence says it all
        return err->remedy;
    switch (err->kind) {
    case BURROW_UNREACHABLE:
        return "is it running? 'burrow serve' starts one here; 'burrow context list' shows those "
               "you "
               "know";
    case BURROW_BROKEN:
        return "what was begun may go on there: look with 'burrow ps' and 'burrow list'";
    default:
        return NULL;
    }
}

/* The server's word; else what kind of failure it is, in the words the server has for those. */
static const char *code_of(const struct burrow_error *err)
{
    static const char *const words[] = {
        [BURROW_INVALID] = "invalid_request",
        [BURROW_NOT_FOUND] = "not_found",
        [BURROW_DENIED] = "denied",
        [BURROW_CONFLICT] = "conflict",
        [BURROW_LIMIT] = "limit",
        [BURROW_TIMEOUT] = "timeout",
        [BURROW_GONE] = "gone",
        [BURROW_SERVER] = "server",
        [BURROW_UNREACHABLE] = "unreachable",
        [BURROW_BROKEN] = "broken",
        [BURROW_PROTOCOL] = "protocol",
        [BURROW_LOCAL] = "local",
        [BURROW_CANCELLED] = "cancelled",
    };
    bool is_known = err->kind > BURROW_OK && (size_t)err->kind < ARRAY_SIZE(words);

    if (*err->code)
        return err->code;
    return is_known ? words[err->kind] : words[BURROW_LOCAL];
}

void say_put_error(struct json_writer *json, const struct burrow_error *err)
{
    json_key(json, "error");
    json_map_begin(json);
    say_put_text(json, "code", code_of(err));
    say_put_text(json, "message", err->text);
    say_put_text(json, "remedy", *err->remedy ? err->remedy : NULL);
    say_put_text(json, "requestId", *err->request_id ? err->request_id : NULL);
    if (err->status) {
        json_key(json, "status");
        json_integer(json, err->status);
    }
    json_map_end(json);
}

static void write_error(const struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;
    struct burrow_error ignored;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_error(&json, err);
    json_map_end(&json);
    (void)say_written(&json, &text, &ignored);
}

int say_error(const struct burrow_error *err, bool is_json)
{
    bool is_silent =
        err->kind == BURROW_LOCAL && err->sys == EPIPE; // whoever reads has seen enough
    const char *next = next_step(err);

    (void)fflush(stdout);
    if (!is_silent) {
        bool has_colours = say_has_error_colours();
        (void)fprintf(stderr, "%sburrow:%s %s\n", has_colours ? "\033[31m" : "",
                      has_colours ? "\033[0m" : "", err->text);
        if (next && *next && !strstr(err->text, next))
            (void)fprintf(stderr, "burrow: next: %s\n", next);
        if (err->kind == BURROW_SERVER && *err->request_id)
            (void)fprintf(stderr, "burrow: the server's log knows it as request %s\n",
                          err->request_id);
    }
    if (is_json && !is_silent)
        write_error(err);
    return say_exit_code(err);
}

// ---- JSON ----

void say_json_part(const char *text)
{
    for (const char *at = text; *at;) {
        unsigned char first = (unsigned char)at[0], second = (unsigned char)at[1];
        bool is_upper = first == 0xc2 && second >= 0x80 && second < 0xa0;
        if (!is_upper && first != 0x7f) {
            at++;
            continue;
        }
        (void)fwrite(text, 1, (size_t)(at - text), stdout);
        (void)printf("\\u%04x", is_upper ? second : first);
        text = at += is_upper ? 2 : 1;
    }
    (void)fputs(text, stdout);
}

int say_json(const char *text, struct burrow_error *err)
{
    say_json_part(*text ? text : "null");
    (void)putchar('\n');
    if (fflush(stdout) != 0 || ferror(stdout))
        return say_fail_sys(err, "write to standard output");
    return 0;
}

void say_put(struct json_writer *json, const char *key, const struct burrow_value *value)
{
    if (!value)
        return;
    if (key)
        json_key(json, key);
    json_value(json, (const struct data_value *)value);
}

void say_put_text(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(json, key);
    json_string(json, text);
}

void say_put_members(struct json_writer *json, const struct burrow_value *thing)
{
    const char *id = burrow_text(burrow_get(thing, "id"));

    if (id && strncmp(id, "sbx_", 4) == 0) {
        say_put_text(json, "sandboxId", id);
        say_put(json, "status", burrow_get(thing, "state"));
    } else if (id && strncmp(id, "snp_", 4) == 0) {
        say_put_text(json, "snapshotId", id);
    }
    for (const struct burrow_value *each = burrow_first(thing); each; each = burrow_next(each))
        say_put(json, burrow_key(each), each);
}

int say_thing(const struct burrow_value *thing, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_members(&json, thing);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

int say_finish(struct json_writer *json, struct burrow_error *err)
{
    struct error error = {0};

    return json_writer_finish(json, &error) < 0 ? say_fail(err, BURROW_LOCAL, "%s", error.text) : 0;
}

int say_written(struct json_writer *json, struct buffer *text, struct burrow_error *err)
{
    return say_finish(json, err) < 0 ? -1 : say_json(text->data ? text->data : "", err);
}

int say_value(const struct burrow_value *value, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    if (value)
        say_put(&json, NULL, value);
    else
        json_null(&json);
    return say_written(&json, &text, err);
}

// ---- for people ----

const char *say_size(int64_t bytes, char text[SAY_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double amount = (double)bytes;
    unsigned unit = 0;

    while (amount >= 1023.95 && unit + 1 < ARRAY_SIZE(units)) {
        amount /= 1024;
        unit++;
    }
    (void)snprintf(text, SAY_TEXT, unit && amount < 99.95 ? "%.1f %s" : "%.0f %s", amount,
                   units[unit]);
    return text;
}

const char *say_duration(int64_t ms, char text[SAY_TEXT])
{
    int64_t s = ms / 1000;

    if (ms < 1000)
        (void)snprintf(text, SAY_TEXT, "%" PRId64 "ms", ms < 0 ? 0 : ms);
    else if (ms < 10000)
        (void)snprintf(text, SAY_TEXT, "%.1fs", (double)ms / 1000);
    else if (s < 60)
        (void)snprintf(text, SAY_TEXT, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(text, SAY_TEXT, "%" PRId64 "m %" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(text, SAY_TEXT, "%" PRId64 "h %" PRId64 "m", s / 3600, s / 60 % 60);
    else
        (void)snprintf(text, SAY_TEXT, "%" PRId64 "d %" PRId64 "h", s / 86400, s / 3600 % 24);
    return text;
}

int64_t say_time_ms(const char *time)
{
    struct tm parts = {0};
    int ms = 0, n = 0;

    if (!time || sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon,
                        &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &n) != 6)
        return -1;
    if (time[n] == '.')
        (void)sscanf(time + n + 1, "%3d", &ms);
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    return (int64_t)timegm(&parts) * 1000 + ms;
}

const char *say_ago(const char *time, char text[SAY_TEXT])
{
    int64_t at = say_time_ms(time);
    char part[SAY_TEXT];

    if (at < 0) {
        (void)snprintf(text, SAY_TEXT, "%.40s", time ? time : "");
        quote_scrub(text);
        return text;
    }
    int64_t ago = (int64_t)clock_wall_ms() - at;
    if (ago < 0)
        (void)snprintf(text, SAY_TEXT, "in %s", say_duration(-ago, part));
    else
        (void)snprintf(text, SAY_TEXT, ago < 1000 ? "now" : "%s ago",
                       say_duration(ago / 1000 * 1000, part));
    return text;
}

/* Looked at once: every cell of a table asks. */
static bool may_colour(int fd)
{
    static enum { NOT_LOOKED, PLAIN, COLOURED } known[STDERR_FILENO + 1];

    if (known[fd] == NOT_LOOKED) {
        const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
        bool may = isatty(fd) && !(none && *none) && !(term && strcmp(term, "dumb") == 0);
        known[fd] = may ? COLOURED : PLAIN;
    }
    return known[fd] == COLOURED;
}

bool say_has_colours(void)
{
    return may_colour(STDOUT_FILENO);
}

bool say_has_error_colours(void)
{
    return may_colour(STDERR_FILENO);
}

const char *say_begin(enum say_colour colour)
{
    static const char *const codes[] = {
        [SAY_PLAIN] = "\033[0m", [SAY_BOLD] = "\033[1m",   [SAY_DIM] = "\033[2m",
        [SAY_RED] = "\033[31m",  [SAY_GREEN] = "\033[32m", [SAY_YELLOW] = "\033[33m",
        [SAY_BLUE] = "\033[34m",
    };
    return say_has_colours() ? codes[colour] : "";
}

enum say_colour say_state_colour(const char *state)
{
    static const struct {
        const char *state;
        enum say_colour colour;
    } rows[] = {
        {"running", SAY_GREEN}, {"idle", SAY_GREEN},       {"completed", SAY_GREEN},
        {"paused", SAY_YELLOW}, {"suspended", SAY_YELLOW}, {"queued", SAY_YELLOW},
        {"creating", SAY_BLUE}, {"stopping", SAY_BLUE},    {"failed", SAY_RED},
        {"timed_out", SAY_RED}, {"cancelled", SAY_DIM},    {"terminated", SAY_DIM},
        {"ended", SAY_DIM},
    };

    for (size_t i = 0; state && i < ARRAY_SIZE(rows); i++) {
        if (strcmp(state, rows[i].state) == 0)
            return rows[i].colour;
    }
    return SAY_PLAIN;
}

char *say_clean(const char *text)
{
    char *copy = xstrdup(text ? text : "");

    quote_scrub(copy);
    return copy;
}

/* What is said without control characters, whoever's words are in it. The caller frees it. */
static char *clean_format(const char *format, va_list arguments)
{
    char *text = xvasprintf(format, arguments);

    quote_scrub(text);
    return text;
}

void say_line(const char *text)
{
    autofree char *clean = say_clean(text);

    (void)puts(clean);
}

void say_done(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    autofree char *text = clean_format(format, arguments);
    va_end(arguments);
    (void)printf("%s%s\n", say_has_colours() ? "\033[32m✓\033[0m " : "", text);
}

void say_note(const char *format, ...)
{
    va_list arguments;

    (void)fflush(stdout);
    va_start(arguments, format);
    autofree char *text = clean_format(format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "burrow: %s\n", text);
}

void say_left_out(const struct burrow_value *answer)
{
    const struct burrow_value *item = burrow_first(burrow_get(answer, "leftOut"));

    for (; item; item = burrow_next(item)) {
        autofree char *clean = say_clean(burrow_text(item));
        say_note("left out: %s, a directory of the host", clean);
    }
}

bool say_confirm(bool is_confirmed, const char *format, ...)
{
    va_list arguments;
    char answer[32] = "";

    if (is_confirmed || !isatty(STDIN_FILENO))
        return true;
    va_start(arguments, format);
    autofree char *text = clean_format(format, arguments);
    va_end(arguments);
    // whoever sent standard error elsewhere is there all the same
    autofd terminal =
        isatty(STDERR_FILENO) ? dup(STDERR_FILENO) : open("/dev/tty", O_WRONLY | O_CLOEXEC);
    if (terminal < 0)
        return true;
    (void)fflush(stderr);
    (void)dprintf(terminal, "%s [y/N] ", text);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}
