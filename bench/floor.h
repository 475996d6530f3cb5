/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: the least code that runs one program with the isolation of a box (user, mount, pid,
 * net, ipc, uts and cgroup namespaces, idmapped overlay root, own proc, capabilities, seccomp,
 * limits on memory, CPU, processes and disk). No PID 1 of its own, no relay, no error recovery:
 * what is left is the kernel's price. Needs kernel 6.13 (overlay layers by fd). One thread.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>

struct floor;

/* `root` is the read-only layer; has_host_usr binds the machine's /usr over its usr. */
int floor_new(const char *root, bool has_host_usr, struct floor **out, struct error *err);
/* Ends what was not cleaned, too. */
void floor_free(struct floor *floor);

/* Makes a network namespace ready for the next run, which makes its own otherwise. */
int floor_fill_network(struct floor *floor, struct error *err);

/* Runs the program to its end; *status is waitpid's. What can be removed later stays until
 * floor_clean. */
int floor_run(struct floor *floor, const char *const *argv, int *status, struct error *err);
void floor_clean(struct floor *floor);
DEFINE_AUTOPTR(floor)
