/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of attached clients, by one table; see attach_order.h. */
#include "front/api/attach_order.h"

#include "base/auto.h"
#include "data/json.h"
#include "front/api/signal_name.h"
#include "web/fields.h"

#include <string.h>

struct order_body {
    const char *type, *signal;
    int64_t rows, cols;
    bool is_whole_tree;
};
#define AT(member) offsetof(struct order_body, member)
#define TYPE_FIELD                                                                                 \
    {                                                                                              \
        "type", FIELD_TEXT, AT(type), .is_needed = true                                            \
    }

static const struct field resize_fields[] = {
    TYPE_FIELD,
    {"rows", FIELD_INTEGER, AT(rows), .is_needed = true, .minimum = 1, .maximum = UINT16_MAX},
    {"cols", FIELD_INTEGER, AT(cols), .is_needed = true, .minimum = 1, .maximum = UINT16_MAX},
    {0},
};
static const struct field signal_fields[] = {
    TYPE_FIELD,
    {"signal", FIELD_TEXT, AT(signal), .is_needed = true, .maximum = 20},
    {"wholeTree", FIELD_BOOL, AT(is_whole_tree)},
    {0},
};
static const struct field plain_fields[] = {TYPE_FIELD, {0}};

static const struct {
    const char *type;
    enum attach_order_kind kind;
    const struct field *fields;
} orders[] = {
    {"resize", ATTACH_RESIZE, resize_fields},
    {"signal", ATTACH_SIGNAL, signal_fields},
    {"close_stdin", ATTACH_CLOSE_INPUT, plain_fields},
};

static int fill(const struct order_body *body, struct attach_order *out, struct error *err)
{
    out->size = (struct terminal_size){(uint16_t)body->rows, (uint16_t)body->cols};
    out->signal = body->signal ? signal_of_name(body->signal) : 0;
    out->is_whole_tree = body->is_whole_tree;
    if (out->kind == ATTACH_SIGNAL && out->signal == 0) {
        (void)error_set(err, ERROR_INVALID, "signal: there is no signal '%s'", body->signal);
        return error_field(err, "signal");
    }
    return 0;
}

static int read_order(const struct data_value *value, struct attach_order *out, struct error *err)
{
    struct order_body body = {0};

    if (value->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "a text must be a JSON object");
    if (fields_read(value, plain_fields, &body, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        if (strcmp(body.type, orders[i].type) != 0)
            continue;
        out->kind = orders[i].kind;
        if (fields_check_names(value, orders[i].fields, err) < 0 ||
            fields_read(value, orders[i].fields, &body, err) < 0)
            return -1;
        return fill(&body, out, err);
    }
    (void)error_set(err, ERROR_INVALID,
                    "type: must be 'resize', 'signal' or 'close_stdin', not '%.40s'", body.type);
    return error_field(err, "type");
}

int attach_order_read(const char *text, size_t length, struct attach_order *out, struct error *err)
{
    struct data_document *document = NULL;

    if (json_read("", text, length, NULL, &document, err) < 0)
        return error_wrap(err, "the text is not JSON");
    int result = read_order(document->root, out, err);
    data_document_free(document);
    return result;
}

int attach_order_run(struct core *core, const struct actor *actor, const char *execution_id,
                     const struct attach_order *order, struct error *err)
{
    struct executions *executions = core->executions;

    switch (order->kind) {
    case ATTACH_RESIZE:
        return execution_resize(executions, actor, execution_id, order->size, err);
    case ATTACH_SIGNAL:
        return execution_signal(executions, actor, execution_id, order->signal,
                                order->is_whole_tree, err);
    case ATTACH_CLOSE_INPUT:
        break;
    }
    return execution_close_input(executions, actor, execution_id, err);
}
