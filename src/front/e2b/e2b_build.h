/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates that are built: what is kept with the snapshot that one is, and how its steps become a recipe of the core's.
 * Threads: any but loops.
 */
#pragma once
#include "core/recipe.h"
#include "front/e2b/e2b_impl.h"

struct snapshot_info;

/* What these clients say of a template, in the snapshot's metadata: a map of texts. */
struct e2b_about {
    int64_t cpu_count, memory_mb; // 0: the server's
    const char *user, *directory; // that its commands have; NULL: the usual ones
    const char *start, *ready;    // commands; NULL: none
    const char *build;            // the id it was built under; NULL: its own
    const char *tags;             // asked for, with spaces between; of one that is announced
};
/* All zero where there is none. Texts are the call's. */
void e2b_about_read(struct call *call, const char *metadata, struct e2b_about *out);
const char *e2b_about_write(struct call *call, const struct e2b_about *about);

/* What runs in sandboxes of it. Texts are the call's. */
struct recipe_service e2b_service(struct call *call, const struct e2b_about *about);
struct limits e2b_limits(const struct e2b_about *about);

/* The body of the call that begins a build. */
struct e2b_step {
    const char *type, *files_hash;
    const char **args;
    bool is_forced;
};
struct e2b_build {
    const char *image, *template, *start, *ready;
    const struct data_value *registry;
    struct field_list steps; // of struct e2b_step
    bool is_forced;
};
extern const struct field e2b_build_fields[];

/* `about` is what was announced, and becomes what is kept. ERROR_INVALID names the step. */
int e2b_recipe(struct call *call, const struct e2b_build *build, struct e2b_about *about,
               struct recipe *out, struct error *err);

/* "NAMESPACE/NAME:TAG": the namespace is ours whatever it says; tag NULL: none was said. The call's. */
void e2b_template_split(struct call *call, const char *reference, const char **name,
                        const char **tag);
