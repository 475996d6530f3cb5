/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all of this folder shares. An archive is parsed and made by the program burrow-archive, a process without rights that
 * lives as long as one archive; this side (unpacker.h, packer.h, writer.h) speaks records with it and takes what it says for
 * hostile. How the two talk is in records.h.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

struct cancel; // base/cancel.h

enum archive_format {
    ARCHIVE_ANY,      // unpacking: by its first bytes
    ARCHIVE_TAR_GZIP, // unpacking: also a tar that is not compressed
    ARCHIVE_ZIP,
    ARCHIVE_TAR_ZSTD, // owners, set-id bits and parts of a second are kept; unpacking: also gzip, or not compressed
    ARCHIVE_TAR,   // not compressed; unpacking: as ARCHIVE_TAR_GZIP
    ARCHIVE_ZSTD,  // ARCHIVE_TAR_ZSTD without owners, as all others are
    ARCHIVE_LAYER, // unpacking: of an image (oci_layer.h), compressed in any of these ways. Owners, set-id bits and some attributes are kept
};

/* One archive to be unpacked or made. */
struct archive_task {
    const char *program; // absolute path of burrow-archive
    enum archive_format format;
    uint64_t max_bytes;    // of all contents together, and of an archive that is made
    uint64_t max_entries;  //
    unsigned timeout_ms;   // without any progress
    struct cancel *cancel; // gives it up; NULL: nobody does
};
