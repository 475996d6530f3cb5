/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds runtimes that are images: one becomes a file of the catalog in <data>/catalog, like one that a person wrote, once it is made; so an
 * add that fails or is killed leaves none.
 * Threads: any but loops; one at a time for a name.
 */
#pragma once
#include "runtime/build.h"
#include "runtime/catalog.h"

/* What the file will say, as a catalog of its own: build `*definition`, then oci_keep_definition. ERROR_EXISTS for a name that is not an added image's. */
int oci_define(const char *data_dir, const struct runtime_reference *reference, const char *source,
               struct catalog **catalog, const struct runtime_definition **definition,
               struct error *err);
int oci_keep_definition(const char *data_dir, const struct runtime_definition *definition,
                        struct error *err);

/* All three: makes it anew also when it is there. Blocks as runtime_build does. */
int runtime_add(const struct runtime_reference *reference, const char *source,
                const struct runtime_build_options *options, struct error *err);

/* Takes away the file of an added image; nothing for other runtimes. */
int runtime_forget(const char *data_dir, const struct runtime_definition *definition,
                   struct error *err);
