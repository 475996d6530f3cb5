/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow try in a copy of a local directory: it goes to a sandbox of its own; what comes back is unpacked beside, compared, and brought over
 * entry by entry (local_tree.h).
 * Threads: one thread.
 */
#pragma once
#include "cli/try_run.h"

extern const struct trial_kind trial_of_directory;
