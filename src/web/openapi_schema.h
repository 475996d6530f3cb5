/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of fields and parameters as JSON Schema.
 * Threads: plain values.
 */
#pragma once
#include "data/json_writer.h"
#include "web/answer_table.h"
#include "web/fields.h"
#include "web/query.h"

/* A member that is a string. */
void openapi_text(struct json_writer *json, const char *key, const char *text);

/* An object with these fields; strict: and no others. */
void openapi_fields(struct json_writer *json, const struct field *fields, bool is_strict);

/* What a route answers: an object by a table, with what stands around it. */
void openapi_answer(struct json_writer *json, const struct route_answer *answer);

/* What may stand for the parameter. */
void openapi_parameter(struct json_writer *json, const struct parameter *parameter);
