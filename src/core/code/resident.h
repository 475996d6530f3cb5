/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter that waits in boxes made ahead: Python with our script, which listens on a socket of a known name until it is told which context it is, of which user,
 * where and with which variables. It listens to nobody of its own box, and refuses what it cannot become any more. Private to the code room.
 * Threads: any but loops.
 */
#pragma once
#include "base/command.h"
#include "base/error.h"
#include "core/code/code_language.h"
#include "engine/spare_boxes.h"

#include <stdbool.h>

struct sandbox;

/* What is started in the boxes; borrows what never goes. Without argv: no box gets one. */
struct spare_resident resident_describe(void);

/* Whether it can run this language. */
bool resident_speaks(enum code_language language);

/*
 * Makes it what `command` says: that of an interpreter that is started otherwise. For execution_request; `data` is not read. ERROR_UNAVAILABLE: it cannot, or does not answer.
 */
int resident_hand_over(void *data, struct sandbox *sandbox, const struct command *command,
                       struct error *err);
