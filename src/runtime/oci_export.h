/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes as images: each of their layers becomes one, whiteouts and opaque directories in the words of images.
 * Threads: any but loops; the writer is one thread's.
 */
#pragma once
#include "runtime/image.h"
#include "runtime/oci_writer.h"

#include <stdatomic.h>

/* All layers of a runtime, lowest first. ERROR_INVALID for one that shows parts of this machine, which do not travel. */
int oci_export_layers(struct oci_writer *writer, const struct runtime_image *image,
                      struct error *err);

/* A runtime as a layout in a directory ("oci:DIR", absolute). Nothing is left of one that fails but an empty directory. */
int runtime_export(const char *data_dir, const char *reference, const char *target,
                   struct error *err);
