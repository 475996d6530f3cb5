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

static enum port_result connect_held(struct sandbox *held, uint16_t port, int *fd,
                                     struct error *err)
{
    int result = box_connect(held->box, port, fd, err);

    if (result < 0)
        return explain(held, err);
    return result == BOX_NOBODY_LISTENS ? PORT_REFUSED : PORT_CONNECTED;
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
    return held ? connect_held(held, port, fd, err) : PORT_WAITS;
}

/* Awake and held: NULL, and *result says why. */
static struct sandbox *wake_up(struct sandbox *sandbox, enum port_result *result, struct error *err)
{
    bool was_paused;

    *result = PORT_OVER;
    if (!sandbox || sandbox_is_in(sandbox, SANDBOX_ENDING))
        return NULL;
    sandbox_touch(sandbox);
    struct sandbox *held = NULL;
    if (sandbox_awake(sandbox, &was_paused, err) == 0 && sandbox_ensure_box(sandbox, err) == 0)
        held = sandbox_use_box(sandbox, err);
    if (!held)
        *result = explain(sandbox, err);
    return held;
}

enum port_result port_connect_out(struct ports *ports, const char *sandbox_id,
                                  const struct sockaddr *address, int *fd, struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    enum port_result result;

    autobox held = wake_up(sandbox, &result, err);
    if (!held)
        return result;
    int connected = box_connect_address(held->box, address, fd, err);
    if (connected < 0)
        return explain(held, err);
    return connected == BOX_NOBODY_LISTENS ? PORT_REFUSED : PORT_CONNECTED;
}

enum port_result port_open_resolver(struct ports *ports, const char *sandbox_id, int *fd,
                                    struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    enum port_result result;

    autobox held = wake_up(sandbox, &result, err);
    if (!held)
        return result;
    return box_open_resolver(held->box, fd, err) < 0 ? explain(held, err) : PORT_CONNECTED;
}

enum port_result port_listen(struct ports *ports, const char *sandbox_id, uint16_t *port, int *fd,
                             struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    enum port_result result;

    autobox held = wake_up(sandbox, &result, err);
    if (!held)
        return result;
    return box_listen(held->box, port, fd, err) < 0 ? explain(held, err) : PORT_CONNECTED;
}

enum port_result port_make_local(struct ports *ports, const char *sandbox_id, int *fd,
                                 struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    enum port_result result;

    autobox held = wake_up(sandbox, &result, err);
    if (!held)
        return result;
    return box_make_local(held->box, fd, err) < 0 ? explain(held, err) : PORT_CONNECTED;
}

enum port_result port_connect(struct ports *ports, const char *sandbox_id, uint16_t port, int *fd,
                              struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(ports->sandboxes->registry, sandbox_id);
    enum port_result result;

    autobox held = wake_up(sandbox, &result, err);
    return held ? connect_held(held, port, fd, err) : result;
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
