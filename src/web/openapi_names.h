/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operations of a front with a document of its own are called, from their methods and paths alone.
 * Threads: plain values.
 */
#pragma once

#define OPENAPI_NAME 160

/*
 * For programs that are made from the document: GET /sandboxes is listSandboxes, POST createSandbox; GET /sandboxes/{sandbox} is getSandbox;
 * POST /sandboxes/{sandbox}/pause is pauseSandbox; GET /executions/{execution}/output is getExecutionOutput. `top` is what all paths begin
 * with.
 */
const char *openapi_operation_name(const char *method, const char *pattern, const char *top,
                                   char out[OPENAPI_NAME]);

/* The noun that it is about: "sandboxes", or below one sandbox "files". */
const char *openapi_tag(const char *pattern, const char *top, char out[OPENAPI_NAME]);
