/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark's files share. The program measures and prints lines of tab-separated fields;
 * bench/run makes what it needs, judges the figures and prints tables.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bench {
    const char *peers;    // file of commands, one a line, fields separated by tabs: name, argv...
    const char *root;     // read-only layer of boxes and floor; NULL: neither is measured
    bool has_host_usr;    // the machine's /usr is bound over the layer's
    bool has_network;     // boxes have a way out, which nobody opens
    const char *data_dir; // engine's; NULL: no library rows
    unsigned rounds;
    unsigned gap_ms; // longest idle gap of the second half
    unsigned seconds;
    unsigned workers;
    unsigned boxes;
    uint64_t bytes;
};

/* Ctrl-C came: end orderly. */
bool bench_is_stopped(void);
uint64_t bench_now_ns(void);
void bench_sleep_ms(unsigned ms);

/* One way to run the program. Only `run` is on the clock. */
struct row {
    const char *name;
    int (*prepare)(struct row *row, struct error *err); // or NULL; before the idle gap
    int (*run)(struct row *row, struct error *err);
    int (*settle)(struct row *row, struct error *err); // or NULL; removes what is left of the run
    void (*clear)(struct row *row);                    // or NULL
    void *data;
    char **argv;
    uint64_t *samples;
    unsigned n_samples;
    char failure[768]; // why the row is out of the race; empty while it runs
};

#define MAX_ROWS 24
struct rows {
    struct row row[MAX_ROWS];
    size_t count;
};
struct row *rows_add(struct rows *rows, const char *name);
void rows_clear(struct rows *rows);

/* A line of the peers file, or of a pipeline; borrowed from `line`, which is cut up. */
char **peer_split(char *line, const char **name);
/* Adds a row for each command of the file. PEER_NO_UNIFIED before argv: run where no v2 tree is
 * mounted beside v1. */
#define PEER_NO_UNIFIED "@no-unified"
int peers_add(struct rows *rows, const char *path, struct error *err);
int floor_add(struct rows *rows, const struct bench *bench, struct error *err);
int library_add(struct rows *rows, const struct bench *bench, struct error *err);

/* The measurements. */
int bench_launch(const struct bench *bench, struct error *err);
int bench_throughput(const struct bench *bench, struct error *err);
int bench_sustained(const struct bench *bench, struct error *err);
int bench_memory(const struct bench *bench, struct error *err);
int bench_steps(const struct bench *bench, struct error *err);
int bench_detach(const struct bench *bench, struct error *err);

/* Starts a program with these as 0 and 1 (stderr stays); the pid, or -1. */
pid_t bench_spawn(char **argv, int stdin_fd, int stdout_fd, struct error *err);
int bench_reap(pid_t pid, const char *name, struct error *err);
