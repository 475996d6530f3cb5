/* SPDX-License-Identifier: Apache-2.0 */
/* Roots made by processes that were started in other groups than this one; see cgroup.h. */
#include "engine/cgroup_impl.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A line each: the mode, and for each tree a tab, the controllers it is used for as a number, a colon and its path. */
#define FILE_MAX (1 << 20)

static unsigned controllers_of(const struct cgroup_root *root, unsigned tree)
{
    unsigned found = 0;
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        found |= root->knobs[i] >= 0 && root->knobs[i] == root->trees[tree].fd ? 1u << i : 0;
    return found;
}

static int add_line(const struct cgroup_root *root, struct buffer *text, struct error *err)
{
    autofree char *line = xstrdup(cgroup_mode_name(root->mode));

    for (unsigned i = 0; i < root->n_trees; i++) {
        char *longer = xasprintf("%s\t%u:%s", line, controllers_of(root, i), root->trees[i].path);
        free(line);
        line = longer;
    }
    if (buffer_add(text, line, strlen(line), err) < 0)
        return -1;
    return buffer_add(text, "\n", 1, err);
}

static int open_file(int dir_fd, const char *name, struct error *err)
{
    autofd fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return error_sys(err, "open the list of control groups '%s'", name);
    return take_fd(fd);
}

static int write_file(int fd, const struct buffer *text, struct error *err)
{
    if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
        fd_write_all(fd, text->data, text->length) < 0)
        return error_sys(err, "write the list of control groups");
    return 0;
}

static bool has_line(const struct buffer *text, const struct buffer *line)
{
    return memmem(text->data, text->length, line->data, line->length) != NULL;
}

bool cgroup_root_is_new(const struct cgroup_root *root)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (root->trees[i].is_new)
            return true;
    }
    return false;
}

int cgroup_root_note(const struct cgroup_root *root, int dir_fd, const char *name,
                     struct error *err)
{
    autobuffer text, line;

    buffer_init(&text, FILE_MAX);
    buffer_init(&line, FILE_MAX);
    autofd fd = open_file(dir_fd, name, err);
    if (fd < 0 || fd_read_buffer(fd, &text, err) < 0 || add_line(root, &line, err) < 0)
        return -1;
    if (has_line(&text, &line))
        return 0;
    return buffer_add(&text, line.data, line.length, err) < 0 ? -1 : write_file(fd, &text, err);
}

/* One tree of a line; one that is gone is left out. */
static void open_tree(struct cgroup_root *root, char *field)
{
    char *path = NULL;
    unsigned long controllers = strtoul(field, &path, 10);

    if (*path != ':' || root->n_trees == ARRAY_SIZE(root->trees))
        return;
    int fd = open(path + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    root->trees[root->n_trees++] = (struct cgroup_tree){.path = xstrdup(path + 1), .fd = fd};
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
        if (controllers & 1ul << i)
            root->knobs[i] = fd;
    }
}

static bool parse_mode(const char *text, enum cgroup_mode *mode)
{
    for (*mode = CGROUP_V2; *mode <= CGROUP_V1; ++*mode) {
        if (strcmp(cgroup_mode_name(*mode), text) == 0)
            return true;
    }
    return false;
}

/* NULL: nothing of it is left. */
static struct cgroup_root *open_line(char *line)
{
    enum cgroup_mode mode;
    char *saved = NULL;
    char *word = strtok_r(line, "\t", &saved);

    if (!word || !parse_mode(word, &mode))
        return NULL;
    autoptr(cgroup_root) root = cgroup_root_new(mode);
    while ((word = strtok_r(NULL, "\t", &saved)))
        open_tree(root, word);
    root->has_swap_limit =
        root->knobs[CONTROLLER_MEMORY] >= 0 &&
        knob_exists(root->knobs[CONTROLLER_MEMORY], "",
                    mode == CGROUP_V2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
    return root->n_trees > 0 ? take(root) : NULL;
}

static bool has_tree(const struct cgroup_root *root, const char *path)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (strcmp(root->trees[i].path, path) == 0)
            return true;
    }
    return false;
}

static bool is_within(const struct cgroup_root *root, const struct cgroup_root *own)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (!has_tree(own, root->trees[i].path))
            return false;
    }
    return true;
}

static void add_root(struct cgroup_root *root, struct cgroup_root ***roots, size_t *count)
{
    *roots = xrealloc(*roots, *count + 1, sizeof **roots);
    (*roots)[(*count)++] = root;
}

/* Adds the roots that `text` names and the lines of those that exist to `left`. */
static int open_lines(struct buffer *text, const struct cgroup_root *own, struct buffer *left,
                      struct cgroup_root ***roots, size_t *count, struct error *err)
{
    char *saved = NULL;

    for (char *line = strtok_r(text->data, "\n", &saved); line;
         line = strtok_r(NULL, "\n", &saved)) {
        struct cgroup_root *root = open_line(line);
        if (root && is_within(root, own)) {
            cgroup_root_free(root);
            root = NULL;
        }
        if (!root)
            continue;
        add_root(root, roots, count);
        if (add_line(root, left, err) < 0)
            return -1;
    }
    return 0;
}

int cgroup_roots_open(int dir_fd, const char *name, const struct cgroup_root *own,
                      struct cgroup_root ***roots, size_t *count, struct error *err)
{
    autobuffer text, left;

    *roots = NULL;
    *count = 0;
    buffer_init(&text, FILE_MAX);
    buffer_init(&left, FILE_MAX);
    autofd fd = open_file(dir_fd, name, err);
    if (fd < 0 || fd_read_buffer(fd, &text, err) < 0 || buffer_add(&text, "", 1, err) < 0 ||
        add_line(own, &left, err) < 0)
        return -1;
    if (open_lines(&text, own, &left, roots, count, err) == 0 && write_file(fd, &left, err) == 0)
        return 0;
    while (*count > 0)
        cgroup_root_free((*roots)[--*count]);
    free(take(*roots));
    return -1;
}

static bool is_calm(int fd, int64_t calm_ms)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return false;
    int64_t changed_ms = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    int64_t age_ms = (int64_t)clock_wall_ms() - changed_ms;
    return age_ms < 0 || age_ms >= calm_ms; // the clock may have been set back
}

void cgroup_root_retire(struct cgroup_root *root, const struct cgroup_root *own, int64_t calm_ms)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (!has_tree(own, root->trees[i].path) && is_calm(root->trees[i].fd, calm_ms))
            (void)rmdir(root->trees[i].path); // boxes may live in it
    }
}

bool cgroup_root_has(const struct cgroup_root *root, const char *name)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (faccessat(root->trees[i].fd, name, F_OK, 0) < 0)
            return false;
    }
    return true;
}
