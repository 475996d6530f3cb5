/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes messages of MCP and the headers beside them: the first lines are headers, behind a blank one comes the body. What is refused has a reason; what is
 * taken is a message of a revision that is spoken. */
#include "base/auto.h"
#include "data/json.h"
#include "front/mcp/mcp_message.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line, ended; NULL where it is empty. */
static const char *next_line(char **at)
{
    char *line = *at, *end = line + strcspn(line, "\n");

    *at = *end ? end + 1 : end;
    *end = '\0';
    return *line ? line : NULL;
}

static void check_fault(const struct mcp_fault *fault)
{
    if (fault->code >= 0 || fault->status < 200 || fault->status > 499 || !fault->text[0] ||
        (fault->code == MCP_VERSION && !fault->requested))
        abort();
}

static void try_message(const struct data_value *value, const struct mcp_headers *headers)
{
    struct mcp_message message;
    struct mcp_terms terms;
    struct mcp_fault fault;

    if (mcp_message_read(value, &message, &fault) < 0 ||
        mcp_terms_choose(&message, headers, &terms, &fault) < 0) {
        check_fault(&fault);
        return;
    }
    if (message.id && !message.method)
        abort();
    if (terms.is_modern != (strcmp(terms.version, MCP_MODERN_VERSION) == 0) ||
        (!terms.is_modern && !mcp_legacy_version(terms.version)))
        abort();
    if (terms.is_modern && message.id && strcmp(headers->method, message.method) != 0 &&
        strncmp(headers->method, "=?", 2) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = calloc(1, size + 1);
    char *at = memcpy(text, data, size);
    const struct mcp_headers headers = {.version = next_line(&at),
                                        .method = next_line(&at),
                                        .name = next_line(&at),
                                        .session = next_line(&at)};
    autoptr(data_document) document = NULL;
    struct mcp_terms terms;
    struct mcp_fault fault;
    struct error err = {0};

    if (json_read("", at, (size_t)(text + size - at), NULL, &document, &err) < 0)
        return 0;
    if (document->root->kind != VALUE_LIST) {
        try_message(document->root, &headers);
        return 0;
    }
    if (mcp_terms_of_batch(&headers, &terms, &fault) < 0)
        check_fault(&fault);
    for (const struct data_value *v = document->root->first; v; v = v->next)
        try_message(v, &headers);
    return 0;
}
