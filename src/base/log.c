/* SPDX-License-Identifier: Apache-2.0 */
/* The logger; see log.h. */
#include "base/log.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/quote.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

enum { LINE_MAX_BYTES = 16 << 10 }; // fields behind it are left out

static struct {
    atomic_int level; // an enum log_level
    enum log_format format;
    int fd;
} logger = {LOG_LEVEL_INFO, LOG_FORMAT_TEXT, STDERR_FILENO};

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&logger.level, (int)level, memory_order_relaxed);
}

void log_configure(enum log_level level, enum log_format format, int fd)
{
    log_set_level(level);
    logger.format = format;
    logger.fd = fd;
}

bool log_is_on(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&logger.level, memory_order_relaxed);
}

int log_level_parse(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

/* A word that needs no quotes in a text line. */
static bool is_word(const char *text, size_t length)
{
    unsigned others = 0; // counted without a branch, as most texts are words

    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        others += (c <= ' ') | (c > '~') | (c == '"') | (c == '=') | (c == '\\');
    }
    return length > 0 && others == 0;
}

static int add_value(struct buffer *line, const struct log_field *field, struct error *err)
{
    char digits[DECIMAL_TEXT];

    switch (field->type) {
    case LOG_FIELD_SIGNED:
        return buffer_add(line, digits, decimal_format(field->number, digits), err);
    case LOG_FIELD_UNSIGNED:
        return buffer_add(line, digits, decimal_format_natural(field->natural, digits), err);
    case LOG_FIELD_BOOL:
        return buffer_add_text(line, field->is_true ? "true" : "false", err);
    case LOG_FIELD_TEXT:
        break;
    }
    if (!field->text)
        return buffer_add_text(line, "null", err);
    size_t length = strlen(field->text);
    bool is_plain = logger.format == LOG_FORMAT_TEXT && is_word(field->text, length);
    const char *quote = is_plain ? "" : "\"";
    if (buffer_add_text(line, quote, err) < 0 ||
        (field->prefix && buffer_add_text(line, field->prefix, err) < 0))
        return -1;
    int added = is_plain ? buffer_add(line, field->text, length, err)
                         : quote_json_part(line, field->text, length, err);
    return added < 0 ? -1 : buffer_add_text(line, quote, err);
}

static int add_text_field(struct buffer *line, const struct log_field *field, struct error *err)
{
    if (buffer_add(line, " ", 1, err) < 0 || buffer_add_text(line, field->name, err) < 0 ||
        buffer_add(line, "=", 1, err) < 0)
        return -1;
    return add_value(line, field, err);
}

static int add_json_field(struct buffer *line, const struct log_field *field, struct error *err)
{
    if (buffer_add(line, ",", 1, err) < 0 ||
        quote_json(line, field->name, strlen(field->name), err) < 0 ||
        buffer_add(line, ":", 1, err) < 0)
        return -1;
    return add_value(line, field, err);
}

static int add_head(struct buffer *line, enum log_level level, const char *message,
                    struct error *err)
{
    char now[CLOCK_TEXT];
    bool is_json = logger.format == LOG_FORMAT_JSON;

    if ((is_json && buffer_add_text(line, "{\"time\":\"", err) < 0) ||
        buffer_add_text(line, clock_format(clock_wall_ms(), now), err) < 0 ||
        buffer_add_text(line, is_json ? "\",\"level\":\"" : " ", err) < 0 ||
        buffer_add_text(line, level_names[level], err) < 0 ||
        buffer_add_text(line, is_json ? "\",\"message\":\"" : " ", err) < 0 ||
        quote_json_part(line, message, strlen(message), err) < 0)
        return -1;
    return is_json ? buffer_add(line, "\"", 1, err) : 0;
}

/* Adds the line behind what is there. False: there is nothing to write, and nothing whole was added. */
static bool make_line(struct buffer *line, enum log_level level, const char *message,
                      const struct log_field *fields)
{
    struct error err;

    line->maximum = line->length + LINE_MAX_BYTES;
    if (!log_is_on(level) || add_head(line, level, message, &err) < 0)
        return false;
    for (; fields->name; fields++) {
        size_t before = line->length;
        int added = logger.format == LOG_FORMAT_JSON ? add_json_field(line, fields, &err)
                                                     : add_text_field(line, fields, &err);
        if (added < 0) { // too long: the line stays well formed without it
            line->length = before;
            break;
        }
    }
    line->maximum = 0;
    return buffer_add_text(line, logger.format == LOG_FORMAT_JSON ? "}\n" : "\n", &err) == 0;
}

/* One at a time: a pipe takes more than 4 KiB in pieces, and another line must not come between them. */
static void write_lines(const struct buffer *lines)
{
    static struct lock lock = {PTHREAD_MUTEX_INITIALIZER, LOCK_LOG};
    autolock(&lock);

    (void)fd_write_all(logger.fd, lines->data, lines->length); // nowhere to tell
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    autobuffer line = {0};

    if (make_line(&line, level, message, fields))
        write_lines(&line);
}

// ---- lines that wait for a thread ----

#define QUEUE_BYTES ((size_t)1 << 20)
#define GATHER_MS 10 // after the first line, before all that came are written: one wake-up for many

static struct {
    struct lock lock; // guards all below
    struct lock_condition wake;
    struct buffer lines;
    size_t dropped; // since the last line that said so
    bool is_running, is_stopping;
    bool is_asleep; // the writer waits for a first line
    pthread_t thread;
} queue = {.lock = {PTHREAD_MUTEX_INITIALIZER, LOCK_LOG_QUEUE}};

/* Made where it waits: a line costs its thread no memory of its own and is copied once. */
static void add_to_queue(enum log_level level, const char *message, const struct log_field *fields)
{
    autolock(&queue.lock);
    size_t before = queue.lines.length;

    if (!make_line(&queue.lines, level, message, fields) || queue.lines.length > QUEUE_BYTES) {
        queue.lines.length = before;
        queue.dropped++;
        return;
    }
    if (queue.is_asleep)
        lock_condition_wake(&queue.wake);
    queue.is_asleep = false;
}

void log_write_later(enum log_level level, const char *message, const struct log_field *fields)
{
    if (!log_is_on(level))
        return;
    if (queue.is_running)
        add_to_queue(level, message, fields);
    else
        log_write(level, message, fields);
}

/* Gets the queue's buffer for an empty one; false: it is time to stop. */
static bool take_queue(struct buffer *lines, size_t *dropped)
{
    autolock(&queue.lock);

    while (!queue.lines.length && !queue.dropped && !queue.is_stopping) {
        queue.is_asleep = true;
        (void)lock_condition_wait(&queue.wake, &queue.lock, 0);
    }
    if (!queue.is_stopping)
        (void)lock_condition_wait(&queue.wake, &queue.lock, clock_monotonic_ms() + GATHER_MS);
    struct buffer empty = *lines;
    *lines = queue.lines;
    queue.lines = empty;
    *dropped = queue.dropped;
    queue.dropped = 0;
    return lines->length || *dropped || !queue.is_stopping;
}

static void *run_writer(void *unused)
{
    autobuffer lines = {0};
    size_t dropped = 0;

    thread_set_name("log");
    while (take_queue(&lines, &dropped)) {
        write_lines(&lines);
        lines.length = 0;
        if (dropped)
            log_warn("log lines dropped", F("count", dropped));
    }
    return unused;
}

void log_writer_start(void)
{
    lock_condition_init(&queue.wake);
    queue.is_stopping = false;
    queue.is_running = pthread_create(&queue.thread, NULL, run_writer, NULL) == 0;
}

void log_writer_stop(void)
{
    if (!queue.is_running)
        return;
    lock_take(&queue.lock);
    queue.is_stopping = true;
    lock_condition_wake(&queue.wake);
    lock_release(&queue.lock);
    (void)pthread_join(queue.thread, NULL);
    queue.is_running = false;
    buffer_clear(&queue.lines);
    lock_condition_clear(&queue.wake);
}
