/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures of the client library as its callers see them (burrow.h).
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"
#include "burrow.h"

/* Each returns -1. */
int client_fail(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* With errno, as it is on entry, and its text. */
int client_fail_sys(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A failure of base or data. */
int client_fail_from(struct burrow_error *err, enum burrow_failure kind, const struct error *from);
/* What an HTTP status means. */
enum burrow_failure client_fail_kind(int status);
