/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of a guest on whoever works with its files from outside: exchanged directories, links,
 * special files. */
#include "threat_fixture.h"

#include "engine/files.h"

struct gathered {
    uint64_t bytes;
    uint64_t items;
    bool has_canary;
};

static int on_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct gathered *got = data;
    (void)err;
    got->bytes += length;
    got->has_canary |= memmem(bytes, length, CANARY_TEXT, strlen(CANARY_TEXT)) != NULL;
    return 0;
}

static int on_item(void *data, const struct files_item *item, struct error *err)
{
    (void)item;
    (void)err;
    ((struct gathered *)data)->items++;
    return 0;
}

static int on_match(void *data, const struct files_match *match, struct error *err)
{
    return on_data(data, match->text, match->text_size, err);
}

static ssize_t fill_once(void *data, void *bytes, size_t size, struct error *err)
{
    bool *is_done = data;
    (void)err;
    if (*is_done || size < 7)
        return 0;
    *is_done = true;
    memcpy(bytes, "planted", 7);
    return 7;
}

static int talk_to(struct box *box, const char *user)
{
    struct error err = {0};
    int conv = -1;
    CHECK_OK(box_files(box, user, "/workspace", &conv, &err), err);
    CHECK_OK(files_set_timeout(conv, PATIENCE_MS, &err), err);
    return conv;
}

/* Whole files, search and copies. */
static void use_later_verbs(int conv, const char *way, const char *path, const char *other,
                            struct gathered *got)
{
    static const struct files_find all = {
        .pattern = "**", .after = "", .kinds = FILES_KIND_ANY, .maximum = 1000};
    static const struct files_search any = {.pattern = ".",
                                            .names = "",
                                            .line_bytes = 100,
                                            .file_bytes = 1 << 20,
                                            .maximum = 1000,
                                            .depth = 3};
    struct files_save save = {.mode = 0666,
                              .uid = FILES_KEEP_ID,
                              .gid = FILES_KEEP_ID,
                              .flags = FILES_PARENTS,
                              .condition = ""};
    struct error err = {0};
    bool is_done = false, is_appended = false;
    (void)files_save(conv, path, &save, fill_once, &is_done, NULL, &err);
    save.flags |= FILES_APPEND;
    (void)files_save(conv, path, &save, fill_once, &is_appended, NULL, &err);
    (void)files_find(conv, way, &all, NULL, on_item, got, NULL, &err);
    (void)files_search(conv, way, &any, NULL, on_match, got, NULL, &err);
    (void)files_copy(conv, path, other, 0, NULL, NULL, &err);
    (void)files_copy(conv, way, "/workspace/copy", FILES_EXCLUSIVE, NULL, NULL, &err);
    (void)files_move(conv, other, path, 0, NULL, &err);
    (void)files_search(conv, "/workspace/copy", &any, NULL, on_match, got, NULL, &err);
    (void)files_remove_if(conv, "/workspace/copy", FILES_RECURSIVE, "*", NULL, &err);
}

/* Every verb there is, on paths that lead through `way`; what works and what does not changes from
 * one to the next. */
static void use_all_verbs(int conv, const char *way, struct gathered *got)
{
    struct error err = {0};
    char path[128], other[128];
    (void)snprintf(path, sizeof path, "%s/file", way);
    (void)snprintf(other, sizeof other, "%s/other", way);
    (void)files_write_buffer(conv, path, 0666, FILES_PARENTS, "planted", 7, &err);
    (void)files_read(conv, path, 0, 4096, NULL, on_data, got, NULL, &err);
    (void)files_list(conv, way, true, 1000, on_item, got, NULL, &err);
    (void)files_stat(conv, path, true, NULL, NULL, &err);
    (void)files_chmod(conv, path, 0777, &err);
    (void)files_chown(conv, path, 1000, 1000, FILES_FOLLOW, &err);
    (void)files_mkdir(conv, other, 0777, FILES_PARENTS, &err);
    (void)files_rename(conv, path, other, 0, &err);
    (void)files_export(conv, way, 1 << 20, on_item, on_data, got, NULL, &err);
    (void)files_remove(conv, other, FILES_RECURSIVE, &err);
    use_later_verbs(conv, way, path, other, got);
}

/* CVE-2018-15664, CVE-2026-42306 and the audit of file APIs: a directory that is a link every other
 * moment. */
BOX_TEST(a_directory_exchanged_with_a_link_leads_no_verb_out)
{
    const char *canary = canary_dir();
    uint64_t before = inventory(canary);
    const char *const targets[] = {canary, "/proc/1/root", "/proc/self/fd/3",
                                   "../../../../../../../../../../.."};
    struct box *box = launch_attacker();
    struct gathered got = {0};
    unsigned rounds = is_in_vm() ? 10 : 400;
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        static const char *const argv[] = {"/attacker", "exchange", "/workspace/way",
                                           "/workspace/link", NULL};
        struct error err = {0};
        struct process_exit exit;
        autofd conv = talk_to(box, i % 2 ? "guest" : NULL);
        CHECK_OK(files_mkdir(conv, "/workspace/way", 0777, 0, &err), err);
        ATTACK(box, "plant-links", "/workspace/link", targets[i]);
        uint32_t racer = start_command(box, NULL, argv);
        for (unsigned round = 0; race_goes_on(round, rounds); round++) {
            use_all_verbs(conv, "/workspace/way", &got);
            use_all_verbs(conv, "/workspace/link", &got);
        }
        CHECK_OK(box_signal(box, racer, 9, true, &err), err);
        CHECK_OK(box_wait(box, racer, PATIENCE_MS, &exit, &err), err);
        autofd root = talk_to(box, NULL);
        (void)files_remove(root, "/workspace/way", FILES_RECURSIVE, &err);
        (void)files_remove(root, "/workspace/link", FILES_RECURSIVE, &err);
    }
    CHECK(!got.has_canary);
    CHECK(got.items > 0 && got.bytes > 0); // some of it worked
    check_serves(box);
    end(box);
    CHECK(inventory(canary) == before);
}

/* isolate 2.5, Judge0: work on files is the user's own, with the user's rights, in the box. */
BOX_TEST(files_are_worked_on_with_the_rights_of_the_user)
{
    struct box *box = launch_attacker();
    struct error err = {0}, missing = {0};
    struct gathered got = {0};
    autofd root = talk_to(box, NULL);
    CHECK_OK(files_mkdir(root, "/secret", 0700, 0, &err), err);
    CHECK_OK(files_write_buffer(root, "/secret/there", 0600, 0, "x", 1, &err), err);
    autofd guest = talk_to(box, "guest");
    CHECK(files_read(guest, "/secret/there", 0, 10, NULL, on_data, &got, NULL, &err) < 0);
    CHECK(files_read(guest, "/secret/absent", 0, 10, NULL, on_data, &got, NULL, &missing) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK_INT(missing.reason, err.reason); // one cannot tell which of the two is there
    CHECK(files_write_buffer(guest, "/secret/new", 0600, 0, "x", 1, &err) < 0);
    CHECK(files_chown(guest, "/workspace", 1000, 1000, 0, &err) < 0);
    CHECK(files_list(guest, "/secret", true, 10, on_item, &got, NULL, &err) < 0);
    CHECK_INT(got.bytes + got.items, 0);
    CHECK_OK(files_write_buffer(guest, "own", 0600, 0, "x", 1, &err), err);
    struct files_item item;
    CHECK_OK(files_stat(root, "/workspace/own", false, &item, NULL, &err), err);
    CHECK_INT(item.uid, 1000);
    CHECK_INT(item.gid, 1000);
}

NOTHING_IS_LEFT_TEST
