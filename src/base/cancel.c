/* SPDX-License-Identifier: Apache-2.0 */
/* Work that nobody wants any more; see cancel.h. */
#include "base/cancel.h"

#include "base/lock.h"
#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SOCKETS 4 // a box and a helper, with room

struct cancel {
    atomic_int refs;
    atomic_bool is_set;
    struct lock lock;     // guards the sockets, so that none is closed while it is shut down
    int sockets[SOCKETS]; // -1: none
};

struct cancel *cancel_new(void)
{
    struct cancel *cancel = xnew(struct cancel);

    atomic_init(&cancel->refs, 1);
    lock_init(&cancel->lock, LOCK_CANCEL);
    for (int i = 0; i < SOCKETS; i++)
        cancel->sockets[i] = -1;
    return cancel;
}

struct cancel *cancel_ref(struct cancel *cancel)
{
    if (cancel)
        atomic_fetch_add(&cancel->refs, 1);
    return cancel;
}

void cancel_free(struct cancel *cancel)
{
    if (!cancel || atomic_fetch_sub(&cancel->refs, 1) != 1)
        return;
    lock_clear(&cancel->lock);
    free(cancel);
}

void cancel_set(struct cancel *cancel)
{
    autolock(&cancel->lock);
    atomic_store(&cancel->is_set, true);
    for (int i = 0; i < SOCKETS; i++) {
        if (cancel->sockets[i] >= 0)
            (void)shutdown(cancel->sockets[i], SHUT_RDWR);
    }
}

bool cancel_is_set(const struct cancel *cancel)
{
    return cancel && atomic_load_explicit(&cancel->is_set, memory_order_relaxed);
}

static void replace(struct cancel *cancel, int from, int to)
{
    for (int i = 0; i < SOCKETS; i++) {
        if (cancel->sockets[i] == from) {
            cancel->sockets[i] = to;
            return;
        }
    }
    assert(from >= 0); // more sockets than there is room for
}

void cancel_add_socket(struct cancel *cancel, int fd)
{
    if (!cancel)
        return;
    autolock(&cancel->lock);
    replace(cancel, -1, fd);
    if (atomic_load(&cancel->is_set))
        (void)shutdown(fd, SHUT_RDWR);
}

void cancel_forget_socket(struct cancel *cancel, int fd)
{
    if (!cancel || fd < 0)
        return;
    autolock(&cancel->lock);
    replace(cancel, fd, -1);
}
