/* SPDX-License-Identifier: Apache-2.0 */
/* Version 1 groups that wait, empty, for the next box of their name; see cgroup_root_keep. */
#include "engine/cgroup_impl.h"

#include "base/mem.h"

#include <fcntl.h>
#include <string.h>

#define RESIDUE_BYTES (1 << 20) // charges the kernel takes back late, and its caches of them
#define SMALL_BYTES (64 * RESIDUE_BYTES) // boxes with less memory than this would feel a residue

void cgroup_root_keep(struct cgroup_root *root, unsigned count)
{
    if (root->mode != CGROUP_HYBRID)
        return;
    autolock(&root->lock);
    if (count > root->max_kept) {
        root->kept = xrealloc(root->kept, count, sizeof *root->kept);
        root->max_kept = count;
    }
}

void kept_clear(struct kept_group *kept)
{
    free(take(kept->name));
}

bool kept_take(struct cgroup_root *root, const char *name, struct kept_group *out)
{
    bool is_found = false;

    autolock(&root->lock);
    for (unsigned i = 0; i < root->n_kept && !is_found; i++) {
        if (strcmp(root->kept[i].name, name) != 0)
            continue;
        *out = root->kept[i];
        root->kept[i] = root->kept[--root->n_kept];
        is_found = true;
    }
    return is_found;
}

/* Nothing that can be read of the groups tells of the box that was in them. */
static bool is_pristine(const struct cgroup_root *root, const char *name)
{
    int memory = root->knobs[CONTROLLER_MEMORY];
    int pids = root->knobs[CONTROLLER_PIDS];
    int cpu = root->knobs[CONTROLLER_CPU];
    uint64_t kills, refused, throttled, bytes;
    struct error ignored;

    return knob_read_field(memory, name, "memory.oom_control", "oom_kill", &kills, &ignored) == 0 &&
           knob_read_field(pids, name, "pids.events", "max", &refused, &ignored) == 0 &&
           knob_read_field(cpu, name, "cpu.stat", "nr_throttled", &throttled, &ignored) == 0 &&
           knob_read_number(memory, name, "memory.usage_in_bytes", &bytes, &ignored) == 0 &&
           kills == 0 && refused == 0 && throttled == 0 && bytes <= RESIDUE_BYTES &&
           knob_write(memory, name, "memory.max_usage_in_bytes", "0", &ignored) == 0;
}

static bool has_place(struct cgroup_root *root)
{
    autolock(&root->lock);
    bool is_so = root->n_kept < root->max_kept;
    return is_so;
}

bool kept_put(const struct cgroup *group)
{
    struct cgroup_root *root = group->root;
    struct kept_group kept = {.limits = group->limits};

    if (group->is_changed || !has_place(root) ||
        (group->limits.memory_bytes && group->limits.memory_bytes < SMALL_BYTES) ||
        !is_pristine(root, group->name))
        return false;
    kept.name = xstrdup(group->name);
    memcpy(kept.tasks, group->tasks, sizeof kept.tasks);
    autolock(&root->lock);
    bool is_put = root->n_kept < root->max_kept;
    if (is_put)
        root->kept[root->n_kept++] = kept;
    else
        kept_clear(&kept);
    return is_put;
}

struct search {
    struct cgroup_root *root;
    bool (*is_unused)(const char *name, void *data);
    void *data;
};

static int remove_unused(int dir_fd, const char *name, void *data, struct error *err)
{
    struct search *search = data;

    (void)err;
    // a box has its group in the first tree before it has any other, and as long as it lives
    if (faccessat(search->root->trees[0].fd, name, F_OK, 0) < 0 && errno == ENOENT &&
        search->is_unused(name, search->data))
        (void)unlinkat(dir_fd, name, AT_REMOVEDIR); // who is in use after all stays
    return 0;
}

void cgroup_sweep_kept(struct cgroup_root *root, bool (*is_unused)(const char *name, void *data),
                       void *data)
{
    struct search search = {root, is_unused, data};
    struct error ignored;

    for (unsigned i = 1; root->mode == CGROUP_HYBRID && i < root->n_trees; i++)
        (void)group_each_child(root->trees[i].fd, "", remove_unused, &search, &ignored);
}
