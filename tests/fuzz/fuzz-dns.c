/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes DNS: questions of boxes and answers of resolvers. Names that come out are ones that policies know; what is written back fits, and can be read. */
#include "egress/dns_message.h"
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_folded(const char *name)
{
    char again[POLICY_NAME_LENGTH];

    return policy_fold_name(name, strlen(name), again) && strcmp(again, name) == 0;
}

static bool on_name(void *data, const char *name)
{
    unsigned *left = data;

    if (!is_folded(name))
        abort();
    return (*left)-- > 0;
}

static void ask(const uint8_t *data, size_t size)
{
    struct dns_question question;
    static const uint32_t addresses[DNS_ADDRESSES] = {1};
    unsigned char out[DNS_MESSAGE];

    int code = dns_read_question(data, size, &question);
    if (code < 0)
        return;
    if (*question.name && !is_folded(question.name))
        abort();
    if (question.room < DNS_PLAIN || question.room > DNS_PAYLOAD ||
        question.raw_length > sizeof question.raw)
        abort();
    const struct dns_reply reply = {
        .code = DNS_REFUSED,
        .addresses = addresses,
        .count = size % (DNS_ADDRESSES + 1),
        .extended = DNS_BLOCKED,
        .text = "a sentence",
    };
    if (dns_write_reply(&question, &reply, question.room, out) > question.room)
        abort();
    if (code == 0 && *question.name) {
        size_t length = dns_write_query(7, question.name, DNS_A, out);
        struct dns_question again;
        if (dns_read_question(out, length, &again) != 0 || strcmp(again.name, question.name) != 0)
            abort();
    }
}

static void answer(const uint8_t *data, size_t size)
{
    struct dns_answer found;
    unsigned left = 20;

    if (size < 2)
        return;
    uint16_t id = (uint16_t)(data[0] << 8 | data[1]);
    if (!dns_read_answer(data, size, id, "a.example", on_name, &left, &found))
        return;
    if (found.count > DNS_ADDRESSES || (*found.target && !is_folded(found.target)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ask(data, size);
    answer(data, size);
    return 0;
}
