/* SPDX-License-Identifier: Apache-2.0 */
/* The record of changes; see audit.h. */
#include "core/account/audit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "store/audit_table.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define RING_NAME "audit.ring"
#define RING_SLOTS 4096u
#define RING_MAGIC UINT64_C(0x3152414757525542) // "BURWGAR1", as this machine writes it
#define BATCH 256
#define GATHER_MS 50 // how long the first of several waits for others
/* While changes come again and again the writer looks by itself, and of a batch only the last one wakes it; after so many looks in vain the next one does. */
#define LOOK_MS 200
#define LOOKS 10
#define RETRY_MS 1000 // after a failure

/* As it lies in the file: of this machine's own making, and read by nobody else. */
struct slot {
    int64_t at;
    int32_t status;
    char organisation[ID_TEXT], key_id[ID_TEXT], token_id[ID_TEXT];
    char member[MEMBER_TEXT];
    char front[12], method[8];
    char route[80];
    char subject[AUDIT_SUBJECT];
    char peer[48];
    char request_id[72];
};

struct ring {
    uint64_t magic;
    uint64_t slot_size;
    _Atomic uint64_t head,
        tail; // numbers of the next record, and of the first that is not in the database
    struct slot slots[RING_SLOTS];
};

struct audit {
    struct store *store;
    struct ring *ring; // mapped; tail is changed by the writer alone
    struct lock lock;  // guards the ring's head and slots behind it, and what follows
    struct lock_condition changed;
    bool is_closing;
    bool is_looking; // the writer comes by itself
    bool is_asked;   // somebody waits for all to be in the database
    uint64_t n_lost; // not told yet
    pthread_t writer;
};

/* ---- adding ---- */

static void put(char *to, size_t size, const char *from)
{
    size_t length = from ? strnlen(from, size - 1) : 0;

    while (length && !utf8_is_valid(from, length))
        length--; // not in the middle of a character
    if (length)
        memcpy(to, from, length);
    to[length] = '\0';
}

static void fill(struct slot *slot, const struct audit_entry *entry)
{
    slot->at = (int64_t)clock_wall_ms();
    slot->status = entry->status;
    put(slot->organisation, sizeof slot->organisation, entry->organisation);
    put(slot->key_id, sizeof slot->key_id, entry->key_id);
    put(slot->token_id, sizeof slot->token_id, entry->token_id);
    put(slot->member, sizeof slot->member, entry->member);
    put(slot->front, sizeof slot->front, entry->front);
    put(slot->method, sizeof slot->method, entry->method);
    put(slot->route, sizeof slot->route, entry->route);
    put(slot->subject, sizeof slot->subject, entry->subject);
    put(slot->peer, sizeof slot->peer, entry->peer);
    put(slot->request_id, sizeof slot->request_id, entry->request_id);
}

void audit_add(struct audit *audit, const struct audit_entry *entry)
{
    struct ring *ring = audit->ring;

    autolock(&audit->lock);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load(&ring->tail);
    if (head - tail >= RING_SLOTS) {
        audit->n_lost++;
        return;
    }
    fill(&ring->slots[head % RING_SLOTS], entry);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release); // from here on it counts
    uint64_t waiting = head + 1 - tail;
    if (waiting == (audit->is_looking ? BATCH : 1))
        lock_condition_wake(&audit->changed);
}

/* ---- into the database ---- */

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static struct audit_record record_of(const struct slot *slot, uint64_t number)
{
    return (struct audit_record){
        .number = (int64_t)number,
        .at = slot->at,
        .organisation = slot->organisation,
        .member = or_null(slot->member),
        .key_id = or_null(slot->key_id),
        .token_id = or_null(slot->token_id),
        .front = slot->front,
        .method = slot->method,
        .route = slot->route,
        .subject = or_null(slot->subject),
        .peer = or_null(slot->peer),
        .request_id = or_null(slot->request_id),
        .status = slot->status,
    };
}

/* Slots between tail and head are written by nobody. False: not now. */
static bool move_batch(struct audit *audit)
{
    static _Thread_local struct audit_record records[BATCH];
    struct ring *ring = audit->ring;
    uint64_t tail = atomic_load(&ring->tail), head = atomic_load(&ring->head);
    size_t count = head - tail < BATCH ? head - tail : BATCH;
    struct error err = {0};

    for (size_t i = 0; i < count; i++)
        records[i] = record_of(&ring->slots[(tail + i) % RING_SLOTS], tail + i);
    if (count && store_audit_add(audit->store, records, count, &err) < 0) {
        log_warn("changes could not be recorded yet", F("error", (const char *)err.text));
        return false;
    }
    atomic_store(&ring->tail, tail + count);
    return true;
}

static uint64_t count_waiting(const struct audit *audit)
{
    return atomic_load(&audit->ring->head) - atomic_load(&audit->ring->tail);
}

static bool is_empty(const struct audit *audit)
{
    return count_waiting(audit) == 0;
}

static void tell_lost(struct audit *audit)
{
    if (audit->n_lost)
        log_error("changes were not recorded, because the database took too long",
                  F("changes", audit->n_lost));
    audit->n_lost = 0;
}

/* For so long, or until somebody asks or a batch is there. With the lock held. */
static void rest(struct audit *audit, uint64_t after_ms)
{
    uint64_t until_ms = clock_monotonic_ms() + after_ms;

    while (!audit->is_closing && !audit->is_asked && count_waiting(audit) < BATCH &&
           lock_condition_wait(&audit->changed, &audit->lock, until_ms))
        ;
}

/* False: nothing more will come. */
static bool await_work(struct audit *audit)
{
    autolock(&audit->lock);
    tell_lost(audit);
    lock_condition_wake(&audit->changed); // whoever has asked
    audit->is_looking = true;
    for (int i = 0; i < LOOKS && !audit->is_closing; i++) {
        rest(audit, LOOK_MS);
        if (audit->is_asked || !is_empty(audit))
            break;
    }
    audit->is_looking = false;
    if (is_empty(audit)) {
        while (is_empty(audit) && !audit->is_closing)
            (void)lock_condition_wait(&audit->changed, &audit->lock, 0);
        rest(audit, GATHER_MS);
    }
    audit->is_asked = false;
    return !is_empty(audit);
}

static void pause_after_failure(struct audit *audit)
{
    autolock(&audit->lock);
    uint64_t until_ms = clock_monotonic_ms() + RETRY_MS;
    while (!audit->is_closing && lock_condition_wait(&audit->changed, &audit->lock, until_ms))
        ;
}

static bool is_closing(struct audit *audit)
{
    autolock(&audit->lock);
    return audit->is_closing;
}

static void *write_all(void *data)
{
    struct audit *audit = data;

    thread_set_name("audit");
    while (await_work(audit)) {
        if (move_batch(audit))
            continue;
        if (is_closing(audit))
            break; // the next server finds it in the file
        pause_after_failure(audit);
    }
    return NULL;
}

/* ---- opening ---- */

static bool is_ours(const struct ring *ring)
{
    uint64_t head = atomic_load(&ring->head), tail = atomic_load(&ring->tail);

    return ring->magic == RING_MAGIC && ring->slot_size == sizeof(struct slot) && head >= tail &&
           head - tail <= RING_SLOTS;
}

/* A file of another version, or none: begins behind what the database has. */
static int settle_ring(struct audit *audit, struct error *err)
{
    struct ring *ring = audit->ring;
    int64_t last = 0;

    if (store_audit_last(audit->store, &last, err) < 0)
        return -1;
    if (is_ours(ring) && (int64_t)atomic_load(&ring->head) > last)
        return 0;
    ring->magic = RING_MAGIC;
    ring->slot_size = sizeof(struct slot);
    atomic_store(&ring->head, (uint64_t)last + 1);
    atomic_store(&ring->tail, (uint64_t)last + 1);
    return 0;
}

static int map_ring(struct audit *audit, const char *data_dir, struct error *err)
{
    autofree char *path = xasprintf("%s/" RING_NAME, data_dir);
    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return error_sys(err, "open %s", path);
    // With its blocks, which stay where they are (btrfs): a write into a mapped file that finds no room on the disk would end the server.
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags); // no other file system knows it, or needs it
    }
    int code = posix_fallocate(fd, 0, sizeof(struct ring));
    if (code)
        return error_sys_code(err, code, "make room for %s", path);
    void *memory =
        mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED)
        return error_sys(err, "map %s", path);
    audit->ring = memory;
    return settle_ring(audit, err);
}

static void release(struct audit *audit)
{
    if (audit->ring)
        (void)munmap(audit->ring, sizeof *audit->ring);
    lock_condition_clear(&audit->changed);
    lock_clear(&audit->lock);
    free(audit);
}

int audit_open(const char *data_dir, struct store *store, struct audit **out, struct error *err)
{
    struct audit *audit = xnew(struct audit);

    audit->store = store;
    lock_init(&audit->lock, LOCK_AUDIT);
    lock_condition_init(&audit->changed);
    int result = map_ring(audit, data_dir, err);
    int code = result == 0 ? pthread_create(&audit->writer, NULL, write_all, audit) : 0;
    if (code)
        result = error_sys_code(err, code, "start the record of changes");
    if (result < 0)
        release(audit);
    else
        *out = audit;
    return result;
}

static void close_audit(struct audit *audit)
{
    autolock(&audit->lock);
    audit->is_closing = true;
    lock_condition_wake(&audit->changed);
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    close_audit(audit);
    (void)pthread_join(audit->writer, NULL);
    release(audit);
}

/* ---- telling ---- */

/* What was there when it is called is in the database, or cannot be within a second. */
static void settle(struct audit *audit)
{
    uint64_t until_ms = clock_monotonic_ms() + RETRY_MS;
    bool is_time = true;

    autolock(&audit->lock);
    uint64_t head = atomic_load(&audit->ring->head);
    while (atomic_load(&audit->ring->tail) < head && is_time) {
        audit->is_asked = true;
        lock_condition_wake(&audit->changed);
        is_time = lock_condition_wait(&audit->changed, &audit->lock, until_ms);
    }
}

static struct audit_info info_of(struct audit_record *record)
{
    return (struct audit_info){
        .number = record->number,
        .at = record->at,
        .status = record->status,
        .member = take(record->member),
        .key_id = take(record->key_id),
        .token_id = take(record->token_id),
        .front = take(record->front),
        .method = take(record->method),
        .route = take(record->route),
        .subject = take(record->subject),
        .peer = take(record->peer),
        .request_id = take(record->request_id),
    };
}

void audit_infos_clear(struct audit_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        const struct audit_info *info = &infos->items[i];
        const char *const strings[] = {info->member,  info->key_id, info->token_id,
                                       info->front,   info->method, info->route,
                                       info->subject, info->peer,   info->request_id};
        for (size_t k = 0; k < ARRAY_SIZE(strings); k++)
            free((char *)strings[k]);
    }
    free(infos->items);
    *infos = (struct audit_infos){0};
}

int audit_list(struct audit *audit, const struct actor *actor, const struct audit_query *query,
               struct audit_infos *out, struct error *err)
{
    const struct audit_filter filter = {
        .owner = actor_filter(actor),
        .from = query->from,
        .to = query->to,
        .key_id = query->key_id,
        .subject = query->subject,
        .request_id = query->request_id,
        .method = query->method,
        .page = query->page,
    };
    autoaudits found = {0};

    settle(audit);
    if (store_audit_list(audit->store, &filter, &found, err) < 0)
        return -1;
    *out = (struct audit_infos){.items = xcalloc(found.count + 1, sizeof *out->items),
                                .count = found.count,
                                .next = found.next};
    for (size_t i = 0; i < found.count; i++)
        out->items[i] = info_of(&found.rows[i]);
    return 0;
}
