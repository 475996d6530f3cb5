/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client that is attached to an execution says about it, as a text: resize its terminal, send a signal, end its input.
 * Threads: plain values; attach_order_run: any but loops.
 */
#pragma once
#include "core/core.h"
#include "core/execution/execution.h"

enum attach_order_kind { ATTACH_RESIZE, ATTACH_SIGNAL, ATTACH_CLOSE_INPUT };

struct attach_order {
    enum attach_order_kind kind;
    struct terminal_size size;
    int signal;
    bool is_whole_tree;
};

/*
 * {"type":"resize","rows":24,"cols":80}
 * {"type":"signal","signal":"INT","wholeTree":false}
 * {"type":"close_stdin"}
 * ERROR_INVALID; ERROR_UNKNOWN_FIELD.
 */
int attach_order_read(const char *text, size_t length, struct attach_order *out, struct error *err);

int attach_order_run(struct core *core, const struct actor *actor, const char *execution_id,
                     const struct attach_order *order, struct error *err);
