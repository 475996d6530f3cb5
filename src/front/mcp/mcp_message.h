/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of MCP as they come: JSON-RPC 2.0, which revision of the protocol a message is of, and whether its headers say what its body says.
 * Threads: plain values.
 */
#pragma once
#include "data/value.h"

#include <stdbool.h>

enum mcp_code {
    MCP_OK = 0,
    MCP_PARSE = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_NO_RESOURCE = -32002, // of legacy revisions; later ones say MCP_INVALID_PARAMS
    MCP_HEADER_MISMATCH = -32020,
    MCP_VERSION = -32022,
};

/* Revisions that are spoken, newest first, ended by NULL. The first is stateless; all others begin with "initialize". */
extern const char *const mcp_versions[];
#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25" // of those with "initialize", the newest
#define MCP_BATCH_VERSION "2025-03-26"  // the only one with several messages in one body
/* The literal of one with "initialize"; NULL: it is none of them. */
const char *mcp_legacy_version(const char *version);

#define MCP_META "io.modelcontextprotocol/"

/* A failure of the protocol: what is answered instead of a result. */
struct mcp_fault {
    enum mcp_code code;
    int status; // of HTTP
    char text[300];
    const char *requested; // MCP_VERSION: what was asked for
    const char *uri;       // of the resource that cannot be read; NULL: it is about something else
};
/* Returns -1. */
int mcp_fail(struct mcp_fault *fault, enum mcp_code code, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One message. All is borrowed from its document. */
struct mcp_message {
    const struct data_value *id;     // NULL: a notification, or an answer
    const char *method;              // NULL: an answer to something that nobody asked
    const struct data_value *params; // a map; NULL: none
    const struct data_value *meta;   // params._meta; NULL: none
};
/* `out->id` is there also when it fails, where the message has a good one. */
int mcp_message_read(const struct data_value *value, struct mcp_message *out,
                     struct mcp_fault *fault);

/* What the head of the request says; NULL: nothing. */
struct mcp_headers {
    const char *version, *method, *name, *session;
};

/* By which revision it is answered. */
struct mcp_terms {
    const char *version;
    bool is_modern;
};
int mcp_terms_choose(const struct mcp_message *message, const struct mcp_headers *headers,
                     struct mcp_terms *out, struct mcp_fault *fault);
/* For several in one body: -1 where the revision has no such thing. */
int mcp_terms_of_batch(const struct mcp_headers *headers, struct mcp_terms *out,
                       struct mcp_fault *fault);

/* A member that is a string without NULs; NULL: it is not. */
const char *mcp_text(const struct data_value *map, const char *name);
