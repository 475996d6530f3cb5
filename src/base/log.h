/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line, one event, facts as fields, to stderr: log_info("sandbox started", F("id", id), F("ms",
 * ms)). Each line is one write, so lines of several threads do not mix.
 * Threads: any; log_configure once, before there are others.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR, // someone should act
    LOG_LEVEL_WARN,  // went on without, and says so
    LOG_LEVEL_INFO,  // lifecycle
    LOG_LEVEL_DEBUG,
};

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_field {
    const char *name;   // NULL ends the list
    const char *prefix; // of a text; NULL: none
    enum { LOG_FIELD_TEXT, LOG_FIELD_SIGNED, LOG_FIELD_UNSIGNED, LOG_FIELD_BOOL } type;
    union {
        const char *text; // NULL is written as null
        int64_t number;
        uint64_t natural;
        bool is_true;
    };
};

/* Lines above `level` are dropped. Starts as info, text, to fd 2. */
void log_configure(enum log_level level, enum log_format format, int fd);
void log_set_level(enum log_level level); // at any time
bool log_is_on(enum log_level level);

/* "error", "warn", "info", "debug"; -1 for any other word. */
int log_level_parse(const char *name, enum log_level *out);

void log_write(enum log_level level, const char *message, const struct log_field *fields);

/*
 * The same without ever waiting for whoever reads the log: the line is queued, and a thread of its own writes it within some
 * milliseconds, many at once. While the queue (1 MiB) is full, lines are dropped and a later line says how many. For lines of
 * which there are many. Without the thread: as log_write.
 */
void log_write_later(enum log_level level, const char *message, const struct log_field *fields);
void log_writer_start(void);
void log_writer_stop(void); // writes what is queued first; nothing when it was not started

static inline struct log_field log_field_text(const char *name, const char *text)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_TEXT, .text = text};
}

/* An id as people know it: log_field_id("sandbox", "sbx_", id). */
static inline struct log_field log_field_id(const char *name, const char *prefix, const char *id)
{
    return (struct log_field){.name = name, .prefix = prefix, .type = LOG_FIELD_TEXT, .text = id};
}

static inline struct log_field log_field_signed(const char *name, int64_t number)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_SIGNED, .number = number};
}

static inline struct log_field log_field_unsigned(const char *name, uint64_t natural)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_UNSIGNED, .natural = natural};
}

static inline struct log_field log_field_bool(const char *name, bool is_true)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_BOOL, .is_true = is_true};
}

#define F(name, value)                                                                             \
    _Generic((value),                                                                              \
             char *: log_field_text,                                                               \
             const char *: log_field_text,                                                         \
             bool: log_field_bool,                                                                 \
             unsigned: log_field_unsigned,                                                         \
             unsigned long: log_field_unsigned,                                                    \
             unsigned long long: log_field_unsigned,                                               \
             default: log_field_signed)(name, value)

#define log_line(level, message, ...)                                                              \
    do {                                                                                           \
        if (log_is_on(level))                                                                      \
            log_write(level, message, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}});  \
    } while (0)

/* At info, by log_write_later. */
#define log_info_later(message, ...)                                                               \
    do {                                                                                           \
        if (log_is_on(LOG_LEVEL_INFO))                                                             \
            log_write_later(LOG_LEVEL_INFO, message,                                               \
                            (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}});            \
    } while (0)

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
