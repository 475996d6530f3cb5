/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes clients in a sandbox with secrets trust the certificate that their hosts have on the way out: it is among the sandbox's own files, in the bundle of the
 * system and beside it, and named by variables for those who read neither. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "base/strings.h"
#include "core/sandbox/sandbox_object.h"

/* Writes it, where the sandbox has secrets. The caller has not the box. */
int sandbox_trust(struct sandbox *sandbox, struct error *err);

/* Adds the variables, where it has secrets. The caller holds its lock. */
void sandbox_trust_env(const struct sandbox *sandbox, struct strings *env);
