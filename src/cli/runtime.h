/* SPDX-License-Identifier: Apache-2.0 */
/* burrow runtime: lists, builds, verifies, shows and removes what sandboxes start from. */
#pragma once

/* argv[0] is "runtime". 0 done, 1 failed, 2 wrong usage, 128 + signal when a build was cancelled.
 */
int cli_runtime(int argc, char **argv);
