/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer of an image, unpacked into a directory as overlay wants it: whiteouts become its devices 0:0, opaque directories its
 * attribute. A layer is a stranger's tar: burrow-archive, a process without rights, takes it apart; what it says is written here, below
 * the directory and nowhere else, by a path that the kernel keeps inside (openat2, RESOLVE_IN_ROOT). Device nodes and pipes are left out.
 * The directory must be closed to everybody but root: a layer may hold programs with set-id bits.
 * Threads: one per object; the directory.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

struct oci_layer_task {
    const char *program;  // burrow-archive
    uint64_t max_bytes;   // of all contents
    uint64_t max_entries; //
    int cancel_fd;        // readable: stop, ERROR_GONE; -1: never
};

struct oci_layer_report {
    uint64_t left_out;  // devices and pipes
    bool has_strangers; // owners that no sandbox has, who became nobody
};

/* `blob_fd` is the layer, compressed or not. Errors of the layer's own: ERROR_REFUSED, ERROR_DAMAGED, ERROR_TOO_LARGE. */
int oci_layer_unpack(const struct oci_layer_task *task, int blob_fd, int dir_fd,
                     struct oci_layer_report *report, struct error *err);
