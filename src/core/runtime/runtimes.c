/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes opened once; see runtimes.h. */
#include "core/runtime/runtimes.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/runtime/catalog_cache.h"
#include "runtime/build.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#define REFERENCE_TEXT (2 * RUNTIME_NAME)
#define WATCH_MS 250  // how often whoever watches is asked whether it still does
#define LISTS_MOST 64 // lists of packages that are kept open

struct image {
    atomic_uint references;
    struct runtime_image *runtime;
};

// One runtime. A thread of the entry's own opens and builds it: the child processes of a build end with the thread that started
// them, and whoever asks first need not stay that long.
struct entry {
    struct runtimes *runtimes;
    char reference[REFERENCE_TEXT]; // name:tag
    char *additions;                // packed; NULL: none
    struct image *image;            // NULL: not opened yet
    bool is_opening;
    unsigned n_waiters;
    int64_t used_ms;      // on the wall clock: when somebody last asked
    bool is_logged;       // nobody waits for the failure
    unsigned attempts;    // that have ended
    struct error failure; // of the last one
    bool is_failure_told; // to somebody
    char phase[64];       // of the attempt under way; "": not known
    unsigned percent;
    unsigned n_phases; // how often that has changed
    struct entry *next;
};

struct runtimes {
    char *data_dir;
    char *default_runtime;   // NULL: none
    char *mirror, *registry; // NULL: the machine's and npm's own
    uint64_t image_timeout_ms;
    struct image_installer installer;
    int cancel_fd; // readable: give up building
    struct catalog_cache catalog;
    struct lock lock;             // guards all below, and the entries
    struct lock_condition opened; // an attempt has ended
    struct entry *entries;
    unsigned n_openers; // threads
    bool is_closing;
};

// ---- images ----

struct image *image_ref(struct image *image)
{
    atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
    return image;
}

void image_free(struct image *image)
{
    if (!image || atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) > 1)
        return;
    runtime_image_free(image->runtime);
    free(image);
}

const struct runtime_image *image_runtime(const struct image *image)
{
    return image->runtime;
}

static void entry_free(struct entry *entry)
{
    if (!entry)
        return;
    image_free(entry->image);
    free(entry->additions);
    free(entry);
}

// ---- opening, in the entry's thread ----

// A new phase is told to all who watch.
static void set_phase(struct entry *entry, const char *phase, unsigned percent)
{
    struct runtimes *runtimes = entry->runtimes;

    autolock(&runtimes->lock);
    entry->percent = percent;
    if (strcmp(entry->phase, phase) == 0)
        return;
    (void)snprintf(entry->phase, sizeof entry->phase, "%s", phase);
    entry->n_phases++;
    lock_condition_wake(&runtimes->opened);
}

static void on_build(void *data, const struct runtime_progress *progress)
{
    set_phase(data, progress->phase, progress->permille / 10);
}

static int on_install(void *data, const char *phase, unsigned percent)
{
    if (phase)
        set_phase(data, phase, percent);
    return 0;
}

static int build(struct entry *entry, struct error *err)
{
    const struct runtimes *runtimes = entry->runtimes;
    struct runtime_build_options options = {.data_dir = runtimes->data_dir,
                                            .mirror = runtimes->mirror,
                                            .registry = runtimes->registry,
                                            .image_timeout_ms = runtimes->image_timeout_ms,
                                            .cancel_fd = runtimes->cancel_fd,
                                            .on_progress = on_build,
                                            .data = entry};
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    autoptr(catalog) catalog = NULL;
    uint64_t since = clock_monotonic_ms();

    if (runtime_reference_parse(entry->reference, &parsed, err) < 0 ||
        runtimes_catalog(entry->runtimes, &catalog, err) < 0 ||
        catalog_find(catalog, &parsed, &definition, err) < 0)
        return -1;
    log_info("building runtime", F("runtime", (const char *)entry->reference));
    if (runtime_build(definition, &options, NULL, err) < 0)
        return -1;
    log_info("runtime built", F("runtime", (const char *)entry->reference),
             F("ms", clock_monotonic_ms() - since));
    return 0;
}

static int open_plain(struct entry *entry, struct runtime_image **out, struct error *err)
{
    const char *data_dir = entry->runtimes->data_dir;

    if (runtime_image_open(data_dir, entry->reference, out, err) == 0)
        return 0;
    if (!error_is(err, ERROR_NOT_BUILT))
        return -1;
    *err = (struct error){0};
    if (build(entry, err) < 0)
        return -1;
    return runtime_image_open(data_dir, entry->reference, out, err);
}

static int open_runtime(struct entry *entry, struct runtime_image **out, struct error *err)
{
    const struct runtimes *runtimes = entry->runtimes;
    const struct image_watch watch = {on_install, entry};
    autoptr(runtime_image) plain = NULL;

    if (!entry->additions)
        return open_plain(entry, out, err);
    if (!runtimes->installer.install)
        return error_set(err, ERROR_UNAVAILABLE, "packages cannot be installed here");
    if (open_plain(entry, &plain, err) < 0)
        return -1;
    return runtimes->installer.install(runtimes->installer.data, plain, entry->additions,
                                       runtimes->cancel_fd, &watch, out, err);
}

// Returns whether a failure is to be logged. *old is what `fresh` takes the place of.
static bool put_result(struct entry *entry, struct image *fresh, const struct error *failure,
                       struct image **old)
{
    struct runtimes *runtimes = entry->runtimes;

    autolock(&runtimes->lock);
    if (fresh) {
        *old = entry->image;
        entry->image = fresh;
    }
    entry->failure = *failure;
    entry->is_failure_told = false;
    entry->phase[0] = '\0';
    entry->attempts++;
    entry->is_opening = false;
    lock_condition_wake(&runtimes->opened);
    return !fresh && entry->is_logged && !runtimes->is_closing;
}

// From here on runtimes_free may have it.
static void leave(struct runtimes *runtimes)
{
    autolock(&runtimes->lock);
    runtimes->n_openers--;
    lock_condition_wake(&runtimes->opened);
}

static void *run_opener(void *data)
{
    struct entry *entry = data;
    struct runtimes *runtimes = entry->runtimes;
    struct runtime_image *runtime = NULL;
    struct image *fresh = NULL;
    autoptr(image) old = NULL;
    struct error err = {0};

    thread_set_name("runtime opener");
    if (open_runtime(entry, &runtime, &err) == 0) {
        fresh = xnew(struct image);
        fresh->runtime = runtime;
        atomic_init(&fresh->references, 1);
        err = (struct error){0};
    }
    if (put_result(entry, fresh, &err, &old))
        log_warn("runtime not ready", F("runtime", entry->reference), F("error", err.text));
    leave(runtimes);
    return NULL;
}

// Under the lock.
static int start_opener(struct entry *entry, struct error *err)
{
    pthread_t opener;

    if (entry->is_opening)
        return 0;
    int code = pthread_create(&opener, NULL, run_opener, entry);
    if (code)
        return error_sys_code(err, code, "start a thread");
    (void)pthread_detach(opener);
    entry->is_opening = true;
    entry->runtimes->n_openers++;
    return 0;
}

// ---- the table ----

int runtimes_open(const char *data_dir, const char *default_runtime, struct runtimes **out,
                  struct error *err)
{
    int cancel_fd = eventfd(0, EFD_CLOEXEC);

    if (cancel_fd < 0)
        return error_sys(err, "make an event file");
    struct runtimes *runtimes = xnew(struct runtimes);
    runtimes->data_dir = xstrdup(data_dir);
    runtimes->default_runtime = default_runtime ? xstrdup(default_runtime) : NULL;
    runtimes->cancel_fd = cancel_fd;
    catalog_cache_init(&runtimes->catalog);
    lock_init(&runtimes->lock, LOCK_RUNTIMES);
    lock_condition_init(&runtimes->opened);
    *out = runtimes;
    return 0;
}

void runtimes_set_places(struct runtimes *runtimes, const char *mirror, const char *registry,
                         uint64_t image_timeout_ms)
{
    runtimes->image_timeout_ms = image_timeout_ms;
    runtimes->mirror = mirror && *mirror ? xstrdup(mirror) : NULL;
    runtimes->registry = registry && *registry ? xstrdup(registry) : NULL;
}

void runtimes_set_installer(struct runtimes *runtimes, const struct image_installer *installer)
{
    runtimes->installer = *installer;
}

void runtimes_stop(struct runtimes *runtimes)
{
    autolock(&runtimes->lock);
    runtimes->is_closing = true;
    (void)eventfd_write(runtimes->cancel_fd, 1);
    while (runtimes->n_openers)
        (void)lock_condition_wait(&runtimes->opened, &runtimes->lock, 0);
}

void runtimes_free(struct runtimes *runtimes)
{
    if (!runtimes)
        return;
    runtimes_stop(runtimes);
    for (struct entry *entry = runtimes->entries, *next; entry; entry = next) {
        next = entry->next;
        entry_free(entry);
    }
    lock_condition_clear(&runtimes->opened);
    lock_clear(&runtimes->lock);
    catalog_cache_clear(&runtimes->catalog);
    (void)close(runtimes->cancel_fd);
    free(runtimes->default_runtime);
    free(runtimes->mirror);
    free(runtimes->registry);
    free(runtimes->data_dir);
    free(runtimes);
}

static bool is_same_list(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

// Under the lock. Callers name lists as they like: of many, the one that was asked for longest ago goes. The first is the one asked for last.
static void forget_oldest_list(struct runtimes *runtimes)
{
    struct entry **oldest = NULL;
    unsigned count = 0;

    for (struct entry **at = &runtimes->entries; *at; at = &(*at)->next) {
        if (!(*at)->additions)
            continue;
        count++;
        if (!(*at)->is_opening && !(*at)->n_waiters)
            oldest = at;
    }
    if (count < LISTS_MOST || !oldest)
        return;
    struct entry *entry = *oldest;
    *oldest = entry->next;
    entry_free(entry);
}

static struct entry *new_entry(struct runtimes *runtimes, const char *reference,
                               const char *additions)
{
    struct entry *entry = xnew(struct entry);

    entry->runtimes = runtimes;
    (void)snprintf(entry->reference, sizeof entry->reference, "%s", reference);
    entry->additions = additions ? xstrdup(additions) : NULL;
    return entry;
}

// Under the lock, and valid as long as that is held, or it is opening, or has waiters, or is of no packages.
static struct entry *find_entry(struct runtimes *runtimes, const char *reference,
                                const char *additions)
{
    struct entry **at = &runtimes->entries;

    while (*at &&
           (strcmp((*at)->reference, reference) != 0 || !is_same_list((*at)->additions, additions)))
        at = &(*at)->next;
    struct entry *entry = *at;
    if (entry) {
        *at = entry->next;
    } else {
        if (additions)
            forget_oldest_list(runtimes);
        entry = new_entry(runtimes, reference, additions);
    }
    entry->used_ms = (int64_t)clock_wall_ms();
    entry->next = runtimes->entries;
    runtimes->entries = entry;
    return entry;
}

static int spell(const char *reference, char out[REFERENCE_TEXT], struct error *err)
{
    struct runtime_reference parsed;
    autofree char *full = runtime_full_name(reference);

    if (runtime_reference_parse(reference, &parsed, err) < 0)
        return -1;
    (void)snprintf(out, REFERENCE_TEXT, "%s", full);
    return 0;
}

// A reference, or NULL.
static struct image *find_open(struct runtimes *runtimes, const char *reference,
                               const char *additions)
{
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, reference, additions);
    return entry->image ? image_ref(entry->image) : NULL;
}

// Looks without the lock: it is a few system calls. NULL when there is none, or it is not what its tag names any more.
static struct image *find_current(struct runtimes *runtimes, const char *reference,
                                  const char *additions)
{
    autoptr(image) image = find_open(runtimes, reference, additions);

    if (!image || !runtime_image_is_current(runtimes->data_dir, reference, image->runtime))
        return NULL;
    if (additions)
        (void)futimens(image->runtime->lock_fd, NULL); // used now
    return take(image);
}

// Under the lock, which is given back while the watcher is told. -1: it waits no longer.
static int tell_watcher(struct runtimes *runtimes, const struct entry *entry,
                        const struct image_watch *watch, unsigned *n_told)
{
    char phase[sizeof entry->phase];
    unsigned percent = entry->percent;
    bool is_new = entry->n_phases != *n_told && entry->phase[0];

    *n_told = entry->n_phases;
    memcpy(phase, entry->phase, sizeof phase);
    lock_release(&runtimes->lock);
    int result = watch->on_progress(watch->data, is_new ? phase : NULL, percent);
    (void)lock_take(&runtimes->lock);
    return result ? -1 : 0;
}

// Waits for an attempt that began after the call, or was under way.
static int wait_opened(struct runtimes *runtimes, const char *reference, const char *additions,
                       const struct image_watch *watch, struct image **out, struct error *err)
{
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, reference, additions);
    unsigned attempt = entry->attempts, n_told = 0;
    if (runtimes->is_closing)
        return error_set(err, ERROR_GONE, "the server is stopping");
    if (start_opener(entry, err) < 0)
        return -1;
    bool is_left = false; // nobody waits for it any more
    entry->n_waiters++;
    while (entry->attempts == attempt && !is_left) {
        uint64_t until_ms = watch ? clock_monotonic_ms() + WATCH_MS : 0;
        (void)lock_condition_wait(&runtimes->opened, &runtimes->lock, until_ms);
        is_left = watch && entry->attempts == attempt &&
                  tell_watcher(runtimes, entry, watch, &n_told) < 0;
    }
    entry->n_waiters--;
    if (is_left)
        return error_set(err, ERROR_CANCELLED, "nobody waits for it any more");
    if (!error_is(&entry->failure, ERROR_NONE)) {
        *err = entry->failure;
        entry->is_failure_told = true;
        return -1;
    }
    *out = image_ref(entry->image);
    return 0;
}

int image_get_with(struct runtimes *runtimes, const char *reference, const char *additions,
                   const struct image_watch *watch, struct image **out, struct error *err)
{
    char name[REFERENCE_TEXT];

    if (spell(reference, name, err) < 0)
        return -1;
    struct image *image = find_current(runtimes, name, additions);
    if (!image)
        return wait_opened(runtimes, name, additions, watch, out, err);
    *out = image;
    return 0;
}

int image_get(struct runtimes *runtimes, const char *reference, struct image **out,
              struct error *err)
{
    return image_get_with(runtimes, reference, NULL, NULL, out, err);
}

// One that is there has only to be opened; one of this machine's files is made in a moment.
bool runtimes_is_built(struct runtimes *runtimes, const char *reference)
{
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    autoptr(catalog) catalog = NULL;
    struct error ignored = {0};

    if (runtime_reference_parse(reference, &parsed, &ignored) < 0)
        return true; // opening it says why not
    autofree char *manifest =
        xasprintf("%s/runtimes/%s/%s/manifest", runtimes->data_dir, parsed.name, parsed.tag);
    if (access(manifest, F_OK) == 0)
        return true;
    return runtimes_catalog(runtimes, &catalog, &ignored) < 0 ||
           catalog_find(catalog, &parsed, &definition, &ignored) < 0 ||
           definition->kind == RUNTIME_HOST;
}

int image_begin(struct runtimes *runtimes, const char *reference, const char *additions,
                bool *is_ready, char state[IMAGE_STATE], struct error *err)
{
    char name[REFERENCE_TEXT];

    *is_ready = true;
    if (spell(reference, name, err) < 0)
        return -1;
    autoptr(image) image = find_current(runtimes, name, additions);
    if (image || (!additions && runtimes_is_built(runtimes, name)))
        return 0;
    *is_ready = false;
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, name, additions);
    if (runtimes->is_closing)
        return error_set(err, ERROR_GONE, "the server is stopping");
    if (!entry->is_opening && !error_is(&entry->failure, ERROR_NONE) && !entry->is_failure_told) {
        entry->is_failure_told = true;
        *err = entry->failure;
        return -1;
    }
    if (start_opener(entry, err) < 0)
        return -1;
    if (entry->phase[0])
        (void)snprintf(state, IMAGE_STATE, "%s, %u %%", entry->phase, entry->percent);
    else
        (void)snprintf(state, IMAGE_STATE, "begun just now");
    return 0;
}

// The first image that is to go; NULL: none is left.
static struct image *forget_one(struct runtimes *runtimes, const char *reference,
                                int64_t unused_since_ms)
{
    autolock(&runtimes->lock);
    for (struct entry *entry = runtimes->entries; entry; entry = entry->next)
        if (entry->image && (reference ? strcmp(entry->reference, reference) == 0
                                       : entry->additions && entry->used_ms <= unused_since_ms))
            return take(entry->image);
    return NULL;
}

void runtimes_forget(struct runtimes *runtimes, const char *reference)
{
    for (struct image *image; (image = forget_one(runtimes, reference, 0));)
        image_free(image);
}

// Of the images that are open: references.
static unsigned list_open(struct runtimes *runtimes, struct image ***out)
{
    unsigned count = 0;

    autolock(&runtimes->lock);
    for (struct entry *entry = runtimes->entries; entry; entry = entry->next)
        count += entry->image != NULL;
    *out = xcalloc(count + 1, sizeof **out);
    count = 0;
    for (struct entry *entry = runtimes->entries; entry; entry = entry->next)
        if (entry->image)
            (*out)[count++] = image_ref(entry->image);
    return count;
}

// Unless another was opened meanwhile.
static void forget_image(struct runtimes *runtimes, const struct image *image)
{
    struct image *forgotten = NULL;
    {
        autolock(&runtimes->lock);
        for (struct entry *entry = runtimes->entries; entry && !forgotten; entry = entry->next)
            if (entry->image == image)
                forgotten = take(entry->image);
    }
    image_free(forgotten);
}

void runtimes_forget_old(struct runtimes *runtimes)
{
    autofree struct image **open = NULL;
    unsigned count = list_open(runtimes, &open);

    for (unsigned i = 0; i < count; i++) {
        const struct runtime_image *runtime = open[i]->runtime;
        autofree char *reference = xasprintf("%s:%s", runtime->name, runtime->tag);
        if (!runtime_image_is_current(runtimes->data_dir, reference, runtime))
            forget_image(runtimes, open[i]);
        image_free(open[i]);
    }
}

bool runtimes_has(struct runtimes *runtimes, const struct image *image)
{
    autolock(&runtimes->lock);
    for (struct entry *entry = runtimes->entries; entry; entry = entry->next)
        if (entry->image == image)
            return true;
    return false;
}

void runtimes_forget_packages(struct runtimes *runtimes, int64_t unused_since_ms)
{
    for (struct image *image; (image = forget_one(runtimes, NULL, unused_since_ms));)
        image_free(image);
}

void runtimes_prefetch(struct runtimes *runtimes, const char *reference)
{
    char name[REFERENCE_TEXT];
    struct error err;

    if (spell(reference, name, &err) < 0) {
        log_warn("runtime not ready", F("runtime", reference), F("error", err.text));
        return;
    }
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, name, NULL);
    entry->is_logged = true;
    if (!entry->image && !runtimes->is_closing)
        (void)start_opener(entry, &err); // whoever asks next tries again
}

bool runtimes_is_ready(struct runtimes *runtimes, const char *reference)
{
    char name[REFERENCE_TEXT];
    struct error err;

    if (spell(reference, name, &err) < 0)
        return false;
    autolock(&runtimes->lock);
    return find_entry(runtimes, name, NULL)->image != NULL;
}

int runtimes_cancel_fd(const struct runtimes *runtimes)
{
    return runtimes->cancel_fd;
}

int runtimes_catalog(struct runtimes *runtimes, struct catalog **out, struct error *err)
{
    return catalog_cache_get(&runtimes->catalog, runtimes->data_dir, out, err);
}

const char *runtimes_data_dir(const struct runtimes *runtimes)
{
    return runtimes->data_dir;
}

const char *runtimes_default(const struct runtimes *runtimes)
{
    return runtimes->default_runtime;
}
