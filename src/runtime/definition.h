/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of the catalog: read, checked and hashed. Private to the folder; catalog.h is the face.
 * Threads: one per object; the document.
 */
#pragma once
#include "data/value.h"
#include "runtime/catalog.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Whether it is of these letters, not too long, and starts with none that could leave a directory. */
bool definition_is_name(const char *text, size_t length, const char *letters);

/* Strings of `out` live in the document. What it stands on is named, not found. */
int definition_read(struct data_document *document, struct runtime_definition *out,
                    struct error *err);
