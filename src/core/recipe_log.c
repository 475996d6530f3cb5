/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of builds: a file each, a line an entry, "TIME LEVEL STEP TEXT"; see recipe_impl.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/recipe_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIRECTORY "recipes"
#define LINE_MOST 4000
#define LEVELS "diwe" // in the order of enum recipe_level
#define SANDBOX 's'   // not an entry: the sandbox that it is built in

static char *path_of(const char *data_dir, const char *id)
{
    return xasprintf("%s/" DIRECTORY "/%s", data_dir, id);
}

int recipe_log_create(const char *data_dir, const char *id, struct recipe_log *out,
                      struct error *err)
{
    autofree char *directory = xasprintf("%s/" DIRECTORY, data_dir);
    autofree char *path = path_of(data_dir, id);

    if (fd_make_dirs(directory, 0700, err) < 0)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return error_refuse(err, ERROR_STATE, "snapshot", "the build was begun before");
    if (fd < 0)
        return error_sys(err, "make '%s'", path);
    *out = (struct recipe_log){.fd = fd};
    return 0;
}

int recipe_log_open(const char *data_dir, const char *id, struct recipe_log *out, struct error *err)
{
    autofree char *path = path_of(data_dir, id);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    *out = (struct recipe_log){.fd = fd};
    return 0;
}

void recipe_log_close(struct recipe_log *log)
{
    closep(&log->fd);
}

void recipe_log_remove(const char *data_dir, const char *id)
{
    autofree char *path = path_of(data_dir, id);
    (void)unlink(path);
}

static void write_line(struct recipe_log *log, char level, int step, const char *text)
{
    autofree char *line =
        xasprintf("%" PRIu64 " %c %d %.*s\n", clock_wall_ms(), level, step, LINE_MOST, text);
    size_t length = strlen(line);

    for (size_t i = 0; i + 1 < length; i++) {
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    }
    (void)fd_write_all(log->fd, line, length); // a full disk costs the log, not the build
    log->written += length;
}

void recipe_log_add(struct recipe_log *log, enum recipe_level level, int step, const char *format,
                    ...)
{
    char text[LINE_MOST + 1];
    va_list arguments;

    if (log->fd < 0 || (log->is_full && level < RECIPE_ERROR))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (log->written > RECIPE_LOG_MOST && level < RECIPE_ERROR) {
        log->is_full = true;
        write_line(log, LEVELS[RECIPE_WARN], step, "the log is too long: the rest is left out");
        return;
    }
    write_line(log, LEVELS[level], step, text);
}

void recipe_log_sandbox(struct recipe_log *log, const char *sandbox_id)
{
    if (log->fd >= 0)
        write_line(log, SANDBOX, 0, sandbox_id);
}

/* Calls fn for each line of the file; `line` is cut up. A last one without its end is none. */
static int each_line(const char *data_dir, const char *id,
                     bool (*fn)(void *data, char kind, const struct recipe_line *line), void *data,
                     struct error *err)
{
    autofree char *path = path_of(data_dir, id);
    autofree char *text = NULL;
    size_t room = 0;
    ssize_t length;

    autofile file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? 0 : error_sys(err, "open '%s'", path);
    while ((length = getline(&text, &room, file)) > 0 && text[length - 1] == '\n') {
        struct recipe_line line = {0};
        char kind;
        int begin = 0;
        text[length - 1] = '\0';
        if (sscanf(text, "%" SCNd64 " %c %d%n", &line.at, &kind, &line.step, &begin) < 3 || !begin)
            continue;
        line.text = text + begin + (text[begin] == ' ');
        if (!fn(data, kind, &line))
            break;
    }
    return 0;
}

struct reading {
    int64_t from, most, number;
    void (*fn)(void *data, const struct recipe_line *line);
    void *data;
};

static bool read_line(void *data, char kind, const struct recipe_line *line)
{
    struct reading *reading = data;
    const char *level = strchr(LEVELS, kind);
    struct recipe_line told = *line;

    if (!level || reading->number++ < reading->from)
        return true;
    told.level = (enum recipe_level)(level - LEVELS);
    reading->fn(reading->data, &told);
    return --reading->most > 0;
}

int recipe_log_read(struct core *core, const char *id, int64_t from, int64_t most,
                    void (*fn)(void *data, const struct recipe_line *line), void *data,
                    struct error *err)
{
    struct reading reading = {.from = from, .most = most, .fn = fn, .data = data};

    return id_is_valid(id) ? each_line(core->settings.data_dir, id, read_line, &reading, err) : 0;
}

static bool find_sandbox(void *data, char kind, const struct recipe_line *line)
{
    if (kind == SANDBOX && id_is_valid(line->text))
        (void)snprintf(data, ID_TEXT, "%s", line->text);
    return true;
}

void recipe_log_find_sandbox(const char *data_dir, const char *id, char sandbox_id[ID_TEXT])
{
    struct error ignored = {0};

    *sandbox_id = '\0';
    (void)each_line(data_dir, id, find_sandbox, sandbox_id, &ignored);
}

static bool find_step(void *data, char kind, const struct recipe_line *line)
{
    if (kind == LEVELS[RECIPE_ERROR])
        *(int *)data = line->step;
    return true;
}

int recipe_log_failed_step(const char *data_dir, const char *id)
{
    struct error ignored = {0};
    int step = 0;

    (void)each_line(data_dir, id, find_step, &step, &ignored);
    return step;
}

int recipe_logs_each(const char *data_dir, int64_t before, void (*fn)(void *data, const char *id),
                     void *data, struct error *err)
{
    autofree char *path = xasprintf("%s/" DIRECTORY, data_dir);
    const struct dirent *entry;
    struct stat info;

    autodir directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, "look into '%s'", path);
    while ((entry = readdir(directory))) {
        if (id_is_valid(entry->d_name) &&
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            (int64_t)info.st_mtim.tv_sec * 1000 < before)
            fn(data, entry->d_name);
    }
    return 0;
}
