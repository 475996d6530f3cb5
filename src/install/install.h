/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages over a runtime, for a sandbox that asks for them: installed as root of a box whose network reaches the mirror and the registry and nothing
 * else; what that wrote becomes an unnamed layer next to the runtimes (<data>/runtimes/.layers/dep-ID), by the runtime's build and the exact list. So the
 * same list costs nothing the second time, whoever asks, with a server or without.
 * Threads: any but loops; calls block, for minutes. No logging.
 */
#pragma once
#include "base/error.h"
#include "base/strings.h"
#include "engine/box.h"
#include "runtime/image.h"

#define INSTALL_MOST 100 // packages of one list

/* The list in the one form by which it is known: "apt git", "npm typescript", in order, each once, packed; NULL: nothing. The caller frees. */
char *install_list(const char *const *dependencies, const char *const *packages);

/* ERROR_INVALID, noun "dependencies" or "packages", for what is no name of a package, and for more than INSTALL_MOST. */
int install_check(const char *const *dependencies, const char *const *packages, struct error *err);

struct install_options {
    const char *data_dir;
    const char *registry; // of npm; NULL: the one that the runtime was made from
    int cancel_fd;        // readable: give up, ERROR_GONE; -1: never
    int (*on_progress)(void *data, const char *phase, unsigned percent); // or NULL
    void *data;
};

/*
 * The image of the runtime with these packages over it. ERROR_INVALID, noun "dependencies" or "packages", names the one that does not exist; ERROR_TOOL: apt or
 * npm failed otherwise.
 */
int install_open(struct engine *engine, const struct runtime_image *image, const char *list,
                 const struct install_options *options, struct runtime_image **out,
                 struct error *err);

/* Whether it is there already. */
bool install_is_there(const char *data_dir, const struct runtime_image *image, const char *list);

/* Removes what installs left that were killed: half of a layer, and the scratch of their box. Best effort. */
void install_clean(struct engine *engine, const char *data_dir);

/* Removes what was not used since (milliseconds of the wall clock), unless a box has it now; adds up. A trial only says what would go. */
struct install_found {
    uint64_t count, bytes, removed, removed_bytes;
};
int install_sweep(const char *data_dir, int64_t unused_since_ms, bool is_trial,
                  struct install_found *out, struct error *err);
