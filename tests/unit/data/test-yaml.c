/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/data/yaml.c and src/data/value.c: what is read, and the sentences for what is not.
 */
#include "data/yaml.h"

#include "base/buffer.h"
#include "test.h"

// The tree as one line: {a: "x", b: [1, true, null]}. Strings are quoted, line breaks shown as \n.
static void show(struct buffer *out, const struct data_value *value)
{
    struct error err = {0};

    if (value->kind == VALUE_NULL)
        (void)buffer_add_text(out, "null", &err);
    else if (value->kind == VALUE_BOOL)
        (void)buffer_add_text(out, value->truth ? "true" : "false", &err);
    else if (value->kind == VALUE_NUMBER)
        (void)buffer_add(out, value->text, value->length, &err);
    else if (value->kind == VALUE_STRING) {
        (void)buffer_add_text(out, "\"", &err);
        for (size_t i = 0; i < value->length; i++)
            if (value->text[i] == '\n')
                (void)buffer_add_text(out, "\\n", &err);
            else
                (void)buffer_add(out, value->text + i, 1, &err);
        (void)buffer_add_text(out, "\"", &err);
    } else {
        (void)buffer_add_text(out, value->kind == VALUE_LIST ? "[" : "{", &err);
        for (const struct data_value *child = value->first; child; child = child->next) {
            if (child != value->first)
                (void)buffer_add_text(out, ", ", &err);
            if (child->key)
                (void)buffer_addf(out, &err, "%s: ", child->key);
            show(out, child);
        }
        (void)buffer_add_text(out, value->kind == VALUE_LIST ? "]" : "}", &err);
    }
}

static void reads_as(const char *text, const char *want)
{
    autoptr(data_document) document = NULL;
    autobuffer got = {0};
    struct error err = {0};

    CHECK_OK(yaml_read("t.yaml", text, strlen(text), &document, &err), err);
    show(&got, document->root);
    CHECK_STR(got.data, want);
}

static void fails_with(const char *text, const char *want)
{
    autoptr(data_document) document = NULL;
    struct error err = {0};

    CHECK(yaml_read("t.yaml", text, strlen(text), &document, &err) < 0);
    CHECK(document == NULL);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(strncmp(err.text, "t.yaml: ", 8) == 0);
    CHECK_STR(err.text + 8, want);
}

TEST(block_maps_and_lists_nest_by_indentation)
{
    reads_as("a: 1\nb:\n  c: x\n  d:\n    - y\n    - z: 1\n      w: 2\n",
             "{a: 1, b: {c: \"x\", d: [\"y\", {z: 1, w: 2}]}}");
    reads_as("a:\n- x\n- y\nb: 1", "{a: [\"x\", \"y\"], b: 1}");
    reads_as("- - 1\n  - 2\n-\n  - 3\n- a: 1\n", "[[1, 2], [3], {a: 1}]");
    reads_as("a:\nb: ~\nc: null\nd:\n  -\n  - x", "{a: null, b: null, c: null, d: [null, \"x\"]}");
    reads_as("a:\n    b:\n        c: 1\nd: 2", "{a: {b: {c: 1}}, d: 2}");
}

TEST(flow_lists_and_maps_may_span_lines)
{
    reads_as("a: [x, 'y', \"z\", 1, [ ], {}]", "{a: [\"x\", \"y\", \"z\", 1, [], {}]}");
    reads_as("a: [\n  x, # why\n  y z,\n]\nb: {k: v, \"q\":1, n: , e: {f: [g]}}",
             "{a: [\"x\", \"y z\"], b: {k: \"v\", q: 1, n: null, e: {f: [\"g\"]}}}");
    reads_as("[a\n b, c]", "[\"a b\", \"c\"]");
    reads_as("{\"json\": [true, -1.5e3, \"\\u00e9\\ud83d\\ude00\"]}",
             "{json: [true, -1.5e3, \"é😀\"]}");
}

TEST(documents_markers_comments_and_byte_order_marks_are_fine)
{
    reads_as("", "null");
    reads_as("# only a comment\n", "null");
    reads_as("---\n# hello\na: 1 # x\n\n...\n# end\n", "{a: 1}");
    reads_as("--- text\n", "\"text\"");
    reads_as("\xef\xbb\xbf"
             "a: b#c\r\nd: 'e' # f\r\n",
             "{a: \"b#c\", d: \"e\"}");
    reads_as("---\n", "null");
    reads_as("...\n", "null");
}

TEST(plain_scalars_have_the_types_of_yaml_1_2)
{
    reads_as("[true, False, yes, no, on, 12, -3.10, 1e3, 1.2.3, 12:30, a:b, 2024-01-02, -x, "
             ".bashrc, null, Nul]",
             "[true, false, \"yes\", \"no\", \"on\", 12, -3.10, 1e3, \"1.2.3\", \"12:30\", "
             "\"a:b\", \"2024-01-02\", \"-x\", \".bashrc\", null, \"Nul\"]");
    reads_as("a: http://x/y?z=1#f", "{a: \"http://x/y?z=1#f\"}");
    reads_as("a: one\n  two\n\n  three\nb: 1", "{a: \"one two\\nthree\", b: 1}");
    fails_with("a: 0777", "line 1, column 4: '0777' is read differently by different programs; "
                          "write a plain decimal number, or put it in quotes");
    fails_with("a: 0x1f", "line 1, column 4: '0x1f' is read differently by different programs; "
                          "write a plain decimal number, or put it in quotes");
    fails_with("- .5", "line 1, column 3: '.5' is read differently by different programs; write a "
                       "plain decimal number, or put it in quotes");
}

TEST(quoted_scalars_keep_escapes_and_fold_lines)
{
    reads_as("a: 'it''s'\n'b c': \"x\\ty\\x41\\\\\"", "{a: \"it's\", b c: \"x\ty"
                                                      "A\\\"}");
    reads_as("a: \"one\n  two\n\n  three \\\n  four\\\n  five\"",
             "{a: \"one two\\nthree fourfive\"}");
    reads_as("a: 'one\n  two\n\n\n  three'", "{a: \"one two\\n\\nthree\"}");
    reads_as("a: \"# no: comment\"", "{a: \"# no: comment\"}");
    fails_with(
        "a: \"\\q\"",
        "line 1, column 5: unknown escape; write '\\\\' for a backslash, or use single quotes");
    fails_with("a: \"\\ud800\"", "line 1, column 5: this escape is not a character");
    fails_with("a: \"\\u12\"", "line 1, column 9: this escape needs 4 hexadecimal digits");
    fails_with("b: 1\na: 'x\n", "line 2, column 4: this quote is never closed");
}

TEST(literal_and_folded_blocks_follow_their_headers)
{
    reads_as("a: |\n  one\n   two\n\n  three\n\nb: 1", "{a: \"one\\n two\\n\\nthree\\n\", b: 1}");
    reads_as("a: |-\n  one\n  two\n\n", "{a: \"one\\ntwo\"}");
    reads_as("a: |+\n  one\n\n\nb: 2", "{a: \"one\\n\\n\\n\", b: 2}");
    reads_as("a: >\n  one\n  two\n\n  three\n   more\n  four\n",
             "{a: \"one two\\nthree\\n more\\nfour\\n\"}");
    reads_as("a: |2-\n   x\n  y", "{a: \" x\\ny\"}");
    reads_as("- |\n # not a comment\n x\n# a comment\n- >-\n y\n",
             "[\"# not a comment\\nx\\n\", \"y\"]");
    reads_as("a: | # why\n  x\n", "{a: \"x\\n\"}");
    reads_as("a: |\nb: |-\n\n", "{a: \"\", b: \"\"}");
    reads_as("|\n x\n  y\n", "\"x\\n y\\n\"");
    reads_as("a: |\n  x", "{a: \"x\"}"); // no line break in the file, none in the text
    fails_with("a: | x", "line 1, column 6: the text of '|' and '>' starts on the next line");
    fails_with("a: |\n     \n  x",
               "line 3, column 3: a blank line above is indented more than this first line");
}

TEST(what_is_not_supported_is_refused_with_its_place)
{
    fails_with("a: &x 1", "line 1, column 4: anchors ('&') are not supported; write the value out "
                          "where it is needed");
    fails_with("a: *x", "line 1, column 4: aliases ('*') are not supported; write the value out, "
                        "or put it in quotes");
    fails_with("a: !!str 1", "line 1, column 4: tags ('!') are not supported; leave the tag away, "
                             "or put the value in quotes");
    fails_with("a:\n  <<: {b: 1}",
               "line 2, column 3: merge keys ('<<') are not supported; write the fields out");
    fails_with("? a\n: b",
               "line 1, column 1: complex keys ('? ') are not supported; use 'key: value'");
    fails_with("a: {[x]: 1}",
               "line 1, column 5: a list or map cannot be a key; put the key in quotes");
    fails_with("%YAML 1.2\n---\na: 1",
               "line 1, column 1: directives ('%') are not supported; remove the line");
    fails_with("a: 1\n---\nb: 2", "line 2, column 1: a second document; keep one per file");
    fails_with("a:\n\tb: 1", "line 2, column 2: a tab indents this line; use spaces");
    fails_with("a: x\n\ty", "line 2, column 2: a tab indents this line; use spaces");
    fails_with("é: 1\nb: 2\né: 3", "line 3, column 1: the key 'é' is there twice; keep one");
    fails_with("a: {é: 1, é: 2}", "line 1, column 11: the key 'é' is there twice; keep one");
    fails_with("a: @x", "line 1, column 4: a value cannot start with '@'; put it in quotes");
}

TEST(mistakes_are_explained)
{
    fails_with("a: b: c", "line 1, column 4: a second ': ' on this line; put the value in quotes");
    fails_with(
        "a:\n    b: 1\n  c: 2",
        "line 3, column 3: indented deeper than the line it belongs to; line it up with column 1");
    fails_with("  a: 1\nb: 2",
               "line 2, column 1: unexpected text; line it up with what it belongs to");
    fails_with("a: 1\ntext", "line 2, column 1: a 'key: value' belongs here");
    fails_with("a: [1, 2", "line 1, column 4: this '[' is never closed");
    fails_with("a: [1 2}, 3]", "line 1, column 8: a ',' or ']' is missing here");
    fails_with("a: [,]", "line 1, column 5: a value is missing before ','");
    fails_with("a: [b: c]",
               "line 1, column 6: a ':' in a list; write {key: value}, or put it in quotes");
    fails_with("a: {b}", "line 1, column 6: a ':' is missing after the key 'b'");
    fails_with("a: 'x' y",
               "line 1, column 8: unexpected 'y' after the value; put the value in quotes");
    fails_with("a: - b", "line 1, column 4: a list starts on the line below its key");
    fails_with("a: 1\n- b",
               "line 2, column 1: a '- ' item where a key belongs; indent it under its key");
    fails_with("a: x\n  - b", "line 2, column 3: a '- ' item under a value; take one of them away");
    fails_with("a: \xff", "line 1, column 4: not UTF-8 text; save the file as UTF-8");
    fails_with("a: \x01", "line 1, column 4: the character U+0001 may not stand here; write it as "
                          "an escape in double quotes");
}

TEST(depth_and_size_are_bounded)
{
    char deep[100];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    fails_with(deep, "line 1, column 33: more than 32 levels of lists and maps; flatten it");

    struct error err = {0};
    autoptr(data_document) document = NULL;
    autofree char *big = malloc(YAML_MAX_BYTES + 1);
    memset(big, ' ', YAML_MAX_BYTES + 1);
    CHECK(yaml_read("t.yaml", big, YAML_MAX_BYTES + 1, &document, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    for (size_t i = 0; i < YAML_MAX_BYTES; i += 2)
        memcpy(big + i, i ? "a," : " [", 2);
    CHECK(yaml_read("t.yaml", big, YAML_MAX_BYTES, &document, &err) < 0);
    CHECK(strstr(err.text, "more than 100000 values"));
}

static struct data_document *read_text(const char *text)
{
    struct data_document *document = NULL;
    struct error err = {0};

    CHECK_OK(yaml_read("f.yaml", text, strlen(text), &document, &err), err);
    return document;
}

TEST(typed_getters_name_the_field_by_its_path)
{
    autoptr(data_document) document = read_text(
        "name: x\nn: 5\nversion: 3.10\nbuild:\n  packages: [a, b, c, [d]]\n  one: z\n  on: true\n");
    struct data_value *root = document->root, *build = NULL;
    const char *text = "unset", **list = NULL;
    struct error err = {0};
    int64_t number = 0;

    CHECK_OK(value_get_string(root, "name", true, &text, &err), err);
    CHECK_STR(text, "x");
    CHECK_OK(value_get_string(root, "missing", false, &text, &err), err);
    CHECK_STR(text, "x");
    CHECK_OK(value_get_string(root, "version", true, &text, &err), err);
    CHECK_STR(text, "3.10");
    CHECK_OK(value_get_integer(root, "n", true, 1, 10, &number, &err), err);
    CHECK_INT(number, 5);
    CHECK_OK(value_get_map(root, "build", true, &build, &err), err);
    CHECK_OK(value_get_strings(build, "one", true, &list, &err), err);
    CHECK_STR(list[0], "z");
    CHECK(list[1] == NULL);

    CHECK(value_get_strings(build, "packages", true, &list, &err) < 0);
    CHECK_STR(err.text, "f.yaml: build.packages[3]: must be a string, not a list");
    CHECK(value_get_string(build, "kind", true, &text, &err) < 0);
    CHECK_STR(err.text, "f.yaml: build: 'kind' is missing");
    CHECK(value_get_integer(root, "n", true, 6, 10, &number, &err) < 0);
    CHECK_STR(err.text, "f.yaml: n: must be from 6 to 10, not '5'");
    CHECK(value_get_integer(root, "version", true, 0, 10, &number, &err) < 0);
    CHECK_STR(err.text, "f.yaml: version: must be a whole number, not '3.10'");
}

TEST(unknown_fields_are_refused_with_the_nearest_name)
{
    autoptr(data_document) document = read_text("name: x\npakages: []\n");
    static const char *const known[] = {"name", "packages", "env", NULL};
    static const char *const other[] = {"name", NULL};
    struct error err = {0};

    CHECK(value_check_keys(document->root, known, &err) < 0);
    CHECK_STR(err.text, "f.yaml: pakages: unknown field; did you mean 'packages'?");
    CHECK(value_check_keys(document->root, other, &err) < 0);
    CHECK_STR(err.text, "f.yaml: pakages: unknown field");
}
