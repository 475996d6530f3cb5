/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads that make files; see file_maker.h. */
#include "cli/file_maker.h"

#include "base/fd.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRESH (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
#define MOST_FILES 64u
#define MOST_DIRECTORIES 16u
#define PATH_ROOM ((size_t)4096)
#define ROOM ((size_t)192 << 10) // names and contents of one batch

struct file {
    unsigned directory, mode;
    char *path, *content;
    size_t length;
};

struct batch {
    int directories[MOST_DIRECTORIES]; // its own
    unsigned n_directories, n_files;
    struct file files[MOST_FILES];
    size_t used;
    char room[ROOM];
};

struct file_maker {
    int directory;   // entered last
    bool is_entered; // the batch that is filled has it as its last one
    struct batch *filling;
    bool has_tried; // to start the thread
    bool has_thread;
    pthread_t thread;
    struct lock lock; // of all below
    struct lock_condition changed;
    struct batch *other; // the thread's while it is handed over
    bool is_handed, is_ending;
    int failed; // errno of the first that failed; 0: none
    char failed_path[PATH_ROOM];
};

struct file_maker *file_maker_new(void)
{
    struct file_maker *maker = xnew(struct file_maker);

    maker->filling = xnew(struct batch);
    lock_init(&maker->lock, LOCK_FILE_MAKER);
    lock_condition_init(&maker->changed);
    return maker;
}

// ---- making them ----

void file_name_beside(char out[FILE_BESIDE])
{
    uint64_t number = 0;

    (void)!getrandom(&number, sizeof number, 0);
    (void)snprintf(out, FILE_BESIDE, ".burrow-%016llx", (unsigned long long)number);
}

int file_open_new(int directory, const char *name, unsigned mode, char beside[FILE_BESIDE])
{
    int fd = openat(directory, name, FRESH, mode);

    beside[0] = '\0';
    if (fd >= 0 || errno != EEXIST)
        return fd;
    file_name_beside(beside);
    return openat(directory, beside, FRESH, mode);
}

void file_drop(int directory, const char *name, int fd)
{
    struct stat ours, there;
    int saved = errno;

    if (fstat(fd, &ours) == 0 && fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
        (void)unlinkat(directory, name, 0);
    errno = saved;
}

/* What the mask, or a list of rights of the directory, has taken away. */
static int set_mode(int fd, unsigned mode)
{
    struct stat info;

    return fstat(fd, &info) == 0 && (info.st_mode & 07777) == mode ? 0 : fchmod(fd, mode);
}

static int make_file(int directory, const struct file *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    char beside[FILE_BESIDE];
    autofd fd = file_open_new(directory, name, file->mode, beside);

    if (fd < 0)
        return -1;
    if (set_mode(fd, file->mode) < 0 || fd_write_all(fd, file->content, file->length) < 0 ||
        (*beside && renameat(directory, beside, directory, name) < 0)) {
        file_drop(directory, *beside ? beside : name, fd);
        return -1;
    }
    return close(take_fd(fd)); // where a network's file system tells that it is full
}

static void clear_batch(struct batch *batch)
{
    for (unsigned i = 0; i < batch->n_directories; i++)
        closep(&batch->directories[i]);
    batch->n_directories = batch->n_files = 0;
    batch->used = 0;
}

static void make_batch(struct file_maker *maker, struct batch *batch)
{
    for (unsigned i = 0; i < batch->n_files; i++) {
        const struct file *file = &batch->files[i];
        if (make_file(batch->directories[file->directory], file) == 0)
            continue;
        int code = errno;
        autolock(&maker->lock);
        if (!maker->failed) {
            maker->failed = code;
            (void)snprintf(maker->failed_path, sizeof maker->failed_path, "%s", file->path);
        }
        break;
    }
    clear_batch(batch);
}

// ---- the thread ----

static bool await_batch(struct file_maker *maker)
{
    autolock(&maker->lock);
    while (!maker->is_handed && !maker->is_ending)
        (void)lock_condition_wait(&maker->changed, &maker->lock, 0);
    return maker->is_handed;
}

static void *make_batches(void *data)
{
    struct file_maker *maker = data;

    thread_set_name("files");
    while (await_batch(maker)) {
        make_batch(maker, maker->other);
        autolock(&maker->lock);
        maker->is_handed = false;
        lock_condition_wake(&maker->changed);
    }
    return NULL;
}

static bool has_second_processor(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

/* Signals are the first thread's. Without the second one all is done by the first. */
static void start_thread(struct file_maker *maker)
{
    sigset_t all, before;

    if (maker->has_tried)
        return;
    maker->has_tried = true;
    if (!has_second_processor())
        return;
    maker->other = xnew(struct batch);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    maker->has_thread = pthread_create(&maker->thread, NULL, make_batches, maker) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool hand_over(struct file_maker *maker)
{
    if (!maker->has_thread)
        return false;
    autolock(&maker->lock);
    if (maker->is_handed)
        return false;
    struct batch *filled = maker->filling;
    maker->filling = maker->other;
    maker->other = filled;
    maker->is_handed = true;
    lock_condition_wake(&maker->changed);
    return true;
}

static int tell_failure(struct file_maker *maker, struct burrow_error *err)
{
    autolock(&maker->lock);
    if (!maker->failed)
        return 0;
    autofree char *clean = say_clean(maker->failed_path);
    errno = maker->failed;
    return say_fail_sys(err, "write '%s'", clean);
}

static void pass_on(struct file_maker *maker)
{
    start_thread(maker);
    if (!hand_over(maker)) // the thread is still at the last batch: this one is made here meanwhile
        make_batch(maker, maker->filling);
    maker->is_entered = false;
}

// ---- for callers ----

void file_maker_enter(struct file_maker *maker, int directory)
{
    maker->directory = directory;
    maker->is_entered = false;
}

static bool has_room(const struct file_maker *maker, size_t bytes)
{
    const struct batch *batch = maker->filling;

    return batch->n_files < MOST_FILES && bytes <= ROOM - batch->used &&
           (maker->is_entered || batch->n_directories < MOST_DIRECTORIES);
}

static int enter(struct file_maker *maker, struct burrow_error *err)
{
    struct batch *batch = maker->filling;

    if (maker->is_entered)
        return 0;
    int fd = fcntl(maker->directory, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return say_fail_sys(err, "open a directory once more");
    batch->directories[batch->n_directories++] = fd;
    maker->is_entered = true;
    return 0;
}

int file_maker_room(struct file_maker *maker, const char *path, unsigned mode, size_t length,
                    char **room, struct burrow_error *err)
{
    size_t size = strlen(path) + 1;

    if (!has_room(maker, size + length)) {
        pass_on(maker);
        if (tell_failure(maker, err) < 0)
            return -1;
    }
    if (enter(maker, err) < 0)
        return -1;
    struct batch *batch = maker->filling;
    char *at = batch->room + batch->used;
    memcpy(at, path, size);
    batch->files[batch->n_files] = (struct file){.directory = batch->n_directories - 1,
                                                 .mode = mode & 0777,
                                                 .path = at,
                                                 .content = at + size,
                                                 .length = length};
    *room = at + size;
    return 0;
}

void file_maker_keep(struct file_maker *maker)
{
    struct batch *batch = maker->filling;
    const struct file *file = &batch->files[batch->n_files++];

    batch->used = (size_t)(file->content + file->length - batch->room);
}

static void await_thread(struct file_maker *maker)
{
    autolock(&maker->lock);
    while (maker->is_handed)
        (void)lock_condition_wait(&maker->changed, &maker->lock, 0);
}

int file_maker_settle(struct file_maker *maker, struct burrow_error *err)
{
    make_batch(maker, maker->filling);
    maker->is_entered = false;
    await_thread(maker);
    return tell_failure(maker, err);
}

static void end_thread(struct file_maker *maker)
{
    if (!maker->has_thread)
        return;
    await_thread(maker);
    {
        autolock(&maker->lock);
        maker->is_ending = true;
        lock_condition_wake(&maker->changed);
    }
    (void)pthread_join(maker->thread, NULL);
}

void file_maker_free(struct file_maker *maker)
{
    if (!maker)
        return;
    end_thread(maker);
    clear_batch(maker->filling);
    free(maker->filling);
    free(maker->other);
    lock_condition_clear(&maker->changed);
    lock_clear(&maker->lock);
    free(maker);
}
