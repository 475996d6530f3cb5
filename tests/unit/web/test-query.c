/* SPDX-License-Identifier: Apache-2.0 */
#include "web/query.h"

#include "base/auto.h"
#include "test.h"

static struct query *parse(struct arena *memory, const char *text)
{
    struct query *query = NULL;
    struct error err = {0};

    CHECK_OK(query_parse(text, memory, &query, &err), err);
    return query;
}

static void check_refused(const char *text, const char *want)
{
    autoarena memory = {0};
    struct query *query = NULL;
    struct error err = {0};

    CHECK(query_parse(text, &memory, &query, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK_STR(err.text, want);
}

TEST(names_and_values_are_decoded_as_forms_are)
{
    autoarena memory = {0};
    struct query *query =
        parse(&memory, "a=1&path=%2Fx%2fy+z&&b&c=&=d&a=2&%61b=c%3Dd=e&end=%C3%A4");

    CHECK_STR(query_text(query, "a"), "1");
    CHECK_STR(query_text(query, "path"), "/x/y z");
    CHECK(!query_text(query, "b") && !query_text(query, "c") && !query_text(query, "nothing"));
    CHECK_STR(query_text(query, ""), "d");
    CHECK_STR(query_text(query, "ab"), "c=d=e");
    CHECK_STR(query_text(query, "end"), "\xc3\xa4");
}

TEST(no_query_is_an_empty_one)
{
    autoarena memory = {0};

    CHECK(!query_text(parse(&memory, NULL), "a"));
    CHECK(!query_text(parse(&memory, ""), "a"));
    CHECK(!query_text(parse(&memory, "&"), "a"));
}

TEST(bad_escapes_nul_and_what_is_not_utf8_are_refused)
{
    check_refused("a=%", "the query has a '%' that is not followed by two hexadecimal digits");
    check_refused("a=%4", "the query has a '%' that is not followed by two hexadecimal digits");
    check_refused("%zz=1", "the query has a '%' that is not followed by two hexadecimal digits");
    check_refused("a=1%&b=2", "the query has a '%' that is not followed by two hexadecimal digits");
    check_refused("a=%00", "the query holds a NUL");
    check_refused("a=%ff", "the query is not UTF-8");
    check_refused("a=%ed%a0%80", "the query is not UTF-8");
}

TEST(too_many_parameters_are_refused)
{
    char text[2 * QUERY_MAXIMUM + 1];

    memset(text, '&', sizeof text);
    text[sizeof text - 1] = '\0';
    check_refused(text, "the query has more than 200 parameters");
}

TEST(values_are_read_by_type)
{
    autoarena memory = {0};
    struct query *query = parse(
        &memory,
        "n=42&m=-7&big=99999999999999999999&t=true&o=1&f=false&z=0&x=yes&d=1m30s&e=soon&s=%2042");

    CHECK_INT(query_integer(query, "n", 5), 42);
    CHECK_INT(query_integer(query, "m", 5), -7);
    CHECK_INT(query_integer(query, "big", 5), 5);
    CHECK_INT(query_integer(query, "t", 5), 5);
    CHECK_INT(query_integer(query, "s", 5), 5);
    CHECK(query_bool(query, "t", false) && query_bool(query, "o", false));
    CHECK(!query_bool(query, "f", true) && !query_bool(query, "z", true));
    CHECK(query_bool(query, "x", true) && !query_bool(query, "missing", false));
    CHECK_INT(query_duration_ms(query, "d"), 90000);
    CHECK_INT(query_duration_ms(query, "e"), -1);
    CHECK_INT(query_duration_ms(query, "missing"), -1);
}

static void check_checked(const char *text, const char *want)
{
    static const char *const directions[] = {"asc", "desc", NULL};
    static const struct parameter parameters[] = {
        {"limit", PARAMETER_INTEGER, .minimum = 0, .maximum = 1000},
        {"offset", PARAMETER_INTEGER},
        {"live", PARAMETER_BOOL},
        {"wait", PARAMETER_DURATION},
        {"direction", PARAMETER_WORD, .words = directions},
        {"name", PARAMETER_TEXT},
        {0},
    };
    autoarena memory = {0};
    struct query *query = parse(&memory, text);
    struct error err = {0};

    CHECK_INT(query_check(query, parameters, &err), want ? -1 : 0);
    if (want)
        CHECK_STR(err.text, want);
}

TEST(a_table_checks_what_is_known_and_ignores_the_rest)
{
    check_checked("limit=5&offset=-3&live=true&wait=0&direction=asc&name=%20&other=%20", NULL);
    check_checked("limit=&live=&wait=&direction=", NULL);
    check_checked("limit=5x", "limit: must be a whole number, not '5x'");
    check_checked("limit=1001", "limit: must be between 0 and 1000, not '1001'");
    check_checked("offset=", NULL);
    check_checked("live=maybe", "live: must be 'true' or 'false', not 'maybe'");
    check_checked("direction=up", "direction: must be 'asc' or 'desc', not 'up'");
    check_checked("wait=soon", "wait 'soon' is not a duration: use numbers with d, h, m, s, ms, "
                               "us, ns (for example 30s, 1h30m or 7d)");
}

TEST(amounts_are_read_with_and_without_a_unit)
{
    static const struct parameter parameters[] = {
        {"timeoutMs", PARAMETER_MS, .minimum = 0, .maximum = 60000},
        {"limitBytes", PARAMETER_AMOUNT},
        {0},
    };
    autoarena memory = {0};
    struct query *query = parse(&memory, "timeoutMs=250&limitBytes=1Ki");
    struct error err = {0};

    CHECK_INT(query_ms(query, "timeoutMs", -1), 250);
    CHECK_INT(query_amount(query, "limitBytes", -1), 1024);
    CHECK_INT(query_ms(query, "missing", 7), 7);
    CHECK_OK(query_check(query, parameters, &err), err);
    query = parse(&memory, "timeoutMs=30s&limitBytes=12");
    CHECK_INT(query_ms(query, "timeoutMs", -1), 30000);
    CHECK_INT(query_amount(query, "limitBytes", -1), 12);
    CHECK(query_check(parse(&memory, "timeoutMs=2m"), parameters, &err) < 0);
    CHECK_STR(err.text, "timeoutMs: must be between 0 and 60000, not '2m'");
    CHECK_STR(err.field, "timeoutMs");
    CHECK(query_check(parse(&memory, "timeoutMs=-1"), parameters, &err) < 0);
    CHECK(query_check(parse(&memory, "limitBytes=x"), parameters, &err) < 0);
}

TEST(names_that_there_are_not_are_found_where_that_matters)
{
    static const struct parameter parameters[] = {{"limit", PARAMETER_INTEGER}, {0}};
    autoarena memory = {0};
    struct error err = {0};

    CHECK_OK(query_check_names(parse(&memory, "limit=1&limit=2"), parameters, &err), err);
    CHECK(query_check_names(parse(&memory, "limt=1"), parameters, &err) < 0);
    CHECK_INT(err.reason, ERROR_UNKNOWN_FIELD);
    CHECK_STR(err.text, "limt: there is no such parameter; did you mean 'limit'?");
    CHECK_STR(err.field, "limt");
    CHECK(query_check_names(parse(&memory, "x"), NULL, &err) < 0);
    CHECK_OK(query_check_names(parse(&memory, ""), NULL, &err), err);
}
