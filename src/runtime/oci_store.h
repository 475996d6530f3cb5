/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of images, each unpacked once however many images have it: <data>/runtimes/.layers/sha256-HEX, by the digest of its blob; and
 * .layers/merged-HEX, several made one, by what they are. In each are `rootfs` and a manifest, as in a build. A
 * layer is there whole and on disk, or not at all. Who builds on one holds a lock on its manifest; one that no manifest names
 * and nobody holds is swept.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/sha256.h"
#include "runtime/build_dir.h"
#include "runtime/make.h"
#include "runtime/oci_image.h"
#include "runtime/oci_layer.h"

#define OCI_STORE ".layers"                 // in <data>/runtimes
#define OCI_LAYER_NAME (SHA256_TEXT + 8)    // "sha256-" or "merged-" and digits
#define OCI_LAYER_PATH (OCI_LAYER_NAME + 8) // with OCI_STORE before it

/* As many layers a box may start from, besides the runtime's own; more are made fewer, so that starting stays quick. */
#define OCI_KEPT_LAYERS 16

struct oci_store;

/* Waits for the store's lock, which all who add to it hold until oci_store_free. */
int oci_store_open(const struct runtime_build_options *options, struct oci_store **out,
                   struct error *err);
/* What was begun and not kept is removed; layers that were used are no longer held. */
void oci_store_free(struct oci_store *store);
DEFINE_AUTOPTR(oci_store)

/* Whether the layer of this blob is there; it is held then. */
bool oci_store_has(struct oci_store *store, const char *hex);

/* Unpacks a blob under a name that oci_store_keep makes final. A thread of the store's measures it while the next is unpacked; if that fails, the next call says so. */
int oci_store_add(struct oci_store *store, const char *hex, int blob_fd,
                  const struct oci_layer_task *task, struct oci_layer_report *report,
                  struct error *err);

/*
 * The layers of an image, lowest first, as at most OCI_KEPT_LAYERS of the store's: names is a list of so many. Always the
 * same ones become one, from below, so that images with the same lower layers share that too.
 */
int oci_store_merge(struct oci_store *store, const struct oci_manifest *manifest,
                    char names[][OCI_LAYER_NAME], size_t *count, struct error *err);

/* All that was added is on disk and there for good. */
int oci_store_keep(struct oci_store *store, struct error *err);

/* Opens what a layer holds. */
int oci_store_read(const struct oci_store *store, const char *name, int *dir_fd, struct error *err);

/* Removes layers of images that nobody needs. Best effort; does nothing while layers are added. */
void oci_store_sweep(const char *data_dir, struct build_sweep *sweep);
