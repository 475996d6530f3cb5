/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the document of this API says beside its routes.
 * Threads: plain values.
 */
#pragma once
#include "web/front.h"

extern const struct front_document api_document;

/* All codes of failures, with status, title and remedy, as a member "x-problems". */
void api_put_problems(struct json_writer *json);
