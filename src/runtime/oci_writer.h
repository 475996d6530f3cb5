/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an image: a layout in a directory, or the same in one tar (what skopeo and podman call oci-archive). Layers are tars, not
 * compressed, so that each is written once and its digest known when it ends. Blobs come one after the other; then oci_writer_finish.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stddef.h>
#include <stdint.h>

struct oci_writer;

/* A directory that is empty or not there yet. */
int oci_writer_open_dir(const char *path, struct oci_writer **out, struct error *err);
/* A file, empty, seekable, borrowed; ERROR_LIMIT beyond `maximum` bytes. */
struct oci_writer *oci_writer_new(int fd, uint64_t maximum);
void oci_writer_free(struct oci_writer *writer);
DEFINE_AUTOPTR(oci_writer)

struct oci_attribute {
    const char *name;
    const void *value;
    size_t size;
};

/* One layer at a time, entries in between; lowest first. */
int oci_writer_begin_layer(struct oci_writer *writer, struct error *err);
/* `item` as in records (archive/records.h); behind a file come item->size bytes. */
int oci_writer_entry(struct oci_writer *writer, const struct files_item *item,
                     const struct oci_attribute *attributes, size_t n_attributes,
                     struct error *err);
int oci_writer_content(struct oci_writer *writer, int fd, uint64_t size, struct error *err);
/* What lies below under this path is not there; "": all that lies in the directory below. */
int oci_writer_hide(struct oci_writer *writer, const char *path, struct error *err);
int oci_writer_hide_all(struct oci_writer *writer, const char *directory, struct error *err);
int oci_writer_end_layer(struct oci_writer *writer, struct error *err);

struct oci_writer_config {
    const char *name;             // of the image in the index
    const char *const *env;       // NULL-terminated, or NULL
    const char *const *command;   //
    const char *user, *directory; // or NULL
    int64_t created_s;            // since 1970
};
/* The image is whole when this has succeeded. */
int oci_writer_finish(struct oci_writer *writer, const struct oci_writer_config *config,
                      struct error *err);
