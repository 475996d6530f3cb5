/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids in lines of the log, spelled as people meet them in answers and in the access log, so that one search finds all.
 * Threads: plain values.
 */
#pragma once
#include "base/log.h"

#define F_SANDBOX(id) log_field_id("sandbox", "sbx_", id)
#define F_EXECUTION(id) log_field_id("execution", "exe_", id)
#define F_KEY(id) log_field_id("id", "key_", id)
#define F_SNAPSHOT(id) log_field_id("snapshot", "snp_", id)
