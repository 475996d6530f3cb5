/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings an image from where it is to <data>/cache/images, and checks it there: every text and every layer is compared with the
 * digest by which it was named. Registries and Docker's archives are skopeo's, a layout in a directory is read here. Blobs that came whole stay
 * until an image is added, so that one that was interrupted goes on where it was.
 * Threads: one per object; it forks (tool.h).
 */
#pragma once
#include "runtime/make.h"
#include "runtime/oci_image.h"

struct oci_fetched {
    struct oci_descriptor image; // its manifest
    struct oci_manifest manifest;
    struct oci_config config;
    // private
    struct data_document *documents[2];
    char *blobs; // the directory of blobs
    int lock_fd; // keeps others from emptying it
};

/* ERROR_INVALID, noun "image", with what there may be: docker://, oci:, oci-archive:, docker-archive:. */
int oci_check_source(const char *source, struct error *err);

/*
 * Texts are read, layers are there. ERROR_NOT_FOUND, ERROR_UNAVAILABLE as the registry says; ERROR_DAMAGED for a digest that
 * is not what was named.
 */
int oci_fetch(const struct making *making, const char *source, struct oci_fetched *out,
              struct error *err);
/* Opens a layer's blob, whose digest is then known to be right. */
int oci_fetched_open(const struct oci_fetched *fetched, const struct oci_descriptor *layer, int *fd,
                     struct error *err);
/* Nobody needs the blobs any more, unless another fetch is under way. */
void oci_fetched_done(struct oci_fetched *fetched);
/* Removes what came of images that were not added in the end, and adds it up; a trial only says what would go. Does nothing while one is fetched. */
void oci_cache_sweep(const char *data_dir, bool is_trial, struct runtime_unused *out);

void oci_fetched_clear(struct oci_fetched *fetched);
