/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image as the Open Container Initiative describes it: an index leads to manifests, a manifest names a config and layers, each by
 * the SHA-256 of its bytes. What is here reads such texts, which are a stranger's, and knows nothing of files; Docker's own kinds of
 * them differ in their media types only.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/sha256.h"
#include "data/value.h"
#include "runtime/catalog.h"

#include <stddef.h>
#include <stdint.h>

#define OCI_MAX_TEXT ((size_t)4 << 20) // of an index, manifest or config
#define OCI_MAX_LAYERS 512
#define OCI_MAX_DEPTH 4 // of indexes in each other

/* What a text names. */
struct oci_descriptor {
    const char *media_type; // "" where it does not say
    char hex[SHA256_TEXT];  // of "sha256:..."
    uint64_t size;
    bool is_index; // by its media type; else a manifest, or a blob
    // of an entry of an index; "" where it does not say
    const char *os, *architecture, *variant, *name;
};

/* The machine's architecture, as images call it. */
const char *oci_architecture(void);

/* Reads JSON with the bounds of an image's texts. `what` is for the sentence: "the index". */
int oci_read(const char *what, const char *text, size_t length, struct data_document **out,
             struct error *err);

/*
 * The entry of an index that is for this machine and, unless `reference` is NULL, has this name. ERROR_NOT_FOUND says what there is.
 * Texts are the document's.
 */
int oci_index_choose(const struct data_value *index, const char *reference,
                     struct oci_descriptor *out, struct error *err);

/* Whether the text is an index, whatever it was called. */
bool oci_is_index(const struct data_value *root);

struct oci_manifest {
    struct oci_descriptor config;
    struct oci_descriptor *layers; // lowest first
    size_t n_layers;
};
/* Free `layers` afterwards; the texts are the document's. */
int oci_manifest_read(const struct data_value *root, struct oci_manifest *out, struct error *err);

/* What a command in the image gets. Lists are NULL-terminated, or NULL; all of it is the document's. */
struct oci_config {
    const char **env;
    const char **entrypoint;
    const char **command;
    const char *directory;                 // absolute, or NULL
    const char *user;                      // or NULL
    char description[RUNTIME_DESCRIPTION]; // by its labels, one line; "": they say nothing
};
/* ERROR_INVALID for what no box can have, or an image of another architecture; `n_layers` is the manifest's. */
int oci_config_read(const struct data_value *root, size_t n_layers, struct oci_config *out,
                    struct error *err);
