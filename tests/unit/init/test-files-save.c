/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, copies and moves: all or nothing, whatever stands in the way. */
#include "file_rig.h"

#include <dirent.h>

struct text {
    const char *at;
    size_t left;
    int until_failure; // calls; 0: none
};

static ssize_t fill_text(void *data, void *bytes, size_t size, struct error *err)
{
    struct text *text = data;
    size_t taken = text->left < size ? text->left : size;
    if (text->until_failure && --text->until_failure == 0)
        return error_set(err, ERROR_INVALID, "the caller went away");
    memcpy(bytes, text->at, taken);
    text->at += taken;
    text->left -= taken;
    return (ssize_t)taken;
}

static const struct files_save plain = {
    .mode = FILES_KEEP_MODE, .uid = FILES_KEEP_ID, .gid = FILES_KEEP_ID, .condition = ""};

static int save(struct rig *rig, const char *path, const char *content,
                const struct files_save *how, struct files_item *item, struct error *err)
{
    struct text text = {content, strlen(content), 0};
    return files_save(rig->conv, path, how, fill_text, &text, item, err);
}

static unsigned entries_of(int dir)
{
    unsigned count = 0;
    autofd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fdopendir(take_fd(fd));
    CHECK(entries != NULL);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    (void)closedir(entries);
    return count;
}

TEST(a_saved_file_takes_the_place_of_the_old_one)
{
    RIG(rig);
    struct error err = {0};
    struct files_item item = {0};
    struct stat old, new;
    put_file(rig.fd, "a", "a long old text", 04751);
    CHECK(linkat(rig.fd, "a", rig.fd, "twin", 0) == 0);
    CHECK(fstatat(rig.fd, "a", &old, 0) == 0);

    CHECK_OK(save(&rig, "a", "new", &plain, &item, &err), err);
    CHECK_STR(get_file(rig.fd, "a"), "new");
    CHECK_STR(get_file(rig.fd, "twin"), "a long old text");
    CHECK_INT(mode_of(rig.fd, "a"), S_IFREG | 0751);
    CHECK(fstatat(rig.fd, "a", &new, 0) == 0);
    CHECK(old.st_ino != new.st_ino);
    CHECK_INT(item.inode, new.st_ino);
    CHECK_INT(item.size, 3);
    CHECK_INT(entries_of(rig.fd), 2);
}

TEST(a_new_file_gets_the_mode_asked_for_and_its_parents)
{
    RIG(rig);
    struct error err = {0};
    struct files_save how = plain;

    CHECK(save(&rig, "x/y", "1", &how, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    how.flags = FILES_PARENTS;
    CHECK_OK(save(&rig, "x/y", "1", &how, NULL, &err), err);
    CHECK_INT(mode_of(rig.fd, "x/y"), S_IFREG | 0644);
    how.mode = 0600;
    CHECK_OK(save(&rig, "x/y", "1", &how, NULL, &err), err);
    CHECK_INT(mode_of(rig.fd, "x/y"), S_IFREG | 0600);
}

TEST(a_save_through_links_replaces_what_they_lead_to)
{
    RIG(rig);
    struct error err = {0};
    CHECK(mkdirat(rig.fd, "d", 0755) == 0);
    put_file(rig.fd, "d/file", "old", 0644);
    CHECK(symlinkat("d/second", rig.fd, "first") == 0);
    CHECK(symlinkat("file", rig.fd, "d/second") == 0);
    CHECK(symlinkat("loop", rig.fd, "loop") == 0);
    CHECK(symlinkat("d/later", rig.fd, "nothing") == 0);

    CHECK_OK(save(&rig, "first", "new", &plain, NULL, &err), err);
    CHECK_STR(get_file(rig.fd, "d/file"), "new");
    CHECK(S_ISLNK(mode_of(rig.fd, "first")));
    CHECK_OK(save(&rig, "nothing", "made", &plain, NULL, &err), err);
    CHECK_STR(get_file(rig.fd, "d/later"), "made");
    CHECK(save(&rig, "loop", "x", &plain, NULL, &err) < 0);
    CHECK_INT(err.sys, ELOOP);
}

TEST(a_save_that_is_given_up_leaves_nothing)
{
    RIG(rig);
    struct error err = {0};
    struct text text = {"abc", 3, 2};
    put_file(rig.fd, "a", "old", 0644);

    CHECK(files_save(rig.conv, "a", &plain, fill_text, &text, NULL, &err) < 0);
    CHECK_STR(err.text, "the caller went away");
    CHECK_STR(get_file(rig.fd, "a"), "old");
    CHECK_INT(entries_of(rig.fd), 1);
}

TEST(only_files_are_replaced)
{
    RIG(rig);
    struct error err = {0};
    CHECK(mkdirat(rig.fd, "d", 0755) == 0);
    CHECK(mkfifoat(rig.fd, "fifo", 0666) == 0);

    CHECK(save(&rig, "d", "x", &plain, NULL, &err) < 0);
    CHECK_INT(err.sys, EISDIR);
    CHECK(save(&rig, "d/", "x", &plain, NULL, &err) < 0);
    CHECK_INT(err.sys, EISDIR);
    CHECK(save(&rig, "fifo", "x", &plain, NULL, &err) < 0);
    CHECK_STR(err.text, "'fifo' is a FIFO, not a file");
    CHECK(save(&rig, "/proc/self/comm", "x", &plain, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK_INT(entries_of(rig.fd), 2);
}

TEST(a_condition_is_held_to)
{
    RIG(rig);
    struct error err = {0};
    struct files_item item = {0};
    char etag[FILES_ETAG_SIZE], list[FILES_ETAG_SIZE + 16];
    struct files_save how = plain;

    how.condition = "*";
    CHECK(save(&rig, "a", "x", &how, NULL, &err) < 0); // not there
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.sys, ESTALE);
    how.flags = FILES_UNLESS;
    CHECK_OK(save(&rig, "a", "first", &how, &item, &err), err);
    CHECK(save(&rig, "a", "x", &how, NULL, &err) < 0); // there now
    CHECK_INT(err.sys, ESTALE);

    (void)snprintf(list, sizeof list, "1-2-3-4,%s,9", files_item_etag(&item, etag));
    how.flags = 0;
    how.condition = list;
    CHECK_OK(save(&rig, "a", "second", &how, NULL, &err), err);
    CHECK(save(&rig, "a", "third", &how, NULL, &err) < 0);
    CHECK_INT(err.sys, ESTALE);
    CHECK_STR(get_file(rig.fd, "a"), "second");
    CHECK(files_remove_if(rig.conv, "a", 0, list, NULL, &err) < 0);
    CHECK_INT(err.sys, ESTALE);
    CHECK_OK(files_stat(rig.conv, "a", false, &item, NULL, &err), err);
    CHECK_OK(files_remove_if(rig.conv, "a", 0, files_item_etag(&item, etag), NULL, &err), err);
    CHECK(!is_there(rig.fd, "a"));
}

TEST(the_etag_changes_with_content_mode_and_place)
{
    RIG(rig);
    struct error err = {0};
    struct files_item before = {0}, after = {0};
    char first[FILES_ETAG_SIZE], second[FILES_ETAG_SIZE];
    const struct timespec old[2] = {{1, 0}, {1, 0}};
    put_file(rig.fd, "a", "text", 0644);

    CHECK_OK(files_stat(rig.conv, "a", false, &before, NULL, &err), err);
    CHECK(utimensat(rig.fd, "a", old, 0) == 0); // a guest that hides its write by the time
    CHECK_OK(files_stat(rig.conv, "a", false, &after, NULL, &err), err);
    CHECK(strcmp(files_item_etag(&before, first), files_item_etag(&after, second)) != 0);
    CHECK_INT(before.disk_bytes % 512, 0);
    CHECK(before.ctime_ns > 0 && before.atime_ns > 0);
}

/* Two writers who have seen the same file: exactly one wins, each time. */
struct racer {
    struct rig rig;
    const char *etag;
    pthread_barrier_t *barrier;
    bool has_won;
};

static void *race(void *data)
{
    struct racer *racer = data;
    struct files_save how = plain;
    struct error err = {0};
    how.condition = racer->etag;
    (void)pthread_barrier_wait(racer->barrier);
    racer->has_won = save(&racer->rig, "a", "mine", &how, NULL, &err) == 0;
    return NULL;
}

TEST(of_two_writers_with_the_same_etag_one_wins)
{
    RIG(rig);
    struct error err = {0};
    struct racer racers[2] = {0};
    pthread_barrier_t barrier;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    put_file(rig.fd, "a", "start", 0644);
    for (int i = 0; i < 2; i++) {
        racers[i].rig = rig;
        racers[i].barrier = &barrier;
        rig_start(&racers[i].rig);
    }
    for (int round = 0; round < 200; round++) {
        struct files_item item;
        char etag[FILES_ETAG_SIZE];
        pthread_t threads[2];
        CHECK_OK(files_stat(rig.conv, "a", false, &item, NULL, &err), err);
        for (int i = 0; i < 2; i++) {
            racers[i].etag = files_item_etag(&item, etag);
            CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
        }
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK_INT(racers[0].has_won + racers[1].has_won, 1);
    }
    for (int i = 0; i < 2; i++)
        rig_stop(&racers[i].rig);
    CHECK_INT(entries_of(rig.fd), 1);
    (void)pthread_barrier_destroy(&barrier);
}

TEST(what_is_appended_stands_behind_what_is_there)
{
    RIG(rig);
    struct error err = {0};
    struct files_item item = {0};
    struct files_save how = plain;
    struct text broken = {"abc", 3, 1};
    how.flags = FILES_APPEND;

    CHECK_OK(save(&rig, "log", "one\n", &how, NULL, &err), err);
    CHECK(linkat(rig.fd, "log", rig.fd, "twin", 0) == 0);
    CHECK_OK(save(&rig, "log", "two\n", &how, &item, &err), err);
    CHECK_STR(get_file(rig.fd, "twin"), "one\ntwo\n");
    CHECK_INT(item.size, 8);
    CHECK(files_save(rig.conv, "new", &how, fill_text, &broken, NULL, &err) < 0);
    CHECK(!is_there(rig.fd, "new"));
    CHECK(mkfifoat(rig.fd, "fifo", 0666) == 0);
    CHECK(save(&rig, "fifo", "x", &how, NULL, &err) < 0);
}

TEST(owners_are_kept_or_set)
{
    RIG(rig);
    struct error err = {0};
    struct files_save how = plain;
    struct stat info;
    if (geteuid() != 0)
        SKIP("needs root");
    put_file(rig.fd, "a", "x", 0640);
    CHECK(fchownat(rig.fd, "a", 12, 34, 0) == 0);
    CHECK_OK(save(&rig, "a", "y", &how, NULL, &err), err);
    CHECK(fstatat(rig.fd, "a", &info, 0) == 0);
    CHECK_INT(info.st_uid, 12);
    CHECK_INT(info.st_gid, 34);
    how.uid = 56;
    CHECK_OK(save(&rig, "a", "z", &how, NULL, &err), err);
    CHECK(fstatat(rig.fd, "a", &info, 0) == 0);
    CHECK_INT(info.st_uid, 56);
    CHECK_INT(info.st_gid, 34);
    CHECK_INT(info.st_mode, S_IFREG | 0640);
    how.uid = 70000;
    CHECK(save(&rig, "a", "z", &how, NULL, &err) < 0);
    CHECK_STR(err.text, "a sandbox has users and groups 0 to 65535");
}

static int go_on(void *data, struct error *err)
{
    return 0;
}
static const struct files_patience patience = {.on_alive = go_on};

TEST(a_tree_is_copied_with_modes_times_links_and_holes)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    struct stat info;
    const struct timespec old[2] = {{1000, 0}, {2000, 0}};
    CHECK(mkdirat(rig.fd, "t", 0755) == 0 && mkdirat(rig.fd, "t/d", 0500) == 0);
    put_file(rig.fd, "t/x", "hello", 04711);
    CHECK(symlinkat("x", rig.fd, "t/link") == 0);
    CHECK(mkfifoat(rig.fd, "t/fifo", 0600) == 0);
    autofd sparse = openat(rig.fd, "t/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(pwrite(sparse, "end", 3, (off_t)1 << 40) == 3);
    CHECK(utimensat(rig.fd, "t/d", old, 0) == 0 && utimensat(rig.fd, "t/x", old, 0) == 0);

    CHECK_OK(files_copy(rig.conv, "t", "deep/er/copy", FILES_PARENTS | FILES_EXCLUSIVE, &patience,
                        &total, &err),
             err);
    CHECK_INT(total.items, 5);
    CHECK_INT(total.skipped, 1);
    CHECK_STR(get_file(rig.fd, "deep/er/copy/x"), "hello");
    CHECK_INT(mode_of(rig.fd, "deep/er/copy/x"), S_IFREG | 0711);
    CHECK_INT(mode_of(rig.fd, "deep/er/copy/d"), S_IFDIR | 0500);
    CHECK(S_ISLNK(mode_of(rig.fd, "deep/er/copy/link")));
    CHECK(!is_there(rig.fd, "deep/er/copy/fifo"));
    CHECK(fstatat(rig.fd, "deep/er/copy/d", &info, 0) == 0);
    CHECK_INT(info.st_mtim.tv_sec, 2000);
    CHECK(fstatat(rig.fd, "deep/er/copy/sparse", &info, 0) == 0);
    CHECK_INT(info.st_size, ((off_t)1 << 40) + 3);
    CHECK(info.st_blocks < 10000);
}

TEST(copies_replace_files_only_when_told_to)
{
    RIG(rig);
    struct error err = {0};
    put_file(rig.fd, "a", "A", 0644);
    put_file(rig.fd, "b", "B", 0644);
    CHECK(symlinkat("a", rig.fd, "link") == 0);
    CHECK(mkdirat(rig.fd, "d", 0755) == 0);

    CHECK(files_copy(rig.conv, "a", "b", FILES_EXCLUSIVE, NULL, NULL, &err) < 0);
    CHECK_INT(err.sys, EEXIST);
    CHECK_OK(files_copy(rig.conv, "link", "b", 0, NULL, NULL, &err), err);
    CHECK_STR(get_file(rig.fd, "b"), "A");
    CHECK(S_ISREG(mode_of(rig.fd, "b")));
    CHECK(files_copy(rig.conv, "a", "d", 0, NULL, NULL, &err) < 0);
    CHECK_INT(err.sys, EISDIR);
    CHECK(files_copy(rig.conv, "d", "a", 0, NULL, NULL, &err) < 0);
    CHECK_INT(err.sys, ENOTDIR);
    CHECK(files_copy(rig.conv, "a", "./a", 0, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(files_copy(rig.conv, "no", "x", 0, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_INT(entries_of(rig.fd), 4);
}

TEST(a_copy_into_itself_is_refused_and_leaves_nothing)
{
    RIG(rig);
    struct error err = {0};
    CHECK(mkdirat(rig.fd, "t", 0755) == 0 && mkdirat(rig.fd, "t/d", 0755) == 0);
    put_file(rig.fd, "t/x", "hello", 0644);

    CHECK(files_copy(rig.conv, "t", "t/d/copy", 0, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, "'t' cannot be copied into itself");
    autofd below = openat(rig.fd, "t/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(entries_of(below), 0);
}

static int stop(void *data, struct error *err)
{
    return error_set(err, ERROR_CANCELLED, "enough");
}

/* Signs of life come only with the second: so many files that one of them does. */
TEST(a_copy_that_is_given_up_leaves_nothing)
{
    RIG(rig);
    struct error err = {0};
    const struct files_patience impatience = {.on_alive = stop};
    autofd sparse = openat(rig.fd, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(sparse >= 0);
    char block[4096];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 4096; i++)
        CHECK(pwrite(sparse, block, sizeof block, (off_t)i << 24) == sizeof block);
    // the asker hangs up at the first sign of life, or right behind its question
    if (files_copy(rig.conv, "big", "copy", 0, &impatience, NULL, &err) < 0) {
        CHECK_INT(err.reason, ERROR_CANCELLED);
        rig_stop(&rig);
        CHECK_INT(entries_of(rig.fd), 1);
    }
}

TEST(moves_replace_only_when_told_to)
{
    RIG(rig);
    struct error err = {0};
    put_file(rig.fd, "a", "A", 0644);
    put_file(rig.fd, "b", "B", 0644);

    CHECK(files_move(rig.conv, "a", "b", FILES_EXCLUSIVE, &patience, &err) < 0);
    CHECK_INT(err.sys, EEXIST);
    CHECK_OK(files_move(rig.conv, "a", "n/e/w", FILES_PARENTS, &patience, &err), err);
    CHECK_STR(get_file(rig.fd, "n/e/w"), "A");
    CHECK_OK(files_move(rig.conv, "n", "m", 0, &patience, &err), err);
    CHECK(files_move(rig.conv, "m", "m/e/x", 0, &patience, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

TEST(what_cannot_be_renamed_is_copied_and_removed)
{
    RIG(rig);
    autorig other = rig_make_in("/dev/shm");
    struct error err = {0};
    struct stat here, there;
    char to[128];
    CHECK(fstat(rig.fd, &here) == 0 && fstat(other.fd, &there) == 0);
    if (here.st_dev == there.st_dev)
        SKIP("/tmp and /dev/shm are one file system");
    CHECK(mkdirat(rig.fd, "t", 0755) == 0);
    put_file(rig.fd, "t/x", "hello", 0640);
    CHECK(symlinkat("x", rig.fd, "t/link") == 0);

    (void)snprintf(to, sizeof to, "%s/moved", other.dir);
    CHECK_OK(files_move(rig.conv, "t", to, 0, &patience, &err), err);
    CHECK_STR(get_file(other.fd, "moved/x"), "hello");
    CHECK_INT(mode_of(other.fd, "moved/x"), S_IFREG | 0640);
    CHECK(S_ISLNK(mode_of(other.fd, "moved/link")));
    CHECK(!is_there(rig.fd, "t"));
    // a link alone is moved as it is
    CHECK(symlinkat("/nowhere", rig.fd, "l") == 0);
    (void)snprintf(to, sizeof to, "%s/l", other.dir);
    CHECK_OK(files_move(rig.conv, "l", to, 0, &patience, &err), err);
    CHECK(S_ISLNK(mode_of(other.fd, "l")));
    CHECK(!is_there(rig.fd, "l"));
    // what cannot be copied stays
    CHECK(mkdirat(rig.fd, "f", 0755) == 0 && mkfifoat(rig.fd, "f/fifo", 0600) == 0);
    (void)snprintf(to, sizeof to, "%s/f", other.dir);
    CHECK(files_move(rig.conv, "f", to, 0, &patience, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(is_there(rig.fd, "f/fifo"));
}

/* A guest that exchanges a directory of the copy's source with a link to a secret, all the time. */
struct swapper {
    int dir;
    _Atomic bool is_over;
};

static void *swap(void *data)
{
    struct swapper *swapper = data;
    while (!swapper->is_over)
        (void)renameat2(swapper->dir, "t/d", swapper->dir, "t/evil", RENAME_EXCHANGE);
    return NULL;
}

TEST(exchanging_directories_and_links_never_leads_a_copy_or_a_save_astray)
{
    RIG(rig);
    autorig secret = rig_make();
    struct error err = {0};
    struct swapper swapper = {.dir = rig.fd};
    pthread_t thread;
    put_file(secret.fd, "file", "secret", 0644);
    CHECK(mkdirat(rig.fd, "t", 0755) == 0 && mkdirat(rig.fd, "t/d", 0755) == 0);
    put_file(rig.fd, "t/d/file", "harmless", 0644);
    CHECK(symlinkat(secret.dir, rig.fd, "t/evil") == 0);
    CHECK(pthread_create(&thread, NULL, swap, &swapper) == 0);
    for (int i = 0; i < 200; i++) {
        if (files_copy(rig.conv, "t", "c", FILES_EXCLUSIVE, NULL, NULL, &err) == 0) {
            static const char *const names[] = {"c/d", "c/evil"};
            for (int n = 0; n < 2; n++) { // what was a link stays one, and is not gone through
                char path[32];
                (void)snprintf(path, sizeof path, "%s/file", names[n]);
                if (is_there(rig.fd, names[n]) && S_ISDIR(mode_of(rig.fd, names[n])) &&
                    is_there(rig.fd, path))
                    CHECK_STR(get_file(rig.fd, path), "harmless");
            }
        }
        struct error ignored;
        (void)files_remove(rig.conv, "c", FILES_RECURSIVE | FILES_MISSING_OK, &ignored);
    }
    swapper.is_over = true;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STR(get_file(secret.fd, "file"), "secret");
}
