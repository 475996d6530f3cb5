/* SPDX-License-Identifier: Apache-2.0 */
/* The logger; see log.h. */
#include "base/log.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/quote.h"

#include <inttypes.h>
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
static bool is_word(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~' || *text == '"' || *text == '=' || *text == '\\')
            return false;
    }
    return true;
}

static int add_value(struct buffer *line, const struct log_field *field, struct error *err)
{
    switch (field->type) {
    case LOG_FIELD_SIGNED:
        return buffer_addf(line, err, "%" PRId64, field->number);
    case LOG_FIELD_UNSIGNED:
        return buffer_addf(line, err, "%" PRIu64, field->natural);
    case LOG_FIELD_BOOL:
        return buffer_add_text(line, field->is_true ? "true" : "false", err);
    case LOG_FIELD_TEXT:
        break;
    }
    if (!field->text)
        return buffer_add_text(line, "null", err);
    if (logger.format == LOG_FORMAT_TEXT && is_word(field->text))
        return buffer_add_text(line, field->text, err);
    return quote_json(line, field->text, strlen(field->text), err);
}

static int add_text_field(struct buffer *line, const struct log_field *field, struct error *err)
{
    if (buffer_addf(line, err, " %s=", field->name) < 0)
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
    clock_format(clock_wall_ms(), now);
    if (logger.format == LOG_FORMAT_JSON) {
        if (buffer_addf(line, err, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", now,
                        level_names[level]) < 0)
            return -1;
        return quote_json(line, message, strlen(message), err);
    }
    if (buffer_addf(line, err, "%s %s ", now, level_names[level]) < 0)
        return -1;
    return quote_json_part(line, message, strlen(message), err);
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    autobuffer line = {.maximum = LINE_MAX_BYTES};
    struct error err;

    if (!log_is_on(level) || add_head(&line, level, message, &err) < 0)
        return;
    for (; fields->name; fields++) {
        size_t before = line.length;
        int added = logger.format == LOG_FORMAT_JSON ? add_json_field(&line, fields, &err)
                                                     : add_text_field(&line, fields, &err);
        if (added < 0) { // too long: the line stays well formed without it
            line.length = before;
            break;
        }
    }
    line.maximum = 0;
    if (buffer_add_text(&line, logger.format == LOG_FORMAT_JSON ? "}\n" : "\n", &err) == 0)
        (void)fd_write_all(logger.fd, line.data, line.length); // nowhere to tell
}
