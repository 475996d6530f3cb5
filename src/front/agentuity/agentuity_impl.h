/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this front share and nobody else sees: its tables of routes, and how it spells ids.
 * Threads: plain values.
 */
#pragma once
#include "front/agentuity/agentuity.h"
#include "front/agentuity/answers.h"
#include "front/agentuity/envelope.h"
#include "front/agentuity/member.h"
#include "web/reference.h"
#include "web/call.h"
#include "web/route.h"

/* One table a file, each ended by an empty row; agentuity_front.c joins them. */
extern const struct route agentuity_create_routes[];
extern const struct route agentuity_sandbox_routes[];
extern const struct route agentuity_execution_routes[];
extern const struct route agentuity_job_routes[];
extern const struct route agentuity_event_routes[];
extern const struct route agentuity_runtime_routes[];
extern const struct route agentuity_stats_routes[];
extern const struct route agentuity_account_routes[];
extern const struct route agentuity_ssh_key_routes[];
extern const struct route agentuity_stream_routes[];
extern const struct route agentuity_file_routes[];
extern const struct route agentuity_pause_routes[];
extern const struct route agentuity_checkpoint_routes[];
extern const struct route agentuity_snapshot_routes[];
extern const struct route agentuity_snapshot_build_routes[];

/* The core's ids are bare; these are put in front where a client sees them (call_id takes them off again). */
#define SANDBOX_PREFIX "sbx_"
#define EXECUTION_PREFIX "exe_"
#define JOB_PREFIX "job_"
#define SNAPSHOT_PREFIX "snp_"
#define CHECKPOINT_PREFIX "ckpt_"
#define STREAM_PREFIX "stream_"
#define EVENT_PREFIX "evt_"
#define RUNTIME_PREFIX "srt_"
#define ORGANISATION_PREFIX "org_"
#define USER_PREFIX "user_"

static inline const struct agentuity_settings *agentuity_settings_of(const struct call *call)
{
    return call->settings;
}
