/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of the YAML people write in settings: block and flow lists and maps, plain,
 * quoted, literal and folded text, comments, one document. Types are those of YAML 1.2: true/false,
 * null, decimal numbers, else strings (yes, no, on and off are strings). Refused, with line, column
 * and the way out: anchors, aliases, tags, merge keys, keys that are not plain text, directives,
 * several documents, the same key twice, tabs as indentation, numbers that readers disagree on
 * (0777, 0x1f, .5).
 * Threads: plain values.
 */
#pragma once
#include "data/value.h"

#define YAML_MAX_BYTES (1 << 20)
#define YAML_MAX_DEPTH 32
#define YAML_MAX_VALUES 100000
#define YAML_MAX_KEYS 2000 // in one map

/* Reads `length` bytes of UTF-8. `name` is put in front of errors. An empty text is a document of
 * null. */
int yaml_read(const char *name, const char *text, size_t length, struct data_document **out,
              struct error *err);

/* The same from a file; errors name it by `path`. */
int yaml_read_file(const char *path, struct data_document **out, struct error *err);
