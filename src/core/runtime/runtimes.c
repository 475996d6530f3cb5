/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes opened once; see runtimes.h. */
#include "core/runtime/runtimes.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "runtime/build.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define REFERENCE_TEXT (2 * RUNTIME_NAME)

struct image {
    atomic_uint references;
    struct runtime_image *runtime;
};

// One runtime. A thread of the entry's own opens and builds it: the child processes of a build end with the thread that started
// them, and whoever asks first need not stay that long.
struct entry {
    struct runtimes *runtimes;
    char reference[REFERENCE_TEXT]; // name:tag
    struct image *image;            // NULL: not opened yet
    bool is_opening;
    bool is_logged;       // nobody waits for the failure
    unsigned attempts;    // that have ended
    struct error failure; // of the last one
    struct entry *next;
};

struct runtimes {
    char *data_dir;
    char *default_runtime;        // NULL: none
    int cancel_fd;                // readable: give up building
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

// ---- opening, in the entry's thread ----

static int build(const struct runtimes *runtimes, const char *reference, struct error *err)
{
    struct runtime_build_options options = {.data_dir = runtimes->data_dir,
                                            .cancel_fd = runtimes->cancel_fd};
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    autoptr(catalog) catalog = NULL;
    uint64_t since = clock_monotonic_ms();

    if (runtime_reference_parse(reference, &parsed, err) < 0 ||
        catalog_load(runtimes->data_dir, NULL, &catalog, err) < 0 ||
        catalog_find(catalog, &parsed, &definition, err) < 0)
        return -1;
    log_info("building runtime", F("runtime", reference));
    if (runtime_build(definition, &options, NULL, err) < 0)
        return -1;
    log_info("runtime built", F("runtime", reference), F("ms", clock_monotonic_ms() - since));
    return 0;
}

static int open_runtime(const struct runtimes *runtimes, const char *reference,
                        struct runtime_image **out, struct error *err)
{
    if (runtime_image_open(runtimes->data_dir, reference, out, err) == 0)
        return 0;
    if (!error_is(err, ERROR_NOT_BUILT))
        return -1;
    *err = (struct error){0};
    if (build(runtimes, reference, err) < 0)
        return -1;
    return runtime_image_open(runtimes->data_dir, reference, out, err);
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
    if (open_runtime(runtimes, entry->reference, &runtime, &err) == 0) {
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
    lock_init(&runtimes->lock, LOCK_RUNTIMES);
    lock_condition_init(&runtimes->opened);
    *out = runtimes;
    return 0;
}

static void stop_openers(struct runtimes *runtimes)
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
    stop_openers(runtimes);
    for (struct entry *entry = runtimes->entries, *next; entry; entry = next) {
        next = entry->next;
        image_free(entry->image);
        free(entry);
    }
    lock_condition_clear(&runtimes->opened);
    lock_clear(&runtimes->lock);
    (void)close(runtimes->cancel_fd);
    free(runtimes->default_runtime);
    free(runtimes->data_dir);
    free(runtimes);
}

// Under the lock.
static struct entry *find_entry(struct runtimes *runtimes, const char *reference)
{
    struct entry *entry = runtimes->entries;

    while (entry && strcmp(entry->reference, reference) != 0)
        entry = entry->next;
    if (entry)
        return entry;
    entry = xnew(struct entry);
    entry->runtimes = runtimes;
    (void)snprintf(entry->reference, sizeof entry->reference, "%s", reference);
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
static struct image *find_open(struct runtimes *runtimes, const char *reference)
{
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, reference);
    return entry->image ? image_ref(entry->image) : NULL;
}

// Looks without the lock: it is a few system calls. NULL when there is none, or it is not what its tag names any more.
static struct image *find_current(struct runtimes *runtimes, const char *reference)
{
    autoptr(image) image = find_open(runtimes, reference);

    if (image && runtime_image_is_current(runtimes->data_dir, reference, image->runtime))
        return take(image);
    return NULL;
}

// Waits for an attempt that began after the call, or was under way.
static int wait_opened(struct runtimes *runtimes, const char *reference, struct image **out,
                       struct error *err)
{
    autolock(&runtimes->lock);
    struct entry *entry = find_entry(runtimes, reference);
    unsigned attempt = entry->attempts;
    if (runtimes->is_closing)
        return error_set(err, ERROR_GONE, "the server is stopping");
    if (start_opener(entry, err) < 0)
        return -1;
    while (entry->attempts == attempt)
        (void)lock_condition_wait(&runtimes->opened, &runtimes->lock, 0);
    if (!error_is(&entry->failure, ERROR_NONE)) {
        *err = entry->failure;
        return -1;
    }
    *out = image_ref(entry->image);
    return 0;
}

int image_get(struct runtimes *runtimes, const char *reference, struct image **out,
              struct error *err)
{
    char name[REFERENCE_TEXT];

    if (spell(reference, name, err) < 0)
        return -1;
    struct image *image = find_current(runtimes, name);
    if (!image)
        return wait_opened(runtimes, name, out, err);
    *out = image;
    return 0;
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
    struct entry *entry = find_entry(runtimes, name);
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
    return find_entry(runtimes, name)->image != NULL;
}

const char *runtimes_data_dir(const struct runtimes *runtimes)
{
    return runtimes->data_dir;
}

const char *runtimes_default(const struct runtimes *runtimes)
{
    return runtimes->default_runtime;
}
