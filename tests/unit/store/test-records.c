/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/record.c with every record there is: its fields are the table's columns, and
 * come back as they went. */
#include "base/mem.h"
#include "base/strings.h"
#include "fixture.h"
#include "store/keys.h"
#include "store/tables.h"
#include "test.h"

static const struct record *const tables[] = {
    &audit_table,      &organisation_table, &key_table,          &ssh_key_table,
    &sandbox_table,    &execution_table,    &stream_table,       &event_table,
    &webhook_table,    &delivery_table,     &idempotency_table,  &snapshot_table,
    &checkpoint_table, &layer_table,        &network_seen_table, &port_table,
};

TEST(the_fields_of_a_record_are_the_columns_of_its_table)
{
    struct store *store = fixture_store();

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        const struct record *table = tables[i];
        autofree char *count =
            xasprintf("SELECT count(*) FROM pragma_table_info('%s')", table->table);
        CHECK_INT(fixture_number(store, count), table->n_fields);
        for (size_t k = 0; k < table->n_fields; k++) {
            autofree char *column =
                xasprintf("SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'",
                          table->table, table->fields[k].column);
            if (fixture_number(store, column) != 1)
                test_fail(__FILE__, __LINE__, "%s has no column %s", table->table,
                          table->fields[k].column);
        }
    }
}

// Every name of every field of names is one the schema takes, and all that it takes.
TEST(the_names_of_a_field_are_those_the_schema_takes)
{
    struct store *store = fixture_store();

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t k = 0; k < tables[i]->n_fields; k++) {
            const struct field *field = &tables[i]->fields[k];
            char list[400] = "";
            if (field->kind != FIELD_NAME)
                continue;
            for (size_t n = 0; field->names[n]; n++) {
                autofree char *text = xasprintf(
                    "SELECT instr(sql, '''%s''') > 0 FROM sqlite_master WHERE name = '%s'",
                    field->names[n], tables[i]->table);
                (void)snprintf(list, sizeof list, "%s %s", tables[i]->table, field->names[n]);
                if (fixture_number(store, text) != 1)
                    test_fail(__FILE__, __LINE__, "the schema does not know: %s", list);
            }
        }
    }
}

// Something else in every field, by its kind.
static void fill(const struct record *record, void *object, int seed)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct field *field = &record->fields[i];
        void *place = (char *)object + field->offset;
        switch (field->kind) {
        case FIELD_TEXT:
        case FIELD_NODE:
            *(char **)place = xasprintf("%s '%s'\n\xc3\xa9 %d", record->noun, field->column, seed);
            break;
        case FIELD_STRINGS:
            *(const char *const **)place = strings_copy(
                (const char *const[]){field->column, "", "two\nlines \\ \xc3\xa9", NULL});
            break;
        case FIELD_NUMBER:
            *(int64_t *)place = INT64_C(1000000007) * (int64_t)(i + 1) + seed;
            break;
        case FIELD_FLAG:
            *(bool *)place = true;
            break;
        case FIELD_NAME:
            *(unsigned *)place = 1;
            break;
        case FIELD_HASH:
            memset(place, (int)i + seed, 32);
            break;
        }
    }
}

static void replace(const char **text, const char *with)
{
    free((char *)*text);
    *text = xstrdup(with);
}

static bool is_same_list(const char *const *a, const char *const *b)
{
    for (; *a && *b && strcmp(*a, *b) == 0; a++, b++)
        ;
    return !*a && !*b;
}

static void compare(const struct record *record, const void *a, const void *b)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct field *field = &record->fields[i];
        const void *x = (const char *)a + field->offset, *y = (const char *)b + field->offset;
        bool same = false;
        switch (field->kind) {
        case FIELD_TEXT:
        case FIELD_NODE:
            same = strcmp(*(char *const *)x, *(char *const *)y) == 0;
            break;
        case FIELD_STRINGS:
            same = is_same_list(*(const char *const *const *)x, *(const char *const *const *)y);
            break;
        case FIELD_NUMBER:
            same = *(const int64_t *)x == *(const int64_t *)y;
            break;
        case FIELD_FLAG:
            same = *(const bool *)x == *(const bool *)y;
            break;
        case FIELD_NAME:
            same = *(const unsigned *)x == *(const unsigned *)y;
            break;
        case FIELD_HASH:
            same = memcmp(x, y, 32) == 0;
            break;
        }
        if (!same)
            test_fail(__FILE__, __LINE__, "%s of a %s came back otherwise", field->column,
                      record->noun);
    }
}

TEST(every_field_of_a_sandbox_comes_back)
{
    struct store *store = fixture_store();
    autosandbox put = {0}, got = {0};
    struct error err = {0};

    fill(&sandbox_table, &put, 1);
    free((void *)put.labels); // each is a row too
    put.labels = strings_copy((const char *const[]){"a=1", "b=two\nlines \\ \xc3\xa9", NULL});
    put.state = SANDBOX_DELETED; // with ended_at and deleted_at
    CHECK_OK(store_sandbox_put(store, &put, &err), err);
    CHECK_OK(store_sandbox_get(store, put.id, &got, &err), err);
    compare(&sandbox_table, &put, &got);
}

TEST(every_field_of_an_execution_comes_back)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    autoexecution put = {0}, got = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    fill(&execution_table, &put, 2);
    replace(&put.sandbox_id, "s");
    put.state = EXECUTION_TIMED_OUT;
    CHECK_OK(store_execution_add(store, &put, &err), err);
    CHECK_OK(store_execution_get(store, put.id, &got, &err), err);
    compare(&execution_table, &put, &got);
}

TEST(every_field_of_a_stream_comes_back)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    autostream put = {0}, got = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    fill(&stream_table, &put, 3);
    replace(&put.sandbox_id, "s");
    put.state = STREAM_COMPLETE;
    CHECK_OK(store_stream_put(store, &put, NULL, 0, &err), err);
    CHECK_OK(store_stream_get(store, put.id, &got, &err), err);
    compare(&stream_table, &put, &got);
}

TEST(every_field_of_a_key_comes_back)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    autokey put = {0}, got = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    fill(&key_table, &put, 4);
    replace(&put.organisation, ORGANISATION);
    replace(&put.sandbox_id, "s");
    CHECK_OK(store_key_put(store, &put, &err), err);
    CHECK_OK(store_key_get(store, put.id, &got, &err), err);
    compare(&key_table, &put, &got);
}

TEST(fields_that_were_not_given_come_back_as_null)
{
    struct store *store = fixture_store();
    struct sandbox_record put = fixture_sandbox("s");
    autosandbox got = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &put, &err), err);
    CHECK_OK(store_sandbox_get(store, "s", &got, &err), err);
    CHECK(!got.name && !got.metadata && !got.owner.tenant && !got.command.argv && !got.scratch);
    CHECK_INT(got.box_slot, SANDBOX_NO_SLOT);
    CHECK_INT(got.state, SANDBOX_CREATING);
}

TEST(what_must_be_given_is_asked_for)
{
    struct store *store = fixture_store();
    struct sandbox_record put = fixture_sandbox("s");
    struct error err = {0};

    put.runtime = NULL;
    CHECK(store_sandbox_put(store, &put, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(strstr(err.text, "runtime"));
}

TEST(a_row_that_somebody_else_spoilt_is_an_error_not_a_crash)
{
    static const char *const spoilers[] = {
        "UPDATE sandboxes SET name = CAST(x'610062' AS TEXT)",
        "UPDATE sandboxes SET name = x'ff'",
        "UPDATE sandboxes SET memory_bytes = 'much'",
    };
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(spoilers); i++) {
        struct store *store = fixture_store();
        struct sandbox_record put = fixture_sandbox("s");
        autosandbox got = {0};
        struct sql *sql = NULL;
        CHECK_OK(store_sandbox_put(store, &put, &err), err);
        CHECK_OK(store_connection(store, &sql, &err), err);
        CHECK_OK(sql_run(sql, spoilers[i], NULL, 0, NULL, NULL, NULL, &err), err);
        CHECK(store_sandbox_get(store, "s", &got, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_SYSTEM);
        CHECK(strstr(err.text, "does not belong there"));
    }
}
