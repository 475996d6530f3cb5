/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options from a table; see options.h. */
#include "base/options.h"

#include "base/mem.h"
#include "base/size.h"
#include "base/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row no_rows[] = {{0}};

static const struct option_row *rows_of(const struct option_set *set)
{
    return set->rows ? set->rows : no_rows;
}

static bool takes_value(const struct option_row *row)
{
    return row->type != OPTION_FLAG && row->type != OPTION_COUNT;
}

void option_list_clear(struct option_list *list)
{
    free(list->items);
    *list = (struct option_list){0};
}

static void list_add(struct option_list *list, const char *item)
{
    list->items = xrealloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = item;
}

static int integer_parse(const char *text, const char *what, int64_t *out, struct error *err)
{
    char *end;
    const char *digits = text + (*text == '-');
    errno = 0;
    long long number = strtoll(text, &end, 10);

    if (*digits < '0' || *digits > '9' || *end || errno)
        return error_set(err, ERROR_INVALID, "%s '%.80s' is not a whole number", what, text);
    *out = number;
    return 0;
}

const char *option_number(enum option_type type, int64_t number, char text[DURATION_TEXT])
{
    if (type == OPTION_SIZE)
        return size_format((uint64_t)number, text);
    if (type == OPTION_DURATION)
        return duration_format((uint64_t)number, text);
    (void)snprintf(text, DURATION_TEXT, "%" PRId64 "%s", number, type == OPTION_CPU ? "m" : "");
    return text;
}

static int check_range(const struct option_row *row, const char *value, int64_t number,
                       struct error *err)
{
    char low[DURATION_TEXT], high[DURATION_TEXT];

    if (row->maximum == 0 || (number >= row->minimum && number <= row->maximum))
        return 0;
    return error_set(err, ERROR_INVALID, "%s '%.80s' is out of range: use %s to %s", row->name,
                     value, option_number(row->type, row->minimum, low),
                     option_number(row->type, row->maximum, high));
}

static int64_t clamp(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static int store_size(const struct option_row *row, const char *value, uint64_t *field,
                      struct error *err)
{
    uint64_t number = 0;
    int read = row->type == OPTION_SIZE ? size_parse(value, row->name, &number, err)
                                        : duration_parse(value, row->name, &number, err);
    if (read < 0 || check_range(row, value, clamp(number), err) < 0)
        return -1;
    *field = number;
    return 0;
}

static int store_cpu(const struct option_row *row, const char *value, int64_t *field,
                     struct error *err)
{
    uint32_t millis = 0;
    if (cpu_parse(value, row->name, &millis, err) < 0 || check_range(row, value, millis, err) < 0)
        return -1;
    *field = millis;
    return 0;
}

static int store_integer(const struct option_row *row, const char *value, int64_t *field,
                         struct error *err)
{
    int64_t number = 0;
    if (integer_parse(value, row->name, &number, err) < 0 ||
        check_range(row, value, number, err) < 0)
        return -1;
    *field = number;
    return 0;
}

/* `value` is NULL exactly for flags and counts. */
static int store(const struct option_row *row, const char *value, void *into, struct error *err)
{
    void *field = (char *)into + row->offset;

    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_COUNT:
        ++*(unsigned *)field;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_LIST:
        list_add(field, value);
        return 0;
    case OPTION_SIZE:
    case OPTION_DURATION:
        return store_size(row, value, field, err);
    case OPTION_CPU:
        return store_cpu(row, value, field, err);
    case OPTION_INTEGER:
        return store_integer(row, value, field, err);
    }
    return 0;
}

static int store_environment(const struct option_set *set, void *into, struct error *err)
{
    for (const struct option_row *row = rows_of(set); row->name; row++) {
        const char *value = row->environment ? getenv(row->environment) : NULL;
        if (!value || !*value)
            continue;
        if (store(row, takes_value(row) ? value : NULL, into, err) < 0)
            return error_wrap(err, "environment variable %s", row->environment);
    }
    return 0;
}

int options_set(const struct option_set *set, const char *environment, const char *value,
                void *into, struct error *err)
{
    for (const struct option_row *row = rows_of(set); row->name; row++)
        if (row->environment && strcmp(row->environment, environment) == 0)
            return store(row, takes_value(row) ? value : NULL, into, err);
    return error_set(err, ERROR_NOT_FOUND, "there is no setting '%s'", environment);
}

static const char *hint_of(const struct option_set *set, const char *word)
{
    const struct option_hint *hint = set->hints;

    while (hint && hint->word && strcmp(hint->word, word) != 0)
        hint++;
    return hint ? hint->text : NULL;
}

static int refuse_unknown(const struct option_set *set, const char *name, size_t length,
                          struct error *err)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%.*s", (int)(length < 63 ? length : 63), name);
    struct suggestion near = {.wanted = wanted};
    const char *hint = hint_of(set, wanted);

    if (hint)
        return error_set(err, ERROR_INVALID, "unknown option '--%s': %s", wanted, hint);

    for (const struct option_row *row = rows_of(set); row->name; row++)
        suggestion_consider(&near, row->name);
    suggestion_consider(&near, "help");
    if (near.nearest)
        return error_set(err, ERROR_INVALID, "unknown option '--%s'; did you mean '--%s'?", wanted,
                         near.nearest);
    return error_set(err, ERROR_INVALID, "unknown option '--%s'; '%s --help' lists them all",
                     wanted, set->command);
}

static int refuse_letter(const struct option_set *set, char letter, struct error *err)
{
    const char *hint = hint_of(set, (const char[]){letter, '\0'});

    if (hint)
        return error_set(err, ERROR_INVALID, "unknown option '-%c': %s", letter, hint);
    return error_set(err, ERROR_INVALID, "unknown option '-%c'; '%s --help' lists them all", letter,
                     set->command);
}

/* Where in argv the parser is. */
struct cursor {
    const struct option_set *set;
    int argc;
    char **argv;
    int at; // the next word
    void *into;
};

static int next_value(struct cursor *cursor, const struct option_row *row, const char **out,
                      struct error *err)
{
    if (cursor->at >= cursor->argc)
        return error_set(err, ERROR_INVALID, "option '--%s' needs a value: %s", row->name,
                         row->argument ? row->argument : "VALUE");
    *out = cursor->argv[cursor->at++];
    return 0;
}

/* `word` follows the two dashes. */
static int parse_long(struct cursor *cursor, const char *word, struct error *err)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;

    if (strcmp(word, "help") == 0)
        return OPTIONS_HELP;
    for (const struct option_row *row = rows_of(cursor->set); row->name; row++) {
        if (strlen(row->name) != length || memcmp(row->name, word, length) != 0)
            continue;
        if (value && !takes_value(row))
            return error_set(err, ERROR_INVALID, "option '--%s' takes no value", row->name);
        if (!value && takes_value(row) && next_value(cursor, row, &value, err) < 0)
            return -1;
        return store(row, value, cursor->into, err);
    }
    return refuse_unknown(cursor->set, word, length, err);
}

static const struct option_row *row_of_letter(const struct option_set *set, char letter)
{
    for (const struct option_row *row = rows_of(set); row->name; row++) {
        if (row->letter == letter)
            return row;
    }
    return NULL;
}

/* `letters` follow one dash: flags, the last perhaps with a value, attached or in the next word. */
static int parse_letters(struct cursor *cursor, const char *letters, struct error *err)
{
    for (; *letters; letters++) {
        const struct option_row *row = row_of_letter(cursor->set, *letters);
        const char *value = NULL;
        if (!row && *letters == 'h')
            return OPTIONS_HELP;
        if (!row)
            return refuse_letter(cursor->set, *letters, err);
        if (takes_value(row)) {
            if (letters[1])
                value = letters + 1;
            else if (next_value(cursor, row, &value, err) < 0)
                return -1;
            return store(row, value, cursor->into, err);
        }
        if (store(row, NULL, cursor->into, err) < 0)
            return -1;
    }
    return 0;
}

int options_parse(const struct option_set *set, int argc, char **argv, void *into,
                  int *out_operands, struct error *err)
{
    if (store_environment(set, into, err) < 0)
        return -1;
    return options_parse_more(set, argc, argv, into, out_operands, err);
}

int options_parse_more(const struct option_set *set, int argc, char **argv, void *into,
                       int *out_operands, struct error *err)
{
    struct cursor cursor = {.set = set, .argc = argc, .argv = argv, .at = 1, .into = into};

    while (cursor.at < argc) {
        const char *word = argv[cursor.at];
        if (word[0] != '-' || word[1] == '\0')
            break; // an operand; "-" alone is one, too
        cursor.at++;
        if (strcmp(word, "--") == 0)
            break;
        int parsed = word[1] == '-' ? parse_long(&cursor, word + 2, err)
                                    : parse_letters(&cursor, word + 1, err);
        if (parsed != 0)
            return parsed;
    }
    *out_operands = cursor.at < argc ? cursor.at : argc;
    return 0;
}

bool options_mention(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0)
            return true;
    }
    return false;
}

/* "  -m, --memory SIZE" */
static int option_head(const struct option_row *row, char *text, size_t size)
{
    char letter[8] = "    ";
    if (row->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", row->letter);
    return snprintf(text, size, "  %s--%s%s%s", letter, row->name, row->argument ? " " : "",
                    row->argument ? row->argument : "");
}

/* Words of `text`, up to its end or that of its line, from column `column` on, wrapped before column 100; the first `at` columns are
 * there already. Where it ends. */
static int print_wrapped(FILE *out, const char *text, int column, int at)
{
    while (*text && *text != '\n') {
        int length = (int)strcspn(text, " \n");
        if (at > column && at + 1 + length > 100) {
            (void)fprintf(out, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            (void)fputc(' ', out);
            at++;
        }
        (void)fprintf(out, "%.*s", length, text);
        at += length;
        text += length;
        text += strspn(text, " ");
    }
    return at;
}

/* Line by line, as it was written where that fits. */
static void print_description(FILE *out, const char *text)
{
    while (*text) {
        int length = (int)strcspn(text, "\n");
        if (length <= 100)
            (void)fprintf(out, "%.*s", length, text);
        else
            (void)print_wrapped(out, text, 0, 0);
        (void)fputc('\n', out);
        text += length;
        text += *text == '\n';
    }
}

static void print_row(const struct option_row *row, int width, FILE *out)
{
    char head[80];
    option_head(row, head, sizeof head);
    (void)fprintf(out, "%-*s  ", width, head);
    int at = print_wrapped(out, row->help, width + 2, width + 2);
    if (row->environment) {
        char name[80];
        (void)snprintf(name, sizeof name, "[%s]", row->environment);
        (void)print_wrapped(out, name, width + 2, at);
    }
    (void)fputc('\n', out);
}

void options_help(const struct option_set *set, FILE *out)
{
    static const struct option_row help = {
        .name = "help", .letter = 'h', .help = "print this help"};
    char head[80];
    int width = 0;

    (void)fprintf(out, "%s: %s\n\nusage: %s %s\n", set->command, set->summary, set->command,
                  set->usage);
    if (set->description) {
        (void)fputc('\n', out);
        print_description(out, set->description);
    }
    for (const struct option_row *row = rows_of(set); row->name; row++) {
        int length = option_head(row, head, sizeof head);
        width = length > width ? length : width;
    }
    width = width < 12 ? 12 : width;
    (void)fputs("\noptions:\n", out);
    for (const struct option_row *row = rows_of(set); row->name; row++)
        print_row(row, width, out);
    print_row(&help, width, out);
    if (!set->examples)
        return;
    (void)fputs("\nexamples:\n", out);
    for (const char *const *example = set->examples; *example; example++)
        (void)fprintf(out, "  %s\n", *example);
}

void options_dump(const struct option_set *set, FILE *out)
{
    for (const struct option_row *row = rows_of(set); row->name; row++) {
        char letter[3] = {row->letter ? '-' : '\0', row->letter, '\0'};
        (void)fprintf(out, "%s\t--%s\t%s\t%s\t%s\n", set->command, row->name, letter,
                      row->argument ? row->argument : "", row->help);
    }
    (void)fprintf(out, "%s\t--help\t-h\t\tprint this help\n", set->command);
}
