/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two halves of burrow doctor: what this machine can do (doctor.c), and whether its sandboxes hold (doctor_attack.c).
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>

struct doctor {
    bool is_json;
    bool is_attack;
    const char *data_dir;
    const char *runtime; // what the attacked sandboxes start from
};

/* Whether stdout is a terminal that wants colours. */
bool doctor_has_colour(void);

/* Attacks sandboxes of this machine and prints what came of it; the exit code. */
int doctor_attack(const struct doctor *doctor);
