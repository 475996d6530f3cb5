/* SPDX-License-Identifier: Apache-2.0 */
/* Walking directory trees of any depth; see walk.h. */
#include "init/walk.h"
#include "base/auto.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define OPEN_LEVELS 32 // how many of the deepest directories stay open
#define BUFFER_SIZE 4096

struct walk_level {
    int fd; // -1: closed for now
    dev_t device;
    ino_t inode;
    int64_t resume;     // behind the entry given last
    size_t path_length; // of the directory
    char *buffer;       // entries read and not given yet; NULL: none
    size_t at, length;
};

struct raw_entry { // linux_dirent64, getdents(2)
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

static struct walk_level *top(const struct walk *walk)
{
    return &walk->levels[walk->depth - 1];
}

static void level_close(struct walk_level *level)
{
    closep(&level->fd);
    free(level->buffer);
    level->buffer = NULL;
    level->at = level->length = 0;
}

/* Room for `size` in an array that may not pass `maximum` elements. */
static int grow(void **array, size_t *capacity, size_t element, size_t needed, size_t maximum)
{
    if (needed <= *capacity)
        return 0;
    if (needed > maximum) {
        errno = ENAMETOOLONG;
        return -1;
    }
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < needed)
        wanted *= 2;
    void *larger = realloc(*array, wanted * element);
    if (!larger)
        return -1;
    *array = larger;
    *capacity = wanted;
    return 0;
}

/* Takes the fd, also on failure. */
static int push(struct walk *walk, int dir, size_t path_length)
{
    autofd fd = dir;
    struct stat info;
    void *levels = walk->levels;

    if (fstat(fd, &info) < 0)
        return -1;
    if (grow(&levels, &walk->capacity, sizeof *walk->levels, walk->depth + 1, WALK_MAX_DEPTH) < 0)
        return -1;
    walk->levels = levels;
    if (walk->depth >= OPEN_LEVELS)
        level_close(&walk->levels[walk->depth - OPEN_LEVELS]);
    walk->levels[walk->depth++] = (struct walk_level){
        .fd = take_fd(fd),
        .device = info.st_dev,
        .inode = info.st_ino,
        .path_length = path_length,
    };
    return 0;
}

/* Opens the level above `below` again. What lies there now must be the directory we came from. */
static int reopen(struct walk *walk, struct walk_level *level, int below)
{
    struct stat info;
    autofd fd = inside_openat(below, "..", DIR_FLAGS, 0, 0);
    if (fd < 0 || fstat(fd, &info) < 0)
        return -1;
    if (info.st_dev != level->device || info.st_ino != level->inode) {
        errno = ESTALE;
        return -1;
    }
    if (!walk->is_removing && lseek(fd, level->resume, SEEK_SET) < 0)
        return -1;
    level->fd = take_fd(fd);
    return 0;
}

static int pop(struct walk *walk)
{
    struct walk_level *level = top(walk), *above = level - 1;
    if (above->fd < 0 && reopen(walk, above, level->fd) < 0)
        return -1;
    level_close(level);
    walk->depth--;
    return 0;
}

/* Sets path and name to an entry of the top directory. */
static int set_path(struct walk *walk, const char *name)
{
    size_t above = top(walk)->path_length, length = strlen(name);
    void *path = walk->path;
    if (grow(&path, &walk->path_capacity, 1, above + length + 2, WALK_MAX_PATH) < 0)
        return -1;
    walk->path = path;
    walk->name_at = above ? above + 1 : 0;
    if (above)
        walk->path[above] = '/';
    memcpy(walk->path + walk->name_at, name, length + 1);
    return 0;
}

/* The next entry of a directory, NULL at its end; errno is 0 unless that failed. */
static const struct raw_entry *level_next(struct walk_level *level)
{
    errno = 0;
    if (!level->buffer && !(level->buffer = malloc(BUFFER_SIZE)))
        return NULL;
    if (level->at == level->length) {
        long got = syscall(SYS_getdents64, level->fd, level->buffer, BUFFER_SIZE);
        if (got < 0 && errno == ENOENT) // removed meanwhile: nothing in it
            errno = 0;
        if (got <= 0)
            return NULL;
        level->at = 0;
        level->length = (size_t)got;
    }
    const struct raw_entry *entry = (const void *)(level->buffer + level->at);
    level->at += entry->length;
    level->resume = entry->next;
    return entry;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum walk_step leave(struct walk *walk)
{
    size_t length = top(walk)->path_length;
    if (walk->depth == 1)
        return WALK_END;
    if (pop(walk) < 0)
        return WALK_FAILED;
    size_t above = top(walk)->path_length;
    walk->path[length] = '\0';
    walk->name_at = above ? above + 1 : 0;
    return WALK_LEAVE;
}

int walk_init(struct walk *walk, int fd, bool is_removing)
{
    *walk = (struct walk){.is_removing = is_removing};
    return push(walk, fd, 0);
}

void walk_clear(struct walk *walk)
{
    while (walk->depth > 0) {
        level_close(top(walk));
        walk->depth--;
    }
    free(walk->levels);
    free(walk->path);
    *walk = (struct walk){0};
}

enum walk_step walk_next(struct walk *walk)
{
    for (;;) {
        const struct raw_entry *entry = level_next(top(walk));
        if (!entry)
            return errno ? WALK_FAILED : leave(walk);
        if (is_dots(entry->name))
            continue;
        walk->type = entry->type;
        return set_path(walk, entry->name) < 0 ? WALK_FAILED : WALK_ENTRY;
    }
}

int walk_enter(struct walk *walk)
{
    autofd fd = inside_openat(walk_dir(walk), walk_name(walk), DIR_FLAGS, 0, RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return -1;
    if (inside_is_kernel(fd)) {
        errno = EXDEV;
        return -1;
    }
    return push(walk, take_fd(fd), walk->name_at + strlen(walk_name(walk)));
}

int walk_dir(const struct walk *walk)
{
    return top(walk)->fd;
}
