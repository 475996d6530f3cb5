/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of layers: the kernel's overlay as the judge. Stacks are mounted at <base>/merged as boxes mount them, things are done
 * in them by chance (the same for the same seed), and trees are told as text to be compared. Needs root.
 */
#pragma once
#include "engine/layer.h"
#include "engine/volume_fixture.h"

/* Mounts a stack with this scratch on top; the top of what is seen. unmount_stack takes it. */
int mount_stack(struct volume *volume, const char *scratch, const char *const *saved,
                size_t n_saved, const char *base);
void unmount_stack(int *top_fd);

bool layer_exists(struct volume *volume, const char *name);

/* Does `count` things to a tree: files, links, holes, attributes, renames and removals of whole directories. */
void disturb(int top_fd, unsigned *seed, unsigned count);

/* Everything in a tree, a line each, sorted: path, type, rights, size, bytes, target, attribute. The caller's. */
char *tell_tree(int top_fd);
/* What the stack shows, through a scratch that is made and removed. */
char *tell_stack(struct volume *volume, const char *const *saved, size_t n_saved, const char *base);
/* What layer_diff should give for two told trees, and what it gives: '+path', '~path', '-path', a line each, sorted. */
char *tell_difference(const char *from, const char *to);
char *tell_diff(struct volume *volume, const struct layer_stack *from,
                const struct layer_stack *to);
