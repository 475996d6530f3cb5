/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that steps of builds copy files from; see recipe.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/recipe_impl.h"
#include "core/snapshot/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define DIRECTORY "recipe-files"
#define KEEP_MS ((int64_t)24 * 3600 * 1000)
#define MOST 256     // of an owner; what came first goes
#define MOST_TIMES 4 // of the largest upload that there may be: what all of an owner's take

int recipe_upload_check(const char *hash, struct error *err)
{
    size_t length = strspn(hash, "0123456789abcdef");

    if (length != RECIPE_HASH - 1 || hash[length])
        return error_refuse(err, ERROR_INVALID, "hash",
                            "hash '%.80s': must be 64 hexadecimal digits in lower case", hash);
    return 0;
}

void recipe_upload_owner(const struct actor *actor, char owner[RECIPE_OWNER])
{
    autofree char *text = xasprintf("%s/%s", actor->organisation, actor->member);
    char digest[DIGEST_TEXT];

    digest_of(text, strlen(text), digest);
    (void)snprintf(owner, RECIPE_OWNER, "%s", digest);
}

static char *path_of(struct core *core, const char *owner, const char *hash)
{
    return xasprintf("%s/" DIRECTORY "/%s.%s", core->settings.data_dir, owner, hash);
}

int recipe_upload_open(const struct recipe_build *build, const struct recipe_step *step,
                       char digest[RECIPE_HASH], struct error *err)
{
    char owner[RECIPE_OWNER];

    recipe_upload_owner(&build->actor, owner);
    autofree char *path = path_of(build->core, owner, step->upload);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_NOT_FOUND, "its files have not been uploaded");
    if (digest_file(fd, digest, err) < 0)
        return -1;
    return take_fd(fd);
}

bool recipe_upload_is_there(struct core *core, const char *owner, const char *hash, uint64_t *which)
{
    autofree char *path = path_of(core, owner, hash);
    struct stat info = {0};

    bool is_there = utimensat(AT_FDCWD, path, NULL, 0) == 0 && // and is kept for another day
                    stat(path, &info) == 0;
    if (which)
        *which = is_there ? (uint64_t)info.st_ino : 0;
    return is_there;
}

static int copy(int from, int to, struct error *err)
{
    struct stat info;
    off_t at = 0;

    if (fstat(from, &info) < 0)
        return error_sys(err, "look at the upload");
    while (at < info.st_size) {
        if (sendfile(to, from, &at, (size_t)(info.st_size - at)) <= 0)
            return error_sys(err, "keep the upload");
    }
    return fdatasync(to) < 0 ? error_sys(err, "bring the upload to the disk") : 0;
}

struct upload {
    char *name;
    int64_t at;
    uint64_t bytes;
};

static int by_age(const void *left, const void *right)
{
    const struct upload *a = left, *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool is_same_owner(const char *left, const char *right)
{
    size_t length = strcspn(left, ".");
    return strcspn(right, ".") == length && strncmp(left, right, length) == 0;
}

/* Not older than a day, nor than MOST others of its owner, nor than all that they may take. */
static bool is_wanted(const struct upload *all, size_t count, size_t at, uint64_t most_bytes)
{
    uint64_t bytes = all[at].bytes;
    size_t newer = 0;

    for (size_t i = at + 1; i < count; i++) {
        if (!is_same_owner(all[i].name, all[at].name))
            continue;
        newer++;
        bytes += all[i].bytes;
    }
    return newer < MOST && bytes <= most_bytes && all[at].at > (int64_t)clock_wall_ms() - KEEP_MS;
}

void recipe_uploads_prune(struct core *core)
{
    const uint64_t most_bytes = MOST_TIMES * (uint64_t)core->settings.file_limit_bytes;
    autofree char *path = xasprintf("%s/" DIRECTORY, core->settings.data_dir);
    autofree struct upload *all = NULL;
    const struct dirent *entry;
    struct stat info;
    size_t count = 0;

    autodir directory = opendir(path);
    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        all = xrealloc(all, count + 1, sizeof *all);
        all[count++] = (struct upload){xstrdup(entry->d_name), (int64_t)info.st_mtim.tv_sec * 1000,
                                       (uint64_t)info.st_size};
    }
    if (count)
        qsort(all, count, sizeof *all, by_age);
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(all, count, i, most_bytes))
            (void)unlinkat(dirfd(directory), all[i].name, 0);
    }
    for (size_t i = 0; i < count; i++)
        free(all[i].name);
}

/* Where there is none; or in the place of the one that it may replace. */
static int put_in_place(const char *partial, const char *path, uint64_t over, struct error *err)
{
    char kept[DIGEST_TEXT], sent[DIGEST_TEXT];
    struct stat info;

    if (link(partial, path) == 0) {
        (void)unlink(partial);
        return 0;
    }
    if (errno != EEXIST)
        return error_sys(err, "keep the upload");
    autofd there = open(path, O_RDONLY | O_CLOEXEC);
    autofd fresh = open(partial, O_RDONLY | O_CLOEXEC);
    if (there < 0 || fresh < 0 || fstat(there, &info) < 0)
        return error_sys(err, "look at the upload");
    if (over && (uint64_t)info.st_ino == over)
        return rename(partial, path) < 0 ? error_sys(err, "keep the upload") : 0;
    if (digest_file(there, kept, err) < 0 || digest_file(fresh, sent, err) < 0)
        return -1;
    if (strcmp(kept, sent) != 0)
        return error_refuse(err, ERROR_CONFLICT, "upload",
                            "other files have been uploaded under this hash since the URL was "
                            "given: ask for a new one to replace them");
    (void)unlink(partial);
    return 0;
}

int recipe_upload_put(struct core *core, const char *owner, const char *hash, uint64_t over,
                      int archive_fd, struct error *err)
{
    autofree char *directory = xasprintf("%s/" DIRECTORY, core->settings.data_dir);
    autofree char *path = path_of(core, owner, hash);
    char unique[ID_TEXT]; // two may come at once: each is whole
    autofree char *partial = xasprintf("%s.%s", path, id_make(unique));

    if (recipe_upload_check(hash, err) < 0 || fd_make_dirs(directory, 0700, err) < 0)
        return -1;
    recipe_uploads_prune(core);
    autofd fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "keep the upload");
    if (copy(archive_fd, fd, err) == 0 && put_in_place(partial, path, over, err) == 0)
        return 0;
    (void)unlink(partial);
    return -1;
}
