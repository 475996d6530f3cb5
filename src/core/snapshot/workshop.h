/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where files of strangers are unpacked: a box of its own over a runtime, which no sandbox has. It has no record, so a restart of
 * the server ends it and removes its files. Private to the core.
 */
#pragma once
#include "core/sandbox/pool.h"

struct workshop {
    struct core *core;
    struct pooled pooled;
};

/* What is written in it is limited. */
int workshop_open(struct workshop *workshop, const char *runtime, uint64_t disk_bytes,
                  struct error *err);
/* A conversation about its files, as root; relative paths start at "/". */
int workshop_files(struct workshop *workshop, int *conversation, struct error *err);
/* Ends the box and keeps what was written in it as a new layer. */
int workshop_save(struct workshop *workshop, const char *layer, uint64_t *bytes, struct error *err);
/* Everything of it goes; what was never opened is fine. */
void workshop_close(struct workshop *workshop);
#define autoworkshop __attribute__((cleanup(workshop_close))) struct workshop
