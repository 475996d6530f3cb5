/* SPDX-License-Identifier: Apache-2.0 */
/* Starting burrow-archive and speaking with it; see archiver.h. */
#include "archive/archiver.h"
#include "archive/records.h"
#include "base/auto.h"
#include "base/cancel.h"
#include "base/child.h"
#include "base/mem.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

static const char *const format_names[] = {
    [ARCHIVE_ANY] = "any",          [ARCHIVE_TAR_GZIP] = "tar.gz", [ARCHIVE_ZIP] = "zip",
    [ARCHIVE_TAR_ZSTD] = "tar.zst", [ARCHIVE_TAR] = "tar",         [ARCHIVE_ZSTD] = "zst",
    [ARCHIVE_LAYER] = "layer",
};

/* Above the three that the child gets, so that no dup2 of its start overwrites another's source. */
static int lift(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    closep(&fd);
    return lifted;
}

/* The same file with a position of its own, and only the rights that the mode needs. */
static int open_again(int fd, int flags, struct error *err)
{
    char name[40];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int again = lift(open(name, flags | O_CLOEXEC));
    return again < 0 ? error_sys(err, "open the archive once more") : again;
}

static int make_pair(const struct archive_task *task, int pair[2], struct error *err)
{
    struct timeval patience = {task->timeout_ms / 1000, task->timeout_ms % 1000 * 1000};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket for burrow-archive");
    pair[0] = lift(pair[0]);
    pair[1] = lift(pair[1]);
    if (pair[0] < 0 || pair[1] < 0 ||
        setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
        return error_sys(err, "make a socket for burrow-archive");
    return 0;
}

int archiver_start(struct archiver *archiver, const char *mode, const struct archive_task *task,
                   int archive_fd, struct error *err)
{
    bool is_unpacking = strcmp(mode, "unpack") == 0;
    char bytes[24], entries[24];
    int pair[2] = {-1, -1};
    autofd file = open_again(archive_fd, is_unpacking ? O_RDONLY : O_WRONLY, err);
    if (file < 0)
        return -1;
    int made = make_pair(task, pair, err);
    archiver->sock = pair[0];
    autofd theirs = pair[1];
    if (made < 0)
        return -1;
    archiver->cancel = cancel_ref(task->cancel);
    cancel_add_socket(archiver->cancel, archiver->sock);
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, task->max_bytes);
    (void)snprintf(entries, sizeof entries, "%" PRIu64, task->max_entries);
    char *argv[] = {(char *)"burrow-archive",
                    (char *)mode,
                    (char *)format_names[task->format],
                    bytes,
                    entries,
                    NULL};
    const struct child child = {task->program, argv, NULL, {theirs, file, CHILD_NOTHING}};
    int code = child_start(&child, &archiver->pid);
    if (code) {
        archiver->pid = 0;
        (void)error_sys_code(err, code, "start '%s'", task->program);
        return error_restate(err, ERROR_UNAVAILABLE, NULL);
    }
    closep(&theirs); // or its end would never be seen
    archiver->buffer = xcalloc(1, FILES_MAX_FRAME);
    return 0;
}

int archiver_lied(struct error *err)
{
    return error_refuse(err, ERROR_DAMAGED, "archive",
                        "the archive made burrow-archive say what makes no sense: it is damaged");
}

/* It sees what strangers wrote: of its kinds those are believed that it may have, of its text no control character. */
static int take_error(const struct files_frame *frame, struct error *err)
{
    struct files_failure failure;
    const char *text = NULL;
    if (!files_failure_parse(frame, &failure, &text))
        return archiver_lied(err);
    bool is_known = failure.kind > ERROR_NONE && failure.kind < ERROR_REASONS;
    struct error said = {.reason = is_known ? (enum error_reason)failure.kind : ERROR_REFUSED};
    enum error_reason reason = error_is(&said, ERROR_LIMIT)     ? ERROR_TOO_LARGE
                               : error_is(&said, ERROR_SYSTEM)  ? ERROR_SYSTEM
                               : error_is(&said, ERROR_DAMAGED) ? ERROR_DAMAGED
                                                                : ERROR_REFUSED;
    (void)error_refuse(err, reason, "archive", "%s", text);
    if (reason == ERROR_TOO_LARGE && failure.sys == EFBIG)
        err->sys = EFBIG;
    quote_scrub(err->text);
    return -1;
}

static int lost(int code, struct error *err)
{
    if (code == EAGAIN || code == EWOULDBLOCK)
        return error_refuse(err, ERROR_TOO_LARGE, "archive",
                            "the archive takes too long to be worked through");
    if (code == EPROTO)
        return archiver_lied(err);
    return error_refuse(
        err, ERROR_DAMAGED, "archive",
        "the archive could not be worked through: it is damaged, or needs more memory "
        "or time than is given");
}

static int receive(struct archiver *archiver, struct files_frame *out, struct error *err)
{
    int got = files_frame_receive(archiver->sock, archiver->buffer, out, 0);
    // where it went with frames of ours unread, that is said before its own last frame
    if (got == 0)
        got = files_frame_receive(archiver->sock, archiver->buffer, out, 0);
    if (got <= 0)
        return lost(got == 0 ? ECONNRESET : errno, err);
    return out->type == FILES_ERROR ? take_error(out, err) : 0;
}

static int await_ready(struct archiver *archiver, struct error *err)
{
    struct files_frame frame;
    if (archiver->is_ready)
        return 0;
    if (receive(archiver, &frame, err) < 0) {
        // nothing of the archive was read yet: it is not to blame
        (void)error_restate(err, ERROR_UNAVAILABLE, NULL);
        return error_wrap(err, "make burrow-archive give up its rights");
    }
    if (frame.type != RECORDS_READY || frame.length)
        return archiver_lied(err);
    archiver->is_ready = true;
    return 0;
}

int archiver_receive(struct archiver *archiver, struct files_frame *out, struct error *err)
{
    return await_ready(archiver, err) < 0 ? -1 : receive(archiver, out, err);
}

int archiver_send(struct archiver *archiver, uint16_t type, const void *data, size_t length,
                  struct error *err)
{
    struct iovec part = {(void *)data, length};
    struct files_frame frame;
    if (await_ready(archiver, err) < 0)
        return -1;
    if (files_frame_send(archiver->sock, type, 0, &part, 1) == 0)
        return 0;
    if (errno != EPIPE && errno != ECONNRESET)
        return lost(errno, err);
    return receive(archiver, &frame, err) < 0 ? -1 : archiver_lied(err);
}

void archiver_clear(struct archiver *archiver)
{
    if (!archiver)
        return;
    if (archiver->pid > 0) {
        (void)kill(archiver->pid, SIGKILL); // it has nothing left to do, or must not do it
        while (waitpid(archiver->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (archiver->cancel)
        cancel_forget_socket(archiver->cancel, archiver->sock);
    cancel_free(archiver->cancel);
    closep(&archiver->sock);
    free(archiver->buffer);
    *archiver = (struct archiver){.sock = -1};
}
