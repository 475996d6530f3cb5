/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two files about streams share.
 * Threads: any but loops; stream_id_of: any.
 */
#pragma once
#include "front/agentuity/agentuity_impl.h"

/* The stream that the path names. ERROR_NOT_FOUND where it cannot be one: at the root of the server, without naming a stream. */
int stream_id_of(const struct call *call, const char **out, struct error *err);

/* PUT of the whole content (stream_put.c). */
int stream_put(struct call *call, struct error *err);
