/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes opened once; see images.h. */
#include "core/runtime/images.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "runtime/build.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define REFERENCE_TEXT (2 * RUNTIME_NAME)

struct image {
    atomic_uint references;
    struct runtime_image *runtime;
};

// One runtime. Opening and building is done by a thread of the entry's, so that whoever asks first is not who pays for it
// by having to stay: its child processes end with the thread that started them.
struct entry {
    struct images *images;
    char reference[REFERENCE_TEXT]; // name:tag
    struct image *image;            // NULL: not opened yet
    bool is_opening;
    bool is_logged;       // nobody waits for the failure
    unsigned attempts;    // that have ended
    struct error failure; // of the last one
    struct entry *next;
};

struct images {
    char *data_dir;
    int cancel_fd;         // readable: give up building
    pthread_mutex_t lock;  // guards the entries
    pthread_cond_t opened; // an attempt has ended
    struct entry *entries;
    unsigned openers; // threads
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

static int build(const struct images *images, const char *reference, struct error *err)
{
    struct runtime_build_options options = {.data_dir = images->data_dir,
                                            .cancel_fd = images->cancel_fd};
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    autoptr(catalog) catalog = NULL;
    uint64_t since = clock_monotonic_ms();

    if (runtime_reference_parse(reference, &parsed, err) < 0 ||
        catalog_load(images->data_dir, NULL, &catalog, err) < 0 ||
        catalog_find(catalog, &parsed, &definition, err) < 0)
        return -1;
    log_info("building runtime", F("runtime", reference));
    if (runtime_build(definition, &options, NULL, err) < 0)
        return -1;
    log_info("runtime built", F("runtime", reference), F("ms", clock_monotonic_ms() - since));
    return 0;
}

static int open_runtime(const struct images *images, const char *reference,
                        struct runtime_image **out, struct error *err)
{
    if (runtime_image_open(images->data_dir, reference, out, err) == 0)
        return 0;
    if (err->kind != ERROR_UNAVAILABLE || !err->reason || strcmp(err->reason, "not built") != 0)
        return -1;
    *err = (struct error){0};
    if (build(images, reference, err) < 0)
        return -1;
    return runtime_image_open(images->data_dir, reference, out, err);
}

// Returns whether a failure is to be logged.
static bool put_result(struct entry *entry, struct image *fresh, const struct error *failure)
{
    struct images *images = entry->images;
    struct image *old = NULL;

    (void)pthread_mutex_lock(&images->lock);
    if (fresh) {
        old = entry->image;
        entry->image = fresh;
    }
    entry->failure = *failure;
    entry->attempts++;
    entry->is_opening = false;
    bool is_logged = !fresh && entry->is_logged && !images->is_closing;
    (void)pthread_cond_broadcast(&images->opened);
    (void)pthread_mutex_unlock(&images->lock);
    image_free(old);
    return is_logged;
}

static void *run_opener(void *data)
{
    struct entry *entry = data;
    struct images *images = entry->images;
    struct runtime_image *runtime = NULL;
    struct image *fresh = NULL;
    struct error err = {0};

    if (open_runtime(images, entry->reference, &runtime, &err) == 0) {
        fresh = xnew(struct image);
        fresh->runtime = runtime;
        atomic_init(&fresh->references, 1);
        err = (struct error){0};
    }
    if (put_result(entry, fresh, &err))
        log_warn("runtime not ready", F("runtime", entry->reference), F("error", err.text));
    (void)pthread_mutex_lock(&images->lock);
    images->openers--;
    (void)pthread_cond_broadcast(&images->opened);
    (void)pthread_mutex_unlock(&images->lock); // images_free may have it from here on
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
    entry->images->openers++;
    return 0;
}

// ---- the table ----

int images_open(const char *data_dir, struct images **out, struct error *err)
{
    int cancel_fd = eventfd(0, EFD_CLOEXEC);

    if (cancel_fd < 0)
        return error_sys(err, "make an event file");
    struct images *images = xnew(struct images);
    images->data_dir = xstrdup(data_dir);
    images->cancel_fd = cancel_fd;
    (void)pthread_mutex_init(&images->lock, NULL);
    (void)pthread_cond_init(&images->opened, NULL);
    *out = images;
    return 0;
}

void images_free(struct images *images)
{
    if (!images)
        return;
    (void)pthread_mutex_lock(&images->lock);
    images->is_closing = true;
    (void)eventfd_write(images->cancel_fd, 1);
    while (images->openers)
        (void)pthread_cond_wait(&images->opened, &images->lock);
    (void)pthread_mutex_unlock(&images->lock);
    for (struct entry *entry = images->entries, *next; entry; entry = next) {
        next = entry->next;
        image_free(entry->image);
        free(entry);
    }
    (void)pthread_cond_destroy(&images->opened);
    (void)pthread_mutex_destroy(&images->lock);
    (void)close(images->cancel_fd);
    free(images->data_dir);
    free(images);
}

// Under the lock.
static struct entry *find_entry(struct images *images, const char *reference)
{
    struct entry *entry = images->entries;

    while (entry && strcmp(entry->reference, reference) != 0)
        entry = entry->next;
    if (entry)
        return entry;
    entry = xnew(struct entry);
    entry->images = images;
    (void)snprintf(entry->reference, sizeof entry->reference, "%s", reference);
    entry->next = images->entries;
    images->entries = entry;
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

// Looks without the lock: it is a few system calls. NULL when there is none, or it is not what its tag names any more.
static struct image *find_current(struct images *images, const char *reference)
{
    (void)pthread_mutex_lock(&images->lock);
    struct entry *entry = find_entry(images, reference);
    autoptr(image) image = entry->image ? image_ref(entry->image) : NULL;
    (void)pthread_mutex_unlock(&images->lock);
    if (image && runtime_image_is_current(images->data_dir, reference, image->runtime))
        return take(image);
    return NULL;
}

// Waits for an attempt that began after the call, or was under way.
static int wait_opened(struct images *images, const char *reference, struct image **out,
                       struct error *err)
{
    int result = -1;

    (void)pthread_mutex_lock(&images->lock);
    struct entry *entry = find_entry(images, reference);
    unsigned attempt = entry->attempts;
    if (images->is_closing)
        error_set(err, ERROR_GONE, "the server is stopping");
    else if (start_opener(entry, err) == 0) {
        while (entry->attempts == attempt)
            (void)pthread_cond_wait(&images->opened, &images->lock);
        if (entry->failure.kind == ERROR_NONE) {
            *out = image_ref(entry->image);
            result = 0;
        } else {
            *err = entry->failure;
        }
    }
    (void)pthread_mutex_unlock(&images->lock);
    return result;
}

int image_get(struct images *images, const char *reference, struct image **out, struct error *err)
{
    char name[REFERENCE_TEXT];

    if (spell(reference, name, err) < 0)
        return -1;
    struct image *image = find_current(images, name);
    if (!image)
        return wait_opened(images, name, out, err);
    *out = image;
    return 0;
}

void images_prefetch(struct images *images, const char *reference)
{
    char name[REFERENCE_TEXT];
    struct error err;

    if (spell(reference, name, &err) < 0) {
        log_warn("runtime not ready", F("runtime", reference), F("error", err.text));
        return;
    }
    (void)pthread_mutex_lock(&images->lock);
    struct entry *entry = find_entry(images, name);
    entry->is_logged = true;
    if (!entry->image && !images->is_closing)
        (void)start_opener(entry, &err); // whoever asks next tries again
    (void)pthread_mutex_unlock(&images->lock);
}

bool images_is_ready(struct images *images, const char *reference)
{
    char name[REFERENCE_TEXT];
    struct error err;

    if (spell(reference, name, &err) < 0)
        return false;
    (void)pthread_mutex_lock(&images->lock);
    bool is_ready = find_entry(images, name)->image != NULL;
    (void)pthread_mutex_unlock(&images->lock);
    return is_ready;
}
