/* SPDX-License-Identifier: Apache-2.0 */
/* How many sandboxes there can be; see capacity.h. */
#include "serve/capacity.h"

#include "base/auto.h"
#include "base/descriptors.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define MEANT_BELOW 1024
#define FILES_ENOUGH 1048576
#define FILES_OF_SERVER 1300 // kept back, made ahead, and its own
// Of a sandbox in which nothing runs, nearly all of it the kernel's; see docs/internals/launch.md, also for what each has for each other.
#define BOX_BYTES (600u << 10)
#define PAIR_BYTES 80
#define OTHER_PROCESSES 1024

static uint64_t read_number(const char *path)
{
    struct error ignored = {0};
    uint64_t number = UINT64_MAX;

    return fd_read_knob_number(AT_FDCWD, path, &number, &ignored) == 0 ? number : UINT64_MAX;
}

void capacity_raise(void)
{
    uint64_t most = read_number("/proc/sys/fs/nr_open");
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t wanted = most < FILES_ENOUGH ? most : FILES_ENOUGH;
    const struct rlimit higher = {wanted, wanted};
    if (limit.rlim_max >= MEANT_BELOW && limit.rlim_max < wanted &&
        setrlimit(RLIMIT_NOFILE, &higher) == 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); // then connections wait in the backlog sooner
}

/* A sandbox holds one; connections may take a quarter of all. */
static uint64_t by_files(void)
{
    uint64_t limit = descriptors_limit();
    uint64_t rest = limit - limit / 4;

    return rest > 2 * FILES_OF_SERVER ? rest - FILES_OF_SERVER : rest / 2;
}

static uint64_t by_processes(uint64_t boxes)
{
    static const char *const paths[] = {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"};
    uint64_t least = boxes ? boxes : UINT64_MAX;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        uint64_t most = read_number(paths[i]);
        most -= most > 2 * OTHER_PROCESSES ? OTHER_PROCESSES : most / 2;
        least = most < least ? most : least;
    }
    return least;
}

static uint64_t by_memory(uint64_t boxes)
{
    struct sysinfo info;

    if (boxes == 0 && sysinfo(&info) == 0)
        boxes = (uint64_t)info.totalram * info.mem_unit / 16 * 15;
    uint64_t low = 0;
    uint64_t high = boxes / BOX_BYTES + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        bool fits = middle * BOX_BYTES + middle * middle * PAIR_BYTES <= boxes;
        *(fits ? &low : &high) = middle;
    }
    return low;
}

static uint64_t by_namespaces(void)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    uint64_t least = UINT64_MAX;
    char path[64];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        (void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        uint64_t most = read_number(path);
        least = most < least ? most : least;
    }
    return least;
}

void capacity_measure(uint64_t boxes_memory_bytes, uint64_t boxes_processes, struct capacity *out)
{
    *out = (struct capacity){.allowed = {
                                 [CAPACITY_OPEN_FILES] = by_files(),
                                 [CAPACITY_PROCESSES] = by_processes(boxes_processes),
                                 [CAPACITY_MEMORY] = by_memory(boxes_memory_bytes),
                                 [CAPACITY_NAMESPACES] = by_namespaces(),
                                 [CAPACITY_PLACES] = SLOT_COUNT,
                             }};
    for (unsigned i = 0; i < CAPACITY_LIMITS; i++) {
        if (out->allowed[i] < out->allowed[out->least])
            out->least = i;
    }
}

void capacity_log(const struct capacity *capacity, uint64_t wanted, bool is_asked)
{
    static const char *const remedies[] = {
        [CAPACITY_OPEN_FILES] = "raise the limit of open files (LimitNOFILE of the systemd unit)",
        [CAPACITY_PROCESSES] = "sysctl kernel.pid_max=4194304, or raise --sandboxes-processes",
        [CAPACITY_MEMORY] = "more memory, or raise --sandboxes-memory",
        [CAPACITY_NAMESPACES] = "sysctl user.max_net_namespaces=100000, likewise the others",
        [CAPACITY_PLACES] = "another machine: these are all the user ids there are",
    };
    static const char *const names[] = {
        [CAPACITY_OPEN_FILES] = "openFiles", [CAPACITY_PROCESSES] = "processes",
        [CAPACITY_MEMORY] = "memory",        [CAPACITY_NAMESPACES] = "namespaces",
        [CAPACITY_PLACES] = "places",
    };
    const uint64_t *allowed = capacity->allowed;
    uint64_t least = allowed[capacity->least];

    log_info("sandboxes that the machine allows, idle ones", F("sandboxes", least),
             F("limitedBy", names[capacity->least]), F("openFiles", allowed[CAPACITY_OPEN_FILES]),
             F("processes", allowed[CAPACITY_PROCESSES]), F("memory", allowed[CAPACITY_MEMORY]),
             F("namespaces", allowed[CAPACITY_NAMESPACES]), F("places", allowed[CAPACITY_PLACES]));
    if (is_asked && wanted > least)
        log_warn("--max-sandboxes is out of reach", F("asked", wanted), F("sandboxes", least),
                 F("limitedBy", names[capacity->least]), F("remedy", remedies[capacity->least]));
}
