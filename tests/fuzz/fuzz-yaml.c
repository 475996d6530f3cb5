/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes are read as YAML or refused with a sentence; a tree that was made is
 * whole. */
#include "data/yaml.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Every text ends with a NUL and every count is true.
static void walk(const struct data_value *value)
{
    size_t count = 0;

    if (value->text && value->text[value->length] != '\0')
        __builtin_trap();
    for (const struct data_value *child = value->first; child; child = child->next, count++) {
        if (child->parent != value || (value->kind == VALUE_MAP) != (child->key != NULL))
            __builtin_trap();
        walk(child);
    }
    if (count != value->count)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct data_document *document = NULL;
    struct error err = {0};

    if (yaml_read("fuzz", (const char *)data, size, &document, &err) == 0)
        walk(document->root);
    else if (!err.text[0] || document)
        __builtin_trap();
    data_document_free(document);
    return 0;
}
