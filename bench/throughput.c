/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes a second through pipelines, all pipes of 1 MiB and the last one drained here. Each line of
 * the peers file is one pipeline, its stages separated by a field "|"; rounds are interleaved.
 */
#include "bench.h"

#include "base/auto.h"
#include "base/mem.h"

#include <fcntl.h>
#include <string.h>

#define PIPE_BYTES (1 << 20)
#define MAX_STAGES 4

struct ends {
    int read, write;
};

static void close_ends(struct ends *ends)
{
    closep(&ends->read);
    closep(&ends->write);
}

static int make_pipe(struct ends *out, struct error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    *out = (struct ends){fds[0], fds[1]};
    if (fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
        return error_sys(err, "give a pipe 1 MiB");
    return 0;
}

static uint64_t drain(int fd)
{
    static char chunk[PIPE_BYTES];
    uint64_t total = 0;
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got <= 0)
            return total;
        total += (uint64_t)got;
    }
}

/* Starts the stages; *out is where the last one's output comes. */
static unsigned start_stages(char **argv, pid_t *pids, int *out, struct error *err)
{
    autofd input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    unsigned count = 0;

    while (argv && count < MAX_STAGES) {
        __attribute__((cleanup(close_ends))) struct ends ends = {-1, -1};
        char **end = argv;
        while (*end && strcmp(*end, "|") != 0)
            end++;
        char **next = *end ? end + 1 : NULL;
        *end = NULL;
        if (make_pipe(&ends, err) < 0)
            return count;
        pids[count] = bench_spawn(argv, input, ends.write, err);
        if (next)
            *(next - 1) = "|";
        if (pids[count] < 0)
            return count;
        count++;
        closep(&input);
        input = take_fd(ends.read);
        argv = next;
    }
    *out = take_fd(input);
    return count;
}

static int pipeline_run(struct row *row, uint64_t expected, struct error *err)
{
    pid_t pids[MAX_STAGES];
    autofd output = -1;
    int failed = 0;

    *err = (struct error){0};
    unsigned count = start_stages(row->argv, pids, &output, err);
    uint64_t bytes = output >= 0 ? drain(output) : 0;
    closep(&output);
    for (unsigned i = 0; i < count; i++)
        failed |= bench_reap(pids[i], row->name, err);
    if (failed || err->reason)
        return -1;
    if (bytes != expected)
        return error_set(err, ERROR_SYSTEM, "%llu bytes came, not %llu", (unsigned long long)bytes,
                         (unsigned long long)expected);
    return 0;
}

static void run_round(struct rows *rows, const struct bench *bench)
{
    struct error err = {0};
    for (size_t i = 0; i < rows->count && !bench_is_stopped(); i++) {
        struct row *row = &rows->row[i];
        uint64_t start = bench_now_ns();
        if (row->failure[0])
            continue;
        if (pipeline_run(row, bench->bytes, &err) < 0)
            (void)snprintf(row->failure, sizeof row->failure, "%s", err.text);
        else
            printf("throughput\t%s\t%.1f\n", row->name,
                   (double)bench->bytes * 1000 / (double)(bench_now_ns() - start));
    }
}

int bench_throughput(const struct bench *bench, struct error *err)
{
    __attribute__((cleanup(rows_clear))) struct rows rows = {0};
    if (peers_add(&rows, bench->peers, err) < 0)
        return -1;
    for (unsigned round = 0; round < bench->rounds && !bench_is_stopped(); round++)
        run_round(&rows, bench);
    for (size_t i = 0; i < rows.count && !bench_is_stopped(); i++) {
        if (rows.row[i].failure[0])
            printf("absent\tthroughput\t%s\t%s\n", rows.row[i].name, rows.row[i].failure);
    }
    return 0;
}
