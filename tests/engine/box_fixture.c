/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes under test: the engine, the layer, and what is removed afterwards; see box_fixture.h. */
#include "box_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box_stock.h"
#include "cgroup_world.h"
#include "engine/cgroup_impl.h"
#include "engine/gateway.h"
#include "engine/launch.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_BOXES 512
#define MAX_ENGINES 8
#define MAX_GROUPS 32
#define MODES 3

struct engine *engine;
char data_dir[128];
char layer_dir[160];

/* Data directories that engines were opened on, with their names; the first is the tests' own. */
static struct place {
    char dir[160];
    char name[32];
} places[MAX_ENGINES];
static pid_t tester;
static struct box *boxes[MAX_BOXES];
static struct engine *engines[MAX_ENGINES];
static char *groups[MAX_GROUPS + 1]; // directories of engines' control groups

bool is_in_vm(void)
{
    return getenv("BURROW_IN_VM") != NULL;
}

int64_t now_ms(void)
{
    return (int64_t)clock_monotonic_ms();
}

void nap(void)
{
    unsigned turn = 4;
    cgroup_pause(&turn);
}

int count_fds(void)
{
    int count = 0;
    autodir dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    return count;
}

static void write_text(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", layer_dir, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void copy_guest(void)
{
    static char data[65536];
    char path[256];
    ssize_t got = 0;
    const char *guest = getenv("BURROW_GUEST");
    autofd from = open(guest ? guest : "/tests/guest", O_RDONLY | O_CLOEXEC);
    if (from < 0)
        SKIP("no guest program: set BURROW_GUEST to tests/guest of the build directory");
    (void)snprintf(path, sizeof path, "%s/bin/guest", layer_dir);
    autofd to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    while ((got = read(from, data, sizeof data)) > 0)
        CHECK(fd_write_all(to, data, (size_t)got) == 0);
    CHECK(got == 0);
}

static void make_layer(void)
{
    static const char *const dirs[] = {"", "/bin", "/etc", "/home", "/home/kim", "/root"};
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s%s", layer_dir, dirs[i]);
        CHECK(mkdir(path, 0755) == 0);
        CHECK(i != 4 || chown(path, 1000, 1000) == 0);
    }
    copy_guest();
    write_text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                             "kim:x:1000:1000:Kim:/home/kim:/bin/sh\n");
    write_text("etc/group", "root:x:0:\ntty:x:5:\naudio:x:29:kim\nkim:x:1000:\n");
    write_text("etc/text", "not a program\n");
}

static void make_data_dir(void)
{
    char base[PATH_MAX];
    const char *wanted = getenv("TMPDIR");
    CHECK(realpath(wanted ? wanted : "/var/tmp", base) != NULL);
    (void)snprintf(data_dir, sizeof data_dir, "%.80s/burrow-test-%d", base, (int)getpid());
    (void)snprintf(layer_dir, sizeof layer_dir, "%s/layer", data_dir);
    CHECK(mkdir(data_dir, 0755) == 0);
    make_layer();
}

/* Kills and reaps what is still ours: PID 1s whose owners died come to us as well. */
static void kill_children(void)
{
    char path[64];
    char text[4096];
    struct error err;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (fd_read_knob(AT_FDCWD, path, text, sizeof text, &err) == 0) {
        for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
            (void)kill(atoi(at), SIGKILL);
    }
    while (waitpid(-1, NULL, __WALL) > 0)
        ;
}

static void end_boxes(void)
{
    struct error err = {0};
    for (unsigned i = 0; i < MAX_BOXES; i++) {
        if (boxes[i] && box_end(boxes[i], &err) < 0)
            printf("# left behind: %s\n", err.text);
        box_free(take(boxes[i]));
    }
}

static bool owns_nothing(const char *name, void *data)
{
    return false;
}

/* After a test, however it ended. */
static void clean_up(void)
{
    struct error err = {0};
    if (!engine)
        return;
    end_boxes();
    if (cgroup_sweep(engine->cgroups, owns_nothing, NULL, &err) < 0)
        printf("# left behind: %s\n", err.text);
    kill_children();
    if (engine_sweep(engine, &err) < 0)
        printf("# left behind: %s\n", err.text);
    engine = NULL;
    for (unsigned i = 0; i < MAX_ENGINES; i++)
        engine_free(take(engines[i]));
    forget_outputs();
}

static void remove_run(const char *name)
{
    char path[128];
    struct error err = {0};
    (void)snprintf(path, sizeof path, "/run/burrow/%s", name);
    if (fd_remove_tree(AT_FDCWD, path, &err) < 0)
        printf("# left behind: %s\n", err.text);
}

static void remove_groups(const char *name)
{
    struct error err = {0};
    for (enum cgroup_mode mode = 0; mode < MODES; mode++) {
        autoptr(cgroup_root) root = NULL;
        if (cgroup_root_open_as(name, mode, &root, &err) == 0 && cgroup_root_remove(root, &err) < 0)
            printf("# left behind: %s\n", err.text);
    }
}

/* The kernel lets go of mount namespaces a moment after their last process. */
static void detach(const char *dir)
{
    struct error err = {0};
    for (int tries = 0; volume_detach(dir, &err) < 0; tries++) {
        if (tries == 200) {
            printf("# left behind: %s\n", err.text);
            return;
        }
        nap();
    }
}

/* After the last test: volumes, groups and data directories go. */
static void remove_everything(void)
{
    struct error err = {0};
    clean_up();
    for (unsigned i = MAX_ENGINES; i > 0; i--) { // one may be inside of the first
        struct place *place = &places[i - 1];
        if (!*place->name)
            continue;
        if (gateway_remove(place->dir, &err) < 0)
            printf("# left behind: %s\n", err.text);
        remove_groups(place->name);
        detach(place->dir);
        remove_run(place->name);
    }
    if (*data_dir && fd_remove_tree(AT_FDCWD, data_dir, &err) < 0)
        printf("# left behind: %s\n", err.text);
}

static void at_exit(void)
{
    if (tester != getpid() || !*data_dir)
        return;
    remove_everything();
    *data_dir = '\0';
}

static void on_terminated(int signal)
{
    exit(128 + signal);
}

static void prepare(void)
{
    if (geteuid() != 0)
        SKIP("boxes need root");
    if (!tester) {
        tester = getpid();
        (void)atexit(at_exit);
        (void)signal(SIGTERM, on_terminated);
        (void)signal(SIGINT, on_terminated);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    clean_up();
    if (!*data_dir)
        make_data_dir();
}

/* The first network is made beside everything else; here its maker is waited for, so that fds can be counted. */
static void await_network(const struct engine *opened)
{
    siginfo_t info;
    if (opened->first_network)
        CHECK(waitid(P_PID, (id_t)opened->first_network->child, &info,
                     WEXITED | WNOWAIT | __WALL) == 0);
}

static void note_groups(const struct cgroup_root *root)
{
    for (unsigned i = 0; i < root->n_trees; i++) {
        unsigned at = 0;
        while (groups[at] && strcmp(groups[at], root->trees[i].path) != 0)
            CHECK(++at < MAX_GROUPS);
        if (!groups[at])
            groups[at] = xstrdup(root->trees[i].path);
    }
}

static void note_place(const char *dir, const char *name)
{
    unsigned at = 0;
    while (*places[at].name && strcmp(places[at].name, name) != 0)
        CHECK(++at < MAX_ENGINES);
    (void)snprintf(places[at].dir, sizeof places[at].dir, "%s", dir);
    (void)snprintf(places[at].name, sizeof places[at].name, "%s", name);
}

struct engine *open_engine(const struct engine_options *more)
{
    struct engine_options options = more ? *more : (struct engine_options){0};
    struct engine *opened = NULL;
    struct error err = {0};

    if (!options.data_dir)
        options.data_dir = data_dir;
    options.volume.size_bytes = 2ull << 30;
    if (options.cgroup_mode)
        need_cgroup_mode(*options.cgroup_mode);
    CHECK_OK(engine_open(&options, &opened, &err), err);
    note_place(options.data_dir, opened->name);
    unsigned place = 0;
    while (engines[place])
        CHECK(++place < MAX_ENGINES);
    engines[place] = opened;
    note_groups(opened->cgroups);
    await_network(opened);
    return opened;
}

void close_engine(struct engine *other)
{
    for (unsigned i = 0; i < MAX_ENGINES; i++) {
        if (engines[i] == other)
            engines[i] = NULL;
    }
    engine_free(other);
}

void begin_box_test(const enum cgroup_mode *mode)
{
    prepare();
    engine = open_engine(&(struct engine_options){.cgroup_mode = mode});
}

void end_box_test(void)
{
    clean_up();
}

void check_nothing_is_left(void)
{
    char dir[sizeof data_dir];
    if (!*data_dir)
        SKIP("nothing was made");
    (void)strcpy(dir, data_dir);
    remove_everything();
    *data_dir = '\0';
    autofree char *left = find_leftovers(dir, places[0].name, groups);
    CHECK_STR(left, "");
}

struct box_spec plain_spec(void)
{
    static const char *const layers[] = {layer_dir};
    return (struct box_spec){.layers = layers, .n_layers = 1, .hold_fd = -1};
}

struct box *own(struct box *box)
{
    for (unsigned i = 0; i < MAX_BOXES; i++) {
        if (!boxes[i])
            return boxes[i] = box;
    }
    test_fail(__FILE__, __LINE__, "more than %d boxes", MAX_BOXES);
}

void disown(const struct box *box)
{
    for (unsigned i = 0; i < MAX_BOXES; i++) {
        if (boxes[i] == box)
            boxes[i] = NULL;
    }
}

struct box *launch(const struct box_spec *spec)
{
    struct box *box = NULL;
    struct error err = {0};
    CHECK_OK(box_launch(engine, spec, &box, &err), err);
    return own(box);
}

struct box *launch_plain(void)
{
    struct box_spec spec = plain_spec();
    return launch(&spec);
}

void end(struct box *box)
{
    struct error err = {0};
    disown(box);
    int result = box_end(box, &err);
    box_free(box);
    CHECK_OK(result, err);
}
