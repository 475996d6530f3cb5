/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of a tar (POSIX.1-2001), written: what does not fit into a head is said by one that goes before it. The same entry is always
 * the same bytes.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"
#include "engine/files_wire.h"

#define OCI_TAR_BLOCK 512

struct oci_attribute;

/* Of a name and a size that need no more than a head. */
void oci_tar_head(const struct files_item *item, uint8_t head[OCI_TAR_BLOCK]);

/* Gives `add` all that stands before an entry's content. */
int oci_tar_entry(const struct files_item *item, const struct oci_attribute *attributes,
                  size_t n_attributes,
                  int (*add)(void *data, const void *bytes, size_t length, struct error *err),
                  void *data, struct error *err);
