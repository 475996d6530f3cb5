/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-sftp as bytes inside this program.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

/* A sealed memory file to execute in boxes, where nobody may trace it then; the caller's to close, and one serves for all. -1: ERROR_SYSTEM. */
int sftp_blob_open(struct error *err);
