/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as JavaScript writes it; see canonical.h. */
#include "front/aionis/canonical.h"

#include "base/auto.h"
#include "base/mem.h"
#include "data/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- numbers ----

/* The fewest digits that read back as the same number: "d.ddde±xx". */
static void shortest(double number, char text[CANONICAL_NUMBER])
{
    for (int precision = 0; precision < 17; precision++) {
        (void)snprintf(text, CANONICAL_NUMBER, "%.*e", precision, number);
        if (strtod(text, NULL) == number)
            return;
    }
}

/* Number::toString of ECMAScript: the digits, and where the point is behind them. */
static void place_point(const char *digits, int n_digits, int point, char *out)
{
    const size_t room = CANONICAL_NUMBER - 1;

    if (point > 0 && point <= 21 && n_digits <= point) {
        (void)snprintf(out, room, "%s%.*s", digits, point - n_digits, "000000000000000000000");
    } else if (point > 0 && point <= 21) {
        (void)snprintf(out, room, "%.*s.%s", point, digits, digits + point);
    } else if (point > -6 && point <= 0) {
        (void)snprintf(out, room, "0.%.*s%s", -point, "000000", digits);
    } else {
        int exponent = point - 1;
        (void)snprintf(out, room, "%c%s%se%c%d", digits[0], n_digits > 1 ? "." : "", digits + 1,
                       exponent < 0 ? '-' : '+', abs(exponent));
    }
}

const char *canonical_number(const char *text, char out[CANONICAL_NUMBER])
{
    double number = strtod(text, NULL);
    char written[CANONICAL_NUMBER], digits[24] = "";
    int n_digits = 0;

    if (!isfinite(number))
        return "null";
    if (number == 0)
        return "0";
    shortest(fabs(number), written);
    const char *at = written;
    for (; *at != 'e'; at++) {
        if (*at != '.')
            digits[n_digits++] = *at;
    }
    while (n_digits > 1 && digits[n_digits - 1] == '0')
        n_digits--;
    digits[n_digits] = '\0';
    out[0] = '-';
    place_point(digits, n_digits, atoi(at + 1) + 1, out + (number < 0));
    return out;
}

// ---- trees ----

#define INDEX_MAX 4294967294.0 // the last key that is an index of an array

/* "0", "17" but not "017" or "-1"; -1: it is none. */
static double index_of(const struct data_value *member)
{
    const char *key = member->key;

    if (member->key_length == 0 || member->key_length > 10 ||
        strspn(key, "0123456789") != member->key_length ||
        (key[0] == '0' && member->key_length > 1))
        return -1;
    double number = strtod(key, NULL);
    return number <= INDEX_MAX ? number : -1;
}

static int compare_indexes(const void *a, const void *b)
{
    double left = index_of(*(const struct data_value *const *)a);
    double right = index_of(*(const struct data_value *const *)b);

    return (left > right) - (left < right);
}

static void write_value(struct json_writer *json, const struct data_value *value);

static void write_member(struct json_writer *json, const struct data_value *member)
{
    json_key_exact(json, member->key, member->key_length);
    write_value(json, member);
}

static void write_indexes(struct json_writer *json, const struct data_value *map)
{
    size_t count = 0;

    autofree const struct data_value **indexes = xcalloc(map->count + 1, sizeof *indexes);
    for (const struct data_value *member = map->first; member; member = member->next) {
        if (index_of(member) >= 0)
            indexes[count++] = member;
    }
    qsort(indexes, count, sizeof *indexes, compare_indexes);
    for (size_t i = 0; i < count; i++)
        write_member(json, indexes[i]);
}

static void write_map(struct json_writer *json, const struct data_value *map)
{
    json_map_begin(json);
    write_indexes(json, map);
    for (const struct data_value *member = map->first; member; member = member->next) {
        if (index_of(member) < 0)
            write_member(json, member);
    }
    json_map_end(json);
}

static void write_list(struct json_writer *json, const struct data_value *list)
{
    json_list_begin(json);
    for (const struct data_value *item = list->first; item; item = item->next)
        write_value(json, item);
    json_list_end(json);
}

static void write_value(struct json_writer *json, const struct data_value *value)
{
    char number[CANONICAL_NUMBER];
    const char *text;

    switch (value->kind) {
    case VALUE_NUMBER:
        text = canonical_number(value->text, number);
        json_raw(json, text, strlen(text));
        return;
    case VALUE_LIST:
        write_list(json, value);
        return;
    case VALUE_MAP:
        write_map(json, value);
        return;
    default:
        json_value(json, value);
        return;
    }
}

int canonical_write(const struct data_value *value, struct buffer *out, struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    write_value(&json, value);
    return json_writer_finish(&json, err);
}
