/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for room in the way to a process's input; see input_room.h. All of it but is_awaited is touched on the loop only. */
#include "core/execution/input_room.h"

#include "base/id.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>

struct input_room {
    struct loop *loop;
    struct hub *hub;
    char id[ID_TEXT];
    int fd;
    struct loop_watch *ready;
    atomic_bool is_awaited;
};

static void tell(struct input_room *room)
{
    atomic_store(&room->is_awaited, false); // whoever finds none from here on waits anew
    hub_announce(room->hub, room->id);
}

static void on_room(void *data, unsigned events)
{
    struct input_room *room = data;

    (void)events; // a process that has ended is announced as well
    loop_watch_set(room->ready, 0);
    tell(room);
}

static void on_await(void *data)
{
    struct input_room *room = data;
    struct error ignored = {0};

    if (!room->ready &&
        loop_watch_new(room->loop, room->fd, on_room, room, &room->ready, &ignored) < 0)
        tell(room); // then it is tried again and again, and not for ever
    else
        loop_watch_set(room->ready, LOOP_WRITABLE);
}

struct input_room *input_room_new(struct loop *loop, struct hub *hub, const char *id, int fd)
{
    struct input_room *room = xnew(struct input_room);

    room->loop = loop;
    room->hub = hub;
    (void)snprintf(room->id, sizeof room->id, "%s", id);
    room->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return room;
}

void input_room_await(struct input_room *room)
{
    if (!atomic_exchange(&room->is_awaited, true))
        loop_post(room->loop, on_await, room);
}

/* Behind all that was posted for it. */
static void on_stop(void *data)
{
    struct input_room *room = data;

    loop_watch_free(room->ready);
    closep(&room->fd);
    free(room);
}

void input_room_stop(struct input_room *room)
{
    if (room)
        loop_post(room->loop, on_stop, room);
}
