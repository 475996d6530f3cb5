/* SPDX-License-Identifier: Apache-2.0 */
/* What all boxes together may have, and what is kept for who makes them; see cgroup.h. */
#include "engine/cgroup_impl.h"

#include "base/fd.h"
#include "base/machine.h"
#include "base/mem.h"

#include <fcntl.h>
#include <string.h>

#define V1_USUAL_SHARES 1024
#define V2_USUAL_WEIGHT 100
#define NO_LIMIT_BYTES ((uint64_t)1 << 60) // version 1 writes none as a number of about 2^63

static bool is_v2(const struct cgroup_root *root)
{
    return root->mode == CGROUP_V2;
}

static int share_memory(struct cgroup_root *root, int64_t bytes, struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];
    const char *knob = is_v2(root) ? "memory.max" : "memory.limit_in_bytes";

    if (bytes == 0 || knob_write_number(fd, "", knob, (uint64_t)bytes, err) == 0)
        return 0;
    return err->sys == EBUSY ? error_restate(err, ERROR_STATE, "memory")
                             : error_wrap(err, "limit the memory of all sandboxes together");
}

static int share_processes(struct cgroup_root *root, int64_t count, struct error *err)
{
    int fd = root->knobs[CONTROLLER_PIDS];

    if (count == 0 || knob_write_number(fd, "", "pids.max", (uint64_t)count, err) == 0)
        return 0;
    return error_wrap(err, "limit the processes of all sandboxes together");
}

static int share_cpu(struct cgroup_root *root, int64_t weight, struct error *err)
{
    int fd = root->knobs[CONTROLLER_CPU];
    const char *knob = is_v2(root) ? "cpu.weight" : "cpu.shares";
    uint64_t number = (uint64_t)weight;

    if (!is_v2(root))
        number = number * V1_USUAL_SHARES / V2_USUAL_WEIGHT;
    if (weight == 0 || knob_write_number(fd, "", knob, number < 2 ? 2 : number, err) == 0)
        return 0;
    return error_wrap(err, "weigh the processor time of all sandboxes together");
}

int cgroup_root_share(struct cgroup_root *root, const struct cgroup_share *share, struct error *err)
{
    if (share_processes(root, share->max_processes, err) < 0 ||
        share_cpu(root, share->cpu_weight, err) < 0)
        return -1;
    return share_memory(root, share->memory_bytes, err);
}

static const struct cgroup_tree *memory_tree(const struct cgroup_root *root)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (root->trees[i].fd == root->knobs[CONTROLLER_MEMORY])
            return &root->trees[i];
    }
    return &root->trees[0];
}

/* Limit of the group at this path; 0: none. False: there is no such group, or it is not one of memory. */
static bool read_limit(const struct cgroup_root *root, const char *path, uint64_t *out)
{
    autofree char *knob =
        xasprintf("%s/%s", path, is_v2(root) ? "memory.max" : "memory.limit_in_bytes");
    char text[32];
    struct error ignored;

    if (fd_read_knob(AT_FDCWD, knob, text, sizeof text, &ignored) < 0)
        return false;
    *out = strcmp(text, "max") == 0 ? 0 : strtoull(text, NULL, 10);
    if (*out >= NO_LIMIT_BYTES)
        *out = 0;
    return true;
}

struct limits cgroup_root_machine(const struct cgroup_root *root)
{
    autofree char *path = xstrdup(memory_tree(root)->path);
    struct limits machine = machine_size();

    for (char *last; (last = strrchr(path, '/')) && last != path;) {
        uint64_t limit = 0;
        *last = '\0';
        if (!read_limit(root, path, &limit))
            break; // the top of version 2 has none, and above it is another file system
        if (limit && limit < (uint64_t)machine.memory_bytes)
            machine.memory_bytes = (int64_t)limit;
    }
    return machine;
}

/* Whether this process is in a group of that name; the last line is of version 2. */
static bool is_in(const char *name)
{
    char text[4096];
    struct error ignored;

    if (fd_read_knob(AT_FDCWD, "/proc/self/cgroup", text, sizeof text, &ignored) < 0)
        return false;
    const char *last = strrchr(text, '/');
    return last && strcmp(last + 1, name) == 0;
}

void cgroup_root_protect(const struct cgroup_root *root, uint64_t bytes)
{
    struct error ignored;

    if (!is_v2(root) || !is_in(CGROUP_SUPERVISOR))
        return;
    autofree char *path = xasprintf("%s/../" CGROUP_SUPERVISOR, root->trees[0].path);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)knob_write_number(fd, "", "memory.min", bytes, &ignored);
}
