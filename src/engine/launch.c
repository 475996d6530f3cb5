/* SPDX-License-Identifier: Apache-2.0 */
/* The host half of starting a box: steps in a list, undone in reverse; see launch.h and docs/internals/launch.md. */
#include "engine/launch.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/fixtures.h"
#include "engine/gateway.h"
#include "engine/host_dir.h"
#include "engine/idmap.h"
#include "engine/kernel.h"
#include "engine/layer_impl.h"
#include "engine/link.h"
#include "engine/box_listener.h"
#include "engine/slot.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define BUSY_TRIES 20000 // 10 s
#define INIT_NICE (-20)

/* Letters, digits and, inside, '-' and '.': it ends up in prompts, logs and other programs' files. */
static bool is_hostname(const char *text)
{
    size_t length = strlen(text);
    const char *inner = "-.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return length > 0 && length <= 63 && strspn(text, inner) == length && !strchr("-.", text[0]) &&
           !strchr("-.", text[length - 1]);
}

static int check_mounts(const struct box_spec *spec, struct error *err)
{
    if (spec->n_mounts > BOX_MAX_MOUNTS)
        return error_refuse(err, ERROR_INVALID, "mounts",
                            "a sandbox has at most %d host directories, not %zu", BOX_MAX_MOUNTS,
                            spec->n_mounts);
    for (size_t i = 0; i < spec->n_mounts; i++) {
        if (host_dir_check_target(spec->mounts[i].box, err) < 0)
            return error_about(err, "mounts");
        for (size_t j = 0; j < i; j++) {
            if (host_dir_targets_meet(spec->mounts[i].box, spec->mounts[j].box))
                return error_refuse(err, ERROR_INVALID, "mounts",
                                    "host directories at '%.200s' and '%.200s': one cannot lie in "
                                    "the other",
                                    spec->mounts[j].box, spec->mounts[i].box);
        }
    }
    return 0;
}

static int check_spec(struct launch *l, struct error *err)
{
    const struct box_spec *spec = l->spec;
    const char *hostname = spec->hostname ? spec->hostname : "burrow";

    const unsigned most = LAUNCH_MAX_LAYERS - (spec->has_network ? 2 : 1); // some are ours
    if (spec->n_layers == 0 || spec->n_layers + spec->n_saved > most)
        return error_set(err, ERROR_INVALID, "a sandbox has 1 to %u layers, not %zu", most,
                         spec->n_layers + spec->n_saved);
    if (spec->n_binds > LAUNCH_MAX_BINDS)
        return error_set(err, ERROR_INVALID, "a sandbox has at most %d binds, not %zu",
                         LAUNCH_MAX_BINDS, spec->n_binds);
    if (check_mounts(spec, err) < 0)
        return -1;
    if (!is_hostname(hostname))
        return error_set(err, ERROR_INVALID,
                         "hostname '%.80s' must be 1 to 63 letters, digits, '-' or '.', the first "
                         "and the last a letter or digit",
                         hostname);
    l->hostname = hostname;
    l->max_files = spec->max_files ? spec->max_files : 4096;
    return 0;
}

static int take_slot(struct launch *l, struct error *err)
{
    struct box *box = l->box;
    bool is_dirty = false;
    if (slot_take(l->engine->slots_fd, &l->engine->own_slots, &box->slot, &box->slot_fd, &is_dirty,
                  err) < 0)
        return -1;
    box->has_slot = true;
    l->is_slot_dirty = is_dirty;
    if (is_dirty)
        l->engine->has_leftovers = true;
    l->first_id = slot_first_id(box->slot);
    (void)snprintf(box->name, sizeof box->name, "%u", box->slot);
    if (box->is_scratch_kept)
        (void)snprintf(box->scratch, sizeof box->scratch, "%s", l->spec->scratch);
    else
        (void)snprintf(box->scratch, sizeof box->scratch, "run-%u", box->slot);
    return 0;
}

static void drop_slot(struct launch *l)
{
    box_drop_slot(l->box, !l->has_leftovers);
}

/* What programs in the box will take for the machine. */
static int open_view(struct launch *l, struct error *err)
{
    unsigned have = l->engine->n_cpus;
    unsigned shown = fixtures_cpus(&l->spec->limits, have);

    l->n_cpus = shown < have ? shown : 0;
    l->box->seen = l->spec->limits;
    l->box->is_seen_known = true;
    return fixtures_view(l->engine->fixtures, &l->spec->limits, have, l->box->slot, &l->view, err);
}

static void close_view(struct launch *l)
{
    closep(&l->view);
}

static int make_cgroup(struct launch *l, struct error *err)
{
    if (cgroup_create(l->engine->cgroups, l->box->name, &l->spec->limits, l->spec->is_one_shot,
                      l->first_id, &l->box->cgroup, err) < 0)
        return -1;
    l->oom_fd = cgroup_oom_open(l->box->cgroup);
    return 0;
}

static void remove_cgroup(struct launch *l)
{
    struct error ignored = {0};
    closep(&l->oom_fd);
    if (!l->box->cgroup)
        return;
    l->has_leftovers |= cgroup_remove(l->box->cgroup, &ignored) < 0; // swept later
    cgroup_free(take(l->box->cgroup));
}

static int make_scratch(struct launch *l, struct error *err)
{
    const struct volume_limits limits = {(uint64_t)l->spec->limits.disk_bytes, l->spec->max_inodes};
    struct box *box = l->box;

    if (box->is_scratch_kept) {
        if (volume_scratch_open(l->engine->volume, box->scratch, &l->scratch_fd, err) == 0)
            return 0;
        if (!error_is(err, ERROR_NOT_FOUND))
            return -1;
    }
    if (volume_scratch_create(l->engine->volume, box->scratch, &limits, &l->scratch_fd, err) < 0)
        return -1;
    l->is_scratch_made = true;
    return 0;
}

static void remove_scratch(struct launch *l)
{
    struct error ignored = {0};
    closep(&l->scratch_fd);
    if (l->is_scratch_made) // swept later
        l->has_leftovers |= volume_scratch_remove(l->engine->volume, l->box->scratch, &ignored) < 0;
}

/*
 * Other ids, also of a child that shares our memory, close that to debuggers. Other threads may do so right now: each
 * opens it again after its own, so the last one leaves it open.
 */
static void stay_dumpable(const struct engine *engine)
{
    if (engine->is_dumpable)
        (void)prctl(PR_SET_DUMPABLE, 1);
}

static int make_ids(struct launch *l, struct error *err)
{
    struct engine *engine = l->engine;

    l->userns_fd = atomic_exchange(&engine->ids[l->box->slot], -1);
    if (l->userns_fd >= 0) {
        engine->n_ids--;
        return 0;
    }
    int result = idmap_create(l->first_id, SLOT_IDS, &l->userns_fd, err);
    stay_dumpable(engine);
    return result;
}

void engine_keep_ids(struct engine *engine, unsigned slot, int *fd)
{
    if (engine->keeps_ids && *fd >= 0 && engine->n_ids < ENGINE_KEPT_IDS) {
        *fd = atomic_exchange(&engine->ids[slot], *fd);
        engine->n_ids += *fd < 0; // else it took the place of one
    }
    closep(fd);
}

static void close_ids(struct launch *l)
{
    engine_keep_ids(l->engine, l->box->slot, &l->userns_fd);
}

static bool take_wire(struct engine *engine, struct wire *out)
{
    autolock(&engine->lock);
    if (engine->n_wires == 0)
        return false;
    *out = engine->wires[--engine->n_wires];
    return true;
}

/* One with a wire, and the slot's address on it. What a box before had in the slot, when its owner died, is not this one's. */
static int take_wired_network(struct launch *l, struct error *err)
{
    struct engine *engine = l->engine;
    struct gateway *gateway = NULL;
    struct wire wire = {-1, 0};

    if (engine_gateway(engine, &gateway, err) < 0)
        return -1;
    if (l->is_slot_dirty && gateway_dismiss(gateway, l->box->slot, err) < 0)
        return -1;
    if (!take_wire(engine, &wire) && engine_make_wire(engine, &wire, err) < 0)
        return -1;
    l->network_fd = wire.network_fd;
    l->box->has_network = true;
    return gateway_claim(gateway, wire.network_fd, wire.index, l->box->slot, err);
}

static int take_network(struct launch *l, struct error *err)
{
    struct engine *engine = l->engine;
    if (l->spec->has_network)
        return take_wired_network(l, err);
    autofree struct network_maker *maker = NULL;

    {
        autolock(&engine->lock);
        if (engine->n_networks > 0)
            l->network_fd = engine->networks[--engine->n_networks];
        else
            maker = take(engine->first_network);
    }
    if (l->network_fd >= 0)
        return 0;
    if (maker)
        return network_finish(maker, &l->network_fd, err);
    return network_create(engine->network_parent_fd, &l->network_fd, err);
}

static void close_network(struct launch *l)
{
    closep(&l->network_fd);
}

/*
 * A detached mount of a directory (or file) of the host. userns_fd < 0: ids as they are. Private: where the host's mounts are shared,
 * as systemd makes them, what a box mounts in it would be mounted on the host too, and stay there.
 */
static int clone_mount(int dir_fd, const char *path, uint64_t set, uint64_t clear, int userns_fd,
                       int *out, struct error *err)
{
    struct mount_attr attr = {.attr_set = set, .attr_clr = clear, .propagation = MS_PRIVATE};
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*path ? 0 : AT_EMPTY_PATH);
    autofd fd = sys_open_tree(dir_fd, path, flags);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)userns_fd;
    }
    if (sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0) {
        if (errno == EINVAL && userns_fd >= 0)
            return error_set(err, ERROR_UNAVAILABLE,
                             "the file system of '%s' cannot map ids; put the data directory on "
                             "ext4, XFS or btrfs ('burrow doctor' tells more)",
                             path);
        return error_sys(err, "map the ids of '%s'", path);
    }
    *out = take_fd(fd);
    return 0;
}

#define LAYER_FLAGS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID)
#define BARE_FLAGS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

/* A scratch in memory is a mount of its own already, attached nowhere: its ids are mapped where it is. */
static int map_scratch(struct launch *l, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_IDMAP,
                              .userns_fd = (uint64_t)l->userns_fd};
    if (sys_mount_setattr(l->scratch_fd, "", AT_EMPTY_PATH, &attr) < 0) {
        if (errno == EINVAL)
            return error_set(
                err, ERROR_UNAVAILABLE,
                "files in memory need Linux 6.3; install btrfs-progs for a volume on disk");
        return error_sys(err, "map the ids of the scratch");
    }
    l->upper = take_fd(l->scratch_fd);
    return 0;
}

static int clone_saved(struct launch *l, int all, const char *name, struct error *err)
{
    char path[80];
    int *out = &l->layers[l->n_layers];

    if (!volume_is_name(name))
        return error_set(err, ERROR_INVALID, "'%.80s' names no layer", name);
    (void)snprintf(path, sizeof path, "%s/" LAYER_UPPER, name);
    if (!l->engine->has_layer_fds) {
        if (clone_mount(all, path, LAYER_FLAGS, 0, l->userns_fd, out, err) < 0)
            return -1;
    } else if ((*out = openat(l->saved, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        return error_sys(err, "open layer '%s'", name);
    }
    l->n_layers++;
    return 0;
}

/*
 * Layers of the volume. What is used is noted before it is opened, so that whoever removes one sees it. One mount serves
 * all of them, where overlay takes directories in it.
 */
static int clone_all_saved(struct launch *l, struct error *err)
{
    const struct box_spec *spec = l->spec;
    struct engine *engine = l->engine;
    char prefix[LAYER_PREFIX_SIZE];

    if (spec->n_saved == 0)
        return 0;
    autofd all = layer_open_all(engine->volume, false, err);
    if (all < 0 || layer_prefix(all, prefix, err) < 0 ||
        slot_note(engine->slots_fd, l->box->slot, prefix, spec->saved, spec->n_saved, err) < 0)
        return -1;
    if (engine->has_layer_fds &&
        clone_mount(all, "", LAYER_FLAGS, 0, l->userns_fd, &l->saved, err) < 0)
        return -1;
    for (size_t i = 0; i < spec->n_saved; i++) {
        if (clone_saved(l, all, spec->saved[i], err) < 0)
            return -1;
    }
    return 0;
}

/* Over the runtime's own: who answers for names is the gateway. Under what the box wrote. */
static int clone_resolver(struct launch *l, struct error *err)
{
    struct gateway *gateway = NULL;
    autofd dir = -1;

    if (!l->spec->has_network)
        return 0;
    if (engine_gateway(l->engine, &gateway, err) < 0 ||
        fixtures_resolver(l->engine->fixtures, gateway_address(gateway), &dir, err) < 0 ||
        clone_mount(dir, "", LAYER_FLAGS, 0, l->userns_fd, &l->layers[l->n_layers], err) < 0)
        return -1;
    l->n_layers++;
    return 0;
}

/* The length of the directory that all layers of the runtime lie in, without a slash at its end; 0 where there is none but the root. */
static size_t find_shared(const struct box_spec *spec)
{
    const char *first = spec->layers[0];
    const char *slash = strrchr(first, '/');
    size_t length = slash ? (size_t)(slash - first) : 0;

    for (size_t i = 1; i < spec->n_layers; i++) {
        while (length > 0 &&
               (strncmp(first, spec->layers[i], length) != 0 || spec->layers[i][length] != '/'))
            do
                length--;
            while (length > 0 && first[length] != '/');
    }
    return length;
}

/* A directory of the mount that all of them share. False where it is another than its path says: something is mounted there. */
static bool open_shared(const struct launch *l, const char *path, size_t length, int *out)
{
    autofd fd = sys_openat2(l->shared, path + length + 1, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    struct stat seen, real;

    if (fd < 0 || fstat(fd, &seen) < 0 || stat(path, &real) < 0 || seen.st_dev != real.st_dev ||
        seen.st_ino != real.st_ino)
        return false;
    *out = take_fd(fd);
    return true;
}

/* A mount for each of many layers takes longer than all the rest: one serves all of them too. */
static int clone_runtime(struct launch *l, struct error *err)
{
    const struct box_spec *spec = l->spec;
    size_t length = l->engine->has_layer_fds && spec->n_layers > 1 ? find_shared(spec) : 0;

    if (length > 0) {
        autofree char *dir = xstrndup(spec->layers[0], length);
        if (clone_mount(AT_FDCWD, dir, LAYER_FLAGS, 0, l->userns_fd, &l->shared, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < spec->n_layers; i++) {
        int *out = &l->layers[l->n_layers];
        if (!(length > 0 && open_shared(l, spec->layers[i], length, out)) &&
            clone_mount(AT_FDCWD, spec->layers[i], LAYER_FLAGS, 0, l->userns_fd, out, err) < 0)
            return -1;
        l->n_layers++;
    }
    return 0;
}

static int clone_layers(struct launch *l, struct error *err)
{
    if (clone_all_saved(l, err) < 0 || clone_resolver(l, err) < 0 ||
        clone_mount(l->view, "root", LAYER_FLAGS, 0, l->userns_fd, &l->layers[l->n_layers], err) <
            0)
        return -1;
    l->n_layers++;
    if (clone_runtime(l, err) < 0)
        return -1;
    if (volume_scheme(l->engine->volume) == VOLUME_TMPFS)
        return map_scratch(l, err);
    return clone_mount(l->scratch_fd, "", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, 0, l->userns_fd,
                       &l->upper, err);
}

/*
 * The file that was written there is closed, but a child of another thread's launch may hold a copy of its fd until
 * it executes; so long the mount is busy.
 */
static int close_dev(int dev, struct error *err)
{
    struct mount_attr attr = {.attr_set = BARE_FLAGS, .attr_clr = MOUNT_ATTR_NODEV};
    const struct timespec pause = {.tv_nsec = 500000};

    for (unsigned tries = 0; sys_mount_setattr(dev, "", AT_EMPTY_PATH, &attr) < 0; tries++) {
        if (errno != EBUSY || tries == BUSY_TRIES)
            return error_sys(err, "make /dev read-only");
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

static int make_dev(struct launch *l, struct error *err)
{
    if (fixtures_make_dev(l->view, l->first_id, &l->dev, err) < 0)
        return -1;
    return close_dev(l->dev, err);
}

static int clone_fixtures(struct launch *l, struct error *err)
{
    if (volume_own_dir(l->engine->volume) < 0)
        return make_dev(l, err);
    if (clone_mount(l->engine->fixtures->dev_fd, "", BARE_FLAGS, MOUNT_ATTR_NODEV, l->userns_fd,
                    &l->dev, err) < 0)
        return -1;
    if (l->spec->limits.memory_bytes == 0)
        return 0;
    return clone_mount(l->view, "meminfo", BARE_FLAGS | MOUNT_ATTR_NODEV, 0, -1, &l->meminfo, err);
}

static int clone_binds(struct launch *l, struct error *err)
{
    for (size_t i = 0; i < l->spec->n_binds; i++) {
        if (clone_mount(AT_FDCWD, l->spec->binds[i].host, LAYER_FLAGS, 0, -1, &l->binds[i], err) <
            0)
            return -1;
        l->n_binds++;
    }
    return 0;
}

static int clone_host_dir(struct launch *l, const struct box_mount *mount, struct error *err)
{
    if (host_dir_refuse(mount->fd, l->engine->data_dir, err) < 0 ||
        host_dir_refuse(mount->fd, ENGINE_RUN_DIR, err) < 0)
        return -1;
    int result = host_dir_clone(mount, l->first_id, &l->mounts[l->n_mounts], err);
    stay_dumpable(l->engine);
    return result;
}

static int clone_host_dirs(struct launch *l, struct error *err)
{
    for (size_t i = 0; i < l->spec->n_mounts; i++) {
        if (clone_host_dir(l, &l->spec->mounts[i], err) < 0)
            return error_about(err, "mounts");
        l->n_mounts++;
    }
    return 0;
}

static void close_mounts(struct launch *l)
{
    while (l->n_layers > 0)
        closep(&l->layers[--l->n_layers]);
    while (l->n_binds > 0)
        closep(&l->binds[--l->n_binds]);
    while (l->n_mounts > 0)
        closep(&l->mounts[--l->n_mounts]);
    closep(&l->saved);
    closep(&l->shared);
    closep(&l->upper);
    closep(&l->dev);
    closep(&l->meminfo);
}

static int make_link(struct launch *l, struct error *err)
{
    int pair[2];
    struct link_boot boot = {
        .is_one_shot = l->spec->is_one_shot,
        .owner_loss = l->spec->owner_loss,
        .max_files = l->max_files,
    };

    for (size_t i = 0; i < l->spec->n_mounts; i++)
        boot.drops_set_ids |= !l->spec->mounts[i].is_read_only;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket pair");
    l->box->control = pair[0];
    l->control_peer = pair[1];
    if (l->spec->owner_loss == BOX_STAY &&
        listener_take(l->engine, l->box->slot, &l->listener_fd, err) < 0)
        return -1;
    if (getrandom(&l->secret, sizeof l->secret, 0) != sizeof l->secret)
        return error_sys(err, "get random bytes");
    boot.secret = l->secret;
    boot.fds = 1u << BOOT_CONTROL | 1u << BOOT_SLOT | 1u << BOOT_OOM_ADJ;
    boot.fds |= l->listener_fd >= 0 ? 1u << BOOT_LISTENER : 0;
    boot.fds |= l->spec->hold_fd >= 0 ? 1u << BOOT_HOLD : 0;
    boot.fds |= l->oom_fd >= 0 ? 1u << BOOT_OOM : 0;
    if (link_send(l->box->control, LINK_BOOT, 0, 0, &boot, sizeof boot, NULL, 0) < 0)
        return error_sys(err, "write to PID 1's socket");
    return 0;
}

static void close_link(struct launch *l)
{
    if (l->listener_fd >= 0)
        listener_drop(l->engine, l->box->slot);
    closep(&l->listener_fd);
    closep(&l->control_peer);
    closep(&l->box->control);
}

/* Returns in the parent once the child has executed burrow-init or given up. */
__attribute__((noinline)) static long clone_child(struct launch *l)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
    };
    if (l->entry.into_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)l->entry.into_fd;
    }
    if (l->fds_end > 0)
        args.flags |= CLONE_FILES;
    long pid = sys_clone3_vfork(&args);
    if (pid == 0)
        launch_enter(l);
    return pid;
}

static void reap(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
        ;
}

/* Low numbers for everything that the box half uses. */
static void move_fds(struct launch *l, struct low_move *move)
{
    int *fds[CGROUP_MAX_TASKS + LAUNCH_MAX_LAYERS + LAUNCH_MAX_BINDS + BOX_MAX_MOUNTS + 16];
    int *const single[] = {
        &l->network_fd, &l->userns_fd,    &l->upper,       &l->dev,
        &l->meminfo,    &l->control_peer, &l->listener_fd, &l->box->slot_fd,
        &l->oom_fd,     &l->hold_fd,      &l->init_fd,     &l->mount_parent_fd,
    };
    unsigned count = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(single); i++)
        fds[count++] = single[i];
    for (unsigned i = 0; i < l->entry.n_tasks; i++)
        fds[count++] = &l->entry.tasks[i];
    for (unsigned i = 0; i < l->n_layers; i++)
        fds[count++] = &l->layers[i];
    for (unsigned i = 0; i < l->n_binds; i++)
        fds[count++] = &l->binds[i];
    for (unsigned i = 0; i < l->n_mounts; i++)
        fds[count++] = &l->mounts[i];
    low_fds_move(l->engine->low, fds, count, move);
    l->fds_end = move->low ? move->low->end : 0;
}

/* What is in the way of a host directory is the box's own files, which its guests may have made. */
static int tell_failed_step(const struct launch *l, struct error *err)
{
    bool is_in_the_way = l->failed_errno == ELOOP || l->failed_errno == ENOTDIR ||
                         l->failed_errno == EROFS || l->failed_errno == ENOENT;

    if (strcmp(l->failed_step, "mounts.attach") != 0 || !is_in_the_way || *l->fault.step ||
        l->n_attached >= l->n_mounts)
        return error_sys_code(err, l->failed_errno, "launch step '%s'", l->failed_step);
    return error_refuse(err, ERROR_INVALID, "mounts",
                        "no host directory can be at '%.200s' in the sandbox: a link, a file or a "
                        "read-only directory is in the way",
                        l->spec->mounts[l->n_attached].box);
}

static int start_child(struct launch *l, struct error *err)
{
    struct low_move move;
    sigset_t all;
    sigset_t before;

    l->entry = *cgroup_entry(l->box->cgroup);
    move_fds(l, &move);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    long pid = clone_child(l);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    low_fds_move_back(&move);
    stay_dumpable(l->engine);
    if (pid < 0)
        return error_sys_code(err, (int)-pid, "start a process in new namespaces");
    if (l->failed_step) {
        reap((pid_t)pid);
        return tell_failed_step(l, err);
    }
    l->box->pid = (pid_t)pid;
    l->box->is_child = true;
    // Before its guests, whose processes start with the usual rank. It counts within the box's control group only.
    (void)setpriority(PRIO_PROCESS, (id_t)pid, INIT_NICE); // best effort
    return 0;
}

static const struct step {
    const char *name;
    int (*run)(struct launch *launch, struct error *err);
    void (*undo)(struct launch *launch); // of this step, whole or half done; may be NULL
} steps[] = {
    {"spec.check", check_spec, NULL},
    {"slot.take", take_slot, drop_slot},
    {"view.open", open_view, close_view},
    {"cgroup.make", make_cgroup, remove_cgroup},
    {"scratch.make", make_scratch, remove_scratch},
    {"ids.make", make_ids, close_ids},
    {"layers.clone", clone_layers, close_mounts},
    {"fixtures.clone", clone_fixtures, NULL},
    {"binds.clone", clone_binds, NULL},
    {"mounts.clone", clone_host_dirs, NULL},
    {"link.make", make_link, close_link},
    {"network.take", take_network, close_network},
    {"child.start", start_child, NULL},
};

const unsigned launch_host_steps = ARRAY_SIZE(steps);

bool launch_step_begins(struct launch *l, const char *name, unsigned index)
{
    struct timespec now;
    if (l->engine->step_ns) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        l->engine->step_ns[index] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    return strcmp(l->fault.step, name) == 0;
}

static int run_steps(struct launch *l, struct error *err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        int result = launch_step_begins(l, steps[i].name, i)
                         ? error_sys_code(err, l->fault.code, "launch step '%s'", steps[i].name)
                         : steps[i].run(l, err);
        if (result == 0)
            continue;
        for (unsigned left = i + 1; left > 0; left--) {
            if (steps[left - 1].undo)
                steps[left - 1].undo(l);
        }
        return -1;
    }
    return 0;
}

/* Hands an fd over to be closed later; right away when there is no place for it. */
static void spend(struct box *box, int *fd)
{
    if (*fd >= 0 && box->n_spent < BOX_SPENT_FDS)
        box->spent[box->n_spent++] = take_fd(*fd);
    closep(fd);
}

/* What can go to the next box of the slot is known again by its file: while a box lives, PID 1 alone keeps it open. */
static ino_t file_of(int fd)
{
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 ? info.st_ino : 0;
}

static void spend_all(struct launch *l)
{
    struct box *box = l->box;

    if (l->engine->keeps_ids)
        box->ids_file = file_of(l->userns_fd);
    if (l->engine->max_recycled > 0)
        box->listener_file = file_of(l->listener_fd);
    spend(box, &l->upper);
    spend(box, &l->saved);
    spend(box, &l->shared);
    spend(box, &l->dev);
    spend(box, &l->meminfo);
    spend(box, &l->network_fd);
    for (unsigned i = 0; i < l->n_layers; i++)
        spend(box, &l->layers[i]);
    for (unsigned i = 0; i < l->n_binds; i++)
        spend(box, &l->binds[i]);
    for (unsigned i = 0; i < l->n_mounts; i++)
        spend(box, &l->mounts[i]);
    spend(box, &l->scratch_fd);
    spend(box, &l->listener_fd);
    closep(&l->control_peer); // at once: who talks to a PID 1 that has died must hear of it
    spend(box, &l->oom_fd);
    spend(box, &l->view);
    spend(box, &l->userns_fd);
}

int box_launch(struct engine *engine, const struct box_spec *spec, struct box **out,
               struct error *err)
{
    struct box *box = xnew(struct box);
    struct launch l = {
        .engine = engine,
        .spec = spec,
        .box = box,
        .userns_fd = -1,
        .network_fd = -1,
        .scratch_fd = -1,
        .control_peer = -1,
        .listener_fd = -1,
        .oom_fd = -1,
        .oom_adj_fd = -1,
        .saved = -1,
        .shared = -1,
        .upper = -1,
        .dev = -1,
        .meminfo = -1,
        .view = -1,
        .init_fd = engine->init_fd,
        .mount_parent_fd = engine->mount_parent_fd,
        .hold_fd = spec->hold_fd,
        .fault = engine->fault,
    };

    *box = (struct box){
        .engine = engine,
        .slot_fd = -1,
        .control = -1,
        .is_one_shot = spec->is_one_shot,
        .owner_loss = spec->owner_loss,
        .is_scratch_kept = spec->scratch != NULL,
    };
    if (engine->fail_file)
        fault_read(engine->fail_file, &l.fault);
    if (run_steps(&l, err) < 0) {
        free(box);
        return error_wrap(err, "start sandbox");
    }
    spend_all(&l);
    slot_keep(engine->holder_fd, box->slot, &box->slot_fd); // PID 1 has it
    cgroup_entry_done(box->cgroup);
    *out = box;
    return 0;
}

const char *const *engine_launch_steps(void)
{
    static const char *names[64];
    unsigned n = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++)
        names[n++] = steps[i].name;
    for (const char *const *inner = launch_enter_steps(); *inner; inner++)
        names[n++] = *inner;
    return names;
}
