/* SPDX-License-Identifier: Apache-2.0 */
/* How large this machine is; see machine.h. */
#include "base/machine.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)
#define PID_MAX_USUAL 32768 // where it cannot be read

static int64_t read_setting(const char *path)
{
    struct error ignored = {0};
    uint64_t number = 0;

    if (fd_read_knob_number(AT_FDCWD, path, &number, &ignored) < 0 || number > INT64_MAX)
        return PID_MAX_USUAL;
    return (int64_t)number;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t count_cpus(void)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        return CPU_COUNT(&cpus);
    return sysconf(_SC_NPROCESSORS_ONLN);
}

struct limits machine_size(void)
{
    struct sysinfo info = {0};

    (void)sysinfo(&info);
    return (struct limits){
        .memory_bytes = (int64_t)((uint64_t)info.totalram * info.mem_unit),
        .cpu_millicores = count_cpus() * 1000,
        .max_processes = smaller(read_setting("/proc/sys/kernel/pid_max"),
                                 read_setting("/proc/sys/kernel/threads-max")),
    };
}

static int64_t round_down(int64_t bytes)
{
    int64_t step = bytes >= 8 * GIB ? GIB : bytes >= 512 * MIB ? 64 * MIB : MIB;
    return larger(bytes - bytes % step, MIB);
}

struct limits machine_leave_room(const struct limits *whole)
{
    struct limits room = *whole;
    int64_t memory = smaller(larger(whole->memory_bytes / 16, 256 * MIB), 2 * GIB);
    int64_t processes = larger(whole->max_processes / 8, 1024);

    room.memory_bytes -= smaller(memory, whole->memory_bytes / 2);
    room.memory_bytes = round_down(room.memory_bytes);
    room.max_processes -= smaller(processes, whole->max_processes / 2);
    return room;
}
