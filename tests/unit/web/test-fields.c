/* SPDX-License-Identifier: Apache-2.0 */
#include "web/fields.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "data/json.h"
#include "test.h"

struct file {
    const char *path;
    struct bytes_field content;
};

struct want {
    bool is_first; // no field: offsets of has_… start behind it
    const char *name;
    const char *mode;
    const char **scopes;
    bool is_enabled, has_enabled, has_network;
    int64_t port;
    struct {
        struct duration_field idle;
    } timeout;
    struct size_field memory, cpu;
    struct {
        const char **exec;
        struct field_list files;
    } command;
    struct field_list env;
    const struct data_value *any, *metadata;
};

static const char *const modes[] = {"oneshot", "interactive", "other", NULL};

static const struct field file_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct file, path), .is_needed = true, .maximum = 10},
    {"content", FIELD_BYTES, offsetof(struct file, content), .is_needed = true, .maximum = 100},
    {0},
};
static const struct field network_fields[] = {
    {"enabled", FIELD_BOOL, offsetof(struct want, is_enabled),
     .has_offset = offsetof(struct want, has_enabled)},
    {"port", FIELD_INTEGER, offsetof(struct want, port), .minimum = 1024, .maximum = 65535},
    {0},
};
static const struct field timeout_fields[] = {{"idle", FIELD_DURATION, 0}, {0}};
static const struct field resource_fields[] = {
    {"memory", FIELD_SIZE, offsetof(struct want, memory)},
    {"cpu", FIELD_CPU, offsetof(struct want, cpu)},
    {0},
};
static const struct field command_fields[] = {
    {"exec", FIELD_TEXTS, offsetof(struct want, command.exec), .is_needed = true, .maximum = 4},
    {"files", FIELD_LIST, offsetof(struct want, command.files), .fields = file_fields,
     .item_size = sizeof(struct file)},
    {0},
};
static const struct field fields[] = {
    {"name", FIELD_TEXT, offsetof(struct want, name), .is_nullable = true},
    {"mode", FIELD_TEXT, offsetof(struct want, mode), .words = modes},
    {"scopes", FIELD_TEXTS, offsetof(struct want, scopes)},
    {"network", FIELD_MAP, 0, .fields = network_fields,
     .has_offset = offsetof(struct want, has_network)},
    {"timeout", FIELD_MAP, offsetof(struct want, timeout), .fields = timeout_fields},
    {"resources", FIELD_MAP, 0, .fields = resource_fields},
    {"command", FIELD_MAP, 0, .fields = command_fields},
    {"env", FIELD_TEXT_MAP, offsetof(struct want, env), .is_nullable = true},
    {"any", FIELD_VALUE, offsetof(struct want, any)},
    {"metadata", FIELD_OBJECT, offsetof(struct want, metadata)},
    {0},
};

static struct data_document *parse(const char *text, size_t length)
{
    struct data_document *document = NULL;
    struct error err = {0};

    CHECK_OK(json_read("", text, length, NULL, &document, &err), err);
    return document;
}

static void check_fault(const char *text, const char *want)
{
    autoptr(data_document) document = parse(text, strlen(text));
    struct want got = {0};
    struct error err = {0};

    CHECK(fields_read(document->root, fields, &got, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK_STR(err.text, want);
}

TEST(a_whole_body_is_read_by_its_table)
{
    static const char text[] =
        "{\"name\":\"a\",\"mode\":\"interactive\",\"scopes\":[\"x\",\"y\"],\"unknown\":{"
        "\"ignored\":[1]},"
        "\"network\":{\"enabled\":false,\"port\":8080},\"timeout\":{\"idle\":\"1h30m\"},"
        "\"resources\":{\"memory\":\"1Gi\",\"cpu\":\"500m\"},\"command\":{\"exec\":[\"sh\",\"-c\","
        "\"\xc3\xa4\"],"
        "\"files\":[{\"path\":\"a\",\"content\":\"AAE=\"},{\"path\":\"b\",\"content\":\"\"}]},"
        "\"env\":{\"A\":\"1\",\"B\":null},\"any\":null,\"metadata\":{\"k\":[1.50]}}";
    autoptr(data_document) document = parse(text, sizeof text - 1);
    struct want want = {0};
    struct error err = {0};

    CHECK_OK(fields_read(document->root, fields, &want, &err), err);
    CHECK_STR(want.name, "a");
    CHECK_STR(want.mode, "interactive");
    CHECK(strcmp(want.scopes[1], "y") == 0 && !want.scopes[2]);
    CHECK(want.has_network && want.has_enabled && !want.is_enabled);
    CHECK_INT(want.port, 8080);
    CHECK_STR(want.timeout.idle.text, "1h30m");
    CHECK_INT(want.timeout.idle.ms, 5400000);
    CHECK_STR(want.memory.text, "1Gi");
    CHECK_INT(want.memory.value, 1 << 30);
    CHECK_INT(want.cpu.value, 500);
    CHECK(!want.command.exec[3]);
    CHECK_INT(want.command.files.count, 2);
    const struct file *files = want.command.files.items;
    CHECK(files[0].content.length == 2 && memcmp(files[0].content.data, "\0\1", 2) == 0);
    CHECK(files[1].content.data && files[1].content.length == 0);
    const struct text_pair *env = want.env.items;
    CHECK(want.env.count == 2 && strcmp(env[0].name, "A") == 0 && strcmp(env[0].value, "1") == 0);
    CHECK(strcmp(env[1].name, "B") == 0 && !env[1].value);
    CHECK(want.any && want.any->kind == VALUE_NULL);
    CHECK(want.metadata && want.metadata->count == 1);
}

TEST(an_empty_body_leaves_what_was_preset)
{
    autoptr(data_document) document = parse("{}", 2);
    struct want want = {.name = "preset", .port = 7};
    struct error err = {0};

    CHECK_OK(fields_read(document->root, fields, &want, &err), err);
    CHECK_STR(want.name, "preset");
    CHECK_INT(want.port, 7);
    CHECK(!want.has_network && !want.scopes && !want.timeout.idle.text);
}

TEST(null_is_absent_only_where_the_table_says_so)
{
    check_fault("{\"name\":null,\"mode\":null}", "mode: must be a string, not null");
    check_fault("{\"env\":null}", "env: must be an object, not null");
}

TEST(each_wrong_type_is_named)
{
    check_fault("{\"name\":1}", "name: must be a string, not a number");
    check_fault("{\"scopes\":\"x\"}", "scopes: must be a list, not a string");
    check_fault("{\"network\":{\"enabled\":\"yes\"}}",
                "network.enabled: must be true or false, not a string");
    check_fault("{\"network\":{\"port\":\"1\"}}", "network.port: must be a number, not a string");
    check_fault("{\"network\":[]}", "network: must be an object, not a list");
    check_fault("{\"metadata\":true}", "metadata: must be an object, not true or false");
    check_fault("{\"env\":{\"A\":1}}", "env.A: must be a string, not a number");
    check_fault("{\"command\":{\"exec\":[],\"files\":[null]}}",
                "command.files[0]: must be an object, not null");
}

TEST(each_wrong_value_is_named)
{
    check_fault("{\"network\":{\"port\":80}}",
                "network.port: must be between 1024 and 65535, not 80");
    check_fault("{\"network\":{\"port\":8080.5}}",
                "network.port: must be a whole number, not 8080.5");
    check_fault("{\"network\":{\"port\":99999999999999999999}}",
                "network.port: must be between 1024 and 65535, not 99999999999999999999");
    check_fault("{\"mode\":\"x\"}", "mode: must be 'oneshot', 'interactive' or 'other', not 'x'");
    check_fault("{\"timeout\":{\"idle\":\"soon\"}}",
                "timeout.idle: 'soon' is not a duration: use numbers with d, h, m, s, ms, us, ns "
                "(for example 30s, 1h30m or 7d)");
    check_fault("{\"command\":{}}", "command.exec: is missing");
    check_fault("{\"command\":{\"exec\":[\"1\",\"2\",\"3\",\"4\",\"5\"]}}",
                "command.exec: has 5 items, at most 4 are allowed");
    check_fault("{\"name\":\"a\\u0000b\"}", "name: must not hold a NUL");
    check_fault("{\"name\":\"a\\ud800b\"}", "name: must not hold half of a surrogate pair");
    check_fault("{\"env\":{\"A\\u0000\":\"\"}}", "env.A: must not hold a NUL");
}

TEST(sizes_and_processors_name_their_path)
{
    autoptr(data_document) document =
        parse("{\"resources\":{\"memory\":\"12Q\",\"cpu\":\"x\"}}", 40);
    struct want got = {0};
    struct error err = {0};

    CHECK(fields_read(document->root, fields, &got, &err) < 0);
    CHECK(strstr(err.text, "resources.memory: '12Q' is not a size"));
    CHECK(strstr(err.text, "; resources.cpu: 'x' "));
}

TEST(bad_base64_is_told_where)
{
    check_fault("{\"command\":{\"exec\":[],\"files\":[{\"path\":\"a\",\"content\":\"AA*=\"}]}}",
                "command.files[0].content: is not base64: character 3 is not in its alphabet");
    check_fault("{\"command\":{\"exec\":[],\"files\":[{\"path\":\"a\",\"content\":\"AAE\"}]}}",
                "command.files[0].content: is not base64: its length or its padding is wrong");
    check_fault(
        "{\"command\":{\"exec\":[],\"files\":[{\"path\":\"01234567890\",\"content\":\"\"}]}}",
        "command.files[0].path: has 11 bytes, at most 10 are allowed");
}

TEST(all_faults_of_a_body_are_in_one_sentence)
{
    check_fault(
        "{\"name\":1,\"command\":{\"exec\":[\"a\",\"b\",3],\"files\":[{\"content\":\"\"}]}}",
        "name: must be a string, not a number; command.exec[2]: must be a string, not a number; "
        "command.files[0].path: is missing");
}

TEST(too_many_faults_are_counted_at_a_boundary)
{
    autobuffer text = {0};
    struct error err = {0};
    struct want want = {0};

    (void)buffer_add_text(&text, "{\"scopes\":[0", &err);
    for (int i = 1; i < 1000; i++)
        (void)buffer_addf(&text, &err, ",%d", i);
    (void)buffer_add_text(&text, "]}", &err);
    autoptr(data_document) document = parse(text.data, text.length);
    CHECK(fields_read(document->root, fields, &want, &err) < 0);
    CHECK(strstr(err.text, "scopes[0]: must be a string, not a number; scopes[1]: "));
    CHECK(strstr(err.text, "scopes[15]: must be a string, not a number; and 984 more"));
    CHECK(strlen(err.text) < sizeof err.text - 1);
}

TEST(long_names_of_strangers_are_cut)
{
    autobuffer text = {0};
    struct error err = {0};
    struct want want = {0};

    (void)buffer_add_text(&text, "{\"env\":{", &err);
    for (int i = 0; i < 12; i++)
        (void)buffer_addf(&text, &err, "%s\"%0500d\":%d", i ? "," : "", i, i);
    (void)buffer_add_text(&text, "}}", &err);
    autoptr(data_document) document = parse(text.data, text.length);
    CHECK(fields_read(document->root, fields, &want, &err) < 0);
    CHECK(strstr(err.text, "…: must be a string, not a number; and "));
    CHECK(strlen(err.text) < sizeof err.text - 1);
    CHECK(strcmp(err.text + strlen(err.text) - 5, " more") == 0);
}

TEST(lists_and_texts_have_a_limit_of_their_own)
{
    autobuffer text = {0};
    struct error err = {0};
    struct want want = {0};

    (void)buffer_add_text(&text, "{\"scopes\":[\"\"", &err);
    for (int i = 0; i < FIELD_LIST_MAXIMUM; i++)
        (void)buffer_add_text(&text, ",\"\"", &err);
    (void)buffer_add_text(&text, "],\"name\":\"", &err);
    for (int i = 0; i < FIELD_TEXT_MAXIMUM / 16 + 1; i++)
        (void)buffer_add_text(&text, "0123456789abcdef", &err);
    (void)buffer_add_text(&text, "\"}", &err);
    autoptr(data_document) document = parse(text.data, text.length);
    CHECK(fields_read(document->root, fields, &want, &err) < 0);
    CHECK_STR(err.text, "name: has 1048592 bytes, at most 1048576 are allowed; "
                        "scopes: has 10001 items, at most 10000 are allowed");
}

TEST(a_body_that_is_no_object_is_refused)
{
    check_fault("[]", "the body must be an object, not a list");
}

struct amounts {
    int64_t timeout_ms, memory_bytes, cpu_millis;
};
static const struct field amount_fields[] = {
    {"timeoutMs", FIELD_MS, offsetof(struct amounts, timeout_ms)},
    {"memoryBytes", FIELD_AMOUNT, offsetof(struct amounts, memory_bytes), .minimum = 1024,
     .maximum = 1 << 30},
    {"cpuMillicores", FIELD_MILLIS, offsetof(struct amounts, cpu_millis)},
    {0},
};

static struct amounts read_amounts(const char *text, struct error *err)
{
    autoptr(data_document) document = parse(text, strlen(text));
    struct amounts got = {0};

    (void)fields_read(document->root, amount_fields, &got, err);
    return got;
}

TEST(amounts_are_numbers_in_their_unit_or_texts_with_one)
{
    struct error err = {0};
    struct amounts got =
        read_amounts("{\"timeoutMs\":30000,\"memoryBytes\":536870912,\"cpuMillicores\":500}", &err);

    CHECK(got.timeout_ms == 30000 && got.memory_bytes == 536870912 && got.cpu_millis == 500);
    got = read_amounts(
        "{\"timeoutMs\":\"1m30s\",\"memoryBytes\":\"512Mi\",\"cpuMillicores\":\"2\"}", &err);
    CHECK(got.timeout_ms == 90000 && got.memory_bytes == 536870912 && got.cpu_millis == 2000);
    CHECK_INT(err.reason, ERROR_NONE);
    (void)read_amounts("{\"timeoutMs\":\"soon\"}", &err);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK_STR(err.field, "timeoutMs");
    (void)read_amounts("{\"timeoutMs\":-1}", &err);
    CHECK_STR(err.field, "timeoutMs");
    (void)read_amounts("{\"memoryBytes\":\"2Gi\"}", &err);
    CHECK_STR(err.text, "memoryBytes: must be between 1024 and 1073741824, not '2Gi'");
    (void)read_amounts("{\"memoryBytes\":100}", &err);
    CHECK_STR(err.text, "memoryBytes: must be between 1024 and 1073741824, not 100");
    (void)read_amounts("{\"cpuMillicores\":true}", &err);
    CHECK_STR(err.text, "cpuMillicores: must be a number or a text with a unit, not true or false");
}

static void check_name(const char *text, const char *want, const char *field)
{
    autoptr(data_document) document = parse(text, strlen(text));
    struct error err = {0};

    CHECK_INT(fields_check_names(document->root, fields, &err), want ? -1 : 0);
    if (!want)
        return;
    CHECK_INT(err.reason, ERROR_UNKNOWN_FIELD);
    CHECK_STR(err.text, want);
    CHECK_STR(err.field, field);
}

TEST(names_that_there_are_not_are_found_at_any_depth)
{
    check_name(
        "{\"name\":7,\"env\":{\"ANY\":\"x\"},\"metadata\":{\"a\":{\"b\":1}},\"any\":{\"c\":1}}",
        NULL, NULL);
    check_name("{\"nane\":\"x\"}", "nane: there is no such field; did you mean 'name'?", "nane");
    check_name("{\"network\":{\"portt\":1}}",
               "network.portt: there is no such field; did you mean 'port'?", "network.portt");
    check_name("{\"command\":{\"files\":[{},{\"pth\":1}]}}",
               "command.files[1].pth: there is no such field; did you mean 'path'?",
               "command.files[1].pth");
    check_name("{\"completelyElse\":1}", "completelyElse: there is no such field",
               "completelyElse");
    check_name("{\"name\\u0000\":1}", "name: there is no such field; did you mean 'name'?", "name");
}

TEST(a_fault_names_its_field)
{
    autoptr(data_document) document = parse("{\"command\":{\"exec\":[1,2]}}", 26);
    struct want got = {0};
    struct error err = {0};

    CHECK(fields_read(document->root, fields, &got, &err) < 0);
    CHECK_STR(err.field, "command.exec[0]");
}
