/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and selectors; see label.h. */
#include "base/label.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._-/", c));
}

const char *label_name_fault(const char *name)
{
    size_t length = 0;

    while (is_name_byte(name[length]))
        length++;
    if (length == 0 || length > LABEL_NAME_MAX || name[length] || !isalnum((unsigned char)name[0]))
        return "must be 1 to 63 letters, digits, '.', '_', '-' and '/', and start with a letter or "
               "a digit";
    return NULL;
}

const char *label_value_fault(const char *value)
{
    size_t length = strlen(value);

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return "must not have control characters";
    }
    return length > LABEL_VALUE_MAX ? "must be at most 255 bytes" : NULL;
}

static int check_one(const char *label, struct error *err)
{
    char name[LABEL_NAME_MAX + 2];
    const char *equals = strchr(label, '=');
    size_t length = equals ? (size_t)(equals - label) : strlen(label);
    size_t copied = length < sizeof name ? length : sizeof name - 1; // long enough to be refused

    memcpy(name, label, copied);
    name[copied] = '\0';
    const char *fault = label_name_fault(name);
    if (fault)
        return error_refuse(err, ERROR_INVALID, "labels", "labels: the name '%s' %s", name, fault);
    fault = equals ? label_value_fault(equals + 1) : "must be there";
    if (fault)
        return error_refuse(err, ERROR_INVALID, "labels", "labels.%s: %s", name, fault);
    return 0;
}

int labels_check(const char *const *labels, struct error *err)
{
    size_t count = 0;

    for (; labels && labels[count]; count++) {
        if (check_one(labels[count], err) < 0)
            return -1;
    }
    if (count > LABELS_MAX)
        return error_refuse(err, ERROR_INVALID, "labels", "labels: may be at most %d", LABELS_MAX);
    return 0;
}

const char *labels_get(const char *const *labels, const char *name)
{
    size_t length = strlen(name);

    for (; labels && *labels; labels++) {
        if (strncmp(*labels, name, length) == 0 && (*labels)[length] == '=')
            return *labels + length + 1;
    }
    return NULL;
}

// ---- selectors ----

/* Reads `text` and writes names and values into `out`, which has as much room: none is longer than how it is spelled, with what follows it. */
struct reader {
    const char *text; // all of it
    const char *at;
    char *out;
    size_t n_values; // of all terms
};

static int fail(const struct reader *reader, const char *what, struct error *err)
{
    return error_refuse(err, ERROR_INVALID, "labels", "labels: %s at byte %zu of the selector",
                        what, (size_t)(reader->at - reader->text) + 1);
}

static void skip_spaces(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
}

static bool take_byte(struct reader *reader, char wanted)
{
    skip_spaces(reader);
    if (*reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

/* A word of its own: not the beginning of a longer one. */
static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    skip_spaces(reader);
    if (strncmp(reader->at, word, length) != 0 || is_name_byte(reader->at[length]))
        return false;
    reader->at += length;
    return true;
}

static const char *end_text(struct reader *reader, char *start)
{
    *reader->out++ = '\0';
    return start;
}

static int read_name(struct reader *reader, const char **out, struct error *err)
{
    char *start = reader->out;

    skip_spaces(reader);
    while (is_name_byte(*reader->at))
        *reader->out++ = *reader->at++;
    *out = end_text(reader, start);
    return label_name_fault(start) ? fail(reader, "no name of a label", err) : 0;
}

static int read_quoted(struct reader *reader, struct error *err)
{
    for (reader->at++; *reader->at != '"'; reader->at++) {
        if (*reader->at == '\\')
            reader->at++;
        if (!*reader->at)
            return fail(reader, "no closing quote", err);
        *reader->out++ = *reader->at;
    }
    reader->at++;
    return 0;
}

static int read_value(struct reader *reader, struct label_term *term, struct error *err)
{
    char *start = reader->out;

    if (reader->n_values++ >= SELECTOR_VALUES_MAX)
        return fail(reader, "too many values (at most 32)", err);
    skip_spaces(reader);
    if (*reader->at == '"') {
        if (read_quoted(reader, err) < 0)
            return -1;
    } else {
        while (*reader->at && !strchr(",()!=\" \t", *reader->at))
            *reader->out++ = *reader->at++;
    }
    term->values[term->n_values++] = end_text(reader, start);
    return label_value_fault(start) ? fail(reader, "no value of a label", err) : 0;
}

static int read_values(struct reader *reader, struct label_term *term, struct error *err)
{
    if (!take_byte(reader, '('))
        return fail(reader, "no '('", err);
    do {
        if (read_value(reader, term, err) < 0)
            return -1;
    } while (take_byte(reader, ','));
    return take_byte(reader, ')') ? 0 : fail(reader, "no ')'", err);
}

static int read_term(struct reader *reader, struct label_term *term, struct error *err)
{
    bool is_negated = take_byte(reader, '!');

    if (read_name(reader, &term->name, err) < 0)
        return -1;
    term->match = is_negated ? LABEL_ABSENT : LABEL_THERE;
    if (is_negated)
        return 0;
    if (take_word(reader, "in")) {
        term->match = LABEL_IN;
        return read_values(reader, term, err);
    }
    if (take_word(reader, "notin")) {
        term->match = LABEL_NOT_IN;
        return read_values(reader, term, err);
    }
    if (take_byte(reader, '!')) {
        term->match = LABEL_NOT_IN;
        return take_byte(reader, '=') ? read_value(reader, term, err) : fail(reader, "no '='", err);
    }
    if (!take_byte(reader, '='))
        return 0;
    term->match = LABEL_IN;
    (void)take_byte(reader, '='); // "==" says the same
    return read_value(reader, term, err);
}

static int read_terms(struct reader *reader, struct label_selector *selector, struct error *err)
{
    skip_spaces(reader);
    if (!*reader->at)
        return 0;
    do {
        if (selector->count == SELECTOR_TERMS_MAX)
            return fail(reader, "too many terms (at most 16)", err);
        if (read_term(reader, &selector->terms[selector->count++], err) < 0)
            return -1;
    } while (take_byte(reader, ','));
    skip_spaces(reader);
    return *reader->at ? fail(reader, "something that is not expected", err) : 0;
}

int label_selector_parse(const char *text, struct label_selector *out, struct error *err)
{
    autoselector selector = {0};
    size_t length = strlen(text);

    if (length > SELECTOR_TEXT_MAX)
        return error_refuse(err, ERROR_INVALID, "labels",
                            "labels: a selector may be at most %d bytes", SELECTOR_TEXT_MAX);
    // Each name and value ends with a NUL: one for each byte that could begin one is enough.
    selector.text = xcalloc(2, length + 1);
    selector.terms = xcalloc(SELECTOR_TERMS_MAX, sizeof *selector.terms);
    struct reader reader = {.text = text, .at = text, .out = selector.text};
    if (read_terms(&reader, &selector, err) < 0)
        return -1;
    *out = selector;
    selector = (struct label_selector){0};
    return 0;
}

void label_selector_clear(struct label_selector *selector)
{
    free(selector->terms);
    free(selector->text);
    *selector = (struct label_selector){0};
}

static bool is_one_of(const char *value, const struct label_term *term)
{
    for (size_t i = 0; value && i < term->n_values; i++) {
        if (strcmp(value, term->values[i]) == 0)
            return true;
    }
    return false;
}

static bool holds(const struct label_term *term, const char *value)
{
    switch (term->match) {
    case LABEL_IN:
        return is_one_of(value, term);
    case LABEL_NOT_IN:
        return !is_one_of(value, term);
    case LABEL_THERE:
        return value != NULL;
    case LABEL_ABSENT:
        return value == NULL;
    }
    return false;
}

bool label_selector_matches(const struct label_selector *selector, const char *const *labels)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct label_term *term = &selector->terms[i];
        if (!holds(term, labels_get(labels, term->name)))
            return false;
    }
    return true;
}
