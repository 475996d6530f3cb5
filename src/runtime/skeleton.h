/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every runtime's root has, however it was made: directories, the user 'burrow', names, no
 * traces of the machine.
 * Threads: one per object; the root.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

/* Users, groups and shells of a root that has none yet. */
int skeleton_write_users(int root_fd, struct error *err);

/* Adds the user 'burrow' (1000) to a root that has users. */
int skeleton_add_user(int root_fd, struct error *err);

/* Everything else; empties dev, run, tmp and var/tmp. */
int skeleton_write(int root_fd, struct error *err);

/*
 * Adds users, from 1000 on, with a home each, to a layer. The first shares its number with 'burrow', and is the one that programs show.
 * /etc/passwd and the like are those of the first of `layers` (below `top`) that has them, where the layer itself has none.
 */
int skeleton_add_users(int root_fd, const char *top, const char *const *layers, size_t n_layers,
                       const char **users, struct error *err);
