/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shell offers behind `burrow`: commands, options and what the server has, asked of the tables at the time, so that they cannot differ.
 * The scripts of `burrow completion` hand the line to `burrow complete`.
 * Threads: one thread.
 */
#pragma once

/* burrow complete WORD...: the words behind `burrow` up to the one that is being written, which may be "". Prints one a line, a tab, what it is.
 * Always 0: where nothing is known, nothing is said, and the shell offers files. */
int cli_complete(int argc, char **argv);
