/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels: short texts by name that a user puts on a thing ("team=blue"), and selectors, which choose things by them. What is spelled how:
 *
 *     team=blue   team!=blue   team   !team   team in (blue, red)   team notin (blue, red)
 *
 * separated by commas; all must hold. `!=` and `notin` hold for a thing without the label too. A value with spaces, quotes or one of ,()!= in it
 * stands in double quotes, where a backslash keeps the next character.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define LABELS_MAX 64       // of one thing
#define LABEL_NAME_MAX 63   // bytes
#define LABEL_VALUE_MAX 255 // bytes
#define SELECTOR_TERMS_MAX 16
#define SELECTOR_VALUES_MAX 32 // of all terms together
#define SELECTOR_TEXT_MAX 4096 // bytes

/* What is wrong with the name or the value of a label, as "must be …", or NULL. */
const char *label_name_fault(const char *name);
const char *label_value_fault(const char *value);
/* ERROR_INVALID, noun "labels", unless these, "name=value" (NULL-terminated, or NULL for none), can be the labels of one thing. */
int labels_check(const char *const *labels, struct error *err);
/* The value of the label, or NULL. */
const char *labels_get(const char *const *labels, const char *name);

enum label_match {
    LABEL_IN,     // has it, with one of the values
    LABEL_NOT_IN, // does not
    LABEL_THERE,  // has it
    LABEL_ABSENT, // does not
};

struct label_term {
    enum label_match match;
    const char *name;
    const char *values[SELECTOR_VALUES_MAX]; // LABEL_IN and LABEL_NOT_IN
    size_t n_values;
};

struct label_selector {
    struct label_term *terms; // NULL: everything is chosen
    size_t count;
    char *text; // what names and values point into
};

/* "" chooses everything. ERROR_INVALID, noun "labels", says where the text is wrong. */
int label_selector_parse(const char *text, struct label_selector *out, struct error *err);
void label_selector_clear(struct label_selector *selector);
bool label_selector_matches(const struct label_selector *selector, const char *const *labels);
#define autoselector __attribute__((cleanup(label_selector_clear))) struct label_selector
