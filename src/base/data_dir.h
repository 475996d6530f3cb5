/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory, where burrow keeps everything.
 * Threads: plain values.
 */
#pragma once

#define DATA_DIR_DEFAULT "/var/lib/burrow" // of root, unless told otherwise
