/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of one box on the kernel, on its PID 1 and on its own walls; see rows.h. */
#include "attack/rows.h"

#include "base/fd.h"
#include "engine/capabilities.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

ROW(run_inside)
{
    INSIDE(range, range->a, NULL, result, attack->name);
    INSIDE(range, range->a, RANGE_USER, result, attack->name);
}

ROW(run_inside_as_root)
{
    INSIDE(range, range->a, NULL, result, attack->name);
}

ROW(run_rights)
{
    char all[32];
    (void)snprintf(all, sizeof all, "%016" PRIx64, capabilities_mask());
    INSIDE(range, range->a, NULL, result, "rights", all, all);
    INSIDE(range, range->a, RANGE_USER, result, "rights", all, "0000000000000000");
}

ROW(run_first_signals)
{
    run_inside(range, attack, result);
    range_check_others(range, result);
}

/* Root of the box plants the program; an ordinary user starts it. */
ROW(run_setuid)
{
    static const char *const argv[] = {"/tmp/suid", "who-am-i", "1000", NULL};
    INSIDE(range, range->a, NULL, result, "plant-setuid", "/tmp/suid");
    range_attack(range, range->a, RANGE_USER, result, argv);
}

/* Processes of root and of a third user wait while an ordinary user attacks them. */
ROW(run_other_users)
{
    char line[64] = "";
    uint32_t root = START(range, range->a, NULL, result, line, "wait");
    uint32_t third = START(range, range->a, "1001:1001", result, line, "wait");
    if (root > 0 && third > 0)
        INSIDE(range, range->a, RANGE_USER, result, "other-users");
    range_stop(range, range->a, root, result);
    range_stop(range, range->a, third, result);
}

/* /dev is a directory of the volume that all boxes share, and a bind is one of the host. */
ROW(run_volume_requests)
{
    const char *bind = range->spec.n_binds > 0 ? range->spec.binds[0].box : "/tmp";
    INSIDE(range, range->a, NULL, result, attack->name, "/dev", "/", RANGE_ATTACKER, bind);
    INSIDE(range, range->a, RANGE_USER, result, attack->name, "/dev", "/", RANGE_ATTACKER, bind);
}

/* The file of the layer is as it was made: 4096 times 'o', one name, open to everybody. */
static void check_layer_file(struct range *range, const char *path, struct attack_result *result)
{
    char full[4096], text[8192];
    struct stat info;
    (void)snprintf(full, sizeof full, "%s%s", range->layers[0], path);
    autofd fd = open(full, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text);
    bool is_whole = length == 4096;
    for (ssize_t i = 0; is_whole && i < length; i++)
        is_whole = text[i] == 'o';
    if (!is_whole)
        attack_judge(result, ATTACK_OPEN, "a file that all sandboxes share was changed");
    else if (fstat(fd, &info) < 0 || info.st_nlink != 1 || (info.st_mode & 07777) != 0666)
        attack_judge(result, ATTACK_OPEN,
                     "a file that all sandboxes share has other names or modes");
}

ROW(run_shared_files)
{
    INSIDE(range, range->a, NULL, result, "storm", RANGE_SHARED);
    check_layer_file(range, RANGE_SHARED, result);
}

ROW(run_hard_links)
{
    INSIDE(range, range->a, RANGE_USER, result, "hard-links", RANGE_LINKED);
    INSIDE(range, range->a, NULL, result, "hard-links", RANGE_LINKED);
    check_layer_file(range, RANGE_LINKED, result);
}
