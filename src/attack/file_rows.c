/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of a box on whoever works with its files from outside; see rows.h. */
#include "attack/rows.h"

#include "engine/files.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 10000
#define EXCHANGE_ROUNDS 60

struct gathered {
    uint64_t bytes;
    bool has_canary;
};

static int on_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct gathered *got = data;
    got->bytes += length;
    got->has_canary |= memmem(bytes, length, RANGE_CANARY, strlen(RANGE_CANARY)) != NULL;
    return 0;
}

static int on_item(void *data, const struct files_item *item, struct error *err)
{
    return 0;
}

static int talk(struct range *range, const char *user, struct attack_result *result)
{
    struct error err = {0};
    int conv = -1;
    if (box_files(range->a, user, "/workspace", &conv, &err) < 0 ||
        files_set_timeout(conv, PATIENCE_MS, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    return conv;
}

/* Every verb there is, on paths that lead through `way`; most fail, and none may lead out. */
static void use_all_verbs(int conv, const char *way, struct gathered *got)
{
    struct error err = {0};
    char path[4096], other[4096];
    (void)snprintf(path, sizeof path, "%s/canary", way);
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
}

static void check_canary(struct range *range, const struct gathered *got,
                         struct attack_result *result)
{
    char text[64] = "";
    autofile file = fopen(range->canary, "re");
    if (got->has_canary)
        attack_judge(result, ATTACK_OPEN, "a file of the host was read through a link");
    if (!file || !fgets(text, sizeof text, file) || strcmp(text, RANGE_CANARY) != 0)
        attack_judge(result, ATTACK_OPEN, "a file of the host was changed through a link");
}

ROW(run_file_links)
{
    static const char *const ways[] = {"/workspace/to-host", "/workspace/to-first",
                                       "/workspace/to-up", "/workspace/to-fd"};
    struct gathered got = {0};
    char up[4096];
    (void)snprintf(up, sizeof up, "../../../../../../../../..%s", range->place);
    INSIDE(range, range->a, NULL, result, "plant-links", ways[0], range->place, ways[1],
           "/proc/1/root", ways[2], up, ways[3], "/proc/self/fd/3");
    autofd root = talk(range, NULL, result);
    autofd user = talk(range, RANGE_USER, result);
    for (size_t i = 0; root >= 0 && user >= 0 && i < sizeof ways / sizeof *ways; i++) {
        use_all_verbs(root, ways[i], &got);
        use_all_verbs(user, ways[i], &got);
    }
    check_canary(range, &got, result);
    range_check_others(range, result);
}

/* FIFOs, devices, kernel files, files of PID 1: refused at once; a file of any size: as far as asked. */
ROW(run_file_special)
{
    static const char *const refused[] = {
        "fifo",           "zero",          "kmsg",         "environ",    "fd",
        "root/passwd",    "/dev/zero",     "/dev/urandom", "/proc/kmsg", "/proc/1/mem",
        "/proc/self/mem", "/dev/pts/ptmx", "/proc/1/fd/3"};
    struct gathered got = {0};
    struct error err = {0};
    struct files_total total = {0};
    INSIDE(range, range->a, NULL, result, "plant-special");
    autofd conv = talk(range, NULL, result);
    for (size_t i = 0; conv >= 0 && i < sizeof refused / sizeof *refused; i++) {
        if (files_read(conv, refused[i], 0, 1 << 20, NULL, on_data, &got, NULL, &err) == 0)
            attack_judge(result, ATTACK_OPEN, "'%s' was read", refused[i]);
        if (files_write_buffer(conv, refused[i], 0600, 0, "x", 1, &err) == 0)
            attack_judge(result, ATTACK_OPEN, "'%s' was written", refused[i]);
    }
    if (conv >= 0 && files_read(conv, "sparse", 0, 1 << 20, NULL, on_data, &got, &total, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    if (got.bytes > 1 << 20)
        attack_judge(result, ATTACK_OPEN, "more was read than was asked for");
}

/* CVE-2018-15664: a directory that is a link every other moment. */
ROW(run_file_exchange)
{
    struct gathered got = {0};
    struct error err = {0};
    char line[64] = "";
    autofd conv = talk(range, NULL, result);
    if (conv < 0)
        return;
    if (files_mkdir(conv, "/workspace/way", 0777, 0, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    INSIDE(range, range->a, NULL, result, "plant-links", "/workspace/link", range->place);
    uint32_t id =
        START(range, range->a, NULL, result, line, "exchange", "/workspace/way", "/workspace/link");
    for (int i = 0; id > 0 && i < EXCHANGE_ROUNDS && !range_is_stopped(range); i++) {
        use_all_verbs(conv, "/workspace/way", &got);
        use_all_verbs(conv, "/workspace/link", &got);
    }
    range_stop(range, range->a, id, result);
    check_canary(range, &got, result);
}
