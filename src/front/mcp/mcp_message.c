/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of MCP; see mcp_message.h. */
#include "front/mcp/mcp_message.h"

#include "base/base64.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX 256 // bytes of an id that is a string

const char *const mcp_versions[] = {MCP_MODERN_VERSION, MCP_LEGACY_VERSION, "2025-06-18",
                                    MCP_BATCH_VERSION, NULL};

const char *mcp_legacy_version(const char *version)
{
    for (const char *const *known = mcp_versions + 1; *known; known++) {
        if (version && strcmp(*known, version) == 0)
            return *known;
    }
    return NULL;
}

int mcp_fail(struct mcp_fault *fault, enum mcp_code code, int status, const char *format, ...)
{
    va_list args;

    *fault = (struct mcp_fault){.code = code, .status = status};
    va_start(args, format);
    (void)vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return -1;
}

const char *mcp_text(const struct data_value *map, const char *name)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_STRING && strlen(value->text) == value->length
               ? value->text
               : NULL;
}

// ---- one message ----

static bool is_integer(const struct data_value *value)
{
    const char *digits = value->text + (*value->text == '-');

    return value->length < 32 && *digits && digits[strspn(digits, "0123456789")] == '\0';
}

static bool is_id(const struct data_value *id)
{
    return (id->kind == VALUE_STRING && id->length <= ID_MAX) ||
           (id->kind == VALUE_NUMBER && is_integer(id));
}

int mcp_message_read(const struct data_value *value, struct mcp_message *out,
                     struct mcp_fault *fault)
{
    *out = (struct mcp_message){0};
    if (value->kind != VALUE_MAP)
        return mcp_fail(fault, MCP_INVALID_REQUEST, 400, "a message must be an object, not %s",
                        value_kind_name(value->kind));
    const struct data_value *id = value_get(value, "id"), *params = value_get(value, "params");
    const char *version = mcp_text(value, "jsonrpc");
    if (id && !is_id(id))
        return mcp_fail(fault, MCP_INVALID_REQUEST, 400,
                        "id: must be an integer, or a string of at most %d bytes", ID_MAX);
    out->id = id;
    if (!version || strcmp(version, "2.0") != 0)
        return mcp_fail(fault, MCP_INVALID_REQUEST, 400, "jsonrpc: must be \"2.0\"");
    out->method = mcp_text(value, "method");
    if (!out->method && (value_get(value, "result") || value_get(value, "error")) && id) {
        out->id = NULL; // an answer: nobody here has asked
        return 0;
    }
    if (!out->method)
        return mcp_fail(fault, MCP_INVALID_REQUEST, 400, "method: is needed, as a string");
    if (params && params->kind != VALUE_MAP)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 400, "params: must be an object, not %s",
                        value_kind_name(params->kind));
    out->params = params;
    const struct data_value *meta = value_get(params, "_meta");
    if (meta && meta->kind != VALUE_MAP)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 400, "params._meta: must be an object");
    out->meta = meta;
    return 0;
}

// ---- headers and body ----

/* What the header stands for, to be freed; NULL: it is not what it seems. */
static char *decode_header(const char *text)
{
    static const char prefix[] = "=?base64?", suffix[] = "?=";
    size_t length = strlen(text), skip = sizeof prefix - 1, end = sizeof suffix - 1, bad;

    if (length < skip + end || strncmp(text, prefix, skip) != 0 ||
        strcmp(text + length - end, suffix) != 0)
        return xstrdup(text);
    length -= skip + end;
    char *out = xcalloc(1, base64_room(length) + 1);
    ssize_t used = base64_decode(text + skip, length, out, &bad);
    if (used >= 0 && !memchr(out, 0, (size_t)used)) {
        out[used] = '\0';
        return out;
    }
    free(out);
    return NULL;
}

static int check_header(const char *name, const char *header, const char *body,
                        struct mcp_fault *fault)
{
    if (!header)
        return mcp_fail(fault, MCP_HEADER_MISMATCH, 400,
                        "the header %s is missing: it must be '%.100s', as in the body", name,
                        body ? body : "");
    char *value = decode_header(header);
    bool is_same = value && body && strcmp(value, body) == 0;
    free(value);
    return is_same ? 0
                   : mcp_fail(fault, MCP_HEADER_MISMATCH, 400,
                              "the header %s is '%.100s' and the body says '%.100s'", name, header,
                              body ? body : "");
}

/* What the header Mcp-Name repeats; NULL: nothing does. */
static const char *name_member(const char *method)
{
    if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
        return "name";
    return strcmp(method, "resources/read") == 0 ? "uri" : NULL;
}

static int fail_version(const char *version, struct mcp_fault *fault)
{
    (void)mcp_fail(fault, MCP_VERSION, 400, "revision '%.40s' of MCP is not spoken here", version);
    fault->requested = version;
    return -1;
}

static int choose_modern(const struct mcp_message *message, const struct mcp_headers *headers,
                         const char *version, struct mcp_terms *out, struct mcp_fault *fault)
{
    const char *named = name_member(message->method);

    if (check_header("MCP-Protocol-Version", headers->version, version, fault) < 0)
        return -1;
    if (strcmp(version, MCP_MODERN_VERSION) != 0)
        return fail_version(version, fault);
    *out = (struct mcp_terms){MCP_MODERN_VERSION, true};
    if (!message->id)
        return 0; // what a notification's headers must say is not defined
    if (check_header("Mcp-Method", headers->method, message->method, fault) < 0)
        return -1;
    if (named &&
        check_header("Mcp-Name", headers->name, mcp_text(message->params, named), fault) < 0)
        return -1;
    const struct data_value *capabilities = value_get(message->meta, MCP_META "clientCapabilities");
    if (!capabilities || capabilities->kind != VALUE_MAP)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 400,
                        "params._meta." MCP_META "clientCapabilities: is needed, as an object");
    return 0;
}

int mcp_terms_choose(const struct mcp_message *message, const struct mcp_headers *headers,
                     struct mcp_terms *out, struct mcp_fault *fault)
{
    static const char key[] = MCP_META "protocolVersion";
    const struct data_value *said = value_get(message->meta, key);
    const char *version = mcp_text(message->meta, key), *header = headers->version;

    *out = (struct mcp_terms){MCP_BATCH_VERSION, false};
    if (message->method && strcmp(message->method, "initialize") == 0)
        return 0; // says its version itself, whatever else is there
    if (said && !version)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 400, "params._meta.%s: must be a string", key);
    if (version && message->method)
        return choose_modern(message, headers, version, out, fault);
    if (!header)
        return 0;
    if (mcp_legacy_version(header)) {
        out->version = mcp_legacy_version(header);
        return 0;
    }
    // Clients are known that name the newest revision they know after having agreed on another: a session tells.
    if (headers->session || !message->id) {
        out->version = MCP_LEGACY_VERSION;
        return 0;
    }
    if (strcmp(header, MCP_MODERN_VERSION) != 0)
        return fail_version(header, fault);
    return mcp_fail(fault, MCP_INVALID_PARAMS, 400, "params._meta.%s: is needed with this revision",
                    key);
}

int mcp_terms_of_batch(const struct mcp_headers *headers, struct mcp_terms *out,
                       struct mcp_fault *fault)
{
    *out = (struct mcp_terms){MCP_BATCH_VERSION, false};
    if (!headers->version || strcmp(headers->version, MCP_BATCH_VERSION) == 0)
        return 0;
    return mcp_fail(fault, MCP_INVALID_REQUEST, 400,
                    "several messages in one body are of revision " MCP_BATCH_VERSION
                    " alone: send each by itself");
}
