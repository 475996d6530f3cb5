/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/feed.c: streams into pipes, on a real loop. */
#include "core/stream/feed.h"

#include "base/clock.h"
#include "base/fd.h"
#include "stream_fixture.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#define LARGE (4u << 20) // many times what a pipe holds
#define DEADLINE_MS 20000

#define AWAIT(claim)                                                                               \
    do {                                                                                           \
        uint64_t until_ = clock_monotonic_ms() + DEADLINE_MS;                                      \
        while (!(claim)) {                                                                         \
            if (clock_monotonic_ms() > until_)                                                     \
                test_fail(__FILE__, __LINE__, "not in time: %s", #claim);                          \
            fence();                                                                               \
            (void)sched_yield();                                                                   \
        }                                                                                          \
    } while (0)

static struct loop *loop;
static pthread_t thread;

static void *run(void *data)
{
    loop_run(data);
    return NULL;
}

static struct core *begin(void)
{
    struct core *core = stream_core();
    struct error err = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    CHECK_OK(loop_new(&loop, &err), err);
    CHECK(pthread_create(&thread, NULL, run, loop) == 0);
    return core;
}

static void end(void)
{
    loop_stop(loop);
    (void)pthread_join(thread, NULL);
    loop_free(loop);
    stream_core_end();
}

static void post_semaphore(void *data)
{
    (void)sem_post(data);
}

/* The loop has done what was posted before. */
static void fence(void)
{
    sem_t done;

    CHECK(sem_init(&done, 0, 0) == 0);
    loop_post(loop, post_semaphore, &done);
    while (sem_wait(&done) < 0)
        ;
}

static struct stream *open_stream(struct core *core, const char *id)
{
    struct stream *stream = NULL;
    struct error err = {0};

    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    return stream;
}

/* A feed of the stream; *out is where its bytes come out. */
static struct feed *feed_of(struct core *core, const char *id, int *out, int *in)
{
    autoptr(stream) stream = open_stream(core, id);
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    *out = ends[0];
    if (in)
        *in = ends[1];
    return feed_new(loop, core->hub, stream, ends[1]);
}

static void complete(struct core *core, const char *id)
{
    struct error err = {0};
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
}

static void check_read(int fd, const char *want)
{
    char got[256] = "";

    CHECK_INT(fd_read_full(fd, got, strlen(want)), strlen(want));
    CHECK_STR(got, want);
}

static void check_end(int fd)
{
    char byte;
    CHECK_INT(fd_read_full(fd, &byte, 1), 0);
}

TEST(a_complete_stream_comes_whole_and_then_ends)
{
    struct core *core = begin();
    const char *id = new_stream(core), *empty = new_stream(core);
    int fd, other;

    append(core, id, "all of it");
    complete(core, id);
    complete(core, empty);
    struct feed *feed = feed_of(core, id, &fd, NULL), *none = feed_of(core, empty, &other, NULL);
    check_read(fd, "all of it");
    check_end(fd);
    check_end(other);
    feed_stop(feed);
    feed_stop(none);
    (void)close(fd);
    (void)close(other);
    end();
}

TEST(bytes_come_as_they_are_appended)
{
    struct core *core = begin();
    const char *id = new_stream(core);
    int fd;

    append(core, id, "early ");
    struct feed *feed = feed_of(core, id, &fd, NULL);
    check_read(fd, "early ");
    for (int i = 0; i < 100; i++) {
        append(core, id, "later ");
        check_read(fd, "later ");
    }
    complete(core, id);
    check_end(fd);
    feed_stop(feed);
    (void)close(fd);
    end();
}

static void fill(char *bytes)
{
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 2654435761u >> 24);
}

TEST(a_slow_reader_gets_every_byte_in_order_and_keeps_nobody_waiting)
{
    struct core *core = begin();
    const char *slow = new_stream(core), *quick = new_stream(core);
    autofree char *bytes = malloc(LARGE), *got = calloc(1, LARGE);
    struct error err = {0};
    int slow_fd, quick_fd;

    fill(bytes);
    CHECK_OK(stream_append(core->streams, &one_of_us, slow, bytes, LARGE, &err), err);
    complete(core, slow);
    struct feed *first = feed_of(core, slow, &slow_fd, NULL);
    struct feed *second = feed_of(core, quick, &quick_fd, NULL);
    for (int i = 0; i < 10; i++) { // with a full pipe beside it
        append(core, quick, "hello");
        check_read(quick_fd, "hello");
    }
    for (size_t at = 0; at < LARGE; at += 8191) {
        size_t piece = LARGE - at < 8191 ? LARGE - at : 8191;
        CHECK_INT(fd_read_full(slow_fd, got + at, piece), piece);
    }
    check_end(slow_fd);
    CHECK(memcmp(bytes, got, LARGE) == 0);
    feed_stop(first);
    feed_stop(second);
    check_end(quick_fd);
    (void)close(slow_fd);
    (void)close(quick_fd);
    end();
}

TEST(a_feed_stops_when_nobody_reads_any_more)
{
    struct core *core = begin();
    const char *waiting = new_stream(core), *full = new_stream(core);
    autofree char *bytes = calloc(1, LARGE);
    struct error err = {0};
    int fd, in, full_fd, full_in;

    append(core, waiting, "x");
    CHECK_OK(stream_append(core->streams, &one_of_us, full, bytes, LARGE, &err), err);
    struct feed *feed = feed_of(core, waiting, &fd, &in);
    struct feed *stuck = feed_of(core, full, &full_fd, &full_in);
    check_read(fd, "x");
    (void)close(fd);
    AWAIT(fcntl(in, F_GETFD) < 0); // closed, though nothing was appended
    fence();                       // what it does after that is done too
    CHECK(!stream_open_quick(core->streams, waiting));
    check_read(full_fd, "");
    (void)close(full_fd);
    AWAIT(fcntl(full_in, F_GETFD) < 0);
    append(core, waiting, "nobody reads this");
    feed_stop(feed);
    feed_stop(stuck);
    end();
}

TEST(a_feed_that_is_stopped_closes_its_pipe)
{
    struct core *core = begin();
    const char *id = new_stream(core);
    int fd;

    append(core, id, "x");
    for (int i = 0; i < 50; i++) { // at whatever point it is
        struct feed *feed = feed_of(core, id, &fd, NULL);
        if (i % 2)
            check_read(fd, "x");
        append(core, id, "y");
        feed_stop(feed);
        char rest[256];
        CHECK(fd_read_full(fd, rest, sizeof rest) < (ssize_t)sizeof rest);
        (void)close(fd);
    }
    end();
}

TEST(a_stream_that_is_removed_ends_the_input)
{
    struct core *core = begin();
    const char *id = new_stream(core);
    struct error err = {0};
    int fd;

    append(core, id, "x");
    struct feed *feed = feed_of(core, id, &fd, NULL);
    check_read(fd, "x");
    CHECK_OK(stream_remove(core->streams, &one_of_us, id, &err), err);
    check_end(fd);
    feed_stop(feed);
    (void)close(fd);
    end();
}

#define FEEDS 20
#define APPENDS 200

struct writer {
    struct core *core;
    const char *const *ids;
    pthread_t thread;
};

static void *write_all(void *data)
{
    struct writer *writer = data;

    for (int i = 0; i < APPENDS; i++) {
        struct error err = {0};
        if (stream_append(writer->core->streams, &one_of_us, writer->ids[i % FEEDS], "0123456789",
                          10, &err) < 0)
            return writer;
    }
    return NULL;
}

TEST(many_feeds_of_many_writers)
{
    struct core *core = begin();
    static char ids[FEEDS][32];
    const char *names[FEEDS];
    struct feed *feeds[FEEDS];
    struct writer writers[2];
    int fds[FEEDS];
    void *failed;

    for (int i = 0; i < FEEDS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%s", new_stream(core));
        names[i] = ids[i];
        feeds[i] = feed_of(core, names[i], &fds[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        writers[i] = (struct writer){.core = core, .ids = names};
        CHECK(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(writers[i].thread, &failed);
        CHECK(!failed);
    }
    for (int i = 0; i < FEEDS; i++) {
        complete(core, names[i]);
        for (int n = 0; n < 2 * APPENDS / FEEDS; n++)
            check_read(fds[i], "0123456789");
        check_end(fds[i]);
        (void)close(fds[i]);
        feed_stop(feeds[i]);
    }
    end();
}
