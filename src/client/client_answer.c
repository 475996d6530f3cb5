/* SPDX-License-Identifier: Apache-2.0 */
/* What the server answered, as values of JSON; see burrow.h. A burrow_value is a data_value. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct burrow_answer {
    struct buffer text;
    struct data_document *document;
};

static const struct data_value *inside(const struct burrow_value *value)
{
    return (const struct data_value *)value;
}

static const struct burrow_value *outside(const struct data_value *value)
{
    return (const struct burrow_value *)value;
}

int client_answer_new(struct buffer *text, struct burrow_answer **out, struct burrow_error *err)
{
    const struct json_limits limits = {.bytes = (size_t)64 << 20, .memory = (size_t)512 << 20};
    struct burrow_answer *answer = xnew(struct burrow_answer);
    struct error error = {0};

    answer->text = *text;
    *text = (struct buffer){0};
    if (answer->text.length &&
        json_read("the server's answer", answer->text.data, answer->text.length, &limits,
                  &answer->document, &error) < 0) {
        burrow_answer_free(answer);
        return client_fail_from(err, BURROW_PROTOCOL, &error);
    }
    *out = answer;
    return 0;
}

void burrow_answer_free(struct burrow_answer *answer)
{
    if (!answer)
        return;
    data_document_free(answer->document);
    buffer_clear(&answer->text);
    free(answer);
}

const struct burrow_value *burrow_answer_value(const struct burrow_answer *answer)
{
    return answer && answer->document ? outside(answer->document->root) : NULL;
}

const char *burrow_answer_text(const struct burrow_answer *answer)
{
    return answer && answer->text.data ? answer->text.data : "";
}

enum burrow_kind burrow_value_kind(const struct burrow_value *value)
{
    static const enum burrow_kind kinds[] = {
        [VALUE_NULL] = BURROW_NULL,   [VALUE_BOOL] = BURROW_BOOL, [VALUE_NUMBER] = BURROW_NUMBER,
        [VALUE_STRING] = BURROW_TEXT, [VALUE_LIST] = BURROW_LIST, [VALUE_MAP] = BURROW_MAP,
    };
    return value ? kinds[inside(value)->kind] : BURROW_NULL;
}

const struct burrow_value *burrow_get(const struct burrow_value *map, const char *path)
{
    const struct data_value *value = inside(map);

    while (value && *path) {
        size_t length = strcspn(path, ".");
        value = value_get_part(value, path, length);
        path += length + (path[length] == '.');
    }
    return outside(value);
}

const char *burrow_text(const struct burrow_value *value)
{
    bool has_text =
        value && (inside(value)->kind == VALUE_STRING || inside(value)->kind == VALUE_NUMBER);
    return has_text ? inside(value)->text : NULL;
}

size_t burrow_text_length(const struct burrow_value *value)
{
    return burrow_text(value) ? inside(value)->length : 0;
}

int64_t burrow_integer(const struct burrow_value *value, int64_t otherwise)
{
    if (!value || inside(value)->kind != VALUE_NUMBER)
        return otherwise;
    return strtoll(inside(value)->text, NULL, 10);
}

bool burrow_truth(const struct burrow_value *value)
{
    return value && inside(value)->kind == VALUE_BOOL && inside(value)->truth;
}

size_t burrow_count(const struct burrow_value *value)
{
    return value ? inside(value)->count : 0;
}

const struct burrow_value *burrow_first(const struct burrow_value *value)
{
    bool has_children =
        value && (inside(value)->kind == VALUE_LIST || inside(value)->kind == VALUE_MAP);
    return has_children ? outside(inside(value)->first) : NULL;
}

const struct burrow_value *burrow_next(const struct burrow_value *value)
{
    return value ? outside(inside(value)->next) : NULL;
}

const char *burrow_key(const struct burrow_value *value)
{
    return value ? inside(value)->key : NULL;
}
