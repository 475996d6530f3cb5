/* SPDX-License-Identifier: Apache-2.0 */
/* Finds this machine's control group hierarchies and makes burrow's place in them; see cgroup.h. */
#include "engine/cgroup_impl.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define SUPERVISOR CGROUP_SUPERVISOR
#define V2_CONTROLLERS "+cpu +memory +pids"
#define ENABLE_TRIES 20

static const char *const controller_names[CONTROLLER_COUNT] = {
    [CONTROLLER_CPU] = "cpu",         [CONTROLLER_MEMORY] = "memory",   [CONTROLLER_PIDS] = "pids",
    [CONTROLLER_FREEZER] = "freezer", [CONTROLLER_CPUACCT] = "cpuacct",
};
#define LIMITS (1u << CONTROLLER_CPU | 1u << CONTROLLER_MEMORY | 1u << CONTROLLER_PIDS)

/* A mounted hierarchy: where it is, and which part of that is ours. */
struct mounted {
    char *top; // mount point
    char *own; // directory of our own group below it
};

/* What /proc says. mounts[CONTROLLER_COUNT] is version 2. */
#define V2 CONTROLLER_COUNT
struct survey {
    struct mounted mounts[CONTROLLER_COUNT + 1];
    unsigned v2_controllers; // bits, at the top of the v2 mount
};

static void survey_clear(struct survey *survey)
{
    for (unsigned i = 0; i < ARRAY_SIZE(survey->mounts); i++) {
        free(survey->mounts[i].top);
        free(survey->mounts[i].own);
    }
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
    static const char *const names[] = {
        [CGROUP_V2] = "v2", [CGROUP_HYBRID] = "hybrid", [CGROUP_V1] = "v1"};
    return names[mode];
}

/* True when `word` is one of the words in `list`, which `separator` divides. */
static bool has_word(const char *list, const char *word, char separator)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, separator)) {
        at += *at == separator;
        if (strncmp(at, word, length) == 0 && (at[length] == separator || at[length] == '\0'))
            return true;
    }
    return false;
}

static unsigned controllers_in(const char *list, char separator)
{
    unsigned found = 0;
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        found |= has_word(list, controller_names[i], separator) ? 1u << i : 0;
    return found;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Our group in the hierarchy that has `controller` (NULL: version 2), from the text of
 * /proc/self/cgroup. */
static char *own_group(const char *text, const char *controller)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            break;
        autofree char *names = xstrndup(list + 1, (size_t)(path - list - 1));
        if (controller ? has_word(names, controller, ',') : *names == '\0')
            return xstrndup(path + 1, strcspn(path + 1, "\n"));
    }
    return NULL;
}

/* A mount may show only a part of its hierarchy: `root` and what is below. */
static char *own_directory(const char *top, const char *root, const char *group)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    bool is_below = strncmp(group, root, length) == 0 && (group[length] == '/' || !group[length]);

    if (!is_below || strncmp(group, "/..", 3) == 0 || strcmp(group + length, "/") == 0)
        return xstrdup(top); // the top is as near as it gets
    return xasprintf("%s%s", top, group + length);
}

static void survey_add(struct survey *survey, unsigned slot, const char *top, const char *root,
                       const char *cgroups)
{
    struct mounted *mounted = &survey->mounts[slot];
    struct statfs info;

    if (mounted->top || statfs(top, &info) < 0)
        return;
    if (info.f_type != (slot == V2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
        return; // something else is mounted over it
    autofree char *group = own_group(cgroups, slot == V2 ? NULL : controller_names[slot]);
    mounted->top = xstrdup(top);
    mounted->own = own_directory(top, root, group ? group : "/");
}

/* One line: id parent major:minor root top options [tag...] - type source super-options */
static void survey_line(struct survey *survey, char *line, const char *cgroups)
{
    char *fields[6];
    char *rest = strstr(line, " - cgroup");
    char *saved = NULL;

    if (!rest)
        return;
    *rest = '\0';
    char *type = strtok_r(rest + 3, " ", &saved);
    (void)strtok_r(NULL, " ", &saved); // source
    char *options = strtok_r(NULL, " ", &saved);
    for (unsigned i = 0; i < ARRAY_SIZE(fields); i++) {
        fields[i] = strtok_r(i ? NULL : line, " ", &saved);
        if (!fields[i])
            return;
    }
    unescape(fields[3]);
    unescape(fields[4]);
    if (strcmp(type, "cgroup2") == 0) {
        survey_add(survey, V2, fields[4], fields[3], cgroups);
    } else if (strcmp(type, "cgroup") == 0 && options) {
        unsigned found = controllers_in(options, ',');
        for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
            if (found & 1u << i)
                survey_add(survey, i, fields[4], fields[3], cgroups);
        }
    }
}

static int read_file(const char *path, struct buffer *text, struct error *err)
{
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", path);
    if (fd_read_buffer(fd, text, err) < 0)
        return error_wrap(err, "read %s", path);
    return buffer_add(text, "", 1, err); // never NULL, however short
}

static int survey_machine(struct survey *survey, struct error *err)
{
    autobuffer mounts, cgroups;
    char controllers[512];
    char *saved = NULL;

    buffer_init(&mounts, 64 << 20);
    buffer_init(&cgroups, 1 << 20);
    if (read_file("/proc/self/mountinfo", &mounts, err) < 0 ||
        read_file("/proc/self/cgroup", &cgroups, err) < 0)
        return -1;
    for (char *line = strtok_r(mounts.data, "\n", &saved); line;
         line = strtok_r(NULL, "\n", &saved))
        survey_line(survey, line, cgroups.data);
    if (!survey->mounts[V2].top)
        return 0;
    autofree char *path = xasprintf("%s/cgroup.controllers", survey->mounts[V2].top);
    if (fd_read_knob(AT_FDCWD, path, controllers, sizeof controllers, err) < 0)
        return -1;
    survey->v2_controllers = controllers_in(controllers, ' ');
    return 0;
}

struct cgroup_root *cgroup_root_new(enum cgroup_mode mode)
{
    struct cgroup_root *root = xnew(struct cgroup_root);
    root->mode = mode;
    lock_init(&root->lock, LOCK_ENGINE);
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        root->knobs[i] = -1;
    return root;
}

void cgroup_root_free(struct cgroup_root *root)
{
    if (!root)
        return;
    for (unsigned i = 0; i < root->n_trees; i++) {
        closep(&root->trees[i].fd);
        free(root->trees[i].path);
    }
    for (unsigned i = 0; i < root->n_kept; i++)
        kept_clear(&root->kept[i]);
    free(root->kept);
    lock_clear(&root->lock);
    free(root);
}

enum cgroup_mode cgroup_root_mode(const struct cgroup_root *root)
{
    return root->mode;
}

int cgroup_root_remove(struct cgroup_root *root, struct error *err)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        const char *path = root->trees[i].path;
        if (rmdir(path) == 0 || errno == ENOENT)
            continue;
        if (errno == EBUSY)
            return error_set(err, ERROR_CONFLICT,
                             "remove control group '%s': there are sandboxes in it", path);
        return error_sys(err, "remove control group '%s'", path);
    }
    return 0;
}

/* Makes <parent>/<name>, once, and returns its fd. */
static int add_tree(struct cgroup_root *root, const char *parent, const char *name,
                    struct error *err)
{
    autofree char *path = xasprintf("%s/%s", parent, name);

    for (unsigned i = 0; i < root->n_trees; i++) {
        if (strcmp(root->trees[i].path, path) == 0)
            return root->trees[i].fd; // controllers mounted together
    }
    bool is_new = mkdir(path, 0755) == 0;
    if (!is_new && errno != EEXIST) {
        if (errno == EROFS || errno == EACCES || errno == EPERM) {
            error_sys(err, "make control group '%s'", path);
            return error_wrap(err, "burrow needs root and a writable control group tree");
        }
        return error_sys(err, "make control group '%s'", path);
    }
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        error_sys(err, "open control group '%s'", path);
        if (is_new)
            (void)rmdir(path); // it is empty
        return -1;
    }
    struct cgroup_tree *tree = &root->trees[root->n_trees++];
    tree->is_new = is_new;
    tree->path = take(path);
    tree->fd = take_fd(fd);
    return tree->fd;
}

static int add_v1_tree(struct cgroup_root *root, const struct survey *survey, unsigned controller,
                       const char *name, struct error *err)
{
    const char *own = survey->mounts[controller].own;
    if (!own)
        return error_set(
            err, ERROR_UNAVAILABLE,
            "no control group hierarchy has the controller '%s': mount one (mount -t cgroup -o %s "
            "%s /sys/fs/cgroup/%s), or boot with the unified hierarchy",
            controller_names[controller], controller_names[controller],
            controller_names[controller], controller_names[controller]);
    root->knobs[controller] = add_tree(root, own, name, err);
    return root->knobs[controller] < 0 ? -1 : 0;
}

static int add_v1_limits(struct cgroup_root *root, const struct survey *survey, const char *name,
                         struct error *err)
{
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
        if (LIMITS & 1u << i && add_v1_tree(root, survey, i, name, err) < 0)
            return -1;
    }
    root->has_swap_limit =
        knob_exists(root->knobs[CONTROLLER_MEMORY], "", "memory.memsw.limit_in_bytes");
    root->has_socket_limit =
        knob_exists(root->knobs[CONTROLLER_MEMORY], "", "memory.kmem.tcp.limit_in_bytes");
    return 0;
}

static int open_v1(struct cgroup_root *root, const struct survey *survey, const char *name,
                   struct error *err)
{
    // the freezer comes first: a child that has joined it can be killed with the box
    if (add_v1_tree(root, survey, CONTROLLER_FREEZER, name, err) < 0 ||
        add_v1_limits(root, survey, name, err) < 0)
        return -1;
    if (!survey->mounts[CONTROLLER_CPUACCT].own)
        return 0; // CPU time is then unknown, no more
    return add_v1_tree(root, survey, CONTROLLER_CPUACCT, name, err);
}

static int open_hybrid(struct cgroup_root *root, const struct survey *survey, const char *name,
                       struct error *err)
{
    if (!survey->mounts[V2].own)
        return error_set(err, ERROR_UNAVAILABLE,
                         "no version 2 control groups are mounted: mount -t cgroup2 cgroup2 "
                         "/sys/fs/cgroup/unified");
    int fd = add_tree(root, survey->mounts[V2].own, name, err);
    if (fd < 0)
        return -1;
    if (!knob_exists(fd, "", "cgroup.kill"))
        return error_set(err, ERROR_UNAVAILABLE,
                         "control group '%s' has no cgroup.kill: it needs Linux 5.14",
                         root->trees[0].path);
    return add_v1_limits(root, survey, name, err);
}

static bool is_delegated(const char *path)
{
    char value[2] = "";
    return (getxattr(path, "trusted.delegate", value, 1) == 1 ||
            getxattr(path, "user.delegate", value, 1) == 1) &&
           value[0] == '1';
}

/*
 * Where our directory goes on pure v2: the group above ours where we were started in its leaf `supervisor` and the service manager left it to us
 * (systemd marks it so); else the top, as it has no processes or is ours, being a container's. Never our own group: systemd starts a service
 * again in the group of the service, and version 2 lets no process in while there are groups with controllers below it.
 */
static char *v2_parent(const struct mounted *v2)
{
    autofree char *own = xstrdup(v2->own);
    char *last = strrchr(own, '/');

    if (last && strlen(own) > strlen(v2->top) && strcmp(last + 1, SUPERVISOR) == 0) {
        *last = '\0';
        if (is_delegated(own))
            return xstrdup(own);
    }
    return xstrdup(v2->top);
}

struct move {
    int dir_fd;
};

static void move_one(pid_t pid, void *data)
{
    struct move *move = data;
    struct error
        ignored; // it may have ended; who cannot be moved shows when controllers are enabled
    if (pid > 0)
        (void)knob_write_number(move->dir_fd, SUPERVISOR, "cgroup.procs", (uint64_t)pid, &ignored);
}

/* Version 2 wants processes in leaves only, once controllers are handed down. */
static int move_processes(int dir_fd, struct error *err)
{
    struct move move = {dir_fd};

    if (mkdirat(dir_fd, SUPERVISOR, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "make control group '" SUPERVISOR "'");
    return knob_each_pid(dir_fd, "", "cgroup.procs", move_one, &move, err) < 0 ? -1 : 0;
}

static int enable_controllers(const char *parent, struct error *err)
{
    autofd fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open control group '%s'", parent);
    for (int try = 0;; try++) {
        if (knob_write(fd, "", "cgroup.subtree_control", V2_CONTROLLERS, err) == 0)
            return 0;
        if (err->sys != EBUSY || try == ENABLE_TRIES) // more may have been forked meanwhile
            return error_wrap(err, "enable cpu, memory and pids in control group '%s'", parent);
        if (move_processes(fd, err) < 0)
            return error_wrap(err, "clear control group '%s' of processes", parent);
    }
}

static int open_v2(struct cgroup_root *root, const struct survey *survey, const char *name,
                   struct error *err)
{
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
        if (LIMITS & ~survey->v2_controllers & 1u << i)
            return error_set(err, ERROR_UNAVAILABLE,
                             "version 2 control groups lack the controller '%s': boot with "
                             "'cgroup_no_v1=all cgroup_enable=%s'",
                             controller_names[i], controller_names[i]);
    }
    autofree char *parent = v2_parent(&survey->mounts[V2]);
    if (enable_controllers(parent, err) < 0)
        return -1;
    int fd = add_tree(root, parent, name, err);
    if (fd < 0)
        return -1;
    if (knob_write(fd, "", "cgroup.subtree_control", V2_CONTROLLERS, err) < 0)
        return error_wrap(err, "enable cpu, memory and pids in control group '%s'",
                          root->trees[0].path);
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        root->knobs[i] = LIMITS & 1u << i ? fd : -1;
    root->has_swap_limit = knob_exists(fd, "", "memory.swap.max");
    return 0;
}

static int open_as(enum cgroup_mode mode, const struct survey *survey, const char *name,
                   struct cgroup_root **out, struct error *err)
{
    static int (*const openers[])(struct cgroup_root *, const struct survey *, const char *,
                                  struct error *) = {
        [CGROUP_V2] = open_v2, [CGROUP_HYBRID] = open_hybrid, [CGROUP_V1] = open_v1};
    autoptr(cgroup_root) root = cgroup_root_new(mode);

    if (openers[mode](root, survey, name, err) < 0) {
        for (unsigned i = 0; i < root->n_trees; i++) {
            if (root->trees[i].is_new)
                (void)rmdir(root->trees[i].path); // fails where another process has a box by now
        }
        return error_wrap(err, "set up control groups (%s)", cgroup_mode_name(mode));
    }
    *out = take(root);
    return 0;
}

int cgroup_root_open_as(const char *name, enum cgroup_mode mode, struct cgroup_root **out,
                        struct error *err)
{
    __attribute__((cleanup(survey_clear))) struct survey survey = {0};

    if (cgroup_check_name(name, err) < 0 || survey_machine(&survey, err) < 0)
        return -1;
    return open_as(mode, &survey, name, out, err);
}

int cgroup_root_open(const char *name, struct cgroup_root **out, struct error *err)
{
    __attribute__((cleanup(survey_clear))) struct survey survey = {0};
    unsigned v1_controllers = 0;

    if (cgroup_check_name(name, err) < 0 || survey_machine(&survey, err) < 0)
        return -1;
    bool has_v2 = survey.mounts[V2].own != NULL;
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        v1_controllers |= survey.mounts[i].own ? 1u << i : 0;
    v1_controllers &= LIMITS;
    if (!v1_controllers && !has_v2)
        return error_set(err, ERROR_UNAVAILABLE,
                         "no control groups are mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup");
    if (!v1_controllers || (survey.v2_controllers & LIMITS) == LIMITS)
        return open_as(CGROUP_V2, &survey, name, out, err);
    if (v1_controllers == LIMITS && has_v2) {
        if (open_as(CGROUP_HYBRID, &survey, name, out, err) == 0)
            return 0;
        if (!error_is(err, ERROR_UNAVAILABLE))
            return -1; // the mode is the machine's, not the moment's
    }
    return open_as(CGROUP_V1, &survey, name, out, err);
}
