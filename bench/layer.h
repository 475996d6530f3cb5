/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of bench-layer share. It ends with a message when anything fails; bench/state removes what it leaves. */
#pragma once
#include "base/auto.h"
#include "engine/box.h"
#include "engine/layer.h"

#include <stdlib.h>

#define MIB (1ULL << 20)
#define MAX_ROUNDS 512
#define FILES_TO_READ 1000

extern struct engine *engine;
extern struct volume *volume;
extern struct error err;
extern bool is_quick;

_Noreturn void fail(const char *text);
void check_stopped(void); // Ctrl-C came: ends
#define DO(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail(err.text);                                                                        \
    } while (0)

struct figure {
    unsigned count;
    uint64_t ns[MAX_ROUNDS];
};
uint64_t now_ns(void);
void figure_note(struct figure *figure, uint64_t since_ns);
void figure_print(struct figure *figure, const char *name); // and begins anew

/* A box over these layers, cold; ended by stop. */
struct box *start(const char *const *saved, size_t n_saved);
void stop(struct box *box);
/* `bench-layer guest WORD MORE` in it, to its end. `id` is another each time. */
void run(struct box *box, uint32_t id, const char *word, const char *more);

/* Writes content in the current directory, as `docker commit` and the like shall find it: "1 MiB", "10,000 files" or "1 GiB". */
int fill_for_guest(const char *content);
/* Files "file-0" and so on, each with its name. */
void fill_files(int dir_fd, unsigned count);
void fill_bytes(int dir_fd, const char *name, uint64_t bytes);
/* An empty scratch; its upper directory, which is the caller's. */
int make_scratch(const char *name);

void measure_chains(void);
void measure_saves(void);
