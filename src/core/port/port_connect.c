/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to ports of sandboxes, waking those that sleep; see port.h. */
#include "core/port/port.h"

#include "core/port/port_impl.h"
#include "core/sandbox/pause.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_object.h"

#define AWAKE (sandbox_in(SANDBOX_IDLE) | sandbox_in(SANDBOX_RUNNING))

/* Whoever ends it has said so before its box goes. */
static enum port_result explain(struct sandbox *sandbox, const struct error *err)
{
    bool is_over = sandbox_is_in(sandbox, SANDBOX_ENDING) || error_is(err, ERROR_GONE);

    return is_over ? PORT_OVER : PORT_FAILED;
}

/* What is done with a box that is awake: makes *fd. 0 or BOX_NOBODY_LISTENS, or -1. */
typedef int (*box_use)(struct box *box, void *what, int *fd, struct error *err);

static enum port_result use_held(struct sandbox *held, box_use use, void *what, int *fd,
                                 struct error *err)
{
    int result = use(held->box, what, fd, err);

    if (result < 0)
        return explain(held, err);
    return result == BOX_NOBODY_LISTENS ? PORT_REFUSED : PORT_CONNECTED;
}

static enum port_result wake_and_use(struct ports *ports, const char *sandbox_id, box_use use,
                                     void *what, int *fd, struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    autobox held = NULL;
    bool was_paused;

    if (!sandbox || sandbox_is_in(sandbox, SANDBOX_ENDING))
        return PORT_OVER;
    sandbox_touch(sandbox);
    if (sandbox_awake(sandbox, &was_paused, err) == 0 && sandbox_ensure_box(sandbox, err) == 0)
        held = sandbox_use_box(sandbox, err);
    return held ? use_held(held, use, what, fd, err) : explain(sandbox, err);
}

static int use_connect(struct box *box, void *port, int *fd, struct error *err)
{
    return box_connect(box, *(const uint16_t *)port, fd, err);
}

static int use_connect_address(struct box *box, void *address, int *fd, struct error *err)
{
    return box_connect_address(box, address, fd, err);
}

static int use_open_resolver(struct box *box, void *unused, int *fd, struct error *err)
{
    (void)unused;
    return box_open_resolver(box, fd, err);
}

static int use_listen(struct box *box, void *port, int *fd, struct error *err)
{
    return box_listen(box, port, fd, err);
}

static int use_make_local(struct box *box, void *unused, int *fd, struct error *err)
{
    (void)unused;
    return box_make_local(box, fd, err);
}

enum port_result port_connect_now(struct ports *ports, const char *sandbox_id, uint16_t port,
                                  int *fd, struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);

    if (!sandbox || sandbox_is_in(sandbox, SANDBOX_ENDING))
        return PORT_OVER;
    sandbox_touch(sandbox); // before its state is looked at: see sandbox_rest
    if (!sandbox_is_in(sandbox, AWAKE))
        return PORT_WAITS;
    autobox held = sandbox_try_box(sandbox);
    return held ? use_held(held, use_connect, &port, fd, err) : PORT_WAITS;
}

enum port_result port_connect(struct ports *ports, const char *sandbox_id, uint16_t port, int *fd,
                              struct error *err)
{
    return wake_and_use(ports, sandbox_id, use_connect, &port, fd, err);
}

enum port_result port_connect_out(struct ports *ports, const char *sandbox_id,
                                  const struct sockaddr *address, int *fd, struct error *err)
{
    return wake_and_use(ports, sandbox_id, use_connect_address, (void *)address, fd, err);
}

enum port_result port_open_resolver(struct ports *ports, const char *sandbox_id, int *fd,
                                    struct error *err)
{
    return wake_and_use(ports, sandbox_id, use_open_resolver, NULL, fd, err);
}

enum port_result port_listen(struct ports *ports, const char *sandbox_id, uint16_t *port, int *fd,
                             struct error *err)
{
    return wake_and_use(ports, sandbox_id, use_listen, port, fd, err);
}

enum port_result port_make_local(struct ports *ports, const char *sandbox_id, int *fd,
                                 struct error *err)
{
    return wake_and_use(ports, sandbox_id, use_make_local, NULL, fd, err);
}

bool port_is_awake(struct ports *ports, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);

    if (!sandbox)
        return false;
    sandbox_touch(sandbox); // before its state is looked at: see sandbox_rest
    return sandbox_is_in(sandbox, AWAKE);
}

void port_touch(struct ports *ports, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);

    if (sandbox)
        sandbox_touch(sandbox);
}
