/* SPDX-License-Identifier: Apache-2.0 */
/* The table of languages; see code_language.h. */
#include "core/code/code_language.h"

#include "base/embedded.h"

#include <string.h>
#include <strings.h>

extern const struct embedded_file code_drivers[]; // made of drivers/ by the build

const char *const code_language_names[] = {
    [CODE_PYTHON] = "python",
    [CODE_JAVASCRIPT] = "javascript",
    [CODE_TYPESCRIPT] = "typescript",
    [CODE_BASH] = "bash",
    [CODE_R] = "r",
    [CODE_JAVA] = "java",
    [CODE_LANGUAGES] = NULL,
};

static const struct {
    const char *name;
    enum code_language language;
} others[] = {
    {"py", CODE_PYTHON},       {"python3", CODE_PYTHON}, {"js", CODE_JAVASCRIPT},
    {"node", CODE_JAVASCRIPT}, {"ts", CODE_TYPESCRIPT},  {"sh", CODE_BASH},
    {"shell", CODE_BASH},
};

static const struct {
    const char *program, *word, *file;
    const char *needs, *package; // what else the script needs, and what it comes with
} drivers[] = {
    [CODE_PYTHON] = {"python3", NULL, "python.py", NULL, NULL},
    [CODE_JAVASCRIPT] = {"node", NULL, "node.js", "node 20", NULL},
    [CODE_TYPESCRIPT] = {"node", NULL, "node.js", "node 20", NULL},
    [CODE_BASH] = {"python3", "bash", "python.py", "bash", "bash"},
    [CODE_R] = {"python3", "r", "python.py", "R", "r-base-core"},
    [CODE_JAVA] = {"python3", "java", "python.py", "jshell", "default-jdk-headless"},
};

bool code_language_find(const char *name, enum code_language *out)
{
    for (unsigned i = 0; i < CODE_LANGUAGES; i++) {
        if (strcasecmp(name, code_language_names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcasecmp(name, others[i].name) == 0) {
            *out = others[i].language;
            return true;
        }
    }
    return false;
}

struct code_driver code_language_driver(enum code_language language)
{
    struct code_driver driver = {.program = drivers[language].program,
                                 .word = drivers[language].word,
                                 .needs = drivers[language].needs,
                                 .package = drivers[language].package};

    for (const struct embedded_file *file = code_drivers; file->name; file++) {
        if (strcmp(file->name, drivers[language].file) == 0) {
            driver.script = file->data;
            driver.length = file->length;
        }
    }
    return driver;
}
