/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/options.c. */
#include "base/auto.h"
#include "base/options.h"
#include "test.h"

struct wishes {
    bool quiet;
    bool tty;
    unsigned verbose;
    const char *runtime;
    struct option_list env;
    uint64_t memory_bytes;
    uint64_t timeout_ms;
    int64_t cpu_millis;
    int64_t pids;
};

static const struct option_row rows[] = {
    {"quiet", 'q', OPTION_FLAG, offsetof(struct wishes, quiet), NULL, "print nothing"},
    {"tty", 't', OPTION_FLAG, offsetof(struct wishes, tty), NULL, "a terminal"},
    {"verbose", 'v', OPTION_COUNT, offsetof(struct wishes, verbose), NULL, "say more"},
    {"runtime", 'r', OPTION_TEXT, offsetof(struct wishes, runtime), "NAME", "what to start from",
     .environment = "TEST_RUNTIME"},
    {"env", 'e', OPTION_LIST, offsetof(struct wishes, env), "KEY=VALUE", "a variable"},
    {"memory", 'm', OPTION_SIZE, offsetof(struct wishes, memory_bytes), "SIZE", "how much memory",
     .minimum = 4096, .maximum = INT64_MAX},
    {"timeout", 0, OPTION_DURATION, offsetof(struct wishes, timeout_ms), "DURATION", "how long",
     .minimum = 1, .maximum = 3600000},
    {"cpu", 0, OPTION_CPU, offsetof(struct wishes, cpu_millis), "CPU", "how many processors",
     .minimum = 10, .maximum = 64000},
    {"pids", 0, OPTION_INTEGER, offsetof(struct wishes, pids), "NUMBER", "how many processes",
     .minimum = 1, .maximum = 4096},
    {0},
};

static const char *const examples[] = {"$ test -m 1Gi -- true", NULL};
static const struct option_set set = {
    .command = "test",
    .usage = "[options] -- command",
    .summary = "tries things",
    .description = "It tries them all.",
    .rows = rows,
    .examples = examples,
};

/* Splits at spaces and parses; the words must outlive the wishes. */
static int parse(const char *line, struct wishes *wishes, char **words, int *operands,
                 struct error *err)
{
    static char text[512];
    int argc = 0;
    (void)snprintf(text, sizeof text, "test %s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[argc++] = word;
    words[argc] = NULL;
    option_list_clear(&wishes->env);
    *wishes = (struct wishes){.memory_bytes = 1};
    return options_parse(&set, argc, words, wishes, operands, err);
}

TEST(every_spelling_of_an_option_is_understood)
{
    struct wishes w = {0};
    char *words[32];
    int at = 0;
    struct error err = {0};

    CHECK_INT(parse("-qt --verbose -vv --runtime=base -e A=1 --env B=2 -eC -m256Mi --timeout 30s "
                    "--cpu 500m --pids 64 -- ls --quiet",
                    &w, words, &at, &err),
              0);
    CHECK(w.quiet && w.tty);
    CHECK_INT(w.verbose, 3);
    CHECK_STR(w.runtime, "base");
    CHECK_INT(w.env.count, 3);
    CHECK_STR(w.env.items[0], "A=1");
    CHECK_STR(w.env.items[1], "B=2");
    CHECK_STR(w.env.items[2], "C");
    CHECK_INT(w.memory_bytes, 256 << 20);
    CHECK_INT(w.timeout_ms, 30000);
    CHECK_INT(w.cpu_millis, 500);
    CHECK_INT(w.pids, 64);
    CHECK_STR(words[at], "ls");
    CHECK_STR(words[at + 1], "--quiet");
    option_list_clear(&w.env);
}

TEST(options_end_at_the_first_operand)
{
    struct wishes w = {0};
    char *words[32];
    int at = 0;
    struct error err = {0};

    CHECK_INT(parse("-q ls -t", &w, words, &at, &err), 0);
    CHECK(w.quiet && !w.tty);
    CHECK_STR(words[at], "ls");
    CHECK_INT(parse("- -q", &w, words, &at, &err), 0);
    CHECK_STR(words[at], "-");
    CHECK_INT(parse("", &w, words, &at, &err), 0);
    CHECK_INT(at, 1);
    CHECK(words[at] == NULL);
    CHECK_INT(parse("-q --", &w, words, &at, &err), 0);
    CHECK(words[at] == NULL);
    CHECK_INT(w.memory_bytes, 1); // presets stay
}

TEST(values_may_look_like_options_or_be_empty)
{
    struct wishes w = {0};
    char *words[32];
    int at = 0;
    struct error err = {0};

    CHECK_INT(parse("--runtime --quiet", &w, words, &at, &err), 0);
    CHECK_STR(w.runtime, "--quiet");
    CHECK(!w.quiet);
    CHECK_INT(parse("--runtime=", &w, words, &at, &err), 0);
    CHECK_STR(w.runtime, "");
    CHECK_INT(parse("--env=A=b=c", &w, words, &at, &err), 0);
    CHECK_STR(w.env.items[0], "A=b=c");
    option_list_clear(&w.env);
}

TEST(bad_options_are_answered_with_a_sentence)
{
    static const struct {
        const char *line, *sentence;
    } bad[] = {
        {"--memroy 1Gi", "unknown option '--memroy'; did you mean '--memory'?"},
        {"--mem 1Gi", "unknown option '--mem'; 'test --help' lists them all"},
        {"--frobnicate", "unknown option '--frobnicate'; 'test --help' lists them all"},
        {"-x", "unknown option '-x'; 'test --help' lists them all"},
        {"-qx", "unknown option '-x'; 'test --help' lists them all"},
        {"--quiet=yes", "option '--quiet' takes no value"},
        {"--runtime", "option '--runtime' needs a value: NAME"},
        {"-m", "option '--memory' needs a value: SIZE"},
        {"--memory 12Q", "memory '12Q' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, "
                         "Pi, Ei (powers of "
                         "1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)"},
        {"--memory=", "memory '' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, Pi, Ei "
                      "(powers of 1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)"},
        {"--memory 1Ki", "memory '1Ki' is out of range: use 4Ki to 9223372036854775807"},
        {"--timeout 0s", "timeout '0s' is out of range: use 1ms to 1h"},
        {"--cpu 1m", "cpu '1m' is out of range: use 10m to 64000m"},
        {"--pids 0", "pids '0' is out of range: use 1 to 4096"},
        {"--pids -5", "pids '-5' is out of range: use 1 to 4096"},
        {"--pids ten", "pids 'ten' is not a whole number"},
        {"--pids 1.5", "pids '1.5' is not a whole number"},
        {"--pids +1", "pids '+1' is not a whole number"},
        {"--pids 99999999999999999999", "pids '99999999999999999999' is not a whole number"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct wishes w = {0};
        char *words[32];
        int at = -7;
        struct error err = {0};
        CHECK_INT(parse(bad[i].line, &w, words, &at, &err), -1);
        CHECK_STR(err.text, bad[i].sentence);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(at, -7);
    }
}

TEST(help_counts_only_before_the_operands)
{
    struct wishes w = {0};
    char *words[32];
    int at = 0;
    struct error err = {0};

    CHECK_INT(parse("--help", &w, words, &at, &err), OPTIONS_HELP);
    CHECK_INT(parse("-q -h --memory 12Q", &w, words, &at, &err), OPTIONS_HELP);
    CHECK_INT(parse("ls --help", &w, words, &at, &err), 0);
    CHECK_INT(parse("-- --help", &w, words, &at, &err), 0);
    CHECK_INT(parse("--runtime --help", &w, words, &at, &err), 0);
}

TEST(the_environment_gives_what_the_line_does_not)
{
    struct wishes w = {0};
    char *words[32];
    int at = 0;
    struct error err = {0};

    (void)setenv("TEST_RUNTIME", "from-environment", 1);
    CHECK_INT(parse("-q", &w, words, &at, &err), 0);
    CHECK_STR(w.runtime, "from-environment");
    CHECK_INT(parse("--runtime line", &w, words, &at, &err), 0);
    CHECK_STR(w.runtime, "line");
    (void)setenv("TEST_RUNTIME", "", 1);
    CHECK_INT(parse("-q", &w, words, &at, &err), 0);
    CHECK(w.runtime == NULL);
    (void)unsetenv("TEST_RUNTIME");
}

TEST(options_behind_an_operand_leave_those_before_it)
{
    char *argv[] = {"test", "--runtime", "before", "operand", "--cpu", "2", "rest", NULL};
    struct wishes w = {0};
    struct error err = {0};
    int at = 0;

    (void)setenv("TEST_RUNTIME", "from-environment", 1);
    CHECK_OK(options_parse(&set, 7, argv, &w, &at, &err), err);
    CHECK_INT(at, 3);
    CHECK_OK(options_parse_more(&set, 4, argv + 3, &w, &at, &err), err);
    CHECK_INT(at, 3);
    CHECK_STR(w.runtime, "before");
    CHECK_INT(w.cpu_millis, 2000);
    (void)unsetenv("TEST_RUNTIME");
}

TEST(a_setting_is_made_by_the_name_of_its_variable)
{
    struct wishes w = {0};
    struct error err = {0};

    CHECK_OK(options_set(&set, "TEST_RUNTIME", "from-a-file", &w, &err), err);
    CHECK_STR(w.runtime, "from-a-file");
    CHECK(options_set(&set, "runtime", "x", &w, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

static char *printed(void (*print)(const struct option_set *, FILE *), const struct option_set *of)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(of, out);
    (void)fclose(out);
    return text;
}

TEST(help_shows_usage_every_option_and_the_examples)
{
    autofree char *text = printed(options_help, &set);
    CHECK(strstr(text, "usage: test [options] -- command\n") != NULL);
    CHECK(strstr(text, "\nIt tries them all.\n") != NULL);
    CHECK(strstr(text, "  -m, --memory SIZE       how much memory\n") != NULL);
    CHECK(strstr(text, "      --cpu CPU           how many processors\n") != NULL);
    CHECK(strstr(text, "  -r, --runtime NAME      what to start from [TEST_RUNTIME]\n") != NULL);
    CHECK(strstr(text, "  -h, --help              print this help\n") != NULL);
    CHECK(strstr(text, "\nexamples:\n  $ test -m 1Gi -- true\n") != NULL);
}

TEST(the_dump_has_one_line_an_option)
{
    static const struct option_set bare = {.command = "bare", .usage = "", .summary = ""};
    autofree char *text = printed(options_dump, &set);
    autofree char *none = printed(options_dump, &bare);
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    CHECK_INT(count, ARRAY_SIZE(rows)); // the table's end stands for --help
    CHECK(strstr(text, "test\t--memory\t-m\tSIZE\thow much memory\n") != NULL);
    CHECK(strstr(text, "test\t--cpu\t\tCPU\thow many processors\n") != NULL);
    CHECK_STR(none, "bare\t--help\t-h\t\tprint this help\n");
}

TEST(an_option_of_another_tool_is_answered_with_what_is_there)
{
    static const struct option_hint hints[] = {
        {"rm", "leave it out"}, {"i", "there is -t"}, {NULL, NULL}};
    const struct option_set hinted = {.command = "test", .usage = "", .rows = rows, .hints = hints};
    char *long_one[] = {"test", "--rm", NULL}, *letter[] = {"test", "-it", NULL};
    struct wishes w = {0};
    struct error err = {0};
    int at;

    CHECK(options_parse(&hinted, 2, long_one, &w, &at, &err) < 0);
    CHECK_STR(err.text, "unknown option '--rm': leave it out");
    CHECK(options_parse(&hinted, 2, letter, &w, &at, &err) < 0);
    CHECK_STR(err.text, "unknown option '-i': there is -t");
}

TEST(an_option_is_seen_however_wrong_the_words_before_it_are)
{
    char *words[] = {"test", "--nope", "--json", "--", "--quiet", NULL};

    CHECK(options_mention(5, words, "json"));
    CHECK(!options_mention(5, words, "quiet") && !options_mention(5, words, "jso"));
}

TEST(help_fits_into_a_hundred_columns)
{
    static const struct option_row with_variable[] = {
        {"first", 0, OPTION_TEXT, offsetof(struct wishes, runtime), "NAME",
         "words that fill a line up to where the name of the variable has no room behind them",
         .environment = "A_VARIABLE_WITH_A_NAME"},
        {0},
    };
    const struct option_set wide = {
        .command = "test",
        .usage = "",
        .summary = "a test",
        .description =
            "A line that is left as it is.\nA long one, which is as long as nobody would "
            "write it for a terminal of a hundred columns, and which is folded.",
        .rows = with_variable};
    autofree char *text = printed(options_help, &wide);

    CHECK(strstr(text, "\nA line that is left as it is.\nA long one, ") != NULL);
    CHECK(strstr(text, "[A_VARIABLE_WITH_A_NAME]\n") != NULL);
    for (const char *line = text; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        CHECK(strcspn(line, "\n") <= 100);
}
