/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose request was answered with 101: bytes go to whoever asked for them, as they are. */
#include "net/connection_impl.h"

#include "base/auto.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static void on_resume(void *data)
{
    struct connection *connection = data;

    connection->is_body_full = false;
    connection_watch(connection);
}

void connection_take(struct connection *connection, const char *data, size_t length)
{
    if (!body_put(connection->body, data, length))
        connection->is_body_full = true;
    connection_watch(connection);
}

/* While nothing is read the other side cannot show that it is there, but for taking what it is sent. */
static void expect_progress(const struct connection *connection)
{
    unsigned patience_ms = (unsigned)connection->home->limits.write_ms;

    if (!connection->peer.is_local)
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms,
                         sizeof patience_ms);
}

struct body *connection_upgrade(void *data)
{
    struct connection *connection = data;
    autofree char *pending = take(connection->pending);
    size_t length = connection->pending_length;

    connection->pending_length = 0;
    connection->is_upgraded = connection->is_last = true;
    connection->body = body_new(connection->home->loop, on_resume, connection);
    expect_progress(connection);
    connection_take(connection, pending, length);
    return body_ref(connection->body);
}
