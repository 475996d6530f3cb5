/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes made ahead; see park.h. */
#include "engine/park.h"

#include "base/mem.h"
#include "engine/launch.h"

#include <fcntl.h>
#include <string.h>

#define WARM_UP_ID UINT32_MAX
#define WARM_UP_MS 10000

struct park {
    struct engine *engine;
    struct box_spec spec; // every pointer in it is ours
    unsigned count;
    char **warm_up;
    struct box **waiting;
    unsigned n_waiting;
};

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

static void copy_spec(struct park *park, const struct box_spec *spec)
{
    park->spec = *spec;
    park->spec.layers = (const char *const *)copy_list(spec->layers, spec->n_layers);
    park->spec.binds = copy_binds(spec->binds, spec->n_binds);
    park->spec.hostname = spec->hostname ? xstrdup(spec->hostname) : NULL;
    park->spec.hold_fd = spec->hold_fd < 0 ? -1 : fcntl(spec->hold_fd, F_DUPFD_CLOEXEC, 3);
}

int park_new(struct engine *engine, const struct park_options *options, struct park **out,
             struct error *err)
{
    size_t n_warm_up = 0;

    if (options->spec->scratch)
        return error_set(err, ERROR_INVALID, "boxes made ahead cannot have a scratch of a name");
    struct park *park = xnew(struct park);
    park->engine = engine;
    park->count = options->count;
    park->waiting = xcalloc(options->count, sizeof *park->waiting);
    copy_spec(park, options->spec);
    while (options->warm_up && options->warm_up[n_warm_up])
        n_warm_up++;
    if (n_warm_up > 0)
        park->warm_up = copy_list(options->warm_up, n_warm_up);
    *out = park;
    return 0;
}

static int warm_up(struct park *park, struct box *box, struct error *err)
{
    const char *const no_env[] = {NULL};
    struct process_spec process = {
        .id = WARM_UP_ID,
        .argv = (const char *const *)park->warm_up,
        .env = no_env,
        .cwd = "/",
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
        .timeout_ms = WARM_UP_MS,
    };
    struct process_exit exit;

    if (!park->warm_up)
        return 0;
    if (box_spawn(box, &process, NULL, err) < 0 ||
        box_wait(box, WARM_UP_ID, WARM_UP_MS, &exit, err) < 0)
        return error_wrap(err, "warm up a box");
    return park->spec.is_one_shot ? box_collect(box, WARM_UP_ID, err) : 0;
}

int park_fill(struct park *park, unsigned at_most, unsigned *made, struct error *err)
{
    *made = 0;
    while (park->n_waiting < park->count && *made < at_most) {
        struct box *box = NULL;
        if (box_launch(park->engine, &park->spec, &box, err) < 0)
            return -1;
        if (warm_up(park, box, err) < 0) {
            struct error ignored = {0};
            (void)box_end(box, &ignored);
            box_free(box);
            return -1;
        }
        box_close_spent(box);
        park->waiting[park->n_waiting++] = box;
        (*made)++;
    }
    return 0;
}

static bool has_limits(const struct park *park, const struct cgroup_limits *limits,
                       const struct volume_limits *disk)
{
    const struct cgroup_limits *have = &park->spec.limits;
    return limits->memory_bytes == have->memory_bytes && limits->cpu_milli == have->cpu_milli &&
           limits->max_procs == have->max_procs && disk->bytes == park->spec.disk.bytes &&
           disk->inodes == park->spec.disk.inodes;
}

static void throw_away(struct box *box)
{
    struct error ignored = {0};
    (void)box_end(box, &ignored); // swept later
    box_free(box);
}

struct box *park_take(struct park *park, const struct cgroup_limits *limits,
                      const struct volume_limits *disk)
{
    struct error ignored = {0};

    while (park->n_waiting > 0) {
        struct box *box = park->waiting[--park->n_waiting];
        if (has_limits(park, limits, disk) || box_set_limits(box, limits, disk, &ignored) == 0)
            return box;
        throw_away(box);
    }
    return NULL;
}

unsigned park_waiting(const struct park *park)
{
    return park->n_waiting;
}

void park_free(struct park *park)
{
    if (!park)
        return;
    while (park->n_waiting > 0)
        throw_away(park->waiting[--park->n_waiting]);
    free(park->waiting);
    free_list((char **)park->spec.layers);
    for (size_t i = 0; i < park->spec.n_binds; i++) {
        free((char *)park->spec.binds[i].host);
        free((char *)park->spec.binds[i].box);
    }
    free((void *)park->spec.binds);
    free((char *)park->spec.hostname);
    closep(&park->spec.hold_fd);
    free_list(park->warm_up);
    free(park);
}
