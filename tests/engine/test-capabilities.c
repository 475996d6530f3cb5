/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a process down to the guest's capabilities, as the kernel reports it afterwards. */
#include "engine/capabilities.h"
#include "test.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct sets {
    uint64_t inheritable, permitted, effective, bounding, ambient;
};

static uint64_t status_line(const char *name)
{
    char line[256];
    uint64_t value = UINT64_MAX;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status)) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = strtoull(line + length + 1, NULL, 16);
    }
    if (status)
        (void)fclose(status);
    return value;
}

static struct sets read_sets(void)
{
    return (struct sets){status_line("CapInh"), status_line("CapPrm"), status_line("CapEff"),
                         status_line("CapBnd"), status_line("CapAmb")};
}

/* Drops in a child; its sets afterwards. */
static struct sets sets_after_drop(void)
{
    struct sets *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        if (capabilities_drop(0) < 0)
            _exit(1);
        *shared = read_sets();
        _exit(0);
    }
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    struct sets after = *shared;
    (void)munmap(shared, sizeof *shared);
    CHECK_INT(status, 0);
    return after;
}

static void need_root(void)
{
    if ((read_sets().permitted & capabilities_mask()) != capabilities_mask() ||
        prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) != 1)
        SKIP("needs root with its usual capabilities");
}

TEST(exactly_the_declared_set_is_left)
{
    need_root();
    struct sets after = sets_after_drop();
    CHECK_INT(after.permitted, capabilities_mask());
    CHECK_INT(after.effective, capabilities_mask());
    CHECK_INT(after.bounding & ~capabilities_mask(), 0);
    CHECK_INT(after.inheritable, 0);
    CHECK_INT(after.ambient, 0);
}

TEST(the_set_has_nothing_that_opens_the_kernel)
{
    static const int shut[] = {CAP_SYS_ADMIN,       CAP_NET_ADMIN,   CAP_NET_RAW,
                               CAP_SYS_PTRACE,      CAP_SYS_MODULE,  CAP_SYS_RAWIO,
                               CAP_DAC_READ_SEARCH, CAP_MKNOD,       CAP_SYS_BOOT,
                               CAP_SYS_TIME,        CAP_AUDIT_WRITE, CAP_BPF,
                               CAP_PERFMON,         CAP_SYSLOG,      CAP_SYS_RESOURCE,
                               CAP_SYS_NICE,        CAP_IPC_LOCK,    CAP_LINUX_IMMUTABLE};
    for (size_t i = 0; i < sizeof shut / sizeof *shut; i++)
        CHECK(!(capabilities_mask() & UINT64_C(1) << shut[i]));
}

TEST(a_second_drop_changes_nothing)
{
    need_root();
    pid_t child = fork();
    if (child == 0) {
        if (capabilities_drop(0) < 0 || capabilities_drop(0) < 0)
            _exit(1);
        _exit(status_line("CapEff") == capabilities_mask() ? 0 : 2);
    }
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}
