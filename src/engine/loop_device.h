/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file as a block device. The device frees itself when nothing holds it any more: neither an fd
 * nor a mount. So a process that dies between attaching and mounting leaves nothing behind.
 * Threads: any; callers exclude each other per file.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct loop_device {
    int fd; // holds the device until it is mounted; the caller's
    char path[32];
};

/*
 * Attaches the file behind `image_fd` (open for reading and writing), with direct I/O where its
 * file system can. A device that has the file already, also one attached by somebody else, is taken
 * instead of a second one: two devices over one file would not know of each other's writes. Callers
 * exclude each other per file.
 */
int loop_device_attach(int image_fd, struct loop_device *out, struct error *err);

/* The device that has this file: 1 and *out, or 0 when there is none. */
int loop_device_find(int image_fd, struct loop_device *out, struct error *err);
