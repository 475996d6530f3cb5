/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root for a program that installs packages: layers over each other, with a directory on top that gets what it writes. It sees
 * nothing of the machine but what it needs to download: the network, names, trusted certificates. It is root over these files
 * and has no right over the machine: no mounts, no devices, no settings of the kernel.
 * Threads: one per object; tool_root_enter runs in a forked child and is safe there.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

#define TOOL_ROOT_BINDS 4

struct tool_root {
    const char *directory;     // the layers are relative to it
    const char *const *layers; // top first
    size_t n_layers;
    const char *upper; // gets what is written, and a directory for overlay next to it
    const char *work;
    const char *target; // where it is put together; an empty directory
    struct {
        const char *from; // of the machine
        const char *name; // /tmp/NAME inside
    } binds[TOOL_ROOT_BINDS];
    char options[4096]; // made by tool_root_prepare
};

/* ERROR_LIMIT where there are more layers than a kernel takes in one text. */
int tool_root_prepare(struct tool_root *root, struct error *err);

/* Puts it together and goes there; NULL, or what failed, with errno. The caller is alone in its mount namespace. */
const char *tool_root_enter(const struct tool_root *root);
