/* SPDX-License-Identifier: Apache-2.0 */
/* Starts on chains of layers, and reading through them; see bench-layer.c. */
#include "base/mem.h"
#include "layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHAIN 100

struct chain {
    const char *title;
    const char *names[CHAIN];
    size_t count;
    struct figure starts, reads;
};

/* The lowest has the files that are read, each has one of its own. */
static void make_layers(char (*names)[32])
{
    for (unsigned i = 0; i < CHAIN; i++) {
        char own[24];
        int upper = make_scratch("bench");
        if (i == 0) {
            (void)mkdirat(upper, "many", 0755);
            autofd many = openat(upper, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            fill_files(many, FILES_TO_READ);
        }
        (void)snprintf(own, sizeof own, "only-%u", i);
        fill_bytes(upper, own, MIB / 16);
        (void)close(upper);
        (void)snprintf(names[i], sizeof names[i], "chain-%u", i);
        DO(layer_save(volume, "bench", names[i], NULL, &err));
    }
    DO(volume_scratch_remove(volume, "bench", &err));
}

/* As the server keeps it: the lowest LAYER_MERGE_AT become one, until there are no more than that. */
static void merge(struct chain *chain)
{
    static unsigned number;

    for (; chain->count > LAYER_MERGE_AT; chain->count -= LAYER_MERGE_AT - 1) {
        const char **lowest = chain->names + chain->count - LAYER_MERGE_AT;
        char *name = xasprintf("merged-%u", number++);
        DO(layer_merge(volume, lowest, LAYER_MERGE_AT, name, NULL, NULL, &err));
        lowest[0] = name;
    }
}

static void set(struct chain *chain, const char *title, char (*names)[32], size_t count)
{
    chain->title = title;
    chain->count = count;
    for (size_t i = 0; i < count; i++)
        chain->names[i] = names[count - 1 - i];
}

static void measure(struct chain *chain)
{
    DO(engine_fill_networks(engine, 4, &err));
    uint64_t begun = now_ns();
    struct box *box = start(chain->names, chain->count);
    run(box, 1, "true", NULL);
    figure_note(&chain->starts, begun);
    if (chain->count > 0) {
        begun = now_ns();
        run(box, 2, "read", "/many");
        figure_note(&chain->reads, begun);
    }
    stop(box);
}

void measure_chains(void)
{
    char(*names)[32] = xcalloc(CHAIN, sizeof *names);
    struct chain *chains = xcalloc(5, sizeof *chains);
    char text[64];

    make_layers(names);
    set(&chains[0], "runtime", names, 0);
    set(&chains[1], "1", names, 1);
    set(&chains[2], "10", names, 10);
    set(&chains[3], "100", names, 100);
    set(&chains[4], "100 unmerged", names, 100);
    merge(&chains[3]);
    for (unsigned round = 0; round < (is_quick ? 5 : 100); round++) {
        for (unsigned i = 0; i < 5; i++)
            measure(&chains[i]);
    }
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(text, sizeof text, "start %s", chains[i].title);
        figure_print(&chains[i].starts, text);
        (void)snprintf(text, sizeof text, "read %s", chains[i].title);
        figure_print(&chains[i].reads, text);
    }
    // Names and layers go with the data directory.
}
