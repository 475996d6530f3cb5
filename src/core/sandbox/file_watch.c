/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations about what happens in a directory; see file_watch.h. */
#include "core/sandbox/file_watch.h"

#include "base/cancel.h"
#include "base/mem.h"
#include "core/sandbox/file_access_impl.h"

#include <string.h>

struct file_watch {
    int conversation;
};

int file_watch_open(struct sandboxes *sandboxes, const struct actor *actor,
                    const struct file_place *place, bool is_recursive, struct file_watch **out,
                    struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    struct file_work *work = &access.work;

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    if (files_watch(work->conversation, place->path, is_recursive, 0, err) < 0)
        return err->reason == ERROR_LIMIT ? error_about(err, "file")
                                          : file_access_failed_tree(&access, err);
    cancel_forget_socket(work->cancel, work->conversation); // from here on it is no work
    struct file_watch *watch = xnew(struct file_watch);
    watch->conversation = take_fd(work->conversation);
    *out = watch;
    return 0;
}

void file_watch_free(struct file_watch *watch)
{
    if (!watch)
        return;
    closep(&watch->conversation);
    free(watch);
}

int file_watch_fd(const struct file_watch *watch)
{
    return watch->conversation;
}

/* Whoever is told. */
struct listener {
    files_on_event on_event;
    void *data;
};

/* Something that is being written beside its place, ".burrow-" and sixteen digits, or is in it. */
static bool is_beside(const char *path)
{
    static const char prefix[] = ".burrow-";

    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        const char *number = at + sizeof prefix - 1;
        if (strncmp(at, prefix, sizeof prefix - 1) == 0 &&
            strspn(number, "0123456789abcdef") == 16 && (!number[16] || number[16] == '/'))
            return true;
    }
    return false;
}

static void pass_on(void *data, const struct files_event *event)
{
    const struct listener *to = data;
    bool is_move = event->kind == FILES_MOVED;
    bool is_from = is_beside(event->path), is_into = is_move && is_beside(event->second);
    struct files_event other = *event;

    if (!is_from && !is_into) {
        to->on_event(to->data, event);
        return;
    }
    if (is_from == is_into || (is_from && !is_move))
        return;
    other.second = "";
    other.kind = is_from ? FILES_CREATED : FILES_REMOVED;
    other.path = is_from ? event->second : event->path;
    to->on_event(to->data, &other);
    other.kind = FILES_CHANGED;
    if (is_from && !event->is_directory)
        to->on_event(to->data, &other);
}

int file_watch_take(struct file_watch *watch, files_on_event on_event, void *data,
                    struct error *err)
{
    uint8_t buffer[FILES_MAX_FRAME];
    struct listener to = {on_event, data};
    int taken = files_take_events(watch->conversation, buffer, pass_on, &to, err);

    if (taken < 0 && error_is(err, ERROR_NOT_FOUND))
        return error_about(err, "file");
    return taken < 0 ? error_restate(err, ERROR_ENDED, "sandbox") : taken;
}
