/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes an engine: what launches share; see box.h. */
#include "engine/launch.h"

#include "base/data_dir.h"
#include "base/descriptors.h"
#include "base/fd.h"
#include "base/machine.h"
#include "base/mem.h"
#include "engine/fixtures.h"
#include "engine/gateway.h"
#include "engine/init_blob.h"
#include "engine/kernel.h"
#include "engine/box_listener.h"
#include "engine/raw.h"
#include "engine/slot.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define PARENT_STACK 65536
#define CALM_MS 1000
#define PLACES "places" // in the run directory: where groups of this data directory are

/* Sealed, so nobody can change what runs as PID 1; executable but not readable, so PID 1 starts undumpable. */
static int make_init(int *out, struct error *err)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    autofd fd = memfd_create("burrow-init", flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("burrow-init", flags);
    if (fd < 0)
        return error_sys(err, "make a memory file for burrow-init (is vm.memfd_noexec 2?)");
    if (fd_write_all(fd, init_blob_start, (size_t)(init_blob_end - init_blob_start)) < 0)
        return error_sys(err, "write burrow-init");
    if (fchmod(fd, 0111) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return error_sys(err, "seal burrow-init");
    *out = take_fd(fd);
    return 0;
}

struct mount_parent {
    int mounts_fd;
    int out;
    int code;
};

/* In a child that shares memory and fds: a mount namespace holding only the fixtures' mounts/, to mount on. */
RUNS_IN_CHILD static void build_mount_parent(void *data)
{
    struct mount_parent *made = data;
    struct mount_attr shut = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          MOUNT_ATTR_NOEXEC};
    int tree = -1;

    if (fchdir(made->mounts_fd) == 0 && unshare(CLONE_NEWNS) == 0 &&
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        (tree = sys_open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) >= 0 &&
        sys_mount_setattr(tree, "", AT_EMPTY_PATH, &shut) == 0 &&
        (made->out = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC)) >= 0 &&
        sys_move_mount(tree, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
        fchdir(tree) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
        umount2(".", MNT_DETACH) == 0)
        made->code = 0;
    else
        made->code = errno;
    if (tree >= 0)
        (void)close(tree);
    for (;;)
        (void)RAW(SYS_exit, 0, 0, 0, 0, 0);
}

static int make_mount_parent(struct engine *engine, struct error *err)
{
    struct mount_parent made = {.mounts_fd = engine->fixtures->mounts_fd, .out = -1, .code = EIO};
    autofree char *stack = xcalloc(1, PARENT_STACK);
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_FILES,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = PARENT_STACK,
    };
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t child = (pid_t)raw_clone3(&args, 0, build_mount_parent, &made);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return error_sys_code(err, -child, "start the maker of a mount namespace");
    while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    if (made.code != 0) {
        closep(&made.out);
        return error_sys_code(err, made.code, "make a mount namespace to launch from");
    }
    engine->mount_parent_fd = made.out;
    return 0;
}

/* Tells data directories apart wherever the machine has one namespace for names. */
static int name_engine(struct engine *engine, int data_fd, struct error *err)
{
    struct stat info;
    if (fstat(data_fd, &info) < 0)
        return error_sys(err, "look at '%s'", engine->data_dir);
    (void)snprintf(engine->name, sizeof engine->name, "burrow-%llx-%llx",
                   (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    uint64_t number = ((uint64_t)info.st_dev << 32 ^ (uint64_t)info.st_ino) * 0x9e3779b97f4a7c15u;
    engine->own_slots.owner = (uint32_t)(number >> 33) | 1; // a group id: neither 0 nor -1
    return 0;
}

static bool kernel_is_at_least(unsigned major, unsigned minor)
{
    struct utsname name;
    unsigned have_major = 0;
    unsigned have_minor = 0;
    if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &have_major, &have_minor) != 2)
        return false;
    return have_major > major || (have_major == major && have_minor >= minor);
}

static void run_dir_path(const struct engine *engine, char *path, size_t size)
{
    (void)snprintf(path, size, ENGINE_RUN_DIR "/%s", engine->name);
}

int engine_open_run_dir(struct engine *engine, struct error *err)
{
    char path[80];
    int none = -1;
    if (engine->run_fd >= 0)
        return 0;
    run_dir_path(engine, path, sizeof path);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (fd_make_dirs(path, 0700, err) < 0)
            return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    // else another thread was faster
    if (atomic_compare_exchange_strong(&engine->run_fd, &none, fd))
        (void)take_fd(fd);
    return 0;
}

static int open_data_dir(const char *path, int *out, struct error *err)
{
    if (data_dir_check(path, err) < 0)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (fd_make_dirs(path, 0700, err) < 0)
            return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return error_sys(err, "open the data directory '%s'", path);
    *out = fd;
    return 0;
}

static int open_cgroups(struct engine *engine, const struct engine_options *options,
                        struct error *err)
{
    if (options->cgroup_mode)
        return cgroup_root_open_as(engine->name, *options->cgroup_mode, &engine->cgroups, err);
    return cgroup_root_open(engine->name, &engine->cgroups, err);
}

int engine_open_places(struct engine *engine, struct error *err)
{
    if (engine->other_cgroups)
        return 0;
    if (engine_open_run_dir(engine, err) < 0)
        return -1;
    return cgroup_roots_open(engine->run_fd, PLACES, engine->cgroups, &engine->other_cgroups,
                             &engine->n_other_cgroups, err);
}

int engine_open_group(struct engine *engine, const char *name, struct cgroup **out,
                      struct error *err)
{
    for (size_t i = 0; i < engine->n_other_cgroups; i++) {
        if (!cgroup_root_has(engine->cgroups, name) &&
            cgroup_root_has(engine->other_cgroups[i], name))
            return cgroup_open(engine->other_cgroups[i], name, out, err);
    }
    return cgroup_open(engine->cgroups, name, out, err);
}

/* What all boxes may have together until a server says otherwise. Without it each still has its own limits. */
static void share_room(struct engine *engine)
{
    const struct limits whole = cgroup_root_machine(engine->cgroups);
    struct error ignored = {0};
    const struct limits room = machine_leave_room(&whole);
    const struct cgroup_share share = {.memory_bytes = room.memory_bytes,
                                       .max_processes = room.max_processes};
    (void)cgroup_root_share(engine->cgroups, &share, &ignored);
}

/* A server looks for what others left, and a box that comes and goes leaves word of where that may be. */
static int note_place(struct engine *engine, bool is_long_lived, struct error *err)
{
    if (is_long_lived)
        return engine_open_places(engine, err);
    if (!cgroup_root_is_new(engine->cgroups))
        return 0;
    share_room(engine);
    if (engine_open_run_dir(engine, err) < 0)
        return -1;
    return cgroup_root_note(engine->cgroups, engine->run_fd, PLACES, err);
}

int engine_need_root(struct error *err)
{
    if (geteuid() == 0)
        return 0;
    return error_set(err, ERROR_DENIED, "burrow needs root for now: run it with sudo");
}

static bool is_spared(void)
{
    char text[16];
    struct error ignored = {0};
    return fd_read_knob(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text, &ignored) == 0 &&
           text[0] == '-';
}

int engine_open(const struct engine_options *options, struct engine **out, struct error *err)
{
    if (engine_need_root(err) < 0)
        return -1;
    autoptr(engine) engine = xnew(struct engine);
    lock_init(&engine->lock, LOCK_ENGINE);
    engine->data_dir = xstrdup(options->data_dir);
    if (options->network_addresses)
        engine->gateway_addresses = xstrdup(options->network_addresses);
    if (options->network_uplink)
        engine->gateway_uplink = xstrdup(options->network_uplink);
    engine->slots_fd = engine->init_fd = engine->mount_parent_fd = engine->network_parent_fd = -1;
    engine->holder_fd = -1;
    engine->run_fd = -1;
    engine->is_dumpable = prctl(PR_GET_DUMPABLE) == 1;
    engine->is_spared = options->is_long_lived && is_spared();
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        engine->ids[i] = -1;
    engine->keeps_ids = options->is_long_lived;
    fault_set(options->fail_step, options->fail_errno, &engine->fault);
    engine->fail_file = options->fail_file ? xstrdup(options->fail_file) : NULL;
    engine->is_death = options->is_death;
    engine->step_ns = options->step_ns;
    engine->n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    engine->has_layer_fds = kernel_is_at_least(6, 13);

    bool has_many = descriptors_limit() >= LOW_FDS_FROM; // else they are worth more than the time
    if (options->is_long_lived && has_many && low_fds_new(&engine->low, err) < 0)
        return -1;
    // For one launch, the first network is made while everything else is.
    if (!options->is_long_lived) {
        engine->first_network = xnew(struct network_maker);
        if (network_start(engine->first_network, -1, err) < 0) {
            free(take(engine->first_network));
            return -1;
        }
    }
    autofd data_fd = -1;
    if (open_data_dir(options->data_dir, &data_fd, err) < 0 ||
        name_engine(engine, data_fd, err) < 0 ||
        volume_open(options->data_dir, &options->volume, &engine->volume, err) < 0 ||
        fixtures_open(data_fd, volume_own_dir(engine->volume), &engine->fixtures, err) < 0)
        return error_wrap(err, "prepare the data directory '%s'", options->data_dir);
    if (slots_open(&engine->slots_fd, err) < 0 ||
        (options->is_long_lived &&
         (slots_open(&engine->holder_fd, err) < 0 || engine_open_run_dir(engine, err) < 0)) ||
        make_init(&engine->init_fd, err) < 0 || open_cgroups(engine, options, err) < 0 ||
        note_place(engine, options->is_long_lived, err) < 0)
        return -1;
    if (options->is_long_lived && (make_mount_parent(engine, err) < 0 ||
                                   network_make_parent(&engine->network_parent_fd, err) < 0))
        return -1;
    *out = take(engine);
    return 0;
}

static void close_atomic(_Atomic int *fd)
{
    int taken = atomic_exchange(fd, -1);
    closep(&taken);
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    struct error ignored = {0};
    int unused = -1;
    if (engine->first_network && network_finish(engine->first_network, &unused, &ignored) == 0)
        (void)close(unused);
    free(engine->first_network);
    for (unsigned i = 0; i < engine->n_networks; i++)
        (void)close(engine->networks[i]);
    for (unsigned i = 0; i < engine->n_wires; i++)
        (void)close(engine->wires[i].network_fd);
    gateway_free(engine->gateway);
    free(engine->gateway_addresses);
    free(engine->gateway_uplink);
    listener_close_all(engine);
    closep(&engine->slots_fd);
    closep(&engine->holder_fd);
    low_fds_free(engine->low);
    close_atomic(&engine->run_fd);
    closep(&engine->init_fd);
    closep(&engine->mount_parent_fd);
    closep(&engine->network_parent_fd);
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        close_atomic(&engine->ids[i]);
    fixtures_free(engine->fixtures);
    for (size_t i = 0; i < engine->n_other_cgroups; i++)
        cgroup_root_free(engine->other_cgroups[i]);
    free(engine->other_cgroups);
    cgroup_root_free(engine->cgroups);
    volume_free(engine->volume);
    free(engine->data_dir);
    lock_clear(&engine->lock);
    free(engine->fail_file);
    free(engine);
}

static bool wants_network(struct engine *engine, unsigned count)
{
    autolock(&engine->lock);
    return engine->n_networks < count;
}

int engine_fill_networks(struct engine *engine, unsigned count, struct error *err)
{
    if (count > ARRAY_SIZE(engine->networks))
        count = ARRAY_SIZE(engine->networks);
    while (wants_network(engine, count)) {
        autofd made = -1;
        if (network_create(engine->network_parent_fd, &made, err) < 0)
            return -1;
        autolock(&engine->lock);
        if (engine->n_networks < count) // another thread may fill too
            engine->networks[engine->n_networks++] = take_fd(made);
    }
    return 0;
}

struct gateway *engine_keep_gateway(struct engine *engine, struct gateway *opened)
{
    autolock(&engine->lock);
    if (!engine->gateway)
        engine->gateway = opened;
    return engine->gateway;
}

int engine_gateway(struct engine *engine, struct gateway **out, struct error *err)
{
    const struct gateway_options options = {.addresses = engine->gateway_addresses,
                                            .uplink = engine->gateway_uplink};
    struct gateway *opened = NULL;

    *out = engine_keep_gateway(engine, NULL);
    if (*out)
        return 0;
    if (gateway_open(engine->data_dir, &options, &opened, err) < 0)
        return -1;
    *out = engine_keep_gateway(engine, opened);
    if (*out != opened) // another thread was faster
        gateway_free(opened);
    return 0;
}

int engine_make_wire(struct engine *engine, struct wire *out, struct error *err)
{
    struct gateway *gateway = NULL;
    autofd made = -1;

    if (engine_gateway(engine, &gateway, err) < 0 ||
        network_create(engine->network_parent_fd, &made, err) < 0 ||
        gateway_wire(gateway, made, &out->index, err) < 0)
        return -1;
    out->network_fd = take_fd(made);
    return 0;
}

/* The interface goes with the namespace. Of an adopted box the gateway may have nothing. */
int box_leave_network(struct box *box, struct error *err)
{
    struct error ignored = {0};
    autoptr(gateway) found = NULL;

    if (!box->has_network)
        return 0;
    struct gateway *gateway = engine_keep_gateway(box->engine, NULL);
    if (!gateway && gateway_find(box->engine->data_dir, &found, &ignored) < 0)
        return 0;
    return gateway_dismiss(gateway ? gateway : found, box->slot, err);
}

int box_set_network_rate(struct box *box, uint64_t bytes_per_second, struct error *err)
{
    autofd network = -1;

    if (box_open_network(box, &network, err) < 0)
        return -1;
    return gateway_limit(network, bytes_per_second, err);
}

static bool wants_wire(struct engine *engine, unsigned count)
{
    autolock(&engine->lock);
    return engine->n_wires < count;
}

/* False: another thread was faster. */
static bool keep_wire(struct engine *engine, const struct wire *wire, unsigned count)
{
    autolock(&engine->lock);
    bool has_place = engine->n_wires < count;
    if (has_place)
        engine->wires[engine->n_wires++] = *wire;
    return has_place;
}

int engine_fill_wires(struct engine *engine, unsigned count, struct error *err)
{
    if (count > ARRAY_SIZE(engine->wires))
        count = ARRAY_SIZE(engine->wires);
    while (wants_wire(engine, count)) {
        struct wire wire = {-1, 0};
        if (engine_make_wire(engine, &wire, err) < 0)
            return -1;
        if (!keep_wire(engine, &wire, count))
            closep(&wire.network_fd);
    }
    return 0;
}

void engine_recycle(struct engine *engine, unsigned count)
{
    engine->max_recycled = count < ENGINE_RECYCLED ? count : ENGINE_RECYCLED;
    cgroup_root_keep(engine->cgroups, engine->max_recycled);
}

struct sweep {
    struct engine *engine;
    const char *prefix; // of names that tell a slot; all others are somebody's
    int held; // the slot of what is being removed, so that nobody starts a box there meanwhile
};

static bool slot_name_is_owned(const char *name, void *data)
{
    struct sweep *sweep = data;
    unsigned slot = 0;

    closep(&sweep->held);
    size_t length = strlen(sweep->prefix);
    if (strncmp(name, sweep->prefix, length) != 0 || !slot_parse(name + length, &slot))
        return true;
    if (slot_is_own(&sweep->engine->own_slots, slot))
        return true;
    sweep->held = slot_try(sweep->engine->slots_fd, slot);
    return sweep->held < 0;
}

/* Sockets of boxes that are gone. */
static int sweep_sockets(struct sweep *sweep, struct error *err)
{
    char path[80];
    run_dir_path(sweep->engine, path, sizeof path);
    autodir dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : error_sys(err, "list the sockets of sandboxes");
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!slot_name_is_owned(entry->d_name, sweep))
            (void)unlinkat(dirfd(dir), entry->d_name, 0); // the next box there does it too
    }
    return 0;
}

static bool is_slot_owned(unsigned slot, void *data)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", slot);
    return slot_name_is_owned(name, data);
}

/* What the gateway has of boxes that are gone; most data directories have none. */
static int sweep_gateway(struct sweep *sweep, struct error *err)
{
    struct error ignored = {0};
    autoptr(gateway) gateway = NULL;

    if (gateway_find(sweep->engine->data_dir, &gateway, &ignored) < 0)
        return 0;
    return gateway_sweep(gateway, is_slot_owned, sweep, err);
}

/* Another data directory has a box in the slot, so what is kept of ours there is not to be had by the lock. */
static bool is_slot_others(const char *name, void *data)
{
    struct engine *engine = data;
    unsigned slot = 0;

    return slot_parse(name, &slot) &&
           slot_is_others(engine->slots_fd, slot, engine->own_slots.owner);
}

int engine_sweep(struct engine *engine, struct error *err)
{
    struct sweep sweep = {engine, "", -1};
    const struct timespec begun = slots_now();
    engine->has_leftovers = false; // a launch that meets some from here on may mean others
    int result = cgroup_sweep(engine->cgroups, slot_name_is_owned, &sweep, err);
    cgroup_sweep_kept(engine->cgroups, is_slot_others, engine);
    for (size_t i = 0; i < engine->n_other_cgroups; i++) {
        if (result == 0)
            result = cgroup_sweep(engine->other_cgroups[i], slot_name_is_owned, &sweep, err);
        cgroup_sweep_kept(engine->other_cgroups[i], is_slot_others, engine);
        cgroup_root_retire(engine->other_cgroups[i], engine->cgroups, CALM_MS);
    }
    if (result == 0)
        result = sweep_sockets(&sweep, err);
    if (result == 0)
        result = sweep_gateway(&sweep, err);
    sweep.prefix = "run-";
    if (result == 0)
        result = volume_sweep(engine->volume, slot_name_is_owned, &sweep, err);
    closep(&sweep.held);
    if (result < 0)
        engine->has_leftovers = true;
    else
        slots_are_clean(engine->slots_fd, &engine->own_slots, &begun);
    return result;
}

/* Its slot is held, by PID 1 if nobody else; and a group of this data directory stands there. */
static bool is_living(struct engine *engine, unsigned slot)
{
    char name[16];
    struct error ignored = {0};
    autoptr(cgroup) group = NULL;
    autofd held = slot_try(engine->slots_fd, slot);

    (void)snprintf(name, sizeof name, "%u", slot);
    return held < 0 && engine_open_group(engine, name, &group, &ignored) == 0;
}

int engine_list_staying(struct engine *engine, unsigned **slots, size_t *count, struct error *err)
{
    char path[80];
    autofree unsigned *found = NULL;
    size_t n_found = 0;

    run_dir_path(engine, path, sizeof path);
    autodir dir = opendir(path);
    if (!dir && errno != ENOENT)
        return error_sys(err, "list the sockets of sandboxes");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        unsigned slot = 0;
        if (!slot_parse(entry->d_name, &slot) || !is_living(engine, slot))
            continue;
        found = xrealloc(found, n_found + 1, sizeof *found);
        found[n_found++] = slot;
    }
    *slots = take(found);
    *count = n_found;
    return 0;
}

bool engine_has_leftovers(const struct engine *engine)
{
    return engine->has_leftovers;
}

struct volume *engine_volume(struct engine *engine)
{
    return engine->volume;
}

struct cgroup_root *engine_cgroups(struct engine *engine)
{
    return engine->cgroups;
}
