/* SPDX-License-Identifier: Apache-2.0 */
/* Which apt packages there are; see install_names.h. */
#include "install/install_names.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "install/install_box.h"
#include "runtime/digest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define KEPT_MS (6 * 3600 * 1000)
#define FAILED_MS (60 * 1000) // so long a mirror that did not answer is left alone
#define NAMES_MAX (32 << 20)

bool install_is_name(const char *name)
{
    const char *const list[] = {name, NULL};
    struct error ignored = {0};

    return install_check(list, NULL, &ignored) == 0;
}

// What is kept: one name a line, with a line break before the first. An empty file: the mirror did not answer. Returns whether it is young enough.
static bool read_kept(int dir_fd, const char *file, struct buffer *out)
{
    autofd fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct error ignored = {0};
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0 || fd_read_buffer(fd, out, &ignored) < 0)
        return false;
    int64_t age_ms = (int64_t)clock_wall_ms() - (int64_t)info.st_mtim.tv_sec * 1000;
    return age_ms < (out->length ? KEPT_MS : FAILED_MS);
}

// One call asks at a time, whoever it is for.
static int ask(struct engine *engine, const struct runtime_image *image,
               const struct install_options *options, int dir_fd, const char *file,
               struct buffer *out, struct error *err)
{
    struct error ignored = {0};
    autofd lock = openat(dir_fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (lock < 0)
        return error_sys(err, "open the lock of the names of packages");
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "the names of packages are being asked for");
    buffer_clear(out);
    out->maximum = NAMES_MAX;
    if (buffer_add_text(out, "\n", err) < 0)
        return -1;
    int result = install_box_names(engine, image, options, out, err);
    if (result < 0)
        buffer_clear(out);
    (void)fd_replace_file(dir_fd, file, out->data ? out->data : "", out->length, 0600, &ignored);
    return result;
}

static int read_names(struct engine *engine, const struct runtime_image *image,
                      const struct install_options *options, struct buffer *out, struct error *err)
{
    autofree char *path = xasprintf("%s/runtimes/.names", options->data_dir);
    struct digest digest = {0};
    char file[24];

    digest_add_text(&digest, image->build);
    (void)snprintf(file, sizeof file, "%016llx", (unsigned long long)digest_end(&digest));
    if (fd_make_dirs(path, 0700, err) < 0)
        return -1;
    autofd dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_sys(err, "open '%s'", path);
    out->maximum = NAMES_MAX;
    if (!read_kept(dir_fd, file, out))
        return ask(engine, image, options, dir_fd, file, out, err);
    return out->length ? 0 : error_set(err, ERROR_UNAVAILABLE, "the mirror did not answer lately");
}

int install_names_find(struct engine *engine, const struct runtime_image *image,
                       const struct install_options *options, const char *const *names,
                       bool *is_there, struct error *err)
{
    autobuffer known = {0};
    struct error why = {0};

    if (image->n_binds)
        return error_set(err, ERROR_UNAVAILABLE, "this runtime has no packages");
    if (read_names(engine, image, options, &known, &why) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "%s", why.text);
    for (size_t i = 0; names[i]; i++) {
        autofree char *line = xasprintf("\n%.*s\n", (int)strcspn(names[i], "=:"), names[i]);
        is_there[i] = strstr(known.data, line) != NULL;
    }
    return 0;
}

// One that is too old to answer from. Its name is that of a build, which may be gone.
static void sweep_file(int dir_fd, const char *file)
{
    struct stat info;

    if (strspn(file, "0123456789abcdef") != 16 || file[16] ||
        fstatat(dir_fd, file, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    int64_t age_ms = (int64_t)clock_wall_ms() - (int64_t)info.st_mtim.tv_sec * 1000;
    if (age_ms >= KEPT_MS)
        (void)unlinkat(dir_fd, file, 0); // the next sweep
}

void install_names_sweep(const char *data_dir)
{
    autofree char *path = xasprintf("%s/runtimes/.names", data_dir);
    autodir dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        sweep_file(dirfd(dir), entry->d_name);
}
