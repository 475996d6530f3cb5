/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned tables, and the fields of one thing; see say.h. */
#include "cli/say.h"

#include "base/auto.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void table_init(struct table *table, const char *const *heads)
{
    *table = (struct table){0};
    for (; heads[table->n_columns] && table->n_columns < TABLE_COLUMNS; table->n_columns++) {
        const char *head = heads[table->n_columns];
        table->is_right[table->n_columns] = *head == '>';
        table->heads[table->n_columns] = *head == '>' ? head + 1 : head;
    }
}

void table_add_colour(struct table *table, const char *text, enum say_colour colour)
{
    if (table->count == table->room) {
        table->room = table->room ? 2 * table->room : 64;
        table->cells = xrealloc(table->cells, table->room, sizeof *table->cells);
        table->colours = xrealloc(table->colours, table->room, sizeof *table->colours);
    }
    table->cells[table->count] = say_clean(text);
    table->colours[table->count++] = colour;
}

void table_add(struct table *table, const char *text)
{
    table_add_colour(table, text, SAY_PLAIN);
}

static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80; // characters, not bytes
    return width;
}

static void print_cell(const char *text, int width, bool is_right, bool is_last,
                       enum say_colour colour, FILE *out)
{
    int blanks = width - width_of(text);
    bool has_colour = colour != SAY_PLAIN && out == stdout && say_has_colours();

    if (is_right)
        (void)fprintf(out, "%*s", blanks, "");
    (void)fprintf(out, "%s%s%s", has_colour ? say_begin(colour) : "", text,
                  has_colour ? say_begin(SAY_PLAIN) : "");
    if (!is_right && !is_last)
        (void)fprintf(out, "%*s", blanks, "");
    (void)fputs(is_last ? "\n" : "  ", out);
}

void table_print(const struct table *table, FILE *out)
{
    int widths[TABLE_COLUMNS] = {0};

    for (unsigned i = 0; i < table->n_columns; i++)
        widths[i] = width_of(table->heads[i]);
    for (size_t i = 0; i < table->count; i++) {
        int width = width_of(table->cells[i]);
        if (width > widths[i % table->n_columns])
            widths[i % table->n_columns] = width;
    }
    for (unsigned i = 0; i < table->n_columns; i++)
        print_cell(table->heads[i], widths[i], table->is_right[i], i + 1 == table->n_columns,
                   SAY_BOLD, out);
    for (size_t i = 0; i < table->count; i++) {
        unsigned column = (unsigned)(i % table->n_columns);
        print_cell(table->cells[i], widths[column], table->is_right[column],
                   column + 1 == table->n_columns, table->colours[i], out);
    }
}

void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->colours);
    *table = (struct table){0};
}

void say_field(const char *name, const char *text)
{
    autofree char *clean = say_clean(text);

    if (text && *text)
        (void)printf("%s%-14s%s %s\n", say_begin(SAY_DIM), name, say_begin(SAY_PLAIN), clean);
}

void say_field_value(const char *name, const struct burrow_value *value)
{
    switch (burrow_value_kind(value)) {
    case BURROW_NUMBER:
    case BURROW_TEXT:
        say_field(name, burrow_text(value));
        break;
    case BURROW_BOOL:
        say_field(name, burrow_truth(value) ? "yes" : "no");
        break;
    default:
        break;
    }
}
