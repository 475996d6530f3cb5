/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving requests about files and sending answers; see files_talk.h. */
#include "init/files_talk.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int talk_next(struct talk *talk)
{
    struct files_frame frame;
    struct files_request request;

    if (files_frame_receive(talk->sock, talk->in, &frame, 0) <= 0 ||
        !files_request_parse(&frame, &request))
        return TALK_OVER;
    talk->request = request.fixed;
    if (talk->drops_set_ids && talk->request.mode != FILES_KEEP_MODE)
        talk->request.mode &= ~(uint32_t)(S_ISUID | S_ISGID);
    talk->type = frame.type;
    talk->flags = frame.flags;
    talk->is_taking =
        frame.type == FILES_WRITE || frame.type == FILES_IMPORT || frame.type == FILES_SAVE;
    talk->total = (struct files_total){0};
    talk->out_used = 0;
    memcpy(talk->path, request.path, request.fixed.path_size);
    memcpy(talk->second, request.second, request.fixed.second_size);
    memcpy(talk->third, request.third, request.fixed.third_size);
    talk->spoke_at = time(NULL);
    return 0;
}

int talk_receive(struct talk *talk, struct files_frame *out)
{
    if (files_frame_receive(talk->sock, talk->in, out, 0) <= 0)
        return TALK_OVER;
    if (out->type == FILES_COMMIT || out->type == FILES_ABORT)
        talk->is_taking = false;
    else if (out->type != FILES_DATA && out->type != FILES_ITEM && out->type != FILES_RECORDS)
        return TALK_OVER;
    return 0;
}

int talk_send(struct talk *talk, uint16_t type, const void *data, size_t length)
{
    struct iovec part = {(void *)data, length};
    return files_frame_send(talk->sock, type, 0, &part, 1) < 0 ? TALK_OVER : 0;
}

int talk_send_error(struct talk *talk, const struct error *error)
{
    struct files_failure failure = {.sys = error->sys, .kind = error_kind(error)};
    struct iovec parts[] = {
        {&failure, sizeof failure},
        {(void *)error->text, strlen(error->text) + 1},
    };
    return files_frame_send(talk->sock, FILES_ERROR, 0, parts, 2) < 0 ? TALK_OVER : 0;
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)((uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec);
}

void talk_describe(struct talk *talk, int dir, const char *name, const char *path,
                   const struct stat *info, struct files_item *out)
{
    *out = (struct files_item){
        .size = info->st_size > 0 ? (uint64_t)info->st_size : 0,
        .disk_bytes = (uint64_t)info->st_blocks * 512,
        .mtime_ns = nanoseconds(&info->st_mtim),
        .ctime_ns = nanoseconds(&info->st_ctim),
        .atime_ns = nanoseconds(&info->st_atim),
        .inode = info->st_ino,
        .mode = info->st_mode,
        .uid = info->st_uid,
        .gid = info->st_gid,
        .links = (uint32_t)info->st_nlink,
        .path = path,
        .target = "",
    };
    if (!S_ISLNK(info->st_mode))
        return;
    ssize_t got = readlinkat(dir, name, talk->target, sizeof talk->target - 1);
    if (got < 0)
        return;
    talk->target[got] = '\0';
    out->target = talk->target;
}

int talk_item(struct talk *talk, const struct files_item *item)
{
    size_t size = files_item_size(item);
    if (talk->out_used + size > FILES_MAX_DATA && talk_flush(talk) < 0)
        return TALK_OVER;
    talk->out_used += files_item_write(item, talk->out + talk->out_used);
    talk->total.items++;
    return 0;
}

int talk_flush(struct talk *talk)
{
    size_t length = talk->out_used;
    talk->out_used = 0;
    return length ? talk_send(talk, FILES_ITEM, talk->out, length) : 0;
}

int talk_alive(struct talk *talk)
{
    time_t now = time(NULL);
    if (talk_is_over(talk))
        return TALK_OVER;
    if (now == talk->spoke_at || !(talk->flags & FILES_PATIENT))
        return 0;
    talk->spoke_at = now;
    return talk_send(talk, FILES_ALIVE, NULL, 0);
}

bool talk_is_over(const struct talk *talk)
{
    struct pollfd poller = {.fd = talk->sock, .events = 0};
    return poll(&poller, 1, 0) > 0 && (poller.revents & (POLLHUP | POLLERR));
}
