/* SPDX-License-Identifier: Apache-2.0 */
/* One engine, many threads: boxes, parks and networks are made, used and ended at the same time, and nothing is left. */
#include "base/auto.h"
#include "box_fixture.h"
#include "box_stock.h"
#include "engine/launch.h"
#include "engine/spare_boxes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 8
#define SOON_MS 120000 // for what a thread waits for

/* What a thread works on, and the first thing that went wrong in it: a failed CHECK belongs to the main thread. */
struct worker {
    pthread_t thread;
    unsigned number;
    unsigned rounds;
    struct engine *engine;
    struct spare_boxes *spares;
    _Atomic bool *is_over; // of those who work until others are done
    unsigned n_taken;
    char fault[300];
};

static bool went(struct worker *w, int result, const struct error *err, const char *what)
{
    if (result < 0 && !*w->fault)
        (void)snprintf(w->fault, sizeof w->fault, "%s: %.250s", what, err->text);
    return result >= 0;
}

static bool holds(struct worker *w, bool claim, const char *what)
{
    if (!claim && !*w->fault)
        (void)snprintf(w->fault, sizeof w->fault, "not so: %s", what);
    return claim;
}

/* Runs the guest's "echo WORD" and checks what came of it. */
static bool echo(struct worker *w, struct box *box, uint32_t id)
{
    static const char *const no_env[] = {NULL};
    char word[32];
    char got[64] = "";
    struct process_exit exit = {0};
    struct error err = {0};
    autofd spool = memfd_create("spool", MFD_CLOEXEC);

    (void)snprintf(word, sizeof word, "%u-%" PRIu32, w->number, id);
    const char *argv[] = {"guest", "echo", word, NULL};
    struct process_spec spec = {.id = id,
                                .command.argv = argv,
                                .command.env = no_env,
                                .output = OUTPUT_SPOOL,
                                .stdin_fd = -1,
                                .stdout_fd = spool,
                                .stderr_fd = -1};
    if (!went(w, box_spawn(box, &spec, NULL, &err), &err, "spawn") ||
        !went(w, box_wait(box, id, SOON_MS, &exit, &err), &err, "wait"))
        return false;
    (void)strcat(word, "\n");
    (void)!pread(spool, got, sizeof got - 1, 0);
    return holds(w, exit.code == 0 && strcmp(got, word) == 0, "a process says what it was told");
}

/* Each kind of box in turn. */
static struct box_spec spec_of(const struct worker *w, unsigned round, char name[32])
{
    struct box_spec spec = plain_spec();
    switch (round % 4) {
    case 0: // all threads need a view that is not there yet
        spec.is_one_shot = true;
        spec.limits.memory_bytes = (int64_t)(64 + round) << 20;
        break;
    case 1:
        spec.owner_loss = BOX_STAY;
        break;
    case 2:
        (void)snprintf(name, 32, "kept-%u-%u", w->number, round);
        spec.scratch = name;
        break;
    default:
        spec.limits.disk_bytes = 16 << 20;
        break;
    }
    return spec;
}

static void handle(struct worker *w, struct box *box, bool is_one_shot)
{
    struct limits limits = {.disk_bytes = 32 << 20, .max_processes = 50};
    struct cgroup_usage usage;
    uint64_t bytes = 0;
    struct error err = {0};

    if (!echo(w, box, 1) || is_one_shot)
        return;
    if (went(w, box_set_limits(box, &limits, &err), &err, "limit") &&
        went(w, box_freeze(box, &err), &err, "freeze") &&
        went(w, box_thaw(box, &err), &err, "thaw") &&
        went(w, box_usage(box, &usage, &err), &err, "measure") &&
        went(w, box_disk_usage(box, &bytes, &err), &err, "measure the disk"))
        (void)echo(w, box, 2);
}

static void end_in_thread(struct worker *w, struct box *box)
{
    struct error err = {0};
    (void)went(w, box_end(box, &err), &err, "end");
    box_free(box);
}

static void *launch_many(void *data)
{
    struct worker *w = data;
    for (unsigned round = 0; round < w->rounds && !*w->fault; round++) {
        char name[32] = "";
        struct error err = {0};
        struct box *box = NULL;
        struct box_spec spec = spec_of(w, round, name);
        if (!went(w, box_launch(w->engine, &spec, &box, &err), &err, "launch"))
            break;
        (void)holds(w, !*name || strcmp(box_scratch(box), name) == 0, "a scratch has its name");
        handle(w, box, spec.is_one_shot);
        end_in_thread(w, box);
        if (*name)
            (void)went(w, volume_scratch_remove(engine_volume(w->engine), name, &err), &err,
                       "remove a scratch");
    }
    return NULL;
}

static void *take_many(void *data)
{
    struct worker *w = data;
    struct limits limits = {.max_processes = 60};
    while (!*w->is_over && !*w->fault) {
        char name[80];
        struct error err = {0};
        struct box *box = spare_boxes_take(w->spares, &limits);
        if (!box) {
            nap();
            continue;
        }
        w->n_taken++;
        (void)snprintf(name, sizeof name, "%s", box_scratch(box));
        (void)holds(w, strncmp(name, "ahead-", 6) == 0, "a parked box's scratch has the prefix");
        (void)echo(w, box, 1);
        end_in_thread(w, box);
        (void)went(w, volume_scratch_remove(engine_volume(w->engine), name, &err), &err,
                   "remove a scratch");
    }
    return NULL;
}

/* What a server does beside its requests. */
static void *look_after(void *data)
{
    struct worker *w = data;
    while (!*w->is_over && !*w->fault) {
        struct error err = {0};
        unsigned made = 0;
        size_t count = 0;
        autofree unsigned *slots = NULL;
        (void)went(w, engine_fill_networks(w->engine, 8, &err), &err, "fill networks");
        (void)went(w, volume_fill_scratches(engine_volume(w->engine), 4, &err), &err,
                   "fill scratches");
        (void)went(w, spare_boxes_fill(w->spares, 2, false, &made, &err), &err, "fill a park");
        (void)holds(w, spare_boxes_count(w->spares) <= 3, "a park holds no more than its count");
        (void)went(w, engine_sweep(w->engine, &err), &err, "sweep");
        (void)went(w, engine_list_staying(w->engine, &slots, &count, &err), &err, "list");
        nap();
    }
    return NULL;
}

static void start_worker(struct worker *w, void *(*work)(void *))
{
    CHECK(pthread_create(&w->thread, NULL, work, w) == 0);
}

static void join_workers(const struct worker *workers, unsigned count, char fault[300])
{
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        if (*workers[i].fault)
            (void)snprintf(fault, 300, "%s", workers[i].fault);
    }
}

/* Two that look after everything, two that take from the park, and THREADS that launch. */
static void work_together(struct engine *shared, unsigned rounds, struct spare_boxes *spares,
                          char fault[300])
{
    struct worker launchers[THREADS];
    struct worker others[4];
    _Atomic bool is_over = false;

    for (unsigned i = 0; i < 4; i++) {
        others[i] = (struct worker){
            .number = 100 + i, .engine = shared, .spares = spares, .is_over = &is_over};
        start_worker(&others[i], i < 2 ? look_after : take_many);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        launchers[i] = (struct worker){.number = i, .rounds = rounds, .engine = shared};
        start_worker(&launchers[i], launch_many);
    }
    join_workers(launchers, THREADS, fault);
    is_over = true;
    join_workers(others, 4, fault);
    if (!*fault && others[2].n_taken + others[3].n_taken == 0)
        (void)strcpy(fault, "no box was taken from the park");
}

static struct spare_boxes *make_spares(struct engine *shared)
{
    static const char *const warm_up[] = {"/bin/guest", "exit", "0", NULL};
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {
        .spec = &spec, .count = 3, .warm_up = warm_up, .scratch_prefix = "ahead"};
    struct spare_boxes *spares = NULL;
    struct error err = {0};
    CHECK_OK(spare_boxes_new(shared, &options, &spares, &err), err);
    return spares;
}

static void test_engine(const struct engine_options *options, unsigned rounds)
{
    struct error err = {0};
    char before_dir[256];
    char after_dir[256];
    char fault[300] = "";
    struct engine *shared = open_engine(options);

    struct box_spec spec = plain_spec();
    struct box *first = NULL;
    CHECK_OK(box_launch(shared, &spec, &first, &err), err); // takes what waits for the first launch
    end(own(first));
    CHECK_OK(engine_open_run_dir(shared, &err), err);
    CHECK_OK(engine_fill_networks(shared, 8, &err), err);
    autofree char *before = take_stock(shared);
    CHECK(getcwd(before_dir, sizeof before_dir) != NULL);
    struct spare_boxes *spares = make_spares(shared);
    work_together(shared, rounds, spares, fault);
    spare_boxes_free(spares);
    CHECK_STR(fault, "");
    CHECK_OK(engine_fill_networks(shared, 8, &err), err);
    autofree char *after = take_stock(shared);
    CHECK_STR(after, before);
    CHECK(getcwd(after_dir, sizeof after_dir) != NULL);
    CHECK_STR(after_dir, before_dir);
    CHECK_INT(prctl(PR_GET_DUMPABLE), 1);
    close_engine(shared);
}

BOX_TEST(threads_share_an_engine_and_leave_nothing)
{
    test_engine(&(struct engine_options){.is_long_lived = true}, is_in_vm() ? 4 : 20);
}

BOX_TEST(threads_share_an_engine_that_prepared_nothing)
{
    test_engine(&(struct engine_options){0}, is_in_vm() ? 4 : 8);
}

BOX_TEST(threads_share_an_engine_without_a_volume)
{
    char dir[160];
    if (is_in_vm())
        SKIP("files in memory need Linux 6.3");
    (void)snprintf(dir, sizeof dir, "%s/memory", data_dir);
    test_engine(&(struct engine_options){.data_dir = dir,
                                         .is_long_lived = true,
                                         .volume = {.scheme = VOLUME_TMPFS}},
                8);
}

/* One box: threads start processes in it and measure it, while one reads the news. */

struct crowd {
    struct box *box;
    _Atomic uint32_t next;
};

struct member {
    struct worker worker;
    struct crowd *crowd;
};

static void *spawn_in_one(void *data)
{
    static const char *const no_env[] = {NULL};
    const char *argv[] = {"guest", "exit", "3", NULL};
    struct member *m = data;
    struct worker *w = &m->worker;

    for (unsigned i = 0; i < w->rounds && !*w->fault; i++) {
        struct error err = {0};
        struct cgroup_usage usage;
        struct process_spec spec = {.id = ++m->crowd->next,
                                    .command.argv = argv,
                                    .command.env = no_env,
                                    .stdin_fd = -1,
                                    .stdout_fd = -1,
                                    .stderr_fd = -1};
        (void)went(w, box_spawn(m->crowd->box, &spec, NULL, &err), &err, "spawn");
        (void)went(w, box_usage(m->crowd->box, &usage, &err), &err, "measure");
    }
    return NULL;
}

/* Reads until `count` have ended; what goes wrong is the reader's fault. */
static void read_ends(struct worker *w, struct box *box, unsigned count)
{
    for (unsigned seen = 0; seen < count && !*w->fault;) {
        struct error err = {0};
        struct box_event event = {0};
        if (!went(w, box_next(box, &event, SOON_MS, &err), &err, "read") ||
            !holds(w, event.kind == BOX_EVENT_EXIT, "only ends are told") ||
            !holds(w, event.exit.code == 3, "each process exits with 3") ||
            !went(w, box_collect(box, event.exit.id, &err), &err, "collect"))
            return;
        seen++;
    }
}

BOX_TEST(threads_start_processes_in_one_box_while_another_reads_their_ends)
{
    static struct crowd crowd;
    static struct member members[4];
    const unsigned rounds = is_in_vm() ? 5 : 25;
    struct worker reader = {0};

    crowd.box = launch_plain();
    crowd.next = 0;
    for (unsigned i = 0; i < 4; i++) {
        members[i] = (struct member){.worker = {.number = i, .rounds = rounds}, .crowd = &crowd};
        CHECK(pthread_create(&members[i].worker.thread, NULL, spawn_in_one, &members[i]) == 0);
    }
    read_ends(&reader, crowd.box, 4 * rounds);
    for (unsigned i = 0; i < 4; i++)
        (void)pthread_join(members[i].worker.thread, NULL);
    for (unsigned i = 0; i < 4; i++)
        CHECK_STR(members[i].worker.fault, "");
    CHECK_STR(reader.fault, "");
    end(crowd.box);
}

/* Launched by one thread, ended by another after that one is gone. */

static void *launch_and_leave(void *data)
{
    struct worker *w = data;
    struct error err = {0};
    struct box *box = NULL;
    struct box_spec spec = plain_spec();
    (void)went(w, box_launch(w->engine, &spec, &box, &err), &err, "launch");
    return box;
}

BOX_TEST(a_box_outlives_the_thread_that_launched_it)
{
    struct worker w = {.engine = engine};
    void *box = NULL;
    start_worker(&w, launch_and_leave);
    CHECK(pthread_join(w.thread, &box) == 0);
    CHECK_STR(w.fault, "");
    (void)own(box);
    run_well(box, "exit 0");
    end(box);
}

NOTHING_IS_LEFT_TEST
