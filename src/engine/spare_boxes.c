/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes made ahead; see spare_boxes.h. */
#include "engine/spare_boxes.h"

#include "base/id.h"
#include "base/lock.h"
#include "base/mem.h"
#include "engine/files.h"
#include "engine/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define WARM_UP_ID UINT32_MAX
#define WARM_UP_MS 10000
#define MAX_PREFIX 32
#define FILE_TIMEOUT_MS 10000
#define LEAST_BYTES ((uint64_t)1 << 20) // of a box: not all that the kernel has for it is counted
#define GUESS_BYTES ((uint64_t)2 << 20)
#define LOOKS 3 // until a resident has grown

struct spare {
    struct box *box;  // NULL: none
    uint64_t bytes;   // of memory, when it was last measured
    unsigned looks;   // how often that was done since it was made
    bool is_measured; // in this round
};

struct spare_boxes {
    struct engine *engine;
    struct box_spec spec; // every pointer in it is ours
    unsigned count;
    char *scratch_prefix; // or NULL
    char **warm_up;
    char *directory; // of the warm-up
    uint32_t uid, gid;
    struct spare_resident resident; // its lists are ours; without argv: none
    struct lock lock;               // guards all below; held for memory work only
    struct spare *waiting;
    _Atomic uint64_t bytes;      // of all that wait; read without the lock
    _Atomic uint64_t last_bytes; // of the one that was made last; 0: none was
    _Atomic unsigned n_waiting;  // read without the lock
    unsigned n_coming;           // together `count` at most
};

static size_t count_list(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

static char **copy_list(const char *const *list, size_t count)
{
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(list[i]);
    return copy;
}

static void free_list(char **list)
{
    for (char **at = list; at && *at; at++)
        free(*at);
    free(list);
}

static struct box_bind *copy_binds(const struct box_bind *binds, size_t count)
{
    struct box_bind *copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = (struct box_bind){xstrdup(binds[i].host), xstrdup(binds[i].box)};
    return copy;
}

static void copy_spec(struct spare_boxes *spares, const struct box_spec *spec)
{
    spares->spec = *spec;
    spares->spec.layers = (const char *const *)copy_list(spec->layers, spec->n_layers);
    spares->spec.saved = (const char *const *)copy_list(spec->saved, spec->n_saved);
    spares->spec.binds = copy_binds(spec->binds, spec->n_binds);
    spares->spec.hostname = spec->hostname ? xstrdup(spec->hostname) : NULL;
    spares->spec.hold_fd = spec->hold_fd < 0 ? -1 : fcntl(spec->hold_fd, F_DUPFD_CLOEXEC, 3);
}

static void copy_resident(struct spare_boxes *spares, const struct spare_resident *resident)
{
    if (!resident)
        return;
    spares->resident = *resident;
    spares->resident.argv =
        (const char *const *)copy_list(resident->argv, count_list(resident->argv));
    spares->resident.env = (const char *const *)copy_list(resident->env, count_list(resident->env));
}

int spare_boxes_new(struct engine *engine, const struct spare_boxes_options *options,
                    struct spare_boxes **out, struct error *err)
{
    if (options->spec->scratch)
        return error_set(err, ERROR_INVALID,
                         "sandboxes made ahead cannot have a scratch of a name");
    if (options->scratch_prefix && strlen(options->scratch_prefix) > MAX_PREFIX)
        return error_set(err, ERROR_INVALID, "prefix '%.80s' of scratches is longer than %d",
                         options->scratch_prefix, MAX_PREFIX);
    struct spare_boxes *spares = xnew(struct spare_boxes);
    lock_init(&spares->lock, LOCK_ENGINE);
    spares->scratch_prefix = options->scratch_prefix ? xstrdup(options->scratch_prefix) : NULL;
    spares->engine = engine;
    spares->count = options->count;
    spares->waiting = xcalloc(options->count, sizeof *spares->waiting);
    copy_spec(spares, options->spec);
    if (count_list(options->warm_up) > 0)
        spares->warm_up = copy_list(options->warm_up, count_list(options->warm_up));
    copy_resident(spares, options->resident);
    spares->directory = xstrdup(options->directory ? options->directory : "/");
    spares->uid = options->uid;
    spares->gid = options->gid;
    *out = spares;
    return 0;
}

/* The warm-up has made it, as root. */
static int give_directory(struct spare_boxes *spares, struct box *box, struct error *err)
{
    autofd conversation = -1;

    if (!spares->uid && !spares->gid)
        return 0;
    if (box_files(box, NULL, "/", &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    return files_chown(conversation, spares->directory, spares->uid, spares->gid, 0, err);
}

static int warm_up(struct spare_boxes *spares, struct box *box, struct error *err)
{
    const char *const no_env[] = {NULL};
    struct process_spec process = {
        .id = WARM_UP_ID,
        .command.argv = (const char *const *)spares->warm_up,
        .command.env = no_env,
        .command.directory = spares->directory,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
        .command.timeout_ms = WARM_UP_MS,
    };
    struct process_exit exit;

    if (!spares->warm_up)
        return 0;
    if (box_spawn(box, &process, NULL, err) < 0 ||
        box_wait(box, WARM_UP_ID, WARM_UP_MS, &exit, err) < 0)
        return error_wrap(err, "warm up a sandbox");
    if (give_directory(spares, box, err) < 0)
        return error_wrap(err, "make the directory of a sandbox");
    return spares->spec.is_one_shot ? box_collect(box, WARM_UP_ID, err) : 0;
}

/* The read end of a pipe with all of it; -1: it does not fit. */
static int pipe_with(const char *text, size_t length)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    autofd from = ends[0];
    autofd to = ends[1];
    if (write(to, text, length) != (ssize_t)length || fcntl(from, F_SETFL, 0) < 0)
        return -1;
    return take_fd(from);
}

/* Without it the box is as good as others. */
static void start_resident(struct spare_boxes *spares, struct box *box)
{
    const struct spare_resident *resident = &spares->resident;
    struct error ignored = {0};

    if (!resident->argv)
        return;
    autofd input = pipe_with(resident->input, resident->input_length);
    struct process_spec process = {
        .id = SPARE_RESIDENT,
        .command = {.argv = resident->argv, .env = resident->env, .directory = "/"},
        .output = OUTPUT_SPOOL,
        .stdin_fd = input,
        .stdout_fd = -1,
        .stderr_fd = -1,
    };
    box->has_resident = input >= 0 && box_spawn(box, &process, NULL, &ignored) == 0;
}

static void throw_away(struct spare_boxes *spares, struct box *box)
{
    struct error ignored = {0};
    (void)box_end(box, &ignored); // swept later
    if (spares->scratch_prefix)
        (void)volume_scratch_remove(engine_volume(spares->engine), box_scratch(box), &ignored);
    box_free(box);
}

static uint64_t measure(struct box *box)
{
    struct cgroup_usage usage = {0};
    struct error ignored = {0};

    (void)box_usage(box, &usage, &ignored); // no group, no figure
    return usage.memory_bytes > LEAST_BYTES ? usage.memory_bytes : LEAST_BYTES;
}

static int make_one(struct spare_boxes *spares, bool is_hurried, struct spare *out,
                    struct error *err)
{
    struct box_spec spec = spares->spec;
    char id[ID_TEXT];
    char scratch[MAX_PREFIX + 1 + ID_TEXT];
    struct box *box = NULL;

    if (spares->scratch_prefix) {
        (void)snprintf(scratch, sizeof scratch, "%s-%s", spares->scratch_prefix, id_make(id));
        spec.scratch = scratch;
    }
    if (box_launch(spares->engine, &spec, &box, err) < 0)
        return -1;
    if (!is_hurried && warm_up(spares, box, err) < 0) {
        throw_away(spares, box);
        return -1;
    }
    if (!is_hurried)
        start_resident(spares, box);
    box_settle(box);
    *out = (struct spare){.box = box, .bytes = measure(box)};
    return 0;
}

/* Takes a place for one that is coming; false when there is none. */
static bool take_place(struct spare_boxes *spares)
{
    autolock(&spares->lock);
    bool has_place = spares->n_waiting + spares->n_coming < spares->count;
    spares->n_coming += has_place;
    return has_place;
}

/* Puts the one that came into its place, where it came. */
static void fill_place(struct spare_boxes *spares, const struct spare *spare)
{
    autolock(&spares->lock);
    spares->n_coming--;
    if (!spare->box)
        return;
    spares->waiting[spares->n_waiting++] = *spare;
    spares->bytes += spare->bytes;
    spares->last_bytes = spare->bytes;
}

int spare_boxes_fill(struct spare_boxes *spares, unsigned at_most, bool is_hurried, unsigned *made,
                     struct error *err)
{
    unsigned count = 0;
    int result = 0;

    while (result == 0 && count < at_most && take_place(spares)) {
        struct spare spare = {0};
        result = make_one(spares, is_hurried, &spare, err);
        fill_place(spares, &spare);
        count += spare.box != NULL;
    }
    *made = count;
    return result;
}

static struct box *take_waiting(struct spare_boxes *spares)
{
    autolock(&spares->lock);
    if (spares->n_waiting == 0)
        return NULL;
    const struct spare *spare = &spares->waiting[--spares->n_waiting];
    spares->bytes -= spare->bytes;
    return spare->box;
}

/* PID 1 holds the other end of its socket until it ends. */
static bool is_alive(const struct box *box)
{
    struct pollfd end = {.fd = box_event_fd(box)};
    return poll(&end, 1, 0) == 0;
}

/* One that cannot be limited so is not tried with the others: they are all of a kind. */
struct box *spare_boxes_take(struct spare_boxes *spares, const struct limits *limits)
{
    struct error ignored = {0};
    struct box *box = NULL;

    while ((box = take_waiting(spares))) {
        bool is_well = is_alive(box);
        if (is_well && (limits_equal(limits, &spares->spec.limits) ||
                        box_set_limits(box, limits, &ignored) == 0))
            return box;
        throw_away(spares, box);
        if (is_well)
            break;
    }
    return NULL;
}

unsigned spare_boxes_count(struct spare_boxes *spares)
{
    return spares->n_waiting;
}

uint64_t spare_boxes_bytes(struct spare_boxes *spares)
{
    return spares->bytes;
}

uint64_t spare_boxes_next_bytes(struct spare_boxes *spares)
{
    uint64_t last = spares->last_bytes;
    return last ? last : GUESS_BYTES;
}

/* One that is to be measured again, out of its place: nobody takes it meanwhile. */
static bool take_to_measure(struct spare_boxes *spares, struct spare *out)
{
    autolock(&spares->lock);
    for (unsigned i = 0; i < spares->n_waiting; i++) {
        if (!spares->waiting[i].box->has_resident || spares->waiting[i].looks >= LOOKS ||
            spares->waiting[i].is_measured)
            continue;
        *out = spares->waiting[i];
        spares->waiting[i] = spares->waiting[--spares->n_waiting];
        spares->bytes -= out->bytes;
        spares->n_coming++;
        return true;
    }
    return false;
}

void spare_boxes_measure(struct spare_boxes *spares)
{
    struct spare spare;

    while (take_to_measure(spares, &spare)) {
        spare.bytes = measure(spare.box);
        spare.looks++;
        spare.is_measured = true;
        fill_place(spares, &spare);
    }
    autolock(&spares->lock);
    for (unsigned i = 0; i < spares->n_waiting; i++)
        spares->waiting[i].is_measured = false;
}

bool spare_boxes_drop(struct spare_boxes *spares)
{
    struct box *box = take_waiting(spares);
    if (box)
        throw_away(spares, box);
    return box != NULL;
}

void spare_boxes_free(struct spare_boxes *spares)
{
    if (!spares)
        return;
    while (spare_boxes_drop(spares))
        ;
    lock_clear(&spares->lock);
    free(spares->waiting);
    free(spares->scratch_prefix);
    free_list((char **)spares->spec.layers);
    free_list((char **)spares->spec.saved);
    for (size_t i = 0; i < spares->spec.n_binds; i++) {
        free((char *)spares->spec.binds[i].host);
        free((char *)spares->spec.binds[i].box);
    }
    free((void *)spares->spec.binds);
    free((char *)spares->spec.hostname);
    closep(&spares->spec.hold_fd);
    free_list(spares->warm_up);
    free_list((char **)spares->resident.argv);
    free_list((char **)spares->resident.env);
    free(spares->directory);
    free(spares);
}
