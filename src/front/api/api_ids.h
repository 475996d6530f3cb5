/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How this front spells ids: the core's are bare, these are put in front. A thing has the same id in every protocol that has prefixes.
 * Threads: plain values.
 */
#pragma once

#define EXAMPLE_ID "0123456789abcdefghjkmnpqrs" // in examples of the document, behind a prefix

#define SANDBOX_PREFIX "sbx_"
#define EXECUTION_PREFIX "exe_"
#define JOB_PREFIX "job_" // of executions in the background
#define SNAPSHOT_PREFIX "snp_"
#define CHECKPOINT_PREFIX "ckpt_"
#define CONTEXT_PREFIX "ctx_"
#define STREAM_PREFIX "stream_"
#define EVENT_PREFIX "evt_"
#define RUNTIME_PREFIX "srt_"
#define ORGANISATION_PREFIX "org_"
#define USER_PREFIX "user_"
#define KEY_PREFIX "key_"
#define TOKEN_PREFIX "tok_"
#define WEBHOOK_PREFIX "whk_"
#define DELIVERY_PREFIX "dlv_"
