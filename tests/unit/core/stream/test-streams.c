/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/streams.c: streams that commands write and read, restarts, and what is removed. */
#include "core/stream/streams.h"

#include "base/disk.h"
#include "base/mem.h"
#include "base/clock.h"
#include "stream_fixture.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

static void count(void *data)
{
    ++*(int *)data;
}

static struct stream *prepare(struct core *core, enum stream_kind kind)
{
    struct stream_place place = place_of(kind);
    struct stream *stream = NULL;
    struct error err = {0};

    CHECK_OK(streams_prepare(core->streams, &place, &stream, &err), err);
    return stream;
}

/* What PID 1 does. */
static void write_to(struct stream *stream, const char *text)
{
    CHECK_INT(write(stream_write_fd(stream), text, strlen(text)), strlen(text));
}

static int taken(struct core *core, const char *id, enum stream_kind kind, const char *execution,
                 struct stream **out, struct error *err)
{
    struct stream_place place = place_of(kind);
    place.execution_id = execution;
    return streams_take(core->streams, &one_of_us, id, &place, out, err);
}

TEST(a_prepared_stream_is_read_before_it_has_a_row)
{
    struct core *core = stream_core();
    autoptr(stream) stream = prepare(core, STREAM_STDOUT);
    autoptr(stream) reader = NULL;
    autoclear(stream_info) record = {0};
    struct error err = {0};

    CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), 0);
    CHECK_OK(stream_open(core->streams, stream_id(stream), &reader, &err), err);
    CHECK(reader == stream);
    write_to(stream, "early");
    CHECK_STR(content_of(reader), "early");
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_OK(stream_get(core->streams, &one_of_us, stream_id(stream), &record, &err), err);
    CHECK_INT(record.kind, STREAM_STDOUT);
    CHECK_INT(record.state, STREAM_OPEN);
    CHECK_INT(record.size_bytes, 5);
    CHECK_INT(record.expires_at, 0);
    CHECK_STR(record.sandbox_id, "s");
    CHECK_STR(record.execution_id, "e");
    CHECK_STR(record.name, "stdout");
    stream_free(take(reader));
    stream_free(take(stream));
    stream_core_end();
}

/* How many files are in the spool. */
static unsigned files_in(const char *data_dir)
{
    char command[256];
    unsigned count = 0;

    (void)snprintf(command, sizeof command, "find %s/spool -type f | wc -l", data_dir);
    FILE *pipe = popen(command, "r");
    CHECK(pipe && fscanf(pipe, "%u", &count) == 1);
    (void)pclose(pipe);
    return count;
}

TEST(files_made_ahead_are_used_and_do_not_get_lost)
{
    struct core *core = stream_core();
    char directory[128];
    struct error err = {0};
    unsigned removed = 0;

    (void)snprintf(directory, sizeof directory, "%s", core->settings.data_dir);
    CHECK(streams_needs_spares(core->streams));
    CHECK(streams_make_spares(core->streams));
    CHECK(!streams_make_spares(core->streams));
    CHECK(!streams_needs_spares(core->streams));
    unsigned ahead = files_in(directory);
    CHECK(ahead > 0);
    // However old they are.
    int64_t later = (int64_t)clock_wall_ms() + 24LL * KEEP_MS;
    CHECK_OK(streams_purge(core->streams, later, 1000, &removed, &err), err);
    CHECK_INT(removed, 0);
    autoptr(stream) stream = prepare(core, STREAM_STDERR);
    CHECK_INT(files_in(directory), ahead);
    write_to(stream, "kept");
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_INT(row_number(core, "kind = 'stderr' AND sandbox_id = 's'", stream_id(stream)), 1);
    CHECK_STR(content_of(stream), "kept");
    stream_free(take(stream));
    stream_core_end();
    CHECK_INT(files_in(directory), 1);
}

TEST(two_streams_begin_and_end_in_a_transaction_each)
{
    struct core *core = stream_core();
    autoptr(stream) out = prepare(core, STREAM_STDOUT);
    autoptr(stream) errors = prepare(core, STREAM_STDERR);
    struct error err = {0};

    {
        autotransaction together = {0};
        CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
        CHECK_OK(streams_put(core->streams, out, &err), err);
        CHECK_OK(streams_put(core->streams, errors, &err), err);
        CHECK_OK(store_commit(&together, &err), err);
    }
    write_to(out, "output");
    {
        autotransaction together = {0};
        CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
        CHECK_OK(streams_put_end(core->streams, out, true, NOW, &err), err);
        CHECK_OK(streams_put_end(core->streams, errors, false, NOW, &err), err);
        CHECK(!progress_of(out).is_complete); // not before it is committed
        CHECK_OK(store_commit(&together, &err), err);
    }
    streams_end(core->streams, out);
    streams_end(core->streams, errors);
    CHECK(progress_of(out).is_complete && progress_of(errors).is_complete);
    CHECK_INT(row_number(core, "size_bytes", stream_id(out)), 6);
    CHECK_INT(row_number(core, "is_truncated", stream_id(out)), 1);
    CHECK_INT(row_number(core, "completed_at", stream_id(out)), NOW);
    CHECK_INT(row_number(core, "size_bytes", stream_id(errors)), 0);
    CHECK_INT(row_number(core, "is_truncated", stream_id(errors)), 0);
    stream_free(take(out));
    stream_free(take(errors));
    stream_core_end();
}

TEST(what_comes_after_the_end_is_not_part_of_the_stream)
{
    struct core *core = stream_core();
    autoptr(stream) stream = prepare(core, STREAM_STDOUT);
    char id[32];
    struct error err = {0};
    int told = 0;

    (void)snprintf(id, sizeof id, "%s", stream_id(stream));
    struct watch *watch = hub_watch(core->hub, id, count, &told);
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    write_to(stream, "the output");
    streams_announce(core->streams, stream);
    CHECK_INT(told, 1);
    {
        autotransaction undone = {0};
        CHECK_OK(store_begin(core->store, STORE_FAST, &undone, &err), err);
        CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
    }
    CHECK_INT(row_number(core, "completed_at", id), 0);
    write_to(stream, " and more");
    CHECK_STR(content_of(stream), "the output");
    CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
    streams_end(core->streams, stream);
    CHECK_INT(told, 2);
    CHECK_STR(content_of(stream), "the output");
    CHECK_INT(row_number(core, "size_bytes", id), 10);
    watch_free(watch);
    stream_free(take(stream));
    autoptr(stream) later = NULL;
    CHECK_OK(stream_open(core->streams, id, &later, &err), err);
    CHECK_STR(content_of(later), "the output");
    CHECK(progress_of(later).is_complete);
    stream_free(take(later));
    stream_core_end();
}

TEST(an_end_may_be_told_before_it_is_recorded)
{
    struct core *core = stream_core();
    autoptr(stream) stream = prepare(core, STREAM_STDOUT);
    autoptr(stream) gone = prepare(core, STREAM_STDERR);
    struct error err = {0};

    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_OK(streams_put(core->streams, gone, &err), err);
    write_to(stream, "all");
    streams_end(core->streams, stream);
    streams_end(core->streams, gone);
    CHECK(progress_of(stream).is_complete);
    write_to(stream, " and more");
    CHECK(stream_append(core->streams, &one_of_us, stream_id(stream), "x", 1, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_OK(stream_remove(core->streams, &one_of_us, stream_id(gone), &err), err);
    {
        autotransaction together = {0};
        CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
        CHECK_OK(streams_put_end(core->streams, gone, false, NOW, &err), err);
        CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
        CHECK_OK(store_commit(&together, &err), err);
    }
    CHECK_INT(row_number(core, "size_bytes", stream_id(stream)), 3);
    CHECK_INT(row_number(core, "completed_at", stream_id(stream)), NOW);
    stream_free(take(stream));
    stream_free(take(gone));
    stream_core_end();
}

TEST(an_ended_stream_can_be_ended_again)
{
    struct core *core = stream_core();
    autoptr(stream) stream = prepare(core, STREAM_STDOUT);
    struct error err = {0};

    CHECK_OK(streams_put(core->streams, stream, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(streams_put_end(core->streams, stream, false, NOW + i, &err), err);
        streams_end(core->streams, stream);
        write_to(stream, "late");
    }
    CHECK_INT(row_number(core, "completed_at", stream_id(stream)), NOW);
    CHECK_INT(progress_of(stream).size_bytes, 0);
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_discarded_stream_ends_its_readers_and_leaves_nothing)
{
    struct core *core = stream_core();
    struct stream *stream = prepare(core, STREAM_STDOUT), *none = NULL;
    autoptr(stream) reader = stream_open_quick(core->streams, stream_id(stream));
    char id[32];
    struct error err = {0};
    int told = 0;

    (void)snprintf(id, sizeof id, "%s", stream_id(stream));
    struct watch *watch = hub_watch(core->hub, id, count, &told);
    streams_discard(core->streams, stream);
    CHECK_INT(told, 1);
    CHECK(progress_of(reader).is_complete);
    CHECK(access(stream_file(id), F_OK) < 0);
    CHECK(stream_open(core->streams, id, &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    watch_free(watch);
    stream_free(take(reader));
    stream_core_end();
}

TEST(a_commands_output_is_nobody_elses_to_write_end_or_remove)
{
    struct core *core = stream_core();
    autoptr(stream) stream = prepare(core, STREAM_STDOUT);
    const char *id = stream_id(stream);
    struct error err = {0};

    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_BUSY);
    CHECK(stream_complete(core->streams, &one_of_us, id, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(stream_remove(core->streams, &one_of_us, id, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_BUSY);
    CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
    streams_end(core->streams, stream);
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
    CHECK_OK(stream_remove(core->streams, &one_of_us, id, &err), err);
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_stdin_is_appended_to_until_its_command_ends)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    autoptr(stream) stream = NULL;
    struct error err = {0};

    append(core, id, "before ");
    CHECK_OK(taken(core, id, STREAM_STDIN, "e", &stream, &err), err);
    append(core, id, "after");
    CHECK_STR(content_of(stream), "before after");
    CHECK(stream_remove(core->streams, &one_of_us, id, &err) < 0);
    CHECK_INT(err.reason, ERROR_BUSY);
    CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    streams_end(core->streams, stream);
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
    CHECK_STR(content_of(stream), "before after");
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_stdin_may_be_completed_by_its_user_before_and_after_it_is_taken)
{
    struct core *core = stream_core();
    const char *first = new_stream(core), *second = new_stream(core);
    autoptr(stream) one = NULL;
    autoptr(stream) two = NULL;
    struct error err = {0};

    append(core, first, "whole");
    CHECK_OK(stream_complete(core->streams, &one_of_us, first, &err), err);
    CHECK_OK(taken(core, first, STREAM_STDIN, "e", &one, &err), err);
    CHECK_STR(content_of(one), "whole");
    CHECK_OK(taken(core, second, STREAM_STDIN, "e", &two, &err), err);
    CHECK_OK(stream_complete(core->streams, &one_of_us, second, &err), err);
    CHECK(progress_of(two).is_complete);
    CHECK_OK(streams_put_end(core->streams, one, false, NOW, &err), err);
    CHECK_OK(streams_put_end(core->streams, two, false, NOW, &err), err);
    streams_end(core->streams, one);
    streams_end(core->streams, two);
    stream_free(take(one));
    stream_free(take(two));
    stream_core_end();
}

static void check_unfit(int result, const struct error *err, const char *why)
{
    CHECK(result < 0);
    CHECK_INT(error_kind(err), ERROR_INVALID);
    CHECK_STR(err->noun, "stream");
    CHECK(strstr(err->text, why));
}

TEST(only_a_stream_that_is_ours_free_and_open_is_taken)
{
    struct core *core = stream_core();
    const char *id = new_stream(core), *done = new_stream(core), *gone = new_stream(core);
    struct stream_place place = place_of(STREAM_STDOUT);
    autoptr(stream) stream = NULL;
    autoptr(stream) same = NULL;
    struct stream *none = NULL;
    struct error err = {0};

    CHECK_OK(stream_complete(core->streams, &one_of_us, done, &err), err);
    CHECK_OK(stream_remove(core->streams, &one_of_us, gone, &err), err);
    check_unfit(taken(core, "nothing", STREAM_STDOUT, "e", &none, &err), &err, "does not exist");
    check_unfit(taken(core, gone, STREAM_STDIN, "e", &none, &err), &err, "does not exist");
    check_unfit(taken(core, done, STREAM_STDOUT, "e", &none, &err), &err, "is complete");
    check_unfit(streams_take(core->streams, &stranger, id, &place, &none, &err), &err,
                "does not exist");
    CHECK_OK(taken(core, id, STREAM_COMBINED, "e", &stream, &err), err);
    check_unfit(taken(core, id, STREAM_STDIN, "e", &none, &err), &err,
                "is used by another command");
    check_unfit(taken(core, id, STREAM_STDOUT, "f", &none, &err), &err,
                "is used by another command");
    CHECK_OK(taken(core, id, STREAM_COMBINED, "e", &same, &err), err);
    CHECK(same == stream);
    stream_free(take(same));
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_command_writes_behind_what_its_user_has_written)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    autoptr(stream) stream = NULL;
    struct error err = {0};
    int64_t now = (int64_t)clock_wall_ms() + 24 * KEEP_MS;

    append(core, id, "mine, ");
    CHECK_OK(taken(core, id, STREAM_STDOUT, "e", &stream, &err), err);
    CHECK_INT(fcntl(stream_write_fd(stream), F_GETFL) & O_APPEND, O_APPEND);
    CHECK_INT(lseek(stream_write_fd(stream), 0, SEEK_SET), 0);
    write_to(stream, "yours");
    CHECK_STR(content_of(stream), "mine, yours");
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(streams_put_end(core->streams, stream, false, now, &err), err);
    streams_end(core->streams, stream);
    CHECK_INT(row_number(core, "size_bytes", id), 11);
    // Not the sandbox's, but readable for as long as one of the sandbox's own.
    CHECK_INT(row_number(core, "sandbox_id IS NULL", id), 1);
    CHECK_INT(row_number(core, "expires_at", id), now + KEEP_MS);
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_stream_is_given_back_when_the_command_does_not_come_to_be)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct error err = {0};

    for (int is_committed = 0; is_committed < 2; is_committed++) {
        struct stream *stream = NULL;
        {
            autotransaction together = {0};
            CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
            CHECK_OK(taken(core, id, STREAM_STDOUT, "e", &stream, &err), err);
            if (is_committed)
                CHECK_OK(store_commit(&together, &err), err);
        }
        CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
        streams_give_back(core->streams, stream);
        append(core, id, "mine");
        CHECK_INT(row_number(core, "kind = 'user' AND execution_id IS NULL", id), 1);
    }
    core = stream_core_again();
    append(core, id, "!");
    autoptr(stream) reader = NULL;
    CHECK_OK(stream_open(core->streams, id, &reader, &err), err);
    CHECK_STR(content_of(reader), "minemine!");
    stream_free(take(reader));
    stream_core_end();
}

TEST(after_a_restart_commands_go_on_with_their_streams)
{
    struct core *core = stream_core();
    const char *input = new_stream(core);
    struct stream *stream = prepare(core, STREAM_STDOUT), *in = NULL;
    char id[32];
    struct error err = {0};

    (void)snprintf(id, sizeof id, "%s", stream_id(stream));
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_OK(taken(core, input, STREAM_STDIN, "e", &in, &err), err);
    append(core, input, "in");
    autofd pid1 = fcntl(stream_write_fd(stream), F_DUPFD_CLOEXEC, 3);
    CHECK_INT(write(pid1, "before ", 7), 7);
    stream_free(stream);
    stream_free(in);

    core = stream_core_again();
    autoptr(stream) reader = NULL;
    CHECK_OK(stream_open(core->streams, id, &reader, &err), err); // before anybody looks after it
    CHECK_STR(content_of(reader), "before ");
    CHECK(!progress_of(reader).is_complete);
    struct stream_filter all = {.page = {.limit = 10}};
    autostreams open = {0};
    CHECK_OK(store_stream_list(core->store, &all, &open, &err), err);
    CHECK_INT(open.count, 2);
    struct stream *again[2] = {NULL};
    for (int i = 0; i < 2; i++)
        CHECK_OK(streams_reopen(core->streams, &open.rows[i], &again[i], &err), err);
    CHECK_INT(write(pid1, "after", 5), 5);
    CHECK_STR(content_of(reader), "before after");
    append(core, input, "put");
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(streams_put_end(core->streams, again[i], false, NOW, &err), err);
        streams_end(core->streams, again[i]);
        stream_free(again[i]);
    }
    CHECK(progress_of(reader).is_complete);
    CHECK_INT(row_number(core, "size_bytes", id), 12);
    CHECK_INT(row_number(core, "size_bytes", input), 5);
    stream_free(take(reader));
    stream_core_end();
}

TEST(a_file_that_a_power_cut_took_is_an_empty_stream)
{
    struct core *core = stream_core();
    struct stream *stream = prepare(core, STREAM_STDOUT);
    char id[32];
    struct error err = {0};

    (void)snprintf(id, sizeof id, "%s", stream_id(stream));
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    stream_free(stream);
    CHECK(unlink(stream_file(id)) == 0);
    core = stream_core_again();
    struct stream_filter all = {.page = {.limit = 10}};
    autostreams open = {0};
    CHECK_OK(store_stream_list(core->store, &all, &open, &err), err);
    CHECK_OK(streams_reopen(core->streams, &open.rows[0], &stream, &err), err);
    CHECK_STR(content_of(stream), "");
    CHECK_OK(streams_put_end(core->streams, stream, false, NOW, &err), err);
    streams_end(core->streams, stream);
    stream_free(stream);
    stream_core_end();
}

TEST(streams_whose_time_is_up_are_removed_unless_a_command_uses_them)
{
    struct core *core = stream_core();
    const char *old = new_stream(core), *used = new_stream(core), *read = new_stream(core);
    int64_t now = (int64_t)clock_wall_ms() + KEEP_MS + 1000;
    autoptr(stream) stream = NULL;
    autoptr(stream) reader = NULL;
    struct error err = {0};
    unsigned removed = 0;

    CHECK_OK(taken(core, used, STREAM_STDOUT, "e", &stream, &err), err);
    CHECK_OK(stream_open(core->streams, read, &reader, &err), err);
    CHECK_OK(streams_purge(core->streams, now - 2000, 100, &removed, &err), err);
    CHECK_INT(removed, 0);
    CHECK_OK(streams_purge(core->streams, now, 100, &removed, &err), err);
    CHECK_INT(removed, 2);
    CHECK(access(stream_file(old), F_OK) < 0);
    CHECK(access(stream_file(read), F_OK) < 0);
    CHECK(progress_of(reader).is_complete);
    CHECK(access(stream_file(used), F_OK) == 0);
    CHECK_INT(row_number(core, "expires_at", used), now + KEEP_MS);
    CHECK_OK(streams_put_end(core->streams, stream, false, now, &err), err);
    streams_end(core->streams, stream);
    CHECK_OK(streams_purge(core->streams, now + KEEP_MS + 1, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), 0);
    stream_free(take(stream));
    stream_free(take(reader));
    stream_core_end();
}

TEST(a_purge_does_no_more_than_it_is_asked_to)
{
    struct core *core = stream_core();
    int64_t now = (int64_t)clock_wall_ms() + KEEP_MS + 1000;
    struct error err = {0};

    for (int i = 0; i < 5; i++)
        (void)new_stream(core);
    for (unsigned left = 5; left > 0;) {
        unsigned removed = 0, wanted = left < 2 ? left : 2;
        CHECK_OK(streams_purge(core->streams, now, 2, &removed, &err), err);
        CHECK_INT(removed, wanted);
        left -= removed;
        CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), left);
    }
    stream_core_end();
}

TEST(files_that_no_row_knows_are_swept_after_an_hour)
{
    struct core *core = stream_core();
    autoptr(stream) held = prepare(core, STREAM_STDOUT);
    struct stream *forgotten = prepare(core, STREAM_STDOUT);
    const char *known = new_stream(core);
    int64_t soon = (int64_t)clock_wall_ms() + KEEP_MS / 2, late = soon + KEEP_MS;
    char id[32];
    struct error err = {0};
    unsigned removed = 0;

    (void)snprintf(id, sizeof id, "%s", stream_id(forgotten));
    stream_free(forgotten); // as a crash would
    CHECK_OK(store_stream_update(core->store, &(struct stream_record){.id = known, .expires_at = 0},
                                 STREAM_PART_EXPIRY, 0, &err),
             err);
    CHECK_OK(streams_purge(core->streams, soon, 100, &removed, &err), err);
    CHECK_INT(removed, 0);
    unsigned total = 0;
    for (int i = 0; i < 64 && access(stream_file(id), F_OK) == 0;
         i++) { // each looks through some of the directories
        CHECK_OK(streams_purge(core->streams, late, 100, &removed, &err), err);
        total += removed;
    }
    CHECK_INT(total, 1);
    CHECK(access(stream_file(id), F_OK) < 0);
    CHECK(access(stream_file(known), F_OK) == 0);
    CHECK(access(stream_file(stream_id(held)), F_OK) == 0);
    streams_discard(core->streams, take(held));
    stream_core_end();
}

/* What PID 1 does with a terminal that has shown more than is kept: all before `end` becomes a hole. */
static void drop_before(struct stream *stream, off_t end)
{
    CHECK_INT(
        fallocate(stream_write_fd(stream), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end), 0);
}

TEST(of_a_terminals_stream_readers_are_told_what_is_there_and_limits_count_that)
{
    const size_t size = 6 * DISK_HOLE + 100;
    autofree char *data = xcalloc(1, size);
    struct core *core = stream_core();
    struct stream *stream = prepare(core, STREAM_STDOUT);
    struct error err = {0};
    char id[ID_TEXT];
    int64_t commands = 0, users = 0;

    (void)snprintf(id, sizeof id, "%s", stream_id(stream));
    memset(data, 'x', size);
    CHECK_OK(streams_put(core->streams, stream, &err), err);
    CHECK_INT(write(stream_write_fd(stream), data, size), size);
    CHECK_INT(progress_of(stream).first_bytes, 0);
    drop_before(stream, 4 * DISK_HOLE);
    CHECK_INT(progress_of(stream).first_bytes, 5 * DISK_HOLE);
    CHECK_INT(progress_of(stream).size_bytes, size);
    CHECK_OK(streams_put_end(core->streams, stream, true, 1, &err), err);
    streams_end(core->streams, stream);
    CHECK_INT(progress_of(stream).first_bytes, 5 * DISK_HOLE);
    stream_free(stream);
    CHECK_INT(row_number(core, "size_bytes", id), size);
    CHECK_INT(row_number(core, "dropped_bytes", id), 4 * DISK_HOLE);
    CHECK_OK(store_stream_used(core->store, &commands, &users, &err), err);
    CHECK_INT(commands, size - 4 * DISK_HOLE);
    core = stream_core_again();
    autoptr(stream) later = NULL;
    CHECK_OK(stream_open(core->streams, id, &later, &err), err);
    CHECK_INT(progress_of(later).first_bytes, 5 * DISK_HOLE);
    stream_free(take(later));
    stream_core_end();
}
