/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes and their leaves, over whichever hierarchies the root found; see cgroup.h. */
#include "engine/cgroup_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Below one CPU the period is 50 ms instead of the kernel's 100: a box that used up its quota
 * stands still for less than 50 ms at a time, and the 5 ms slices in which the kernel hands quota
 * to CPUs are still small against it. The kernel takes no quota under 1 ms; very small shares get a
 * longer period instead.
 */
struct cpu_share cpu_share_of(int64_t cpu_millicores)
{
    struct cpu_share share = {.period_usec = cpu_millicores < 1000 ? 50000 : 100000};

    if (cpu_millicores == 0)
        return share;
    if (cpu_millicores < 20)
        share.period_usec = 1000000 / (uint64_t)cpu_millicores;
    share.quota_usec = share.period_usec * (uint64_t)cpu_millicores / 1000;
    if (share.quota_usec < 1000)
        share.quota_usec = 1000;
    return share;
}

static bool is_v1(const struct cgroup *group)
{
    return group->root->mode == CGROUP_V1;
}

static int tree_fd(const struct cgroup *group)
{
    return group->root->trees[0].fd;
}

/* Names are checked, so that their paths always fit. */
static void join(char path[CGROUP_PATH_MAX], const char *group, const char *child)
{
    assert(strlen(group) + strlen(child) + 2 <= CGROUP_PATH_MAX);
    (void)stpcpy(stpcpy(stpcpy(path, group), *child ? "/" : ""), child);
}

static struct cgroup *group_new(struct cgroup_root *root, const char *name)
{
    struct cgroup *group = xnew(struct cgroup);
    group->root = root;
    group->name = xstrdup(name);
    group->entry.into_fd = -1;
    return group;
}

void cgroup_free(struct cgroup *group)
{
    if (!group)
        return;
    cgroup_entry_done(group);
    free(group->name);
    free(group);
}

void cgroup_entry_done(struct cgroup *group)
{
    closep(&group->entry.into_fd);
    for (unsigned i = 0; i < group->entry.n_tasks; i++)
        closep(&group->entry.tasks[i]);
    group->entry.n_tasks = 0;
}

const struct cgroup_entry *cgroup_entry(const struct cgroup *group)
{
    return &group->entry;
}

/* Removes what is there under this name and empty, in the trees from `first` up to `end`. */
static int clear_trees(struct cgroup_root *root, const char *name, unsigned first, unsigned end,
                       struct error *err)
{
    int64_t deadline_ms = (int64_t)clock_monotonic_ms() + CGROUP_DEADLINE_MS;

    for (unsigned i = first; i < end; i++) {
        if (group_remove(root->trees[i].fd, name, deadline_ms, err) < 0)
            return error_wrap(err, "remove sandbox '%s' in '%s'", name, root->trees[i].path);
    }
    return 0;
}

/* Kills what is there under this name, and removes it in the tree by which it is killed. */
static int clear_first(struct cgroup_root *root, const char *name, struct error *err)
{
    int fd = root->trees[0].fd;

    // most boxes are empty by now, and then one call tells
    if (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    int killed = root->mode == CGROUP_V1 ? v1_kill(fd, name, NULL, err) : v2_kill(fd, name, err);
    if (killed < 0 && !group_is_gone(err))
        return error_wrap(err, "kill sandbox '%s'", name);
    return clear_trees(root, name, 0, 1, err);
}

/* Kills and removes what is there under this name, in every tree. */
static int clear_box(struct cgroup_root *root, const char *name, struct error *err)
{
    if (clear_first(root, name, err) < 0)
        return -1;
    return clear_trees(root, name, 1, root->n_trees, err);
}

static int make_dirs(struct cgroup_root *root, const char *name, struct error *err)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        int fd = root->trees[i].fd;
        if (mkdirat(fd, name, 0755) == 0)
            continue;
        if (errno != EEXIST)
            return error_sys(err, "make control group '%s/%s'", root->trees[i].path, name);
        // a leftover: start over with a clean slate
        if (clear_box(root, name, err) < 0)
            return -1;
        for (unsigned j = 0; j <= i; j++) {
            if (mkdirat(root->trees[j].fd, name, 0755) < 0)
                return error_sys(err, "make control group '%s/%s'", root->trees[j].path, name);
        }
    }
    return 0;
}

/* Who may write to the cgroup.procs of a group and of the one above both may clone into it. */
static int give_to_owner(struct cgroup *group, const char *where, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    join(path, where, "cgroup.procs");
    if (!is_v1(group) && fchownat(tree_fd(group), path, group->owner, (gid_t)-1, 0) < 0)
        return error_sys(err, "give %s to user %u", path, (unsigned)group->owner);
    return 0;
}

static int make_branches(struct cgroup *group, struct error *err)
{
    char run[CGROUP_PATH_MAX];

    join(run, group->name, "run");
    if (mkdirat(tree_fd(group), run, 0755) < 0)
        return error_sys(err, "make control group '%s'", run);
    if (give_to_owner(group, group->name, err) < 0)
        return -1;
    return give_to_owner(group, run, err);
}

static int open_entry(struct cgroup *group, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    struct cgroup_entry *entry = &group->entry;
    bool is_v2_tree = !is_v1(group);
    struct stat info;

    if (is_v2_tree) {
        join(path, group->name, "");
        entry->into_fd = openat(tree_fd(group), path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (entry->into_fd < 0)
            return error_sys(err, "open control group '%s'", path);
    }
    for (unsigned i = is_v2_tree; i < group->root->n_trees; i++) {
        join(path, group->name, "tasks");
        autofd fd = openat(group->root->trees[i].fd, path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &info) < 0)
            return error_sys(err, "open %s", path);
        assert(entry->n_tasks < CGROUP_MAX_TASKS);
        group->tasks[entry->n_tasks] = info.st_ino;
        entry->tasks[entry->n_tasks++] = take_fd(fd);
    }
    return 0;
}

int cgroup_refuse_memory(uint64_t bytes, struct error *err)
{
    char text[SIZE_TEXT];
    return error_refuse(err, ERROR_STATE, "memory",
                        "memory: the sandbox uses more than %s now; end something in it first",
                        size_format(bytes, text));
}

static int set_processes(struct cgroup *group, const struct limits *limits, bool is_fresh,
                         struct error *err)
{
    int pids = group->root->knobs[CONTROLLER_PIDS];

    if (limits->max_processes)
        return knob_write_number(pids, group->name, "pids.max", (uint64_t)limits->max_processes,
                                 err);
    return is_fresh ? 0 : knob_write(pids, group->name, "pids.max", "max", err);
}

static int set_limits(struct cgroup *group, const struct limits *limits, bool is_fresh,
                      struct error *err)
{
    int set = group->root->mode == CGROUP_V2
                  ? v2_set_limits(group->root, group->name, limits, is_fresh, err)
                  : v1_set_limits(group->root, group->name, limits, is_fresh, err);
    return set < 0 || set_processes(group, limits, is_fresh, err) < 0
               ? error_wrap(err, "limit sandbox '%s'", group->name)
               : 0;
}

int cgroup_set_limits(struct cgroup *group, const struct limits *limits, struct error *err)
{
    group->is_changed = true;
    return set_limits(group, limits, false, err);
}

int cgroup_set_cpu(struct cgroup *group, int64_t millicores, struct error *err)
{
    group->is_changed = true;
    int set = group->root->mode == CGROUP_V2
                  ? v2_set_cpu(group->root, group->name, millicores, false, err)
                  : v1_set_cpu(group->root, group->name, millicores, false, err);
    return set < 0 ? error_wrap(err, "limit sandbox '%s'", group->name) : 0;
}

static int fill_box(struct cgroup *group, const struct limits *limits, struct error *err)
{
    if (set_limits(group, limits, true, err) < 0)
        return -1;
    if (!group->is_flat && make_branches(group, err) < 0)
        return -1;
    return open_entry(group, err);
}

/* A new group in the first tree over those that were kept; these are nobody else's if their files are the same. */
static int fill_kept(struct cgroup *group, const struct kept_group *kept,
                     const struct limits *limits, struct error *err)
{
    if (mkdirat(tree_fd(group), group->name, 0755) < 0)
        return error_sys(err, "make control group '%s'", group->name);
    if ((!group->is_flat && make_branches(group, err) < 0) || open_entry(group, err) < 0)
        return -1;
    if (memcmp(group->tasks, kept->tasks, sizeof kept->tasks) != 0)
        return error_set(err, ERROR_CONFLICT, "another has made control group '%s' anew",
                         group->name);
    return limits_equal(limits, &kept->limits) ? 0 : set_limits(group, limits, false, err);
}

/* False: there was nothing to be used again, and nothing is left of it. */
static bool use_kept(struct cgroup *group, const struct limits *limits)
{
    struct kept_group kept;
    struct error ignored;

    if (!kept_take(group->root, group->name, &kept))
        return false;
    bool is_used = fill_kept(group, &kept, limits, &ignored) == 0;
    kept_clear(&kept);
    if (is_used)
        return true;
    cgroup_entry_done(group);
    (void)clear_box(group->root, group->name, &ignored); // else it is tried again
    return false;
}

int cgroup_create(struct cgroup_root *root, const char *name, const struct limits *limits,
                  bool is_flat, uid_t owner, struct cgroup **out, struct error *err)
{
    struct error ignored;

    if (cgroup_check_name(name, err) < 0)
        return -1;
    autoptr(cgroup) group = group_new(root, name);
    group->is_flat = is_flat;
    group->owner = owner;
    group->limits = *limits;
    if (use_kept(group, limits)) {
        *out = take(group);
        return 0;
    }
    if (make_dirs(root, name, err) < 0 || fill_box(group, limits, err) < 0) {
        (void)clear_box(root, name, &ignored); // nobody was let in yet
        return -1;
    }
    *out = take(group);
    return 0;
}

int cgroup_open(struct cgroup_root *root, const char *name, struct cgroup **out, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    struct stat info;

    if (cgroup_check_name(name, err) < 0)
        return -1;
    if (fstatat(root->trees[0].fd, name, &info, 0) < 0)
        return errno == ENOENT ? error_set(err, ERROR_NOT_FOUND, "there is no sandbox '%s'", name)
                               : error_sys(err, "open sandbox '%s'", name);
    autoptr(cgroup) group = group_new(root, name);
    join(path, name, "run/cgroup.procs");
    group->is_flat = fstatat(root->trees[0].fd, path, &info, 0) < 0;
    group->owner = group->is_flat ? 0 : info.st_uid;
    group->is_changed = true;
    *out = take(group);
    return 0;
}

int cgroup_remove(struct cgroup *group, struct error *err)
{
    cgroup_entry_done(group);
    if (clear_first(group->root, group->name, err) < 0)
        return -1;
    return kept_put(group) ? 0
                           : clear_trees(group->root, group->name, 1, group->root->n_trees, err);
}

int cgroup_kill(struct cgroup *group, struct error *err)
{
    int killed = is_v1(group) ? v1_kill(tree_fd(group), group->name, NULL, err)
                              : v2_kill(tree_fd(group), group->name, err);
    return killed < 0 ? error_wrap(err, "kill sandbox '%s'", group->name) : 0;
}

static int set_frozen(struct cgroup *group, bool is_frozen, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    int fd = tree_fd(group);

    join(path, group->name, group->is_flat ? "" : "run");
    if (!is_v1(group))
        return v2_set_frozen(fd, path, is_frozen, err);
    return is_frozen ? v1_freeze(fd, path, err) : v1_thaw(fd, path, err);
}

int cgroup_freeze(struct cgroup *group, struct error *err)
{
    return set_frozen(group, true, err) < 0 ? error_wrap(err, "freeze sandbox '%s'", group->name)
                                            : 0;
}

int cgroup_thaw(struct cgroup *group, struct error *err)
{
    return set_frozen(group, false, err) < 0 ? error_wrap(err, "thaw sandbox '%s'", group->name)
                                             : 0;
}

int cgroup_oom_open(const struct cgroup *group)
{
    const struct cgroup_root *root = group->root;
    char path[CGROUP_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", group->name,
                   root->mode == CGROUP_V2 ? "memory.events" : "memory.oom_control");
    return openat(root->knobs[CONTROLLER_MEMORY], path, O_RDONLY | O_CLOEXEC);
}

int cgroup_usage(struct cgroup *group, struct cgroup_usage *out, struct error *err)
{
    struct cgroup_usage usage = {0};
    int read = group->root->mode == CGROUP_V2 ? v2_usage(group->root, group->name, &usage, err)
                                              : v1_usage(group->root, group->name, &usage, err);
    if (read < 0)
        return error_wrap(err, "measure sandbox '%s'", group->name);
    *out = usage;
    return 0;
}

static int leaf_path(struct cgroup *group, const char *name, char *path, struct error *err)
{
    if (cgroup_check_name(name, err) < 0)
        return -1;
    if (group->is_flat)
        return error_set(err, ERROR_INVALID, "sandbox '%s' is flat: it has no leaf '%s'",
                         group->name, name);
    join(path, group->name, "run/");
    (void)strcat(path, name); // 128 + 5 + 128 at most
    return 0;
}

static int open_in_leaf(struct cgroup *group, const char *leaf, const char *file, int flags,
                        int *out, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    join(path, leaf, file);
    *out = openat(tree_fd(group), path, flags | O_CLOEXEC);
    return *out < 0 ? error_sys(err, "open %s", path) : 0;
}

static int open_leaf(struct cgroup *group, const char *path, struct cgroup_leaf *leaf,
                     struct error *err)
{
    if (!is_v1(group)) {
        if (open_in_leaf(group, path, ".", O_PATH | O_DIRECTORY, &leaf->into_fd, err) < 0)
            return -1;
        return open_in_leaf(group, path, "cgroup.kill", O_WRONLY, &leaf->kill_fd, err);
    }
    if (open_in_leaf(group, path, "tasks", O_WRONLY, &leaf->tasks_fd, err) < 0 ||
        open_in_leaf(group, path, "freezer.state", O_RDWR, &leaf->freezer_fd, err) < 0)
        return -1;
    return open_in_leaf(group, path, "cgroup.procs", O_RDONLY, &leaf->procs_fd, err);
}

int cgroup_leaf_make(struct cgroup *group, const char *name, struct error *err)
{
    char path[CGROUP_PATH_MAX];

    if (leaf_path(group, name, path, err) < 0)
        return -1;
    if (mkdirat(tree_fd(group), path, 0755) < 0)
        return errno == EEXIST ? error_set(err, ERROR_EXISTS, "there is a leaf '%s' already", path)
                               : error_sys(err, "make control group '%s'", path);
    if (give_to_owner(group, path, err) < 0) {
        (void)unlinkat(tree_fd(group), path, AT_REMOVEDIR); // nobody was let in yet
        return -1;
    }
    return 0;
}

int cgroup_leaf_open(struct cgroup *group, const char *name, struct cgroup_leaf *out,
                     struct error *err)
{
    char path[CGROUP_PATH_MAX];
    struct cgroup_leaf leaf = {-1, -1, -1, -1, -1};

    if (leaf_path(group, name, path, err) < 0)
        return -1;
    if (open_leaf(group, path, &leaf, err) < 0) {
        cgroup_leaf_close(&leaf);
        (void)unlinkat(tree_fd(group), path, AT_REMOVEDIR); // nobody was let in yet
        return -1;
    }
    *out = leaf;
    return 0;
}

int cgroup_leaf_create(struct cgroup *group, const char *name, struct cgroup_leaf *out,
                       struct error *err)
{
    if (cgroup_leaf_make(group, name, err) < 0)
        return -1;
    return cgroup_leaf_open(group, name, out, err);
}

void cgroup_leaf_close(struct cgroup_leaf *leaf)
{
    closep(&leaf->into_fd);
    closep(&leaf->kill_fd);
    closep(&leaf->tasks_fd);
    closep(&leaf->freezer_fd);
    closep(&leaf->procs_fd);
}

int cgroup_leaf_procs_open(const struct cgroup *group, const char *name)
{
    char path[CGROUP_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/run/%s/cgroup.procs", group->name, name);
    return openat(tree_fd(group), path, O_RDONLY | O_CLOEXEC);
}

static int kill_leaf(struct cgroup *group, const char *path, struct error *err)
{
    char run[CGROUP_PATH_MAX];
    uint64_t is_frozen = 0;

    if (!is_v1(group))
        return v2_kill(tree_fd(group), path, err);
    join(run, group->name, "run");
    if (knob_read_number(tree_fd(group), run, "freezer.self_freezing", &is_frozen, err) < 0)
        return -1;
    return v1_kill(tree_fd(group), path, is_frozen ? group->name : NULL, err);
}

void cgroup_leaf_drop(struct cgroup *group, const char *name)
{
    char path[CGROUP_PATH_MAX];
    struct error ignored = {0};

    if (leaf_path(group, name, path, &ignored) == 0)
        (void)unlinkat(tree_fd(group), path, AT_REMOVEDIR);
}

int cgroup_leaf_remove(struct cgroup *group, const char *name, struct error *err)
{
    char path[CGROUP_PATH_MAX];

    if (leaf_path(group, name, path, err) < 0)
        return -1;
    if (unlinkat(tree_fd(group), path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (kill_leaf(group, path, err) < 0 && !group_is_gone(err))
        return error_wrap(err, "kill leaf '%s'", path);
    return group_remove(tree_fd(group), path, (int64_t)clock_monotonic_ms() + CGROUP_DEADLINE_MS,
                        err);
}

struct process_list {
    void (*on_pid)(pid_t pid, void *data);
    void *data;
};

static int list_group(int dir_fd, const char *path, void *data, struct error *err)
{
    struct process_list *list = data;

    if (knob_each_pid(dir_fd, path, "cgroup.procs", list->on_pid, list->data, err) < 0)
        return group_is_gone(err) ? 0 : -1;
    return group_each_child(dir_fd, path, list_group, list, err);
}

int cgroup_each_process(struct cgroup *group, void (*on_pid)(pid_t pid, void *data), void *data,
                        struct error *err)
{
    struct process_list list = {on_pid, data};
    return list_group(tree_fd(group), group->name, &list, err);
}

struct names {
    char **items;
    size_t count;
};

static int collect_name(int dir_fd, const char *child, void *data, struct error *err)
{
    struct names *names = data;
    for (size_t i = 0; i < names->count; i++) { // the other trees have mostly the same
        if (strcmp(names->items[i], child) == 0)
            return 0;
    }
    names->items = xrealloc(names->items, names->count + 1, sizeof *names->items);
    names->items[names->count++] = xstrdup(child);
    return 0;
}

static void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

int cgroup_sweep(struct cgroup_root *root, bool (*is_owned)(const char *name, void *data),
                 void *data, struct error *err)
{
    __attribute__((cleanup(names_clear))) struct names names = {0};
    int result = 0;

    for (unsigned i = 0; i < root->n_trees; i++) {
        if (group_each_child(root->trees[i].fd, "", collect_name, &names, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < names.count; i++) { // one that resists does not save the others
        if (!is_owned(names.items[i], data) && clear_box(root, names.items[i], err) < 0)
            result = -1;
    }
    return result;
}
