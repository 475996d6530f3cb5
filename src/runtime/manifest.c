/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes manifests of built runtimes; see manifest.h. */
#include "runtime/manifest.h"

#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define HEAD "burrow-runtime 1"

void manifest_free(struct manifest *manifest)
{
    if (!manifest)
        return;
    free(manifest->env);
    free(manifest->layers);
    free(manifest->command);
    free(manifest->binds);
    free(manifest->watches);
    free(manifest->text);
    free(manifest);
}

// ---- opening ----

// 1 when the file was removed between opening and locking it: look again.
static int open_locked(const char *path, int lock, int *out_fd, struct stat *info,
                       struct error *err)
{
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set(err, ERROR_NOT_FOUND, "there is no '%s'", path);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    while (lock && flock(fd, lock) < 0) {
        if (errno == EWOULDBLOCK)
            return error_set(err, ERROR_CONFLICT, "'%s' is in use", path);
        if (errno != EINTR)
            return error_sys(err, "lock '%s'", path);
    }
    if (fstat(fd, info) < 0)
        return error_sys(err, "look at '%s'", path);
    if (info->st_nlink == 0)
        return 1;
    *out_fd = take_fd(fd);
    return 0;
}

int manifest_open(const char *path, int lock, int *out_fd, struct manifest **out, struct error *err)
{
    autofd fd = -1;
    struct stat info;
    int again;

    while ((again = open_locked(path, lock, &fd, &info, err)) == 1)
        continue;
    if (again < 0)
        return -1;
    if (info.st_size > MANIFEST_MAX)
        return error_set(err, ERROR_INVALID, "'%s' is too long to be a manifest", path);
    char *text = xcalloc(1, (size_t)info.st_size + 1);
    if (read(fd, text, (size_t)info.st_size) != info.st_size) {
        free(text);
        return error_set(err, ERROR_SYSTEM, "read '%s': it was cut short", path);
    }
    if (manifest_parse(text, out, err) < 0)
        return error_wrap(err, "read '%s'", path);
    (*out)->written_s = info.st_mtim.tv_sec;
    *out_fd = take_fd(fd);
    return 0;
}

// ---- reading ----

static bool read_number(const char *text, int base, uint64_t *out)
{
    char *end = NULL;

    errno = 0;
    *out = strtoull(text, &end, base);
    return !errno && end != text && *end == '\0';
}

static bool read_bind(struct manifest *manifest, char *text)
{
    char *tab = strchr(text, '\t');

    if (!tab)
        return false;
    *tab = '\0';
    manifest->binds = xrealloc(manifest->binds, manifest->n_binds + 1, sizeof *manifest->binds);
    manifest->binds[manifest->n_binds++] = (struct manifest_bind){.host = text, .box = tab + 1};
    return true;
}

static bool read_watch(struct manifest *manifest, char *text)
{
    struct manifest_watch watch = {0};
    int path = 0;

    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %n", &watch.inode, &watch.size,
               &watch.mtime_ns, &path) != 3 ||
        path == 0)
        return false;
    watch.path = text + path;
    manifest->watches =
        xrealloc(manifest->watches, manifest->n_watches + 1, sizeof *manifest->watches);
    manifest->watches[manifest->n_watches++] = watch;
    return true;
}

static void add_text(char ***list, size_t *count, char *text)
{
    *list = xrealloc(*list, *count + 2, sizeof **list);
    (*list)[(*count)++] = text;
    (*list)[*count] = NULL;
}

// "base/.latest-12ab" or ".layers/sha256-12ab": two names, and no way out of the directory.
static bool is_layer(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && slash != text && slash[1] && !strchr(slash + 1, '/') && !strstr(text, "..");
}

static bool read_listed(struct manifest *manifest, const char *word, char *text)
{
    if (strcmp(word, "env") == 0) {
        add_text(&manifest->env, &manifest->n_env, text);
        return strchr(text, '=') != NULL;
    }
    if (strcmp(word, "layer") == 0) {
        add_text(&manifest->layers, &manifest->n_layers, text);
        return is_layer(text);
    }
    if (strcmp(word, "command") != 0)
        return false;
    add_text(&manifest->command, &manifest->n_command, text);
    return true;
}

static bool read_line(struct manifest *manifest, const char *word, char *text)
{
    const struct {
        const char *word;
        const char **text;
        uint64_t *number;
        int base;
    } fields[] = {
        {"name", &manifest->name, NULL, 0},
        {"tag", &manifest->tag, NULL, 0},
        {"kind", &manifest->kind, NULL, 0},
        {"dir", &manifest->dir, NULL, 0},
        {"made", &manifest->made, NULL, 0},
        {"definition", NULL, &manifest->definition, 16},
        {"files", NULL, &manifest->files, 10},
        {"bytes", NULL, &manifest->bytes, 10},
        {"digest", NULL, &manifest->digest, 16},
        {"user", &manifest->user, NULL, 0},
        {"directory", &manifest->directory, NULL, 0},
        {"description", &manifest->description, NULL, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (strcmp(word, fields[i].word) != 0)
            continue;
        if (fields[i].text)
            *fields[i].text = text;
        return fields[i].text || read_number(text, fields[i].base, fields[i].number);
    }
    if (strcmp(word, "bind") == 0)
        return read_bind(manifest, text);
    if (strcmp(word, "watch") == 0)
        return read_watch(manifest, text);
    return strcmp(word, "note") == 0 || read_listed(manifest, word, text);
}

// "env% A=x%0Ay": a text with line breaks. In place; what is no code stays as it is.
static void decode(char *text)
{
    char *to = text;

    for (const char *at = text; *at; to++) {
        unsigned code;
        if (*at == '%' && sscanf(at + 1, "%2x", &code) == 1 && code && at[1] && at[2]) {
            *to = (char)code;
            at += 3;
        } else {
            *to = *at++;
        }
    }
    *to = '\0';
}

// Without the sign at the end of the word, where it has one.
static void decode_line(char *word, char *text)
{
    size_t length = strlen(word);

    if (length == 0 || word[length - 1] != '%')
        return;
    word[length - 1] = '\0';
    decode(text);
}

int manifest_parse(char *text, struct manifest **out, struct error *err)
{
    autoptr(manifest) manifest = xnew(struct manifest);
    char *line = text, *rest = NULL;
    unsigned number = 1;

    manifest->text = text;
    line = strtok_r(line, "\n", &rest);
    if (!line || strcmp(line, HEAD) != 0)
        return error_set(err, ERROR_INVALID, "the manifest does not start with '%s'", HEAD);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char *space = strchr(line, ' ');
        number++;
        if (space) {
            *space++ = '\0';
            decode_line(line, space);
        }
        if (!space || !read_line(manifest, line, space))
            return error_set(err, ERROR_INVALID, "line %u of the manifest is damaged", number);
    }
    if (!manifest->name || !manifest->tag || !manifest->kind || !manifest->dir || !manifest->made)
        return error_set(err, ERROR_INVALID, "the manifest is cut short");
    if (!manifest->env)
        manifest->env = xcalloc(1, sizeof *manifest->env);
    if (!manifest->command)
        manifest->command = xcalloc(1, sizeof *manifest->command);
    *out = take(manifest);
    return 0;
}

// ---- writing ----

static int add_line(struct buffer *out, const char *word, const char *text, struct error *err)
{
    if (!strchr(text, '\n'))
        return buffer_addf(out, err, "%s %s\n", word, text);
    if (buffer_addf(out, err, "%s%% ", word) < 0)
        return -1;
    for (; *text; text++)
        if ((*text == '\n' || *text == '%' ? buffer_addf(out, err, "%%%02X", *text)
                                           : buffer_add(out, text, 1, err)) < 0)
            return -1;
    return buffer_add_text(out, "\n", err);
}

static int add_lines(struct buffer *out, const char *word, char **strings, size_t count,
                     struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (add_line(out, word, strings[i], err) < 0)
            return -1;
    return 0;
}

int manifest_format(const struct manifest *manifest, struct buffer *out, struct error *err)
{
    if (buffer_addf(out, err,
                    HEAD "\nname %s\ntag %s\nkind %s\ndir %s\nmade %s\ndefinition %016" PRIx64
                         "\nfiles %" PRIu64 "\nbytes %" PRIu64 "\ndigest %016" PRIx64 "\n",
                    manifest->name, manifest->tag, manifest->kind, manifest->dir, manifest->made,
                    manifest->definition, manifest->files, manifest->bytes, manifest->digest) < 0)
        return -1;
    if (add_lines(out, "env", manifest->env, manifest->n_env, err) < 0 ||
        add_lines(out, "layer", manifest->layers, manifest->n_layers, err) < 0 ||
        add_lines(out, "command", manifest->command, manifest->n_command, err) < 0)
        return -1;
    // an image's own words: none of them may become a line of its own
    if (manifest->user && add_line(out, "user", manifest->user, err) < 0)
        return -1;
    if (manifest->directory && add_line(out, "directory", manifest->directory, err) < 0)
        return -1;
    if (manifest->description && add_line(out, "description", manifest->description, err) < 0)
        return -1;
    for (size_t i = 0; i < manifest->n_binds; i++)
        if (buffer_addf(out, err, "bind %s\t%s\n", manifest->binds[i].host,
                        manifest->binds[i].box) < 0)
            return -1;
    for (size_t i = 0; i < manifest->n_watches; i++) {
        const struct manifest_watch *watch = &manifest->watches[i];
        if (buffer_addf(out, err, "watch %" PRIu64 " %" PRIu64 " %" PRId64 " %s\n", watch->inode,
                        watch->size, watch->mtime_ns, watch->path) < 0)
            return -1;
    }
    if (out->length > MANIFEST_MAX)
        return error_set(err, ERROR_LIMIT,
                         "its environment and command take %zu bytes when they are written down; "
                         "%d is the most",
                         out->length, MANIFEST_MAX);
    return 0;
}

// ---- watched files ----

void manifest_watch_look(const char *path, struct manifest_watch *out)
{
    struct stat info = {0};

    out->inode = out->size = 0;
    out->mtime_ns = 0;
    if (stat(path, &info) < 0)
        return;
    out->inode = info.st_ino;
    out->size = (uint64_t)info.st_size;
    out->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static int64_t boot_time_s(void)
{
    struct timespec now, up;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    return (int64_t)now.tv_sec - up.tv_sec;
}

bool manifest_is_stale(const struct manifest *manifest)
{
    if (manifest->n_watches && manifest->written_s < boot_time_s())
        return true;
    for (size_t i = 0; i < manifest->n_watches; i++) {
        const struct manifest_watch *then = &manifest->watches[i];
        struct manifest_watch now;

        manifest_watch_look(then->path, &now);
        if (now.inode != then->inode || now.size != then->size || now.mtime_ns != then->mtime_ns)
            return true;
    }
    return false;
}
