/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations about what happens in a directory; see file_watch.h. */
#include "core/sandbox/file_watch.h"

#include "base/cancel.h"
#include "base/mem.h"
#include "core/sandbox/file_access_impl.h"

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

int file_watch_take(struct file_watch *watch, files_on_event on_event, void *data,
                    struct error *err)
{
    uint8_t buffer[FILES_MAX_FRAME];
    int taken = files_take_events(watch->conversation, buffer, on_event, data, err);

    if (taken < 0 && error_is(err, ERROR_NOT_FOUND))
        return error_about(err, "file");
    return taken < 0 ? error_restate(err, ERROR_ENDED, "sandbox") : taken;
}
