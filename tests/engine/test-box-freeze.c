/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen boxes: processes stand still, PID 1 goes on; and files through PID 1; in every cgroup mode. */
#include "base/auto.h"
#include "box_fixture.h"
#include "engine/files.h"

#include <signal.h>
#include <unistd.h>

static void freeze(struct box *box)
{
    struct error err = {0};
    CHECK_OK(box_freeze(box, &err), err);
}

static void thaw(struct box *box)
{
    struct error err = {0};
    CHECK_OK(box_thaw(box, &err), err);
}

/* While another box's counter goes on by some steps, as a clock that every box shares. */
static bool stands_still(struct box *box, struct box *clock)
{
    uint64_t before = count_in(box, "/root/count");
    uint64_t goal = count_in(clock, "/root/count") + 300;
    AWAIT(count_in(clock, "/root/count") >= goal);
    return count_in(box, "/root/count") == before;
}

BOX_TEST_MODES(a_frozen_box_stands_still_and_goes_on_where_it_was)
{
    struct box *box = launch_plain();
    struct box *clock = launch_plain();
    (void)start_ready(box, NULL, "count /root/count");
    (void)start_ready(clock, NULL, "count /root/count");
    for (int i = 0; i < 3; i++) {
        uint64_t before = count_in(box, "/root/count");
        AWAIT(count_in(box, "/root/count") > before + 10);
        freeze(box);
        CHECK(stands_still(box, clock));
        thaw(box);
        CHECK(!stands_still(box, clock));
    }
    freeze(box);
    freeze(box); // twice is once
    CHECK(stands_still(box, clock));
    thaw(box);
    thaw(box);
    CHECK(!stands_still(box, clock));
}

static int note_name(void *data, const struct files_item *item, struct error *err)
{
    (void)strcat(data, item->path);
    (void)strcat(data, " ");
    return 0;
}

static int note_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    (void)strncat(data, bytes, length);
    return 0;
}

/* Writes, lists, reads and removes a file with a user's rights. */
static void use_files(struct box *box, const char *user, uint32_t uid)
{
    struct error err = {0};
    struct files_item item;
    struct files_total total;
    char text[256] = "";
    int conv = -1;

    CHECK_OK(box_files(box, user, NULL, &conv, &err), err);
    CHECK_OK(files_write_buffer(conv, "notes/one", 0640, FILES_PARENTS, "words\n", 6, &err), err);
    CHECK_OK(files_list(conv, "notes", false, 100, note_name, text, &total, &err), err);
    CHECK_STR(text, "one ");
    *text = '\0';
    CHECK_OK(files_read(conv, "notes/one", 0, 100, &item, note_bytes, text, &total, &err), err);
    CHECK_STR(text, "words\n");
    CHECK_INT(item.uid, uid);
    CHECK_OK(files_remove(conv, "notes", FILES_RECURSIVE, &err), err);
    (void)close(conv);
}

BOX_TEST_MODES(files_are_read_and_written_also_while_frozen)
{
    struct box *box = launch_plain();
    (void)start_ready(box, NULL, "count /root/count");
    use_files(box, NULL, 0);
    use_files(box, "kim", 1000);
    freeze(box);
    use_files(box, NULL, 0);
    use_files(box, "kim", 1000);
    thaw(box);
}

BOX_TEST(files_of_others_stay_closed_to_a_user)
{
    struct box *box = launch_plain();
    struct error err = {0};
    int conv = -1;
    CHECK_OK(box_files(box, "kim", NULL, &conv, &err), err);
    CHECK(files_write_buffer(conv, "/etc/passwd", 0644, 0, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    (void)close(conv);
    CHECK_OK(box_files(box, "nobody-known", NULL, &conv, &err), err);
    CHECK(files_mkdir(conv, "/tmp/x", 0755, 0, &err) < 0);
    (void)close(conv);
}

BOX_TEST_MODES(a_process_started_in_a_frozen_box_waits_and_stalls_nobody)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct box_event event;
    (void)start_ready(box, NULL, "count /root/count");
    freeze(box);
    uint32_t ids[10];
    for (int i = 0; i < 10; i++) {
        ids[i] =
            start(box, i % 2 ? &(struct process_spec){.command.user = "kim"} : NULL, "echo hello");
        use_files(box, "kim", 1000);
    }
    do
        CHECK_OK(box_next(box, &event, 50, &err), err);
    while (event.kind == BOX_EVENT_OUTPUT);
    CHECK_INT(event.kind, BOX_EVENT_NONE);
    thaw(box);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(finish(box, ids[i]).code, 0);
        CHECK_STR(output_of(ids[i]), "hello\n");
    }
}

BOX_TEST_MODES(a_frozen_process_can_be_killed)
{
    struct box *box = launch_plain();
    struct error err = {0};
    uint32_t id = start_ready(box, NULL, "daemon away stay");
    freeze(box);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    thaw(box); // version 1 lets nobody die while frozen
    CHECK_INT(finish(box, id).code, 137);
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_frozen_box_ends_like_any_other)
{
    struct box *box = launch_plain();
    (void)start_ready(box, NULL, "daemon away stay");
    (void)start_ready(box, NULL, "ignore");
    freeze(box);
    (void)start(box, NULL, "exit 0");
    end(box);
}

BOX_TEST_MODES(a_frozen_one_shot_box_ends_like_any_other)
{
    struct box_spec spec = plain_spec();
    spec.is_one_shot = true;
    struct box *box = launch(&spec);
    (void)start_ready(box, NULL, "daemon away stay");
    freeze(box);
    end(box);
    box = launch(&spec);
    (void)start_ready(box, NULL, "sleep 1000");
    freeze(box);
    thaw(box);
    struct error err = {0};
    CHECK_OK(box_signal(box, 2, SIGTERM, false, &err), err);
    CHECK_INT(finish(box, 2).code, 128 + SIGTERM);
}

BOX_TEST_MODES(a_process_of_a_frozen_box_that_is_collected_is_gone)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct box_event event = {0};
    uint32_t id = start_ready(box, NULL, "daemon left");
    while (event.kind != BOX_EVENT_EXIT)
        CHECK_OK(box_next(box, &event, PATIENCE_MS, &err), err);
    freeze(box);
    CHECK_OK(box_collect(box, id, &err), err);
    thaw(box);
    AWAIT(strcmp(processes_in(box), "end\n") == 0); // on version 1 it dies outside of its leaf
}

NOTHING_IS_LEFT_TEST
