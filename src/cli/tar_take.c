/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a stranger's tar archive; see tar_take.h. */
#include "cli/tar_take.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/file_maker.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512
#define NAME_ROOM 4096
#define LONG_MAX_BYTES ((uint64_t)64 << 10)

enum stage { STAGE_HEADER, STAGE_CONTENT, STAGE_TEXT, STAGE_SKIP, STAGE_PADDING, STAGE_END };

struct tar_take {
    int root;
    unsigned strip;
    enum stage stage;
    char block[BLOCK];
    size_t filled;
    uint64_t left, padding;
    char type;
    struct buffer text; // of a long name or of pax
    char name[NAME_ROOM], link[NAME_ROOM];
    bool has_name, has_link, has_size; // told before the header
    uint64_t size;
    struct file_maker *maker; // of small files; NULL: there was none yet
    char *room;               // for what is left of the content of one; NULL: it is no such file
    int fd;                   // of a large one that is being written, which is in parent_fd
    char last[256];           // its name there
    char beside[32];          // its name until it is whole, where there was something already; ""
    char parent[NAME_ROOM];   // of parent_fd
    int parent_fd;
    uint64_t files, directories, bytes, refused;
};

struct tar_take *tar_take_new(int directory, unsigned strip)
{
    struct tar_take *tar = xnew(struct tar_take);

    tar->root = directory;
    tar->strip = strip;
    tar->fd = tar->parent_fd = -1;
    buffer_init(&tar->text, LONG_MAX_BYTES);
    return tar;
}

void tar_take_free(struct tar_take *tar)
{
    if (!tar)
        return;
    file_maker_free(tar->maker);
    if (tar->fd >= 0) // nobody should take a part of a file for all of it
        (void)unlinkat(tar->parent_fd, *tar->beside ? tar->beside : tar->last, 0);
    closep(&tar->fd);
    closep(&tar->parent_fd);
    buffer_clear(&tar->text);
    free(tar);
}

uint64_t tar_take_files(const struct tar_take *tar)
{
    return tar->files;
}

uint64_t tar_take_entries(const struct tar_take *tar)
{
    return tar->files + tar->directories;
}

uint64_t tar_take_bytes_written(const struct tar_take *tar)
{
    return tar->bytes;
}

uint64_t tar_take_refused(const struct tar_take *tar)
{
    return tar->refused;
}

// ---- names ----

/* Parts without "." and without the first `strip`; false where it leads outside. "" is the directory itself. */
static bool clean_name(const char *name, unsigned strip, char out[NAME_ROOM])
{
    size_t length = 0;

    out[0] = '\0';
    while (*name) {
        name += strspn(name, "/");
        size_t part = strcspn(name, "/");
        bool is_dot = part == 1 && name[0] == '.';
        if (part == 2 && name[0] == '.' && name[1] == '.')
            return false;
        if (part > 255 || length + part + 2 > NAME_ROOM)
            return false;
        if (part && !is_dot && strip) {
            strip--;
        } else if (part && !is_dot) {
            if (length)
                out[length++] = '/';
            memcpy(out + length, name, part);
            length += part;
            out[length] = '\0';
        }
        name += part;
    }
    return true;
}

bool tar_take_link_stays(const char *name, const char *target)
{
    unsigned above = 0; // directories that the link may go up
    bool has_gone_in = false;

    if (*target == '/' || !*target)
        return false;
    for (const char *at = name; (at = strchr(at, '/')); at++)
        above++;
    while (*target) {
        size_t part = strcspn(target, "/");
        bool is_up = part == 2 && target[0] == '.' && target[1] == '.';
        if (is_up && (has_gone_in || above-- == 0))
            return false; // behind a name, which may be a link itself, nobody can count
        has_gone_in |= part && !is_up && !(part == 1 && target[0] == '.');
        target += part;
        target += strspn(target, "/");
    }
    return true;
}

/* The directory `path` below the root, made where missing, never through a link. */
static int open_directory(struct tar_take *tar, const char *path)
{
    autofd at = openat(tar->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[256];

    while (*path && at >= 0) {
        size_t part = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)part, path);
        int made = mkdirat(at, name, 0755);
        if (made < 0 && errno != EEXIST)
            return -1;
        tar->directories += made == 0;
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int saved = errno;
        closep(&at);
        errno = saved;
        at = next;
        path += part;
        path += strspn(path, "/");
    }
    return take_fd(at);
}

/* The descriptor of the directory that `name` is in; *last is the name in it. Kept for the next one. */
static int open_parent(struct tar_take *tar, const char *name, const char **last)
{
    const char *slash = strrchr(name, '/');
    char parent[NAME_ROOM] = "";

    *last = slash ? slash + 1 : name;
    if (slash)
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
    if (tar->parent_fd < 0 || strcmp(parent, tar->parent) != 0) {
        closep(&tar->parent_fd);
        tar->parent_fd = open_directory(tar, parent);
        if (tar->maker)
            file_maker_enter(tar->maker, tar->parent_fd);
        (void)snprintf(tar->parent, sizeof tar->parent, "%s", parent);
    }
    return tar->parent_fd;
}

// ---- entries ----

static int fail_at(const char *name, struct burrow_error *err)
{
    int saved = errno;
    autofree char *clean = say_clean(name);

    errno = saved;
    return say_fail_sys(err, "write '%s'", clean);
}

static int make_small_file(struct tar_take *tar, const char *name, unsigned mode,
                           struct burrow_error *err)
{
    if (!tar->maker) {
        tar->maker = file_maker_new();
        file_maker_enter(tar->maker, tar->parent_fd);
    }
    return file_maker_room(tar->maker, name, mode, (size_t)tar->left, &tar->room, err);
}

static int make_large_file(struct tar_take *tar, const char *name, const char *last, unsigned mode,
                           struct burrow_error *err)
{
    bool is_beside;

    (void)snprintf(tar->last, sizeof tar->last, "%s", last);
    (void)snprintf(tar->beside, sizeof tar->beside, ".burrow-%d-0", (int)getpid());
    tar->fd = file_open_new(tar->parent_fd, last, 0600, tar->beside, &is_beside);
    if (!is_beside)
        tar->beside[0] = '\0';
    if (tar->fd < 0 || fchmod(tar->fd, mode & 0777) < 0)
        return fail_at(name, err);
    return 0;
}

/* Its size is in tar->left. */
static int make_file(struct tar_take *tar, const char *name, unsigned mode,
                     struct burrow_error *err)
{
    const char *last;

    if (open_parent(tar, name, &last) < 0)
        return fail_at(name, err);
    int result = tar->left <= FILE_MAKER_MOST ? make_small_file(tar, name, mode, err)
                                              : make_large_file(tar, name, last, mode, err);
    tar->files += result == 0;
    return result;
}

/* All of its content is written. */
static int end_file(struct tar_take *tar, struct burrow_error *err)
{
    if (tar->room)
        file_maker_keep(tar->maker);
    tar->room = NULL;
    if (tar->fd < 0)
        return 0;
    if (*tar->beside && renameat(tar->parent_fd, tar->beside, tar->parent_fd, tar->last) < 0)
        return fail_at(tar->name, err);
    closep(&tar->fd);
    return 0;
}

/* Files whose names are told are there. */
static int settle(struct tar_take *tar, struct burrow_error *err)
{
    return tar->maker ? file_maker_settle(tar->maker, err) : 0;
}

static int make_link(struct tar_take *tar, const char *name, struct burrow_error *err)
{
    const char *last;

    if (!tar_take_link_stays(name, tar->link)) {
        tar->refused++;
        return 0;
    }
    int parent = open_parent(tar, name, &last);
    if (parent < 0)
        return fail_at(name, err);
    if (settle(tar, err) < 0)
        return -1;
    (void)unlinkat(parent, last, 0);
    if (symlinkat(tar->link, parent, last) < 0)
        return fail_at(name, err);
    tar->files++;
    return 0;
}

/* A second name of a file that came before; of a link it would lead from here to somewhere else. */
static int make_hard_link(struct tar_take *tar, const char *name, struct burrow_error *err)
{
    char target[NAME_ROOM], from_dir[NAME_ROOM] = "";
    struct stat info;
    const char *last;

    if (!clean_name(tar->link, tar->strip, target) || !*target) {
        tar->refused++;
        return 0;
    }
    const char *slash = strrchr(target, '/');
    if (slash)
        (void)snprintf(from_dir, sizeof from_dir, "%.*s", (int)(slash - target), target);
    autofd from = open_directory(tar, from_dir);
    int parent = open_parent(tar, name, &last);
    if (from < 0 || parent < 0)
        return fail_at(name, err);
    if (settle(tar, err) < 0)
        return -1;
    const char *file = slash ? slash + 1 : target;
    if (fstatat(from, file, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_at(name, err);
    if (!S_ISREG(info.st_mode)) {
        tar->refused++;
        return 0;
    }
    (void)unlinkat(parent, last, 0);
    if (linkat(from, file, parent, last, 0) < 0)
        return fail_at(name, err);
    tar->files++;
    return 0;
}

static int make_entry(struct tar_take *tar, unsigned mode, struct burrow_error *err)
{
    char name[NAME_ROOM];

    if (!clean_name(tar->name, tar->strip, name)) {
        tar->refused++;
        return 0;
    }
    if (tar->type == '5') {
        autofd made = open_directory(tar, name);
        closep(&tar->parent_fd);
        return made < 0 ? fail_at(name, err) : 0;
    }
    if (!*name)
        return 0;
    switch (tar->type) {
    case '0':
    case '\0':
        return make_file(tar, name, mode, err);
    case '1':
        return make_hard_link(tar, name, err);
    case '2':
        return make_link(tar, name, err);
    default:
        tar->refused++;
        return 0;
    }
}

// ---- headers ----

static bool read_number(const char *field, size_t size, uint64_t *out)
{
    uint64_t number = 0;

    if (field[0] & 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (number >> 55)
                return false;
            number = number << 8 | (unsigned char)field[i];
        }
        *out = number;
        return !(field[0] & 0x7f);
    }
    size_t i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(field[i] - '0');
    *out = number;
    return i == size || field[i] == ' ' || field[i] == '\0';
}

static bool is_sum_right(const char block[BLOCK])
{
    uint64_t wanted = 0, sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
    return read_number(block + 148, 8, &wanted) && wanted == sum;
}

static void read_names(struct tar_take *tar)
{
    const char *block = tar->block;
    bool has_prefix = memcmp(block + 257, "ustar\0", 6) == 0 && block[345];

    if (!tar->has_name && has_prefix)
        (void)snprintf(tar->name, sizeof tar->name, "%.155s/%.100s", block + 345, block);
    else if (!tar->has_name)
        (void)snprintf(tar->name, sizeof tar->name, "%.100s", block);
    if (!tar->has_link)
        (void)snprintf(tar->link, sizeof tar->link, "%.100s", block + 157);
}

static void begin_content(struct tar_take *tar, enum stage stage, uint64_t size)
{
    tar->left = size;
    tar->padding = (BLOCK - size % BLOCK) % BLOCK;
    tar->stage = size ? stage : STAGE_HEADER;
}

static int damaged(struct burrow_error *err)
{
    return say_fail(err, BURROW_PROTOCOL, "what the server sent is no tar archive");
}

static int take_header(struct tar_take *tar, struct burrow_error *err)
{
    static const char zeros[BLOCK];
    uint64_t size = 0, mode = 0;

    tar->filled = 0;
    if (memcmp(tar->block, zeros, BLOCK) == 0) {
        tar->stage = STAGE_END;
        return 0;
    }
    if (!is_sum_right(tar->block) || !read_number(tar->block + 124, 12, &size) ||
        !read_number(tar->block + 100, 8, &mode))
        return damaged(err);
    tar->type = tar->block[156];
    if (strchr("xgLK", tar->type) && tar->type) {
        if (size > LONG_MAX_BYTES)
            return damaged(err);
        tar->text.length = 0;
        begin_content(tar, STAGE_TEXT, size);
        return 0;
    }
    if (tar->has_size)
        size = tar->size;
    read_names(tar);
    if (strchr("12345", tar->type) && tar->type)
        size = 0;
    tar->left = size;
    int result = make_entry(tar, (unsigned)mode, err);
    tar->has_name = tar->has_link = tar->has_size = false;
    begin_content(tar, tar->room || tar->fd >= 0 ? STAGE_CONTENT : STAGE_SKIP, size);
    return result == 0 && size == 0 ? end_file(tar, err) : result;
}

/* "27 path=some/name\n" and so on. */
static void take_pax(struct tar_take *tar)
{
    char *at = tar->text.data, *end = at + tar->text.length;

    while (at < end) {
        char *rest;
        unsigned long length = strtoul(at, &rest, 10);
        if (length < 4 || length > (size_t)(end - at) || *rest != ' ' || rest + 1 >= at + length)
            return;
        char *key = rest + 1, *stop = at + length - 1;
        *stop = '\0';
        if (strncmp(key, "path=", 5) == 0) {
            (void)snprintf(tar->name, sizeof tar->name, "%s", key + 5);
            tar->has_name = true;
        } else if (strncmp(key, "linkpath=", 9) == 0) {
            (void)snprintf(tar->link, sizeof tar->link, "%s", key + 9);
            tar->has_link = true;
        } else if (strncmp(key, "size=", 5) == 0) {
            tar->size = strtoull(key + 5, NULL, 10);
            tar->has_size = true;
        }
        at += length;
    }
}

static void take_text(struct tar_take *tar)
{
    const char *text = tar->text.data ? tar->text.data : "";

    if (tar->type == 'x')
        take_pax(tar);
    if (tar->type == 'L') {
        (void)snprintf(tar->name, sizeof tar->name, "%s", text);
        tar->has_name = true;
    }
    if (tar->type == 'K') {
        (void)snprintf(tar->link, sizeof tar->link, "%s", text);
        tar->has_link = true;
    }
}

static int take_content(struct tar_take *tar, const char *data, size_t part,
                        struct burrow_error *err)
{
    struct error error = {0};

    if (tar->stage == STAGE_CONTENT && tar->room) {
        memcpy(tar->room, data, part);
        tar->room += part;
        tar->bytes += part;
    } else if (tar->stage == STAGE_CONTENT) {
        if (fd_write_all(tar->fd, data, part) < 0)
            return fail_at(tar->name, err);
        tar->bytes += part;
    } else if (tar->stage == STAGE_TEXT && buffer_add(&tar->text, data, part, &error) < 0) {
        return damaged(err);
    }
    tar->left -= part;
    if (tar->left)
        return 0;
    if (tar->stage == STAGE_TEXT)
        take_text(tar);
    if (end_file(tar, err) < 0)
        return -1;
    tar->left = tar->padding;
    tar->stage = tar->left ? STAGE_PADDING : STAGE_HEADER;
    return 0;
}

int tar_take_bytes(struct tar_take *tar, const void *data, size_t length, struct burrow_error *err)
{
    const char *at = data;

    while (length && tar->stage != STAGE_END) {
        size_t part;
        if (tar->stage == STAGE_HEADER) {
            part = BLOCK - tar->filled < length ? BLOCK - tar->filled : length;
            memcpy(tar->block + tar->filled, at, part);
            tar->filled += part;
            if (tar->filled == BLOCK && take_header(tar, err) < 0)
                return -1;
        } else {
            part = tar->left < length ? (size_t)tar->left : length;
            if (tar->stage == STAGE_PADDING) {
                tar->left -= part;
                if (tar->left == 0)
                    tar->stage = STAGE_HEADER;
            } else if (take_content(tar, at, part, err) < 0) {
                return -1;
            }
        }
        at += part;
        length -= part;
    }
    return 0;
}

int tar_take_end(struct tar_take *tar, struct burrow_error *err)
{
    bool is_whole = tar->stage == STAGE_END || (tar->stage == STAGE_HEADER && tar->filled == 0);

    if (settle(tar, err) < 0)
        return -1;
    return is_whole ? 0 : say_fail(err, BURROW_BROKEN, "what the server sent ended in the middle");
}
