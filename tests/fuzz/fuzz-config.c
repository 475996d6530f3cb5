/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what the server is told. The first byte chooses: a file of settings, or words of a command line, one a line. */
#include "place.h"

#include "base/mem.h"
#include "serve/config.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_WORDS 16

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_config(int result, const struct config *config, const struct error *err)
{
    char address[CONFIG_ADDRESS];

    if (result < 0)
        check(err->text[0] && error_status(err) < 500);
    if (result != 0)
        return;
    check(config->data_dir && config->listen && config->runtime);
    check(config->max_sandboxes >= 0 && config->workers > 0 && config->slow_workers > 0);
    for (size_t i = 0; config_address(config, i, address); i++)
        (void)config_is_loopback(address);
    (void)config_log_format(config);
    (void)config_log_level(config);
}

static void read_words(char *text)
{
    char *words[MAX_WORDS + 2] = {(char[]){"burrow serve"}};
    int count = 1;
    autoconfig config;
    struct error err = {0};
    char *word;

    while (count <= MAX_WORDS && (word = strsep(&text, "\n")))
        words[count++] = word;
    for (int i = 1; i < count; i++) {
        if (strncmp(words[i], "--config", 8) == 0)
            words[i] = (char[]){"--log"}; // a file of this machine is none of our business
    }
    check_config(config_read(count, words, &config, &err), &config, &err);
}

static void read_config_file(const uint8_t *data, size_t size)
{
    autofree char *path = xasprintf("%s/burrow.yaml", place);
    char *words[] = {(char[]){"burrow serve"}, (char[]){"--config"}, path, NULL};
    autoconfig config;
    struct error err = {0};

    place_put("burrow.yaml", data, size);
    check_config(config_read(3, words, &config, &err), &config, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    (void)place_open();
    autofree char *text = xstrndup((const char *)data + 1, size - 1);
    if (data[0] == 'f')
        read_config_file(data + 1, size - 1);
    else
        read_words(text);
    return 0;
}
