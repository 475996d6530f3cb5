/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are watched while their call is worked on; see client_watch.h. */
#include "web/client_watch.h"

#include "base/cancel.h"
#include "base/mem.h"
#include "core/sandbox/temporary.h"

#include <stdatomic.h>

struct client_watch {
    atomic_int refs; // the response until its end, the call, whoever it waits with
    struct cancel *cancel;
    _Atomic(struct temporary *) file; // that the answer is sent from
};

static void on_gone(void *data)
{
    const struct client_watch *watch = data;

    cancel_set(watch->cancel);
}

static void on_end(void *data, bool is_delivered)
{
    struct client_watch *watch = data;

    (void)is_delivered;
    temporary_free(atomic_exchange(&watch->file, NULL));
    client_watch_free(watch);
}

static const struct response_events events = {.on_gone = on_gone, .on_end = on_end};

void client_watch_start(struct call *call)
{
    if (call->watch)
        return; // it is called again
    struct client_watch *watch = xnew(struct client_watch);
    atomic_init(&watch->refs, 2);
    watch->cancel = cancel_new();
    call->watch = watch;
    call->actor.cancel = watch->cancel;
    response_watch(call->response, &events, watch);
}

struct client_watch *client_watch_ref(struct client_watch *watch)
{
    if (watch)
        atomic_fetch_add(&watch->refs, 1);
    return watch;
}

void client_watch_free(struct client_watch *watch)
{
    if (!watch || atomic_fetch_sub(&watch->refs, 1) != 1)
        return;
    temporary_free(atomic_load(&watch->file));
    cancel_free(watch->cancel);
    free(watch);
}

int client_watch_send_file(struct call *call, int status, const struct http_header *headers,
                           struct temporary *file)
{
    struct file_range range = {.fd = file->fd, .length = file->size};

    // before it is sent: its end may come at once. Where somebody has answered, it goes with the watch
    atomic_store(&call->watch->file, file);
    (void)response_send_file(call->response, status, headers, &range);
    return 0;
}
