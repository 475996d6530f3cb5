/* SPDX-License-Identifier: Apache-2.0 */
/* Time of one run: every round runs each row once, in an order of its own, so that all meet the
 * same machine. */
#include "bench.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row *rows_add(struct rows *rows, const char *name)
{
    if (rows->count == MAX_ROWS)
        abort();
    struct row *row = &rows->row[rows->count++];
    *row = (struct row){.name = name};
    return row;
}

void rows_clear(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->row[i].clear)
            rows->row[i].clear(&rows->row[i]);
        free(rows->row[i].samples);
    }
    rows->count = 0;
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void shuffle(size_t *order, size_t count, uint32_t *random)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t other = next_random(random) % i;
        size_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static int measure_once(struct row *row, unsigned gap_ms, uint64_t *ns, struct error *err)
{
    if (row->prepare && row->prepare(row, err) < 0)
        return -1;
    if (gap_ms)
        bench_sleep_ms(gap_ms);
    uint64_t start = bench_now_ns();
    int failed = row->run(row, err);
    *ns = bench_now_ns() - start;
    struct error later = {0};
    if (row->settle && row->settle(row, failed ? &later : err) < 0)
        return -1;
    return failed;
}

static void measure_row(struct row *row, unsigned gap_ms, bool is_kept)
{
    struct error err = {0};
    uint64_t ns = 0;

    if (row->failure[0])
        return;
    if (measure_once(row, gap_ms, &ns, &err) < 0)
        (void)snprintf(row->failure, sizeof row->failure, "%s", err.text);
    else if (is_kept)
        row->samples[row->n_samples++] = ns;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static double percentile_us(const struct row *row, unsigned percent)
{
    unsigned rank = (row->n_samples * percent + 99) / 100; // the nearest at or above
    return (double)row->samples[rank ? rank - 1 : 0] / 1000;
}

static void print_row(const char *mode, struct row *row)
{
    if (row->failure[0] || row->n_samples == 0) {
        printf("absent\t%s\t%s\t%s\n", mode, row->name, row->failure);
        return;
    }
    qsort(row->samples, row->n_samples, sizeof *row->samples, compare);
    printf("launch\t%s\t%s\t%u\t%.1f\t%.1f\t%.1f\t%.1f\n", mode, row->name, row->n_samples,
           percentile_us(row, 0), percentile_us(row, 50), percentile_us(row, 90),
           percentile_us(row, 99));
}

/* gap_ms 0: back to back. Otherwise each run waits for 40 to 100 % of it before. */
static void measure_all(struct rows *rows, const char *mode, unsigned rounds, unsigned gap_ms)
{
    const unsigned warm_up = rounds < 10 ? 1 : 3;
    size_t order[MAX_ROWS];
    uint32_t random = 2463534242u;

    for (size_t i = 0; i < rows->count; i++) {
        rows->row[i].samples = xrealloc(rows->row[i].samples, rounds, sizeof(uint64_t));
        rows->row[i].n_samples = 0;
    }
    for (unsigned round = 0; round < rounds + warm_up && !bench_is_stopped(); round++) {
        shuffle(order, rows->count, &random);
        for (size_t i = 0; i < rows->count && !bench_is_stopped(); i++) {
            unsigned gap =
                gap_ms ? gap_ms * 2 / 5 + next_random(&random) % (gap_ms * 3 / 5 + 1) : 0;
            measure_row(&rows->row[order[i]], gap, round >= warm_up);
        }
    }
    for (size_t i = 0; i < rows->count && !bench_is_stopped(); i++)
        print_row(mode, &rows->row[i]);
}

int bench_launch(const struct bench *bench, struct error *err)
{
    __attribute__((cleanup(rows_clear))) struct rows rows = {0};

    if (peers_add(&rows, bench->peers, err) < 0 || floor_add(&rows, bench, err) < 0 ||
        library_add(&rows, bench, err) < 0)
        return -1;
    measure_all(&rows, "back-to-back", bench->rounds, 0);
    if (bench->gap_ms)
        measure_all(&rows, "idle-gaps", bench->rounds, bench->gap_ms);
    return 0;
}
