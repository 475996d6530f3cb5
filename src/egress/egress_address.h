/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where burrow-egress of a data directory listens, whatever length that directory's name has.
 * Threads: any.
 */
#pragma once
#include "base/error.h"
#include "egress/egress_wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Fills in the address, which is good for as long as the descriptor that is returned is open: the caller's. -1 with err. */
static inline int egress_address(const char *data_dir, struct sockaddr_un *out, struct error *err)
{
    int directory = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0)
        return error_sys(err, "open '%s'", data_dir);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/" EGRESS_SOCKET,
                   directory);
    return directory;
}
