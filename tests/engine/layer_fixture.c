/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's overlay as the judge of layers; see layer_fixture.h. */
#include "engine/layer_fixture.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "engine/fs_context.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int scratch_fd = -1;

int mount_stack(struct volume *volume, const char *scratch, const char *const *saved,
                size_t n_saved, const char *base)
{
    char merged[200], up[200], options[4096] = "lowerdir=";
    struct error err = {0};
    int fds[64];

    (void)snprintf(merged, sizeof merged, "%s/merged", places.base);
    (void)snprintf(up, sizeof up, "%s/up", places.base);
    CHECK(mkdir(merged, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(up, 0700) == 0 || errno == EEXIST);
    CHECK_OK(volume_scratch_open(volume, scratch, &scratch_fd, &err), err);
    if (volume_scheme(volume) == VOLUME_TMPFS)
        CHECK_OK(fs_context_attach(scratch_fd, AT_FDCWD, up, &err), err);
    else
        (void)snprintf(up, sizeof up, "/proc/self/fd/%d", scratch_fd);
    CHECK(n_saved < ARRAY_SIZE(fds));
    for (size_t i = 0; i < n_saved; i++) {
        CHECK_OK(layer_open(volume, saved[i], &fds[i], &err), err);
        (void)snprintf(options + strlen(options), sizeof options - strlen(options),
                       "/proc/self/fd/%d:", fds[i]);
    }
    (void)snprintf(options + strlen(options), sizeof options - strlen(options),
                   "%s,upperdir=%s/upper,workdir=%s/work,redirect_dir=on,metacopy=off,index=off",
                   base, up, up);
    CHECK(mount("overlay", merged, "overlay", MS_NODEV | MS_NOSUID, options) == 0);
    for (size_t i = 0; i < n_saved; i++)
        (void)close(fds[i]);
    int top = open(merged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(top >= 0);
    return top;
}

void unmount_stack(int *top_fd)
{
    char path[200];
    closep(top_fd);
    closep(&scratch_fd);
    (void)snprintf(path, sizeof path, "%s/merged", places.base);
    CHECK(umount2(path, UMOUNT_NOFOLLOW) == 0);
    (void)snprintf(path, sizeof path, "%s/up", places.base);
    (void)umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH); // of a scratch in memory, which lives on
}

/* Chance */

static unsigned chance(unsigned *seed, unsigned end)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % end;
}

/* Few names, so that things meet. */
static void choose_path(unsigned *seed, char path[64])
{
    unsigned depth = 1 + chance(seed, 4);
    path[0] = '\0';
    for (unsigned i = 0; i < depth; i++)
        (void)snprintf(path + strlen(path), 64 - strlen(path), "%s%c", i ? "/" : "",
                       "abcde"[chance(seed, 5)]);
}

static void put_file(int top_fd, const char *path, unsigned *seed)
{
    char text[400];
    unsigned length = chance(seed, sizeof text);
    for (unsigned i = 0; i < length; i++)
        text[i] = (char)('a' + chance(seed, 26));
    autofd fd =
        openat(top_fd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (chance(seed, 8) == 0)
        (void)!pwrite(fd, "end", 3, 1 << 20); // a hole before it
    if (chance(seed, 2) == 0)
        (void)!ftruncate(fd, 0);
    (void)!write(fd, text, length);
}

static void put_attribute(int top_fd, const char *path, unsigned *seed)
{
    char value = (char)('0' + chance(seed, 10));
    autofd fd = openat(top_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)fsetxattr(fd, "user.t", &value, 1, 0);
}

static void do_something(int top_fd, unsigned *seed)
{
    char path[64], other[64];
    struct error ignored;

    choose_path(seed, path);
    choose_path(seed, other);
    switch (chance(seed, 14)) {
    case 0:
    case 1:
    case 2:
        put_file(top_fd, path, seed);
        break;
    case 3:
    case 4:
        (void)mkdirat(top_fd, path, 0755);
        break;
    case 5:
        (void)unlinkat(top_fd, path, 0);
        break;
    case 6:
        if (chance(seed, 3) == 0)
            (void)fd_remove_tree(top_fd, path, &ignored);
        break;
    case 7:
    case 8:
    case 9:
        (void)renameat(top_fd, path, top_fd, other);
        break;
    case 10:
        (void)symlinkat(other, top_fd, path);
        break;
    case 11:
        (void)linkat(top_fd, path, top_fd, other, 0);
        break;
    case 12:
        (void)fchmodat(top_fd, path, chance(seed, 2) ? 0700 : 0755, 0);
        put_attribute(top_fd, other, seed);
        break;
    default: // replaced by an empty one
        (void)fd_remove_tree(top_fd, path, &ignored);
        (void)mkdirat(top_fd, path, 0755);
    }
}

void disturb(int top_fd, unsigned *seed, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        do_something(top_fd, seed);
}

/* Telling */

static uint64_t hash_file(int dir_fd, const char *name)
{
    static unsigned char bytes[65536];
    uint64_t hash = UINT64_C(14695981039346656037);
    autofd fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;) {
        for (ssize_t i = 0; i < got; i++)
            hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static void tell_entry(struct buffer *out, int dir_fd, const char *name, const char *path,
                       const struct stat *info)
{
    struct error err;
    char target[256] = "", value[16] = "";
    char place[64];

    if (S_ISLNK(info->st_mode))
        (void)!readlinkat(dir_fd, name, target, sizeof target - 1);
    (void)snprintf(place, sizeof place, "/proc/self/fd/%d/%s", dir_fd, name);
    if (!S_ISLNK(info->st_mode))
        (void)!getxattr(place, "user.t", value, sizeof value - 1);
    CHECK(buffer_addf(out, &err, "%s\t%o %u %u %lld %016" PRIx64 " %s %s\n", path,
                      (unsigned)info->st_mode, (unsigned)info->st_uid, (unsigned)info->st_gid,
                      S_ISREG(info->st_mode) ? (long long)info->st_size : 0,
                      S_ISREG(info->st_mode) ? hash_file(dir_fd, name) : 0, target, value) == 0);
}

static void tell_dir(struct buffer *out, int dir_fd, const char *path)
{
    struct dirent *entry;
    autodir dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(dir);
    while ((entry = readdir(dir))) {
        struct stat info;
        char below[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", entry->d_name);
        CHECK(fstatat(dir_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0);
        tell_entry(out, dir_fd, entry->d_name, below, &info);
        if (!S_ISDIR(info.st_mode))
            continue;
        autofd next = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        tell_dir(out, next, below);
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a text, which is cut up; their number in *count. */
static char **split(char *text, size_t *count)
{
    char **lines = xcalloc(strlen(text) + 1, sizeof *lines);
    char *line;
    *count = 0;
    while ((line = strsep(&text, "\n"))) {
        if (*line)
            lines[(*count)++] = line;
    }
    return lines;
}

static char *sort_lines(const char *text)
{
    struct error err;
    struct buffer out = {0};
    size_t count;
    autofree char *copy = xstrdup(text);
    autofree char **lines = split(copy, &count);
    qsort(lines, count, sizeof *lines, compare_lines);
    CHECK(buffer_add(&out, "", 0, &err) == 0);
    for (size_t i = 0; i < count; i++)
        CHECK(buffer_addf(&out, &err, "%s\n", lines[i]) == 0);
    return out.data ? out.data : xstrdup("");
}

char *tell_tree(int top_fd)
{
    autobuffer out = {0};
    tell_dir(&out, top_fd, "");
    return sort_lines(out.data ? out.data : "");
}

char *tell_stack(struct volume *volume, const char *const *saved, size_t n_saved, const char *base)
{
    struct error err = {0};
    int dir = make_scratch(volume, "view", 64 * MIB, 0);
    closep(&dir);
    int top = mount_stack(volume, "view", saved, n_saved, base);
    char *told = tell_tree(top);
    unmount_stack(&top);
    CHECK_OK(volume_scratch_remove(volume, "view", &err), err);
    return told;
}

/* The line of a path among sorted ones, or NULL. */
static const char *find_line(char *const *lines, size_t count, const char *path, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(lines[i], path, length) == 0 && lines[i][length] == '\t')
            return lines[i];
    }
    return NULL;
}

static bool is_dir_line(const char *line)
{
    return strncmp(strchr(line, '\t') + 1, "4", 1) == 0;
}

/* Something above the path is no directory in the other tree: that is told, not this. */
static bool is_below_removed(char *const *lines, size_t count, const char *path, size_t length)
{
    while (length > 0) {
        while (length > 0 && path[length - 1] != '/')
            length--;
        if (length == 0)
            return false;
        const char *line = find_line(lines, count, path, --length);
        if (!line || !is_dir_line(line))
            return true;
    }
    return false;
}

char *tell_difference(const char *from, const char *to)
{
    struct error err;
    autobuffer out = {0};
    size_t n_from, n_to;
    autofree char *first = xstrdup(from);
    autofree char *second = xstrdup(to);
    autofree char **a = split(first, &n_from);
    autofree char **b = split(second, &n_to);

    for (size_t i = 0; i < n_to; i++) {
        size_t length = strcspn(b[i], "\t");
        const char *old = find_line(a, n_from, b[i], length);
        if (!old || strcmp(old, b[i]) != 0)
            CHECK(buffer_addf(&out, &err, "%c%.*s\n", old ? '~' : '+', (int)length, b[i]) == 0);
    }
    for (size_t i = 0; i < n_from; i++) {
        size_t length = strcspn(a[i], "\t");
        if (!find_line(b, n_to, a[i], length) && !is_below_removed(b, n_to, a[i], length))
            CHECK(buffer_addf(&out, &err, "-%.*s\n", (int)length, a[i]) == 0);
    }
    return sort_lines(out.data ? out.data : "");
}

static int note_change(void *data, const struct layer_change *change, struct error *err)
{
    return buffer_addf(data, err, "%c%s\n", "+~-"[change->kind], change -> item.path);
}

char *tell_diff(struct volume *volume, const struct layer_stack *from, const struct layer_stack *to)
{
    autobuffer out = {0};
    struct error err = {0};
    struct layer_diff_total total;
    CHECK_OK(layer_diff(volume, from, to, NULL, note_change, &out, &total, &err), err);
    return sort_lines(out.data ? out.data : "");
}

bool layer_exists(struct volume *volume, const char *name)
{
    struct error ignored;
    autofd fd = -1;
    return layer_open(volume, name, &fd, &ignored) == 0;
}
