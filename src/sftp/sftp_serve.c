/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of SFTP, done; see sftp_serve.h. */
#include "sftp/sftp_serve.h"

#include "sftp/sftp_listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RENAME_KEEPS_TARGET 1u // RENAME_NOREPLACE of linux/fs.h, which musl's headers lack

struct handle {
    int fd;      // of a directory too; -1: free
    DIR *listed; // of one that OPENDIR made
    uint32_t generation;
    int next_free;
};

struct sftp {
    struct handle handles[SFTP_HANDLES];
    int first_free; // -1: none is
    bool is_greeted;
    struct sftp_people people;
    struct sftp_request request;
    struct sftp_answer answer;
};

struct sftp *sftp_new(void)
{
    struct sftp *sftp = calloc(1, sizeof *sftp);

    if (!sftp)
        return NULL;
    for (int i = 0; i < SFTP_HANDLES; i++)
        sftp->handles[i] = (struct handle){.fd = -1, .next_free = i + 1};
    sftp->handles[SFTP_HANDLES - 1].next_free = -1;
    return sftp;
}

void sftp_free(struct sftp *sftp)
{
    for (int i = 0; sftp && i < SFTP_HANDLES; i++) {
        if (sftp->handles[i].listed)
            (void)closedir(sftp->handles[i].listed);
        else if (sftp->handles[i].fd >= 0)
            (void)close(sftp->handles[i].fd);
    }
    free(sftp);
}

// ---- answers ----

static void begin(struct sftp *sftp, enum sftp_type type)
{
    sftp_answer_begin(&sftp->answer, sftp->answer.begin, type, sftp->request.id);
}

static void answer_status(struct sftp *sftp, enum sftp_status status, const char *text)
{
    begin(sftp, SFTP_STATUS);
    sftp_put_number(&sftp->answer, status);
    sftp_put_text(&sftp->answer, text, strlen(text));
    sftp_put_text(&sftp->answer, "", 0); // the language
}

static enum sftp_status status_of(int code)
{
    static const struct {
        int code;
        enum sftp_status status;
    } rows[] = {
        {ENOENT, SFTP_NO_SUCH_FILE},      {ENOTDIR, SFTP_NO_SUCH_FILE},
        {EBADF, SFTP_NO_SUCH_FILE},       {ELOOP, SFTP_NO_SUCH_FILE},
        {EPERM, SFTP_PERMISSION_DENIED},  {EACCES, SFTP_PERMISSION_DENIED},
        {EROFS, SFTP_PERMISSION_DENIED},  {EINVAL, SFTP_BAD_MESSAGE},
        {ENAMETOOLONG, SFTP_BAD_MESSAGE}, {ENOSYS, SFTP_UNSUPPORTED},
        {EOPNOTSUPP, SFTP_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            return rows[i].status;
    return SFTP_FAILURE;
}

static void answer_errno(struct sftp *sftp)
{
    answer_status(sftp, status_of(errno), strerror(errno));
}

static void answer_done(struct sftp *sftp, int result)
{
    if (result < 0)
        answer_errno(sftp);
    else
        answer_status(sftp, SFTP_OK, "Success");
}

static void answer_attributes(struct sftp *sftp, int result, const struct stat *status)
{
    if (result < 0) {
        answer_errno(sftp);
        return;
    }
    const struct sftp_attributes attributes = sftp_attributes_of(status);
    begin(sftp, SFTP_ATTRIBUTES);
    sftp_put_attributes(&sftp->answer, &attributes);
}

// One name, of which nothing more is told.
static void answer_name(struct sftp *sftp, const char *name)
{
    begin(sftp, SFTP_NAME);
    sftp_put_number(&sftp->answer, 1);
    sftp_put_text(&sftp->answer, name, strlen(name));
    sftp_put_text(&sftp->answer, name, strlen(name));
    sftp_put_attributes(&sftp->answer, &(struct sftp_attributes){0});
}

// ---- handles ----

static struct handle *find_handle(struct sftp *sftp)
{
    const struct sftp_text *text = &sftp->request.handle;
    uint32_t parts[2];

    errno = EBADF;
    if (text->length != SFTP_HANDLE)
        return NULL;
    memcpy(parts, text->at, sizeof parts);
    if (parts[0] >= SFTP_HANDLES)
        return NULL;
    struct handle *handle = &sftp->handles[parts[0]];
    return handle->fd >= 0 && handle->generation == parts[1] ? handle : NULL;
}

// Takes the descriptor, or the directory it is of.
static void answer_handle(struct sftp *sftp, int fd, DIR *listed)
{
    const int index = sftp->first_free;
    struct handle *handle = &sftp->handles[index];
    const uint32_t parts[2] = {(uint32_t)index, handle->generation};

    sftp->first_free = handle->next_free;
    handle->fd = fd;
    handle->listed = listed;
    begin(sftp, SFTP_HANDLED);
    sftp_put_text(&sftp->answer, parts, sizeof parts);
}

static bool has_free_handle(struct sftp *sftp)
{
    if (sftp->first_free >= 0)
        return true;
    answer_status(sftp, SFTP_FAILURE, "Too many open handles");
    return false;
}

static void close_handle(struct sftp *sftp)
{
    struct handle *handle = find_handle(sftp);

    if (!handle) {
        answer_errno(sftp);
        return;
    }
    int result = handle->listed ? closedir(handle->listed) : close(handle->fd);
    handle->fd = -1;
    handle->listed = NULL;
    handle->generation++;
    handle->next_free = sftp->first_free;
    sftp->first_free = (int)(handle - sftp->handles);
    answer_done(sftp, result);
}

// ---- files ----

static int flags_of(uint32_t asked)
{
    // Not waiting for the other end of a pipe, nor taking a terminal for our own.
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

    if ((asked & SFTP_FOR_READING) && (asked & SFTP_FOR_WRITING))
        flags |= O_RDWR;
    else if (asked & SFTP_FOR_WRITING)
        flags |= O_WRONLY;
    flags |= asked & SFTP_APPENDING ? O_APPEND : 0;
    flags |= asked & SFTP_CREATING ? O_CREAT : 0;
    flags |= asked & SFTP_TRUNCATING ? O_TRUNC : 0;
    flags |= asked & SFTP_EXCLUSIVE ? O_EXCL : 0;
    return flags;
}

static mode_t mode_of(const struct sftp_attributes *attributes, mode_t otherwise)
{
    return attributes->flags & SFTP_HAS_MODE ? attributes->mode & 07777 : otherwise;
}

static void open_file(struct sftp *sftp)
{
    const struct sftp_request *request = &sftp->request;

    if (!has_free_handle(sftp))
        return;
    int fd = open(request->path, flags_of(request->flags), mode_of(&request->attributes, 0666));
    if (fd < 0)
        answer_errno(sftp);
    else
        answer_handle(sftp, fd, NULL);
}

static void read_file(struct sftp *sftp)
{
    const struct sftp_request *request = &sftp->request;
    const struct handle *handle = find_handle(sftp);
    size_t length = request->length < SFTP_DATA_MAX ? request->length : SFTP_DATA_MAX;

    if (!handle || request->offset > INT64_MAX) {
        errno = handle ? EINVAL : EBADF;
        answer_errno(sftp);
        return;
    }
    begin(sftp, SFTP_DATA);
    ssize_t got = pread(handle->fd, sftp->answer.at + 4, length, (off_t)request->offset);
    if (got < 0)
        answer_errno(sftp);
    else if (got == 0 && length)
        answer_status(sftp, SFTP_EOF, "End of file");
    else {
        sftp_put_number(&sftp->answer, (uint32_t)got);
        sftp->answer.at += got;
    }
}

static int write_all(int fd, const struct sftp_text *data, uint64_t offset)
{
    for (uint32_t done = 0; done < data->length;) {
        ssize_t put = pwrite(fd, data->at + done, data->length - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        done += (uint32_t)put;
    }
    return 0;
}

static void write_file(struct sftp *sftp)
{
    const struct sftp_request *request = &sftp->request;
    const struct handle *handle = find_handle(sftp);

    if (!handle || request->offset > INT64_MAX - SFTP_PACKET_MAX) {
        errno = handle ? EFBIG : EBADF;
        answer_errno(sftp);
        return;
    }
    answer_done(sftp, write_all(handle->fd, &request->data, request->offset));
}

// ---- attributes ----

static void stat_path(struct sftp *sftp)
{
    struct stat status;
    answer_attributes(sftp, stat(sftp->request.path, &status), &status);
}

static void lstat_path(struct sftp *sftp)
{
    struct stat status;
    answer_attributes(sftp, lstat(sftp->request.path, &status), &status);
}

static void stat_handle(struct sftp *sftp)
{
    const struct handle *handle = find_handle(sftp);
    struct stat status;
    answer_attributes(sftp, handle ? fstat(handle->fd, &status) : -1, &status);
}

static void times_of(const struct sftp_attributes *attributes, struct timespec times[2])
{
    times[0] = (struct timespec){.tv_sec = attributes->accessed_at};
    times[1] = (struct timespec){.tv_sec = attributes->modified_at};
}

static int set_path(const char *path, const struct sftp_attributes *to)
{
    struct timespec times[2];

    times_of(to, times);
    if ((to->flags & SFTP_HAS_SIZE) && truncate(path, (off_t)to->size) < 0)
        return -1;
    if ((to->flags & SFTP_HAS_MODE) && chmod(path, to->mode & 07777) < 0)
        return -1;
    if ((to->flags & SFTP_HAS_TIMES) && utimensat(AT_FDCWD, path, times, 0) < 0)
        return -1;
    return to->flags & SFTP_HAS_IDS ? chown(path, to->uid, to->gid) : 0;
}

static int set_link(const char *path, const struct sftp_attributes *to)
{
    struct timespec times[2];

    times_of(to, times);
    if (to->flags & SFTP_HAS_SIZE) {
        errno = EINVAL; // there is no way to do that
        return -1;
    }
    if ((to->flags & SFTP_HAS_MODE) &&
        fchmodat(AT_FDCWD, path, to->mode & 07777, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if ((to->flags & SFTP_HAS_TIMES) && utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return to->flags & SFTP_HAS_IDS ? lchown(path, to->uid, to->gid) : 0;
}

static int set_handle(const struct handle *handle, const struct sftp_attributes *to)
{
    struct timespec times[2];

    if (!handle)
        return -1;
    times_of(to, times);
    if ((to->flags & SFTP_HAS_SIZE) && ftruncate(handle->fd, (off_t)to->size) < 0)
        return -1;
    if ((to->flags & SFTP_HAS_MODE) && fchmod(handle->fd, to->mode & 07777) < 0)
        return -1;
    if ((to->flags & SFTP_HAS_TIMES) && futimens(handle->fd, times) < 0)
        return -1;
    return to->flags & SFTP_HAS_IDS ? fchown(handle->fd, to->uid, to->gid) : 0;
}

static void setstat_path(struct sftp *sftp)
{
    answer_done(sftp, set_path(sftp->request.path, &sftp->request.attributes));
}

static void setstat_link(struct sftp *sftp)
{
    answer_done(sftp, set_link(sftp->request.path, &sftp->request.attributes));
}

static void setstat_handle(struct sftp *sftp)
{
    answer_done(sftp, set_handle(find_handle(sftp), &sftp->request.attributes));
}

// ---- directories ----

static void open_directory(struct sftp *sftp)
{
    if (!has_free_handle(sftp))
        return;
    DIR *listed = opendir(sftp->request.path);
    if (!listed)
        answer_errno(sftp);
    else
        answer_handle(sftp, dirfd(listed), listed);
}

static bool put_entry(struct sftp *sftp, const struct handle *handle, const char *name)
{
    char line[SFTP_LINE_MAX];
    struct stat status;

    if (fstatat(handle->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false; // gone meanwhile
    const struct sftp_attributes attributes = sftp_attributes_of(&status);
    sftp_put_text(&sftp->answer, name, strlen(name));
    sftp_put_text(&sftp->answer, line, sftp_listing_line(&sftp->people, name, &status, line));
    sftp_put_attributes(&sftp->answer, &attributes);
    return true;
}

static void read_directory(struct sftp *sftp)
{
    struct handle *handle = find_handle(sftp);
    uint32_t count = 0;

    if (!handle || !handle->listed) {
        errno = handle ? ENOTDIR : EBADF;
        answer_errno(sftp);
        return;
    }
    sftp->people.now = time(NULL);
    begin(sftp, SFTP_NAME);
    unsigned char *counted = sftp->answer.at;
    sftp_put_number(&sftp->answer, 0);
    errno = 0;
    while (sftp->answer.at - sftp->answer.begin < SFTP_NAMES_BYTES) {
        const struct dirent *entry = readdir(handle->listed);
        if (!entry)
            break;
        count += put_entry(sftp, handle, entry->d_name);
        errno = 0;
    }
    if (!count && errno) {
        answer_errno(sftp);
    } else if (!count) {
        answer_status(sftp, SFTP_EOF, "End of file");
    } else {
        struct sftp_answer front = {counted, counted};
        sftp_put_number(&front, count);
    }
}

static void make_directory(struct sftp *sftp)
{
    answer_done(sftp, mkdir(sftp->request.path, mode_of(&sftp->request.attributes, 0777)));
}

static void remove_directory(struct sftp *sftp)
{
    answer_done(sftp, rmdir(sftp->request.path));
}

static void remove_file(struct sftp *sftp)
{
    answer_done(sftp, unlink(sftp->request.path));
}

// ---- names ----

// Where the system cannot do it at once; the target is looked at first, so that a directory can be told from a file.
static int rename_in_steps(const char *from, const char *to)
{
    struct stat status;

    if (lstat(to, &status) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

// In this version it does not replace anything.
static void rename_path(struct sftp *sftp)
{
    const char *from = sftp->request.path, *to = sftp->request.other;
    long result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_KEEPS_TARGET);

    if (result < 0 && (errno == EINVAL || errno == ENOSYS))
        result = rename_in_steps(from, to);
    answer_done(sftp, (int)result);
}

static void replace_path(struct sftp *sftp)
{
    answer_done(sftp, rename(sftp->request.path, sftp->request.other));
}

static void link_path(struct sftp *sftp)
{
    answer_done(sftp, link(sftp->request.path, sftp->request.other));
}

// The target comes first: other than the draft says, as OpenSSH does it, and all clients by now.
static void make_symlink(struct sftp *sftp)
{
    answer_done(sftp, symlink(sftp->request.path, sftp->request.other));
}

static void read_link(struct sftp *sftp)
{
    char target[SFTP_PATH_MAX];
    ssize_t length = readlink(sftp->request.path, target, sizeof target - 1);

    if (length < 0) {
        answer_errno(sftp);
        return;
    }
    target[length] = '\0';
    answer_name(sftp, target);
}

// The last component need not exist. `path` is written over.
static int resolve(char path[SFTP_PATH_MAX], char out[PATH_MAX])
{
    if (realpath(*path ? path : ".", out))
        return 0;
    if (errno != ENOENT)
        return -1;
    for (size_t length = strlen(path); length > 1 && path[length - 1] == '/'; length--)
        path[length - 1] = '\0';
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    char name[NAME_MAX + 1];
    struct stat status;

    errno = ENOENT;
    if (strlen(last) > NAME_MAX || lstat(path, &status) == 0) // a link that leads nowhere
        return -1;
    (void)snprintf(name, sizeof name, "%s", last);
    if (slash)
        *(slash == path ? slash + 1 : slash) = '\0';
    if (!realpath(slash ? path : ".", out))
        return -1;
    size_t length = strlen(out);
    if (length + strlen(name) + 2 > PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    (void)sprintf(out + length, "%s%s", length == 1 ? "" : "/", name);
    return 0;
}

static void resolve_path(struct sftp *sftp)
{
    char out[PATH_MAX];

    if (resolve(sftp->request.path, out) < 0)
        answer_errno(sftp);
    else
        answer_name(sftp, out);
}

// "~" and "~name" at the front become that user's home.
static void expand_path(struct sftp *sftp)
{
    char *path = sftp->request.path, whole[SFTP_PATH_MAX], name[64] = "";
    size_t length = strcspn(path, "/");
    const char *home = getenv("HOME");

    if (*path == '~' && length > 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(length - 1 < 63 ? length - 1 : 63),
                       path + 1);
        const struct passwd *user = getpwnam(name);
        home = user ? user->pw_dir : NULL;
    }
    if (*path == '~') {
        if (!home || snprintf(whole, sizeof whole, "%s%s", home, path + length) >= SFTP_PATH_MAX) {
            answer_status(sftp, SFTP_NO_SUCH_FILE, home ? "Path too long" : "No such user");
            return;
        }
        memcpy(path, whole, strlen(whole) + 1);
    }
    resolve_path(sftp);
}

// ---- the rest ----

static void answer_file_system(struct sftp *sftp, int result, const struct statvfs *about)
{
    if (result < 0) {
        answer_errno(sftp);
        return;
    }
    const uint64_t flags =
        (about->f_flag & ST_RDONLY ? 1 : 0) | (about->f_flag & ST_NOSUID ? 2 : 0);
    const uint64_t numbers[] = {about->f_bsize,  about->f_frsize, about->f_blocks, about->f_bfree,
                                about->f_bavail, about->f_files,  about->f_ffree,  about->f_favail,
                                about->f_fsid,   flags,           about->f_namemax};

    begin(sftp, SFTP_EXTENDED_REPLY);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sftp_put_large(&sftp->answer, numbers[i]);
}

static void statvfs_path(struct sftp *sftp)
{
    struct statvfs about;
    answer_file_system(sftp, statvfs(sftp->request.path, &about), &about);
}

static void statvfs_handle(struct sftp *sftp)
{
    const struct handle *handle = find_handle(sftp);
    struct statvfs about;
    answer_file_system(sftp, handle ? fstatvfs(handle->fd, &about) : -1, &about);
}

static void sync_handle(struct sftp *sftp)
{
    const struct handle *handle = find_handle(sftp);
    answer_done(sftp, handle ? fsync(handle->fd) : -1);
}

static void tell_limits(struct sftp *sftp)
{
    begin(sftp, SFTP_EXTENDED_REPLY);
    sftp_put_large(&sftp->answer, SFTP_PACKET_MAX);
    sftp_put_large(&sftp->answer, SFTP_DATA_MAX);
    sftp_put_large(&sftp->answer, SFTP_DATA_MAX);
    sftp_put_large(&sftp->answer, SFTP_HANDLES);
}

static void greet(struct sftp *sftp)
{
    sftp->is_greeted = true;
    sftp_answer_begin(&sftp->answer, sftp->answer.begin, SFTP_HELLO, SFTP_VERSION);
    for (enum sftp_extension i = 0; i < SFTP_EXTENSIONS; i++)
        for (int part = 0; part < 2; part++)
            sftp_put_text(&sftp->answer, sftp_extension_names[i][part],
                          strlen(sftp_extension_names[i][part]));
}

static void (*const answers[SFTP_REQUESTS])(struct sftp *) = {
    [SFTP_OPEN] = open_file,         [SFTP_CLOSE] = close_handle,
    [SFTP_READ] = read_file,         [SFTP_WRITE] = write_file,
    [SFTP_LSTAT] = lstat_path,       [SFTP_FSTAT] = stat_handle,
    [SFTP_SETSTAT] = setstat_path,   [SFTP_FSETSTAT] = setstat_handle,
    [SFTP_OPENDIR] = open_directory, [SFTP_READDIR] = read_directory,
    [SFTP_REMOVE] = remove_file,     [SFTP_MKDIR] = make_directory,
    [SFTP_RMDIR] = remove_directory, [SFTP_REALPATH] = resolve_path,
    [SFTP_STAT] = stat_path,         [SFTP_RENAME] = rename_path,
    [SFTP_READLINK] = read_link,     [SFTP_SYMLINK] = make_symlink,
};
static void (*const extended_answers[SFTP_EXTENSIONS])(struct sftp *) = {
    [SFTP_POSIX_RENAME] = replace_path, [SFTP_STATVFS] = statvfs_path,
    [SFTP_FSTATVFS] = statvfs_handle,   [SFTP_HARDLINK] = link_path,
    [SFTP_FSYNC] = sync_handle,         [SFTP_LSETSTAT] = setstat_link,
    [SFTP_LIMITS] = tell_limits,        [SFTP_EXPAND_PATH] = expand_path,
};

size_t sftp_answer_packet(struct sftp *sftp, const void *packet, size_t length, void *memory)
{
    struct sftp_request *request = &sftp->request;
    enum sftp_read result = sftp_request_read(packet, length, request);

    // The first packet says hello, and no other does.
    if (result == SFTP_IS_GARBAGE || (request->type == SFTP_INIT) == sftp->is_greeted)
        return 0;
    sftp->answer = (struct sftp_answer){memory, memory};
    if (result == SFTP_IS_UNKNOWN)
        answer_status(sftp, SFTP_UNSUPPORTED, "Operation unsupported");
    else if (result == SFTP_IS_MALFORMED)
        answer_status(sftp, SFTP_BAD_MESSAGE, "Bad message");
    else if (request->type == SFTP_INIT)
        greet(sftp);
    else if (request->type == SFTP_EXTENDED)
        extended_answers[request->extension](sftp);
    else
        answers[request->type](sftp);
    return sftp_answer_end(&sftp->answer);
}
