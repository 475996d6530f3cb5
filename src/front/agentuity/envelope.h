/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What answers of this protocol are wrapped in. Each endpoint has one shape:
 *
 *     data  {"success":true,"data":…}         autoreply reply = {0}; envelope_data(&reply); …one value…
 *     flat  {"success":true, …members…}       autoreply reply = {0}; envelope_flat(&reply); …members…
 *     bare  {"success":true}                  return envelope_bare(call);
 *     none  of its own (streams)              autoreply reply = {0}; reply_init(&reply); …one value…; reply_send(…)
 *
 * The first two end with `return envelope_send(&reply, call->response, 200);`, which returns 0.
 * Threads: one per object.
 */
#pragma once
#include "web/answer_table.h"
#include "web/call.h"
#include "web/reply.h"

void envelope_data(struct reply *reply);
void envelope_flat(struct reply *reply);
int envelope_send(struct reply *reply, struct response *response, int status);
int envelope_bare(struct call *call);
/* The whole answer by a table: an object, or a list of them, as data. Both return 0. */
int envelope_answer(struct call *call, int status, const struct answer_field *fields,
                    const void *from);
int envelope_answers(struct call *call, const struct answer_field *fields, const void *items,
                     size_t count, size_t item_size);

/* The word for programs: "SANDBOX_NOT_FOUND". `text` holds those that are made from the noun. */
#define ENVELOPE_CODE 48
const char *envelope_code(const struct error *err, char text[ENVELOPE_CODE]);

/* {"success":false,"code":…,"message":… of a failure, for envelope_send. */
void envelope_failure(struct reply *reply, const struct error *err);
/* {"success":false,"code":…,"message":…} with the status of the kind. For struct front's on_error. */
void envelope_error(struct call *call, const struct error *err);
