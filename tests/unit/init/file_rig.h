/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the file server: it runs in a thread over a socket pair, on a temporary directory.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"
#include "engine/files.h"
#include "init/files_answer.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define RIG_STACK (96u << 10) // as small as PID 1 gives it

struct rig {
    char dir[64]; // temporary, the base of the conversation
    int fd;       // the same, open
    int conv;
    int sock; // the server's end
    pthread_t thread;
    struct files_user who;
    char root[80]; // the server's root, when it has one of its own
};

static inline void *rig_serve(void *data)
{
    struct rig *rig = data;
    if (rig->root[0] && (unshare(CLONE_FS) < 0 || chroot(rig->root) < 0)) {
        (void)close(rig->sock);
        return NULL;
    }
    files_serve(rig->sock, &rig->who);
    return NULL;
}

static inline void rig_start(struct rig *rig)
{
    int pair[2];
    pthread_attr_t attributes;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    rig->conv = pair[0];
    rig->sock = pair[1];
    rig->who.base = rig->root[0] ? "/" : rig->dir;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, RIG_STACK) == 0);
    CHECK(pthread_create(&rig->thread, &attributes, rig_serve, rig) == 0);
    (void)pthread_attr_destroy(&attributes);
}

static inline void rig_stop(struct rig *rig)
{
    if (rig->conv >= 0) {
        closep(&rig->conv);
        (void)pthread_join(rig->thread, NULL);
    }
}

static inline void rig_clear(struct rig *rig)
{
    struct error err;
    rig_stop(rig);
    closep(&rig->fd);
    if (rig->dir[0])
        (void)fd_remove_tree(AT_FDCWD, rig->dir, &err);
}
#define autorig __attribute__((cleanup(rig_clear))) struct rig

/* A test that fails clears nothing itself: what it made goes when the program ends. */
static char rig_dirs[256][64];
static unsigned rig_n_dirs;

static inline void rig_sweep(void)
{
    struct error err;
    for (unsigned i = 0; i < rig_n_dirs; i++)
        (void)fd_remove_tree(AT_FDCWD, rig_dirs[i], &err);
}

static inline struct rig rig_make_in(const char *place)
{
    struct rig rig = {.fd = -1, .conv = -1};
    (void)snprintf(rig.dir, sizeof rig.dir, "%s/burrow-files-XXXXXX", place);
    CHECK(mkdtemp(rig.dir) != NULL);
    CHECK(rig_n_dirs < ARRAY_SIZE(rig_dirs));
    if (rig_n_dirs == 0)
        (void)atexit(rig_sweep);
    memcpy(rig_dirs[rig_n_dirs++], rig.dir, sizeof rig.dir);
    CHECK(chmod(rig.dir, 0755) == 0);
    rig.fd = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(rig.fd >= 0);
    rig.who = (struct files_user){.uid = geteuid(), .gid = getegid()};
    return rig;
}

static inline struct rig rig_make(void)
{
    return rig_make_in("/tmp");
}

/* Most tests: as who runs them. The rig must not move once it serves. */
#define RIG(name)                                                                                  \
    autorig name = rig_make();                                                                     \
    rig_start(&name)

static inline void put_file(int dir, const char *name, const char *text, mode_t mode)
{
    autofd fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, text, strlen(text)) == 0);
    CHECK(fchmod(fd, mode) == 0);
}

/* What a file holds, in one of a few static places. */
static inline const char *get_file(int dir, const char *name)
{
    static char texts[4][4096];
    static unsigned next;
    char *text = texts[next++ % 4];
    autofd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t got = fd_read_full(fd, text, sizeof texts[0] - 1);
    CHECK(got >= 0);
    text[got] = '\0';
    return text;
}

static inline bool is_there(int dir, const char *name)
{
    struct stat info;
    return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline mode_t mode_of(int dir, const char *name)
{
    struct stat info;
    CHECK(fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0);
    return info.st_mode;
}

/* Collects what comes. */
struct gathered {
    struct buffer bytes;
    struct buffer names; // "path mode target\n"
    uint64_t items, data;
};

static inline int gather_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct gathered *gathered = data;
    gathered->data += length;
    return gathered->bytes.length < 1 << 16 ? buffer_add(&gathered->bytes, bytes, length, err) : 0;
}

static inline int gather_item(void *data, const struct files_item *item, struct error *err)
{
    struct gathered *gathered = data;
    gathered->items++;
    if (gathered->names.length > 1 << 16)
        return 0;
    return buffer_addf(&gathered->names, err, "%s %o%s%s\n", item->path, item->mode,
                       item->target[0] ? " " : "", item->target);
}

static inline void gathered_clear(struct gathered *gathered)
{
    buffer_clear(&gathered->bytes);
    buffer_clear(&gathered->names);
}
#define autogathered __attribute__((cleanup(gathered_clear))) struct gathered

/* Records from a table. */
struct record {
    const char *path;
    mode_t mode;
    const char *text; // contents, or where a link leads
    bool is_hard_link;
    uint32_t uid, gid;
    int64_t mtime_ns;
};

struct records {
    const struct record *next;
    size_t left;
    const char *text;
};

static inline int records_next(void *data, struct files_item *item, struct error *err)
{
    struct records *records = data;
    if (records->left == 0)
        return 0;
    const struct record *record = records->next++;
    bool is_file = S_ISREG(record->mode) && !record->is_hard_link;
    records->left--;
    records->text = record->text;
    *item = (struct files_item){
        .path = record->path,
        .mode = record->mode,
        .uid = record->uid,
        .gid = record->gid,
        .mtime_ns = record->mtime_ns,
        .is_hard_link = record->is_hard_link,
        .size = is_file ? strlen(record->text) : 0,
        .target = is_file || !record->text ? "" : record->text,
    };
    return 1;
}

static inline ssize_t records_fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct records *records = data;
    size_t length = strlen(records->text);
    if (length > size)
        length = size;
    memcpy(bytes, records->text, length);
    records->text += length;
    return (ssize_t)length;
}

#define IMPORT(rig, path, flags, table, err)                                                       \
    files_import((rig).conv, path, flags, records_next, records_fill,                              \
                 &(struct records){.next = (table), .left = ARRAY_SIZE(table)}, NULL, err)
