/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams to the service manager; see notify.h. */
#include "serve/notify.h"

#include "base/auto.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_send(const char *lines)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;

    if (length < 2 || length > sizeof address.sun_path - 1 || (*path != '/' && *path != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (*path == '@')
        address.sun_path[0] = '\0'; // the abstract namespace
    autofd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) // best effort: there is nobody to tell that telling failed
        (void)sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

void notify_reloading(void)
{
    char lines[80];

    (void)snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   clock_monotonic_us());
    notify_send(lines);
}
