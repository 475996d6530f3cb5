/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file probably is, by the end of its name.
 * Threads: plain values.
 */
#pragma once

/* "application/octet-stream" when its name says nothing. A literal. */
const char *content_type_of(const char *path);
