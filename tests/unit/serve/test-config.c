/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/serve/config.c. */
#include "serve/config.h"

#include "base/fd.h"
#include "test.h"

#include <ctype.h>
#include <fcntl.h>

// A file of settings for the test at hand; removed with the process.
static char directory[64], path[96];

__attribute__((destructor)) static void clear(void)
{
    struct error err;
    if (*directory)
        (void)fd_remove_tree(AT_FDCWD, directory, &err);
}

static const char *write_file(const char *text)
{
    struct error err = {0};

    if (!*directory) {
        (void)snprintf(directory, sizeof directory, "/tmp/burrow-config-XXXXXX");
        CHECK(mkdtemp(directory));
    }
    autofd dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(fd_replace_file(dir_fd, "burrow.yaml", text, strlen(text), 0600, &err), err);
    (void)snprintf(path, sizeof path, "%s/burrow.yaml", directory);
    return path;
}

static void clear_environment(void)
{
    for (const struct option_row *row = config_options.rows; row->name; row++)
        (void)unsetenv(row->environment);
    (void)unsetenv("BURROW_API_KEY");
}

#define WORDS(...) ((char *[]){"serve", __VA_ARGS__ __VA_OPT__(, ) NULL})
static int read_words(char **words, struct config *config, struct error *err)
{
    int count = 0;

    while (words[count])
        count++;
    return config_read(count, words, config, err);
}

TEST(defaults_are_the_cores)
{
    autoconfig config = {0};
    struct error err = {0};
    struct core_settings settings;

    clear_environment();
    CHECK_INT(read_words(WORDS(), &config, &err), 0);
    CHECK_STR(config.listen, "127.0.0.1:4747");
    CHECK(!config.api_key);
    config_core(&config, &settings);
    settings.data_dir = core_settings_default.data_dir;
    CHECK_STR(settings.default_runtime, core_settings_default.default_runtime);
    settings.default_runtime = core_settings_default.default_runtime;
    CHECK(memcmp(&settings, &core_settings_default, sizeof settings) == 0);
}

// Texts, and the numbers as they are spelled, each set in a fresh configuration, change nothing.
TEST(the_help_tells_the_true_defaults)
{
    clear_environment();
    for (const struct option_row *row = config_options.rows; row->name; row++) {
        const char *at = strstr(row->help, "(default ");
        char value[64];
        struct config said;
        autoconfig config = {0};
        struct error err = {0};

        if (!at || strchr(at, '/'))
            continue; // "(default: ...)" is a sentence, and the places depend on who asks
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at + 9, ")"), at + 9);
        config_init(&config);
        said = config;
        if (row->type == OPTION_TEXT) {
            CHECK_STR(*(const char **)((char *)&config + row->offset), value);
            continue;
        }
        CHECK_OK(options_set(&config_options, row->environment, value, &said, &err), err);
        if (memcmp(&said, &config, sizeof said) != 0)
            test_fail(__FILE__, __LINE__, "--%s: its default is not '%s'", row->name, value);
    }
}

TEST(an_option_wins_over_a_variable_and_that_over_the_file)
{
    autoconfig config = {0};
    struct error err = {0};

    clear_environment();
    const char *file = write_file(
        "# settings\nBURROW_REGION: file\nBURROW_MEMORY: 128Mi\nBURROW_LOG: json\n"
        "BURROW_MAX_SANDBOXES: 7\nBURROW_API_KEY: \"from-the-file-0123456789\"\nBURROW_CPU:\n");
    (void)setenv("BURROW_MEMORY", "256Mi", 1);
    (void)setenv("BURROW_LOG", "text", 1);
    CHECK_INT(read_words(WORDS("--config", (char *)file, "--log=json"), &config, &err), 0);
    CHECK_STR(config.agentuity.region, "file");
    CHECK_INT(config.limits.memory_bytes, 256 << 20);
    CHECK_STR(config.log, "json");
    CHECK_INT(config.max_sandboxes, 7);
    CHECK_STR(config.api_key, "from-the-file-0123456789");
    CHECK_INT(config.limits.cpu_millicores,
              core_settings_default.limits.cpu_millicores); // null says nothing
    (void)setenv("BURROW_API_KEY", "from-the-environment-012", 1);
    config_clear(&config);
    CHECK_INT(read_words(WORDS("--config", (char *)file), &config, &err), 0);
    CHECK_STR(config.api_key, "from-the-environment-012");
    clear_environment();
}

TEST(the_file_may_be_named_by_a_variable_and_be_empty)
{
    autoconfig config = {0};
    struct error err = {0};

    clear_environment();
    (void)setenv("BURROW_CONFIG", write_file(""), 1);
    CHECK_INT(read_words(WORDS(), &config, &err), 0);
    CHECK_STR(config.file, path);
    clear_environment();
}

TEST(what_is_wrong_is_said_with_its_place)
{
    static const struct {
        const char *file; // NULL: none
        const char *option;
        const char *says;
    } rows[] = {
        {"BURROW_LISTN: x", NULL, "BURROW_LISTN: unknown field; did you mean 'BURROW_LISTEN'?"},
        {"listen: x", NULL, "listen: unknown field"},
        {"BURROW_MEMORY: lots", NULL, "BURROW_MEMORY: memory 'lots' is not a size"},
        {"BURROW_MEMORY: 64", NULL, "memory: a sandbox needs at least 4Mi"},
        {"BURROW_MAX_MEMORY: 64", NULL, "the most that one can ask for: memory: a sandbox needs"},
        {"BURROW_SANDBOXES_MEMORY: 8", NULL, "sandboxes-memory: memory: a sandbox needs at least"},
        {"BURROW_MAX_SANDBOXES: 0", NULL, "max-sandboxes '0' is out of range: use 1 to 100000"},
        {"BURROW_LISTEN: [a, b]", NULL, "BURROW_LISTEN: must be a text or a number, not a list"},
        {"BURROW_LOG: xml", NULL, "log 'xml' is none of: text, json"},
        {"- 1", NULL, "must be a map"},
        {"BURROW_PARKED_MEMORY: much", NULL, "parked-memory 'much' is not a size"},
        {NULL, "--parked-memory=900Ti", "is more than all sandboxes together have"},
        {NULL, "--parked-for=0", "parked-for '0' is out of range"},
        {NULL, "--log-level=loud", "log-level 'loud' is none of: error, warn, info, debug"},
        {NULL, "--listen=localhost", "listen 'localhost' is no address"},
        {NULL, "--listen=example:4747", "listen 'example:4747' is no address"},
        {NULL, "--listen=127.0.0.1", "listen '127.0.0.1' is no address"},
        {NULL, "--listen=127.0.0.1:4747,::1:80", "listen '::1:80' is no address"},
        {NULL, "--listen=127.0.0.1:65536", "is no address"},
        {NULL, "--listen= ,", "listen names no address"},
        {NULL, "--public-url=example.com", "must begin with http:// or https://"},
        {NULL, "--public-url=https://example.com/", "must not end with a slash"},
        {NULL, "--runtime=a/b", "does not name a runtime"},
        {NULL, "--region=", "region must not be empty"},
        {NULL, "--api-key=0123456789abcdefghij", "unknown option '--api-key'"},
        {NULL, "--config=/nonexistent/burrow.yaml", "/nonexistent/burrow.yaml"},
        {NULL, "again", "serve takes no 'again'"},
    };

    clear_environment();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoconfig config = {0};
        struct error err = {0};
        char *file[] = {"serve", "--config", path, NULL};
        char *option[] = {"serve", (char *)rows[i].option, NULL};
        if (rows[i].file)
            (void)write_file(rows[i].file);
        CHECK_INT(read_words(rows[i].file ? file : option, &config, &err), -1);
        if (!strstr(err.text, rows[i].says))
            test_fail(__FILE__, __LINE__, "row %zu: \"%s\" does not say \"%s\"", i, err.text,
                      rows[i].says);
    }
}

TEST(several_addresses_stand_with_commas_between)
{
    struct config config = {.listen = "127.0.0.1:1, [::1]:2,:3"};
    char address[CONFIG_ADDRESS];

    CHECK(config_address(&config, 0, address));
    CHECK_STR(address, "127.0.0.1:1");
    CHECK(config_address(&config, 1, address));
    CHECK_STR(address, "[::1]:2");
    CHECK(config_address(&config, 2, address));
    CHECK_STR(address, ":3");
    CHECK(!config_address(&config, 3, address));
}

TEST(only_loopback_is_loopback)
{
    CHECK(config_is_loopback("127.0.0.1:4747"));
    CHECK(config_is_loopback("127.9.9.9:0"));
    CHECK(config_is_loopback("[::1]:80"));
    CHECK(config_is_loopback("[0:0:0:0:0:0:0:1]:80"));
    CHECK(!config_is_loopback("0.0.0.0:80"));
    CHECK(!config_is_loopback(":80"));
    CHECK(!config_is_loopback("[::]:80"));
    CHECK(!config_is_loopback("10.0.0.1:80"));
    CHECK(!config_is_loopback("[::ffff:10.0.0.1]:80"));
    CHECK(!config_is_loopback("127.0.0.1"));
}

TEST(every_setting_has_a_variable_named_after_its_option)
{
    for (const struct option_row *row = config_options.rows; row->name; row++) {
        char variable[64] = "BURROW_";
        for (size_t i = 0; row->name[i]; i++)
            variable[7 + i] =
                row->name[i] == '-' ? '_' : (char)toupper((unsigned char)row->name[i]);
        CHECK_STR(row->environment, variable);
    }
}
