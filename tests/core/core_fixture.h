/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the whole core: a core with real boxes of host:latest on a data directory of its own, and short ways to make
 * sandboxes and wait for them. What a test leaves is removed before the next one and at exit. Needs root.
 */
#pragma once
#include "core/core.h"
#include "core/create.h"
#include "core/sandbox/sandbox_event.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "core/stream/stream.h"
#include "test.h"

extern struct core *core;  // of the running test
extern struct actor actor; // its administrator
extern char core_data_dir[];

#define CORE_TEST(title)                                                                           \
    static void title##_body(void);                                                                \
    TEST(title)                                                                                    \
    {                                                                                              \
        begin_core_test();                                                                         \
        title##_body();                                                                            \
        end_core_test();                                                                           \
    }                                                                                              \
    static void title##_body(void)

void begin_core_test(void);
void end_core_test(void);
/* As after a restart of the server: the core is closed and opened again. */
void reopen_core(void);
/* The second half of that: the test has closed it. */
void open_core_again(void);

/* Interactive, without a command; *id gets its id. */
void make_sandbox(char id[ID_TEXT]);
/* One-shot: `sh -c script`. */
void run_once(const char *script, struct sandbox_info *sandbox, struct execution_info *execution);
/* `sh -c script` in a sandbox. */
void start_in(const char *sandbox, enum execution_kind kind, const char *script,
              struct execution_info *out);
/* Waits for the end. */
void await_execution(const char *id, struct execution_info *out);
void await_state(const char *sandbox, enum sandbox_state state);
/* Until a stream has that many bytes. */
void await_bytes(const char *stream, uint64_t bytes);
/* All of a complete stream; NUL-terminated, valid until the next call. */
const char *content_of(const char *stream);
