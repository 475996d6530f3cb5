/* SPDX-License-Identifier: Apache-2.0 */
/* The two boxes that are attacked, and what is run in them; see attack_range.h. */
#include "attack/attack_range.h"

#include "attack/attacker_blob.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define PLACE_PREFIX "attack-"
#define PATIENCE_MS 60000 // an attack takes milliseconds; a machine may be busy
#define SLICE_MS 100      // between looks whether to stop

// Small, so that using them up costs the machine little.
static const struct limits promised = {
    .memory_bytes = 64 << 20,
    .cpu_millicores = 1000,
    .disk_bytes = 32 << 20,
    .max_processes = 64,
};

bool range_is_stopped(const struct range *range)
{
    return range->is_stopped && range->is_stopped();
}

static int put_file(int dir_fd, const char *path, const void *bytes, size_t length, mode_t mode,
                    struct error *err)
{
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, bytes, length) < 0 || fchmod(fd, mode) < 0)
        return error_sys(err, "write '%s'", path);
    return 0;
}

/* Those of processes that are gone. */
static void remove_stale_places(int data_fd)
{
    int copy = openat(data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = copy < 0 ? NULL : fdopendir(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct error ignored = {0};
        if (strncmp(entry->d_name, PLACE_PREFIX, strlen(PLACE_PREFIX)) != 0)
            continue;
        pid_t pid = atoi(entry->d_name + strlen(PLACE_PREFIX));
        if (pid > 0 && (pid == getpid() || (kill(pid, 0) < 0 && errno == ESRCH)))
            (void)fd_remove_tree(data_fd, entry->d_name, &ignored); // the next one tries again
    }
}

static int make_place(struct range *range, struct error *err)
{
    char shared[4096];
    size_t length = (size_t)(burrow_attacker_end - burrow_attacker_start);
    autofd data_fd = open(range->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data_fd < 0)
        return error_sys(err, "open the data directory");
    remove_stale_places(data_fd);
    if (mkdir(range->place, 0755) < 0)
        return error_sys(err, "make '%s'", range->place);
    autofd fd = open(range->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || mkdirat(fd, "layer", 0755) < 0 || mkdirat(fd, "layer/burrow-attack", 0755) < 0 ||
        fchmodat(fd, "layer/burrow-attack", 0777, 0) < 0)
        return error_sys(err, "make a layer in '%s'", range->place);
    memset(shared, 'o', sizeof shared);
    if (put_file(fd, "canary", RANGE_CANARY, strlen(RANGE_CANARY), 0666, err) < 0 ||
        put_file(fd, "layer" RANGE_ATTACKER, burrow_attacker_start, length, 0755, err) < 0 ||
        put_file(fd, "layer" RANGE_SHARED, shared, sizeof shared, 0666, err) < 0)
        return -1;
    return put_file(fd, "layer" RANGE_LINKED, shared, sizeof shared, 0666, err);
}

static void set_spec(struct range *range, const struct range_options *options)
{
    const struct box_spec *spec = options->spec;
    char *layer = NULL;
    range->layers = xcalloc(spec->n_layers + 1, sizeof *range->layers);
    if (asprintf(&layer, "%s/layer", range->place) < 0)
        abort();
    range->layers[0] = layer;
    for (size_t i = 0; i < spec->n_layers; i++)
        range->layers[i + 1] = spec->layers[i];
    range->binds = xcalloc(spec->n_binds + 1, sizeof *range->binds);
    for (size_t i = 0; i < spec->n_binds; i++)
        range->binds[i] = spec->binds[i];
    range->limits = promised;
    range->spec = (struct box_spec){
        .layers = range->layers,
        .n_layers = spec->n_layers + 1,
        .binds = range->binds,
        .n_binds = spec->n_binds,
        .hold_fd = spec->hold_fd,
        .owner_loss = BOX_END,
        .max_files = RANGE_MAX_FILES,
    };
    if (!options->has_no_limits)
        range->spec.limits = promised;
}

static int launch(struct range *range, const char *name, struct box **out, struct error *err)
{
    struct box_spec spec = range->spec;
    spec.hostname = name;
    return box_launch(range->engine, &spec, out, err);
}

static int spawn(struct range *range, struct box *box, const char *user, const char *const *argv,
                 const char *const *env, int output_fd, uint32_t *out_id, struct error *err)
{
    struct process_spec spec = {.id = ++range->next_id,
                                .command.argv = argv,
                                .command.env = env,
                                .command.directory = "/tmp",
                                .command.user = user,
                                .stdin_fd = -1,
                                .stdout_fd = output_fd,
                                .stderr_fd = output_fd};
    *out_id = spec.id;
    return box_spawn(box, &spec, NULL, err);
}

static int start_neighbour(struct range *range, struct error *err)
{
    static const char *const argv[] = {RANGE_ATTACKER, "wait", RANGE_SECRET, NULL};
    static const char *const env[] = {"SECRET=" RANGE_SECRET, NULL};
    return spawn(range, range->b, NULL, argv, env, -1, &range->neighbour, err);
}

static bool is_alive(struct box *box, uint32_t id)
{
    struct process_exit exit;
    struct error err = {0};
    return box_wait(box, id, 0, &exit, &err) < 0 && error_is(&err, ERROR_TIMEOUT);
}

static bool serves(struct range *range, struct box *box, struct error *err)
{
    static const char *const argv[] = {RANGE_ATTACKER, "hello", NULL};
    struct range_outcome outcome;
    return range_finish(range, box, NULL, argv, &outcome, err) == 0 && outcome.exit.code == 0 &&
           strcmp(outcome.output, "hello\n") == 0;
}

static int mend_box(struct range *range, struct box **box, const char *name, struct error *err)
{
    struct error ignored = {0};
    if (*box && serves(range, *box, &ignored))
        return 0;
    if (*box)
        (void)box_end(*box, &ignored); // it may be gone already
    box_free(*box);
    *box = NULL;
    return launch(range, name, box, err);
}

int range_mend(struct range *range, struct error *err)
{
    struct box *before = range->b;
    if (mend_box(range, &range->a, "attack-a", err) < 0 ||
        mend_box(range, &range->b, "attack-b", err) < 0)
        return -1;
    if (before == range->b && is_alive(range->b, range->neighbour))
        return 0;
    return start_neighbour(range, err);
}

int range_open(struct engine *engine, const struct range_options *options, struct range **out,
               struct error *err)
{
    autoptr(range) range = xnew(struct range);
    range->engine = engine;
    range->is_stopped = options->is_stopped;
    range->data_dir = realpath(options->data_dir, NULL);
    if (!range->data_dir)
        return error_sys(err, "find the data directory '%s'", options->data_dir);
    if (asprintf(&range->place, "%s/" PLACE_PREFIX "%d", range->data_dir, (int)getpid()) < 0 ||
        asprintf(&range->canary, "%s/canary", range->place) < 0)
        abort();
    set_spec(range, options);
    if (make_place(range, err) < 0)
        return -1;
    if (launch(range, "attack-a", &range->a, err) < 0 ||
        launch(range, "attack-b", &range->b, err) < 0 || start_neighbour(range, err) < 0)
        return -1;
    *out = take(range);
    return 0;
}

void range_free(struct range *range)
{
    struct error ignored = {0};
    if (!range)
        return;
    if (range->a)
        (void)box_end(range->a, &ignored); // what is left of it is for engine_sweep
    if (range->b)
        (void)box_end(range->b, &ignored);
    box_free(range->a);
    box_free(range->b);
    if (range->place)
        (void)fd_remove_tree(AT_FDCWD, range->place, &ignored);
    if (range->layers)
        free((void *)range->layers[0]);
    free(range->layers);
    free(range->binds);
    free(range->data_dir);
    free(range->place);
    free(range->canary);
    free(range);
}

/* Reads until `until` comes, nobody can write any more or there is no room; -1 when it takes too long or is stopped. */
static int gather(struct range *range, int fd, char *text, size_t size, char until,
                  struct error *err)
{
    size_t used = 0;
    uint64_t deadline_ms = clock_monotonic_ms() + PATIENCE_MS;
    text[0] = '\0';
    while (used + 1 < size && (!until || !strchr(text, until))) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (range_is_stopped(range))
            return error_set(err, ERROR_CANCELLED, "stopped");
        if (clock_monotonic_ms() > deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "the attacker took more than %d s",
                             PATIENCE_MS / 1000);
        if (poll(&ready, 1, SLICE_MS) <= 0)
            continue;
        ssize_t got = read(fd, text + used, size - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
        text[used] = '\0';
    }
    return 0;
}

static int spawn_reading(struct range *range, struct box *box, const char *user,
                         const char *const *argv, uint32_t *out_id, int *out_fd, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd reader = ends[0];
    autofd writer = ends[1];
    if (spawn(range, box, user, argv, NULL, writer, out_id, err) < 0)
        return -1;
    *out_fd = take_fd(reader);
    return 0;
}

static int end_process(struct box *box, uint32_t id, struct process_exit *exit, struct error *err)
{
    if (box_signal(box, id, SIGKILL, true, err) < 0)
        return -1;
    return box_wait(box, id, PATIENCE_MS, exit, err);
}

int range_finish(struct range *range, struct box *box, const char *user, const char *const *argv,
                 struct range_outcome *out, struct error *err)
{
    struct process_exit exit;
    struct error ignored = {0};
    uint32_t id = 0;
    autofd reader = -1;
    if (spawn_reading(range, box, user, argv, &id, &reader, err) < 0)
        return -1;
    if (gather(range, reader, out->output, sizeof out->output, '\0', err) < 0) {
        (void)end_process(box, id, &exit, &ignored);
        return -1;
    }
    return box_wait(box, id, PATIENCE_MS, &out->exit, err);
}

void range_attack(struct range *range, struct box *box, const char *user,
                  struct attack_result *result, const char *const *argv)
{
    struct range_outcome outcome;
    struct error err = {0};
    if (range_finish(range, box, user, argv, &outcome, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    else
        attack_judge_inside(result, &outcome.exit, outcome.output);
}

uint32_t range_start(struct range *range, struct box *box, const char *user,
                     struct attack_result *result, const char *const *argv, char *line, size_t size)
{
    struct process_exit exit;
    struct error err = {0};
    uint32_t id = 0;
    autofd reader = -1;
    if (spawn_reading(range, box, user, argv, &id, &reader, &err) == 0 &&
        gather(range, reader, line, size, '\n', &err) == 0 && strchr(line, '\n')) {
        *strchr(line, '\n') = '\0';
        return id;
    }
    attack_judge(result, ATTACK_UNTRIED, "%s",
                 err.text[0] ? err.text : "the attacker said nothing");
    if (id > 0)
        (void)end_process(box, id, &exit, &err);
    return 0;
}

void range_stop(struct range *range, struct box *box, uint32_t id, struct attack_result *result)
{
    struct process_exit exit;
    struct error err = {0};
    if (id > 0 && end_process(box, id, &exit, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "end the attacker: %s", err.text);
}

void range_check_neighbour(struct range *range, struct attack_result *result)
{
    struct error err = {0};
    if (range_is_stopped(range))
        return;
    if (!serves(range, range->b, &err))
        attack_judge(result, ATTACK_OPEN, "another sandbox does not start processes any more: %s",
                     err.text);
    else if (!is_alive(range->b, range->neighbour))
        attack_judge(result, ATTACK_OPEN, "a process of another sandbox was ended");
}

void range_check_others(struct range *range, struct attack_result *result)
{
    struct error err = {0};
    if (!range_is_stopped(range) && !serves(range, range->a, &err) && !range_is_stopped(range))
        attack_judge(result, ATTACK_OPEN, "PID 1 of the sandbox does not serve any more: %s",
                     err.text);
    range_check_neighbour(range, result);
}
