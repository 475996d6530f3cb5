/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority of this installation: a key that only the supervisor has, and the certificates it signs for hosts with a secret.
 * Threads: one thread.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/error.h"

struct authority;

/* Reads it from a file in the data directory, which nobody else may read, and makes it where there is none. */
int authority_open(const char *data_dir, struct authority **out, struct error *err);
void authority_free(struct authority *authority);
DEFINE_AUTOPTR(authority)

/* Its certificate as PEM. */
int authority_certificate(const struct authority *authority, struct buffer *out, struct error *err);
/* A certificate for a host and its key, as PEM. */
int authority_sign(const struct authority *authority, const char *host, struct buffer *out,
                   struct error *err);
