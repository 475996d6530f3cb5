/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes selectors of labels: names and values are what labels may have, and a selector that is written out and read again says the same. */
#include "base/auto.h"
#include "base/buffer.h"
#include "base/label.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void add(struct buffer *text, const char *more)
{
    struct error err = {0};
    check(buffer_add_text(text, more, &err) == 0);
}

static void add_value(struct buffer *text, const char *value)
{
    add(text, "\"");
    for (; *value; value++) {
        const char byte[] = {*value, '\0'};
        add(text, *value == '"' || *value == '\\' ? "\\" : "");
        add(text, byte);
    }
    add(text, "\"");
}

static void write_term(struct buffer *text, const struct label_term *term)
{
    add(text, term->match == LABEL_ABSENT ? "!" : "");
    add(text, term->name);
    if (term->match == LABEL_THERE || term->match == LABEL_ABSENT)
        return;
    add(text, term->match == LABEL_IN ? " in (" : " notin (");
    for (size_t i = 0; i < term->n_values; i++) {
        add(text, i ? "," : "");
        add_value(text, term->values[i]);
    }
    add(text, ")");
}

static void check_same(const struct label_selector *a, const struct label_selector *b)
{
    check(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct label_term *x = &a->terms[i], *y = &b->terms[i];
        check(x->match == y->match && x->n_values == y->n_values && strcmp(x->name, y->name) == 0);
        for (size_t k = 0; k < x->n_values; k++)
            check(strcmp(x->values[k], y->values[k]) == 0);
    }
}

static void check_selector(const struct label_selector *selector)
{
    autobuffer text = {0};
    autoselector again = {0};
    struct error err = {0};
    size_t n_values = 0;

    check(selector->count <= SELECTOR_TERMS_MAX);
    for (size_t i = 0; i < selector->count; i++) {
        const struct label_term *term = &selector->terms[i];
        n_values += term->n_values;
        check(!label_name_fault(term->name));
        for (size_t k = 0; k < term->n_values; k++)
            check(!label_value_fault(term->values[k]));
        add(&text, i ? "," : "");
        write_term(&text, term);
    }
    check(n_values <= SELECTOR_VALUES_MAX);
    (void)label_selector_matches(selector, NULL);
    if (text.length == 0 || text.length > SELECTOR_TEXT_MAX)
        return;
    check(label_selector_parse(text.data, &again, &err) == 0);
    check_same(selector, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    autoselector selector = {0};
    struct error err = {0};

    if (label_selector_parse(text, &selector, &err) == 0)
        check_selector(&selector);
    else
        check(err.text[0] && !selector.terms);
    return 0;
}
