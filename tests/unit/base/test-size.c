/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/size.c and the decimal numbers below it. */
#include "base/auto.h"
#include "base/decimal.h"
#include "base/size.h"
#include "test.h"

TEST(sizes_read_as_people_write_them)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"0004096", 4096},
        {"256Mi", 256ULL << 20},
        {"1Gi", 1ULL << 30},
        {"1.5Gi", 3ULL << 29},
        {"512M", 512000000ULL},
        {"1k", 1000},
        {"1K", 1000},
        {"64M", 64000000},
        {"1Ki", 1024},
        {"2T", 2000000000000ULL},
        {"2Ti", 2ULL << 40},
        {"3P", 3000000000000000ULL},
        {"3Pi", 3ULL << 50},
        {"1E", 1000000000000000000ULL},
        {"15Ei", 15ULL << 60},
        {"15.9999Ei", 18446628781559090932ULL},
        {"18446744073709551615", UINT64_MAX},
        {"0.1Ki", 103}, // 102.4: a part of a byte counts as a whole one
        {"0.0000000000000000001Gi", 1},
        {"0.0Gi", 0},
        {"1.000000000000000000000000000000Ki", 1024},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        uint64_t bytes = 7;
        CHECK_OK(size_parse(rows[i].text, "memory", &bytes, &err), err);
        if (bytes != rows[i].bytes)
            test_fail(__FILE__, __LINE__, "'%s' is %llu", rows[i].text, (unsigned long long)bytes);
    }
}

TEST(what_is_no_size_is_refused_and_nothing_is_written)
{
    static const char *const texts[] = {
        "",
        " ",
        "Mi",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1 Mi",
        "12Q",
        "1.5",
        "1.",
        ".5Gi",
        "1..5G",
        "1.5.5G",
        "0x10",
        "1e3",
        "1Mib",
        "1MiB",
        "1mi",
        "1m",
        "1MiMi",
        "1,5Gi",
        "1_000",
        "16Ei",
        "19E",
        "18446744073709551616",
        "99999999999999999999999999999999Gi",
        "18014398509481984Ki",
        "NaN",
        "inf",
        "\n1",
        "1\n",
        "\xef\xbc\x91Mi",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {0};
        uint64_t bytes = 7;
        if (size_parse(texts[i], "memory", &bytes, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken for a size", texts[i]);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(bytes, 7);
    }
}

TEST(a_refused_size_names_the_thing_and_the_way_out)
{
    struct error err = {0};
    uint64_t bytes = 0;
    CHECK(size_parse("12Q", "memory", &bytes, &err) < 0);
    CHECK_STR(
        err.text,
        "memory '12Q' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, Pi, Ei (powers of "
        "1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)");
}

TEST(spellings_with_two_meanings_are_answered_with_both)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"64m", "memory '64m' is not a size: write 64Mi (powers of 1024) or 64M (powers of 1000)"},
        {"64MB",
         "memory '64MB' is not a size: write 64Mi (powers of 1024) or 64M (powers of 1000)"},
        {"1.5gib",
         "memory '1.5gib' is not a size: write 1.5Gi (powers of 1024) or 1.5G (powers of 1000)"},
        {"2KiB", "memory '2KiB' is not a size: write 2Ki (powers of 1024) or 2K (powers of 1000)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        uint64_t bytes = 7;
        CHECK(size_parse(rows[i].text, "memory", &bytes, &err) < 0);
        CHECK_STR(err.text, rows[i].sentence);
    }
}

TEST(a_refused_size_of_any_length_keeps_its_way_out)
{
    struct error err = {0};
    uint64_t bytes = 0;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK(size_parse(text, "disk", &bytes, &err) < 0);
    CHECK(strstr(err.text, "(for example 256Mi)") != NULL);
}

TEST(processors_read_as_thousandths)
{
    static const struct {
        const char *text;
        uint32_t millis;
    } rows[] = {
        {"500m", 500},   {"2", 2000}, {"0.5", 500}, {"1.25", 1250}, {"0", 0},
        {"1000m", 1000}, {"0m", 0},   {"0.001", 1}, {"0.0001", 1},  {"4294967295m", UINT32_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        uint32_t millis = 7;
        CHECK_OK(cpu_parse(rows[i].text, "cpu", &millis, &err), err);
        CHECK_INT(millis, rows[i].millis);
    }
}

TEST(what_is_no_share_of_processors_is_refused)
{
    static const char *const texts[] = {"",      "m",    "-1",          "1.5m",   "1M",
                                        "500mm", "1/2",  "1 ",          "50%",    ".5",
                                        "1.",    "1cpu", "4294967296m", "4294968"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {0};
        uint32_t millis = 7;
        if (cpu_parse(texts[i], "cpu", &millis, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken for processors", texts[i]);
        CHECK_INT(millis, 7);
    }
    struct error err = {0};
    uint32_t millis = 0;
    CHECK(cpu_parse("many", "cpu", &millis, &err) < 0);
    CHECK_STR(err.text, "cpu 'many' is not a number of processors: use for example 500m, 0.5 or 2");
}

TEST(a_formatted_size_is_short_and_reads_back)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "1"},
                {1000, "1000"},
                {1024, "1Ki"},
                {1536, "1536"},
                {256ULL << 20, "256Mi"},
                {1ULL << 60, "1Ei"},
                {UINT64_MAX, "18446744073709551615"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[SIZE_TEXT];
        struct error err = {0};
        uint64_t back = 7;
        CHECK_STR(size_format(rows[i].bytes, text), rows[i].text);
        CHECK_OK(size_parse(text, "size", &back, &err), err);
        CHECK(back == rows[i].bytes);
    }
}

TEST(a_decimal_ends_where_its_digits_do)
{
    struct decimal number;
    const char *rest = decimal_scan("12.25 apples", &number);
    CHECK_STR(rest, " apples");
    CHECK_INT(number.whole, 12);
    CHECK(number.has_point && !number.is_cut);
    CHECK_INT(number.fraction, 250000000000000000LL);
    CHECK(decimal_scan("", &number) == NULL);
    CHECK(decimal_scan("99999999999999999999", &number) == NULL);
}

TEST(whole_numbers_are_written_as_printf_writes_them)
{
    static const int64_t rows[] = {0, 7, 10, 99, 100, -1, -10, 1234567890, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[DECIMAL_TEXT], expected[DECIMAL_TEXT];
        int length = snprintf(expected, sizeof expected, "%lld", (long long)rows[i]);
        CHECK_INT(decimal_format(rows[i], text), length);
        CHECK_STR(text, expected);
        length = snprintf(expected, sizeof expected, "%llu", (unsigned long long)rows[i]);
        CHECK_INT(decimal_format_natural((uint64_t)rows[i], text), length);
        CHECK_STR(text, expected);
    }
}
