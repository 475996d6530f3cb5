/* SPDX-License-Identifier: Apache-2.0 */
/* Streams under many threads: appends stay whole, ends are exact, and objects come and go. */
#include "core/stream/stream.h"

#include "base/id.h"
#include "core/stream/stream_object.h"

#include "stream_fixture.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define RECORD 20000
#define ROUNDS 60 // appends of each thread; the stream is completed after as many of all
#define AGAIN 5

struct worker {
    struct core *core;
    const char *id;
    int number;
    atomic_int *counted; // what this is about: appends that were answered, for example
    const char *fault;   // NULL: all was well
    pthread_t thread;
};

/* Each function on a thread of its own; what they have counted together. */
static int run_on(struct core *core, const char *id, size_t n, void *(*const *fns)(void *))
{
    struct worker workers[8];
    atomic_int counted = 0;

    CHECK(n <= ARRAY_SIZE(workers));
    for (size_t i = 0; i < n; i++) {
        workers[i] = (struct worker){.core = core, .id = id, .number = (int)i, .counted = &counted};
        CHECK(pthread_create(&workers[i].thread, NULL, fns[i], &workers[i]) == 0);
    }
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < n; i++)
        CHECK_STR(workers[i].fault ? workers[i].fault : "", "");
    return counted;
}

/* Appends until the stream is complete. */
static void *append_records(void *data)
{
    struct worker *worker = data;
    char record[RECORD];
    struct error err = {0};

    memset(record, 'a' + worker->number, sizeof record);
    for (int i = 0; i < ROUNDS; i++) {
        if (stream_append(worker->core->streams, &one_of_us, worker->id, record, sizeof record,
                          &err) == 0)
            atomic_fetch_add(worker->counted, 1);
        else if (error_is(&err, ERROR_COMPLETE))
            return NULL;
        else
            worker->fault = "an append failed";
    }
    return NULL;
}

static const char *check_whole(struct stream *stream, uint64_t from, uint64_t to)
{
    char record[RECORD];

    for (; from < to; from += RECORD) {
        if (pread(stream_fd(stream), record, RECORD, (off_t)from) != RECORD)
            return "less is there than was said";
        if (record[0] < 'a')
            return "an append is missing";
        if (memcmp(record, record + 1, RECORD - 1) != 0)
            return "two appends are mixed";
    }
    return NULL;
}

/* Reads until the stream is complete. */
static void *read_records(void *data)
{
    struct worker *worker = data;
    struct stream_progress progress = {0};
    struct error err = {0};
    uint64_t seen = 0;
    autoptr(stream) stream = NULL;

    if (stream_open(worker->core->streams, worker->id, &stream, &err) < 0) {
        worker->fault = "the stream cannot be opened";
        return NULL;
    }
    while (!progress.is_complete && !worker->fault) {
        stream_progress(stream, &progress);
        if (progress.size_bytes < seen || progress.size_bytes % RECORD != 0)
            worker->fault = "the size is none";
        else
            worker->fault = check_whole(stream, seen, progress.size_bytes);
        seen = progress.size_bytes;
        (void)sched_yield();
    }
    stream_progress(stream, &progress);
    if (progress.size_bytes != seen)
        worker->fault = "it grew after its end";
    return NULL;
}

static void *complete_soon(void *data)
{
    struct worker *worker = data;
    struct error err = {0};

    while (atomic_load(worker->counted) < ROUNDS)
        (void)sched_yield();
    if (stream_complete(worker->core->streams, &one_of_us, worker->id, &err) < 0)
        worker->fault = "it cannot be completed";
    return NULL;
}

TEST(appends_stay_whole_and_the_end_is_exact)
{
    static void *(*const fns[])(void *) = {append_records, append_records, append_records,
                                           read_records,   read_records,   complete_soon,
                                           complete_soon};
    struct core *core = stream_core();

    for (int round = 0; round < AGAIN; round++) {
        const char *id = new_stream(core);
        int counted = run_on(core, id, ARRAY_SIZE(fns), fns);
        CHECK_INT(row_number(core, "size_bytes", id), counted * RECORD);
        CHECK(!stream_open_quick(core->streams, id));
    }
    stream_core_end();
}

/* Opens, looks and lets go, so that the object is made and unmade all the time. */
static void *come_and_go(void *data)
{
    struct worker *worker = data;
    struct stream_progress progress, last = {0};
    struct error err = {0};

    for (int i = 0; i < 500 && !worker->fault; i++) {
        autoptr(stream) stream =
            i % 2 ? stream_open_quick(worker->core->streams, worker->id) : NULL;
        if (!stream && stream_open(worker->core->streams, worker->id, &stream, &err) < 0) {
            worker->fault = "the stream cannot be opened";
            break;
        }
        stream_progress(stream, &progress);
        if (progress.size_bytes < last.size_bytes || (last.is_complete && !progress.is_complete))
            worker->fault = "something was forgotten";
        last = progress;
    }
    return NULL;
}

TEST(nothing_is_forgotten_when_objects_come_and_go)
{
    static void *(*const fns[])(void *) = {come_and_go, come_and_go, append_records, complete_soon};
    struct core *core = stream_core();

    for (int round = 0; round < AGAIN; round++) {
        const char *id = new_stream(core);
        int counted = run_on(core, id, ARRAY_SIZE(fns), fns);
        CHECK_INT(row_number(core, "size_bytes", id), counted * RECORD);
        CHECK_INT(row_number(core, "completed_at <> 0", id), 1);
    }
    stream_core_end();
}

/* Takes and gives back; only one at a time may have it. */
static void *take_and_return(void *data)
{
    struct worker *worker = data;
    struct stream_place place = place_of(worker->number % 2 ? STREAM_STDIN : STREAM_STDOUT);
    char execution[16];
    struct error err = {0};

    (void)snprintf(execution, sizeof execution, "e%d", worker->number);
    place.execution_id = execution;
    for (int i = 0; i < 50; i++) {
        struct stream *stream = NULL;
        if (streams_take(worker->core->streams, &one_of_us, worker->id, &place, &stream, &err) <
            0) {
            if (!error_is(&err, ERROR_INVALID))
                worker->fault = "taking failed";
            continue;
        }
        if (atomic_fetch_add(worker->counted, 1) != 0)
            worker->fault = "two have it";
        atomic_fetch_sub(worker->counted, 1);
        streams_give_back(worker->core->streams, stream);
    }
    return NULL;
}

TEST(a_stream_is_taken_by_one_at_a_time)
{
    static void *(*const fns[])(void *) = {take_and_return, take_and_return, take_and_return};
    struct core *core = stream_core();
    const char *id = new_stream(core);

    (void)run_on(core, id, ARRAY_SIZE(fns), fns);
    append(core, id, "free again");
    stream_core_end();
}

static void *remove_it(void *data)
{
    struct worker *worker = data;
    struct error err = {0};

    if (stream_remove(worker->core->streams, &one_of_us, worker->id, &err) == 0)
        atomic_fetch_add(worker->counted, 1);
    else if (!error_is(&err, ERROR_NOT_FOUND))
        worker->fault = "removing failed";
    return NULL;
}

static void *use_it(void *data)
{
    struct worker *worker = data;
    struct error err = {0};

    for (;;) {
        if (stream_append(worker->core->streams, &one_of_us, worker->id, "x", 1, &err) < 0) {
            if (!error_is(&err, ERROR_NOT_FOUND))
                worker->fault = "an append failed in another way";
            return NULL;
        }
    }
}

TEST(a_stream_that_is_in_use_is_removed_once)
{
    static void *(*const fns[])(void *) = {use_it, use_it, remove_it, remove_it};
    struct core *core = stream_core();
    struct error err = {0};
    unsigned removed;

    for (int round = 0; round < 10; round++) {
        const char *id = new_stream(core);
        CHECK_INT(run_on(core, id, ARRAY_SIZE(fns), fns), 1);
        CHECK(access(stream_file(id), F_OK) < 0);
    }
    CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), 0);
    CHECK_OK(streams_purge(core->streams, INT64_MAX / 2, 10, &removed, &err), err);
    CHECK_INT(removed, 0); // not even a file
    stream_core_end();
}

static struct stream *ended; // a command's: who ran it gives it up

static void *give_up(void *data)
{
    struct worker *worker = data;

    streams_keep_recent(worker->core->streams, ended);
    return NULL;
}

static struct stream *end_one(struct core *core)
{
    struct stream_place place = place_of(STREAM_STDOUT);
    struct stream *stream = NULL;
    struct error err = {0};

    CHECK_OK(streams_prepare(core->streams, &place, &stream, &err), err);
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_INT(write(stream_write_fd(stream), "x", 1), 1);
    CHECK_OK(streams_put_end(core->streams, stream, false, 1, &err), err);
    streams_end(core->streams, stream);
    return stream;
}

TEST(one_that_is_removed_while_its_command_gives_it_up_is_not_kept)
{
    static void *(*const fns[])(void *) = {give_up, remove_it};
    struct core *core = stream_core();

    for (int round = 0; round < 300; round++) {
        char id[ID_TEXT];

        ended = end_one(core);
        (void)snprintf(id, sizeof id, "%s", stream_id(ended));
        CHECK_INT(run_on(core, id, ARRAY_SIZE(fns), fns), 1);
        CHECK(!stream_open_quick(core->streams, id));
        for (unsigned i = 0; i < STREAM_RECENT; i++)
            CHECK(!core->streams->recent.streams[i]);
    }
    stream_core_end();
}
