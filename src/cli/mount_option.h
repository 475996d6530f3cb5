/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --mount LOCAL:SANDBOX[:ro]: a directory of this machine in a sandbox.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"
#include "base/options.h"
#include "data/json_writer.h"
#include "engine/box.h"

#include <stdbool.h>

struct mount_option {
    char *local, *target; // the caller's: mount_option_clear
    bool is_read_only;
};
/* Reads one; the words alone, nothing is opened. */
int mount_option_read(const char *text, struct mount_option *out, struct error *err);
void mount_option_clear(struct mount_option *option);

/* For a run here: the directories, open. */
struct run_mounts {
    struct mount_option options[BOX_MAX_MOUNTS];
    struct box_mount mounts[BOX_MAX_MOUNTS];
    size_t count;
};
int run_mounts_open(const struct option_list *list, struct run_mounts *out, struct error *err);
void run_mounts_clear(struct run_mounts *mounts);

/* For a server: "mounts" in a map that is begun. What is relative is meant from here. */
int mount_options_write(struct json_writer *json, const struct option_list *list,
                        struct error *err);
