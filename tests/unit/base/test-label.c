/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and selectors. */
#include "base/label.h"
#include "base/auto.h"
#include "base/mem.h"
#include "test.h"

#include <string.h>

static const char *const blue[] = {"team=blue", "tier=", "note=a b, \"c\"", NULL};

TEST(a_selector_chooses_what_it_says)
{
    const struct {
        const char *text;
        bool is_blue, is_bare; // with the labels above; without any
    } cases[] = {
        {"", true, true},
        {"  ", true, true},
        {"team=blue", true, false},
        {"team==blue", true, false},
        {" team = blue ", true, false},
        {"team=red", false, false},
        {"team!=blue", false, true},
        {"team!=red", true, true},
        {"team", true, false},
        {"!team", false, true},
        {"! other", true, true},
        {"team in (red, blue)", true, false},
        {"team in (red)", false, false},
        {"team in(blue)", true, false},
        {"team notin (red,blue)", false, true},
        {"team notin (red)", true, true},
        {"tier=", true, false},
        {"tier=\"\"", true, false},
        {"tier in (,x)", true, false},
        {"note=\"a b, \\\"c\\\"\"", true, false},
        {"team=blue,tier", true, false},
        {"team=blue,!tier", false, false},
        {"in", false, false},
        {"!in,!notin", true, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        autoselector selector = {0};
        struct error err = {0};
        if (label_selector_parse(cases[i].text, &selector, &err) < 0)
            test_fail(__FILE__, __LINE__, "'%s': %s", cases[i].text, err.text);
        if (label_selector_matches(&selector, blue) != cases[i].is_blue ||
            label_selector_matches(&selector, NULL) != cases[i].is_bare)
            test_fail(__FILE__, __LINE__, "'%s' chooses otherwise", cases[i].text);
    }
}

TEST(what_is_no_selector_is_refused_with_its_place)
{
    const struct {
        const char *text, *says;
    } cases[] = {
        {"=blue", "labels: no name of a label at byte 1 of the selector"},
        {"team=blue,", "labels: no name of a label at byte 11 of the selector"},
        {",", "labels: no name of a label at byte 1 of the selector"},
        {"team!blue", "labels: no '=' at byte 6 of the selector"},
        {"team in blue", "labels: no '(' at byte 9 of the selector"},
        {"team in (blue", "labels: no ')' at byte 14 of the selector"},
        {"team=\"blue", "labels: no closing quote at byte 11 of the selector"},
        {"team=\"blue\\", "labels: no closing quote at byte 12 of the selector"},
        {"team=blue red", "labels: something that is not expected at byte 11 of the selector"},
        {"!team=blue", "labels: something that is not expected at byte 6 of the selector"},
        {"-team", "labels: no name of a label at byte 6 of the selector"},
        {"team=a\x01", "labels: no value of a label at byte 8 of the selector"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        autoselector selector = {0};
        struct error err = {0};
        CHECK(label_selector_parse(cases[i].text, &selector, &err) < 0);
        CHECK_STR(err.text, cases[i].says);
        CHECK_INT(err.reason, ERROR_INVALID);
        CHECK(selector.terms == NULL);
    }
}

static int parse_many(const char *one, unsigned count)
{
    char text[SELECTOR_TEXT_MAX * 2] = "";
    autoselector selector = {0};
    struct error err = {0};

    for (unsigned i = 0; i < count; i++) {
        strcat(text, i ? "," : "");
        strcat(text, one);
    }
    return label_selector_parse(text, &selector, &err);
}

TEST(a_selector_is_bounded)
{
    CHECK(parse_many("a", SELECTOR_TERMS_MAX) == 0);
    CHECK(parse_many("a", SELECTOR_TERMS_MAX + 1) < 0);
    CHECK(parse_many("a in (1,2)", 16) == 0);
    CHECK(parse_many("a in (1,2,3)", 16) < 0);
    CHECK(parse_many("                                                  a", 100) < 0);
}

TEST(labels_have_names_and_values_of_some_length_and_are_so_many)
{
    char name[LABEL_NAME_MAX + 8] = "";
    char value[LABEL_VALUE_MAX + 8] = "a=";
    const char *many[LABELS_MAX + 2] = {0};
    const char *const bad[] = {"=x", "-a=x", "a b=x", "a", "a=\x1f", "\xc3\xa4=x"};
    struct error err = {0};

    CHECK(labels_check(NULL, &err) == 0);
    CHECK(labels_check(blue, &err) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(labels_check((const char *const[]){bad[i], NULL}, &err) < 0);
    memset(name, 'a', LABEL_NAME_MAX);
    strcat(name, "=");
    CHECK(labels_check((const char *const[]){name, NULL}, &err) == 0);
    memset(name, 'a', LABEL_NAME_MAX + 1);
    strcat(name, "=");
    CHECK(labels_check((const char *const[]){name, NULL}, &err) < 0);
    memset(value + 2, 'v', LABEL_VALUE_MAX);
    CHECK(labels_check((const char *const[]){value, NULL}, &err) == 0);
    memset(value + 2, 'v', LABEL_VALUE_MAX + 1);
    CHECK(labels_check((const char *const[]){value, NULL}, &err) < 0);
    CHECK_STR(err.text, "labels.a: must be at most 255 bytes");
    for (unsigned i = 0; i < LABELS_MAX; i++)
        many[i] = "a=1";
    CHECK(labels_check(many, &err) == 0);
    many[LABELS_MAX] = "a=1";
    CHECK(labels_check(many, &err) < 0);
    CHECK_STR(err.noun, "labels");
}
