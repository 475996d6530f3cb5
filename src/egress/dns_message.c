/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing DNS; see dns_message.h. */
#include "egress/dns_message.h"

#include "base/auto.h"

#include <string.h>

#define HEAD 12
#define CLASS_IN 1
#define CHAIN 8     // names in a row
#define RECORDS 256 // looked at in one message
#define MAX_SECONDS 86400
#define POINTERS 32

enum {
    RESPONSE = 0x8000,
    OPCODE = 0x7800,
    AUTHORITATIVE = 0x0400,
    CUT = 0x0200,
    WANTED = 0x0100,
    AVAILABLE = 0x0080
};

struct reader {
    const unsigned char *bytes;
    size_t length, at;
    bool is_bad;
};

static unsigned read_16(struct reader *reader)
{
    if (reader->length - reader->at < 2) {
        reader->is_bad = true;
        return 0;
    }
    unsigned value = (unsigned)reader->bytes[reader->at] << 8 | reader->bytes[reader->at + 1];
    reader->at += 2;
    return value;
}

static uint32_t read_32(struct reader *reader)
{
    uint32_t high = read_16(reader);

    return high << 16 | read_16(reader);
}

/*
 * A name as text. Pointers lead backwards only, each before the last, so that there is no loop. False where it is damaged. `out` is "" where it is fine
 * and none that policies know (bytes that no host name has).
 */
static bool read_name(struct reader *reader, char out[POLICY_NAME_LENGTH])
{
    char text[256];
    size_t used = 0, at = reader->at, lowest = reader->at;
    bool has_jumped = false, is_odd = false;

    for (unsigned jumps = 0;;) {
        if (at >= reader->length)
            return false;
        size_t label = reader->bytes[at];
        if ((label & 0xc0) == 0xc0) {
            if (at + 1 >= reader->length || ++jumps > POINTERS)
                return false;
            size_t target = (label & 0x3f) << 8 | reader->bytes[at + 1];
            if (!has_jumped)
                reader->at = at + 2;
            has_jumped = true;
            if (target >= lowest || target < HEAD)
                return false;
            at = lowest = target;
            continue;
        }
        if (label > 63)
            return false;
        at++;
        if (label == 0)
            break;
        if (at + label > reader->length || used + label + 1 > 254)
            return false;
        for (size_t i = 0; i < label; i++)
            is_odd |= reader->bytes[at + i] == '.' || reader->bytes[at + i] == '\0';
        memcpy(text + used, reader->bytes + at, label);
        used += label;
        text[used++] = '.';
        at += label;
    }
    if (!has_jumped)
        reader->at = at;
    if (is_odd || used == 0 || !policy_fold_name(text, used, out))
        out[0] = '\0';
    return true;
}

// ---- questions ----

/* What follows the question: an OPT record of the box says how much it takes. All else of it is forgotten. */
static bool read_options(struct reader *reader, unsigned records, struct dns_question *out)
{
    char name[POLICY_NAME_LENGTH];

    for (unsigned i = 0; i < records; i++) {
        if (!read_name(reader, name))
            return false;
        unsigned type = read_16(reader), class = read_16(reader);
        (void)read_32(reader);
        size_t length = read_16(reader);
        if (reader->is_bad || reader->length - reader->at < length)
            return false;
        reader->at += length;
        if (type != DNS_OPT)
            continue;
        out->has_edns = true;
        out->room = class < DNS_PLAIN ? DNS_PLAIN : class > DNS_PAYLOAD ? DNS_PAYLOAD : class;
    }
    return true;
}

int dns_read_question(const unsigned char *message, size_t length, struct dns_question *out)
{
    struct reader reader = {.bytes = message, .length = length};

    *out = (struct dns_question){.room = DNS_PLAIN};
    out->id = (uint16_t)read_16(&reader);
    out->flags = (uint16_t)read_16(&reader);
    unsigned questions = read_16(&reader), answers = read_16(&reader),
             authorities = read_16(&reader), more = read_16(&reader);
    if (reader.is_bad || (out->flags & RESPONSE))
        return -1;
    if (out->flags & OPCODE)
        return DNS_NOT_IMPLEMENTED;
    if (questions != 1 || answers || authorities || more > 4)
        return DNS_FORMAT_ERROR;
    size_t begin = reader.at;
    if (!read_name(&reader, out->name))
        return DNS_FORMAT_ERROR;
    out->type = (uint16_t)read_16(&reader);
    out->class = (uint16_t)read_16(&reader);
    if (reader.is_bad || reader.at - begin > sizeof out->raw)
        return DNS_FORMAT_ERROR;
    out->raw_length = reader.at - begin;
    memcpy(out->raw, message + begin, out->raw_length);
    if (!read_options(&reader, more, out))
        return DNS_FORMAT_ERROR;
    return 0;
}

// ---- writing ----

struct writer {
    unsigned char *bytes;
    size_t room, at;
    bool is_full;
};

static void put(struct writer *writer, const void *data, size_t length)
{
    if (writer->room - writer->at < length) {
        writer->is_full = true;
        return;
    }
    memcpy(writer->bytes + writer->at, data, length);
    writer->at += length;
}

static void put_16(struct writer *writer, unsigned value)
{
    const unsigned char bytes[] = {(unsigned char)(value >> 8), (unsigned char)value};

    put(writer, bytes, sizeof bytes);
}

static void put_32(struct writer *writer, uint32_t value)
{
    put_16(writer, value >> 16);
    put_16(writer, value & 0xffff);
}

static void put_options(struct writer *writer, const struct dns_reply *reply)
{
    size_t text = reply->text ? strlen(reply->text) : 0;
    size_t option = reply->extended ? 2 + text : 0;

    if (writer->room - writer->at < 15 + option) { // the words go first
        text = 0;
        option = reply->extended ? 2 : 0;
    }
    put(writer, "", 1);
    put_16(writer, DNS_OPT);
    put_16(writer, DNS_PAYLOAD);
    put_32(writer, 0);
    put_16(writer, (unsigned)(option ? option + 4 : 0));
    if (!option)
        return;
    put_16(writer, 15); // EDE
    put_16(writer, (unsigned)option);
    put_16(writer, reply->extended);
    put(writer, reply->text, text);
}

static unsigned reply_flags(const struct dns_question *question, unsigned code)
{
    return RESPONSE | AVAILABLE | (question->flags & (OPCODE | WANTED)) | code;
}

size_t dns_write_reply(const struct dns_question *question, const struct dns_reply *reply,
                       size_t room, unsigned char *out)
{
    struct writer writer = {.bytes = out, .room = room};
    size_t options = question->has_edns ? 11 : 0;
    size_t fit = room > HEAD + question->raw_length + options
                     ? (room - HEAD - question->raw_length - options) / 16
                     : 0;
    bool is_cut = reply->count > fit;
    size_t count = is_cut ? 0 : reply->count;

    put_16(&writer, question->id);
    put_16(&writer, reply_flags(question, reply->code) | (is_cut ? CUT : 0));
    put_16(&writer, question->raw_length > 0);
    put_16(&writer, (unsigned)count);
    put_16(&writer, 0);
    put_16(&writer, question->has_edns);
    put(&writer, question->raw, question->raw_length);
    for (size_t i = 0; i < count; i++) {
        put_16(&writer, 0xc000 | HEAD); // the name of the question
        put_16(&writer, DNS_A);
        put_16(&writer, CLASS_IN);
        put_32(&writer, reply->seconds);
        put_16(&writer, 4);
        put_32(&writer, reply->addresses[i]);
    }
    if (question->has_edns)
        put_options(&writer, reply);
    return writer.at;
}

static void put_name(struct writer *writer, const char *name)
{
    while (*name) {
        size_t label = strcspn(name, ".");
        const unsigned char length = (unsigned char)label;
        put(writer, &length, 1);
        put(writer, name, label);
        name += label + (name[label] == '.');
    }
    put(writer, "", 1);
}

size_t dns_write_query(uint16_t id, const char *name, uint16_t type, unsigned char out[DNS_MESSAGE])
{
    struct writer writer = {.bytes = out, .room = DNS_MESSAGE};
    const struct dns_reply none = {0};

    put_16(&writer, id);
    put_16(&writer, WANTED);
    put_16(&writer, 1);
    put_16(&writer, 0);
    put_16(&writer, 0);
    put_16(&writer, 1);
    put_name(&writer, name);
    put_16(&writer, type);
    put_16(&writer, CLASS_IN);
    put_options(&writer, &none);
    return writer.at;
}

// ---- answers ----

/* Whether the message repeats the question that was asked. */
static bool is_for(struct reader *reader, const char *name)
{
    char asked[POLICY_NAME_LENGTH];

    return read_name(reader, asked) && strcmp(asked, name) == 0 && read_16(reader) == DNS_A &&
           read_16(reader) == CLASS_IN && !reader->is_bad;
}

struct record {
    char owner[POLICY_NAME_LENGTH];
    unsigned type, class;
    uint32_t seconds;
    size_t length;
};

static bool read_record(struct reader *reader, struct record *out)
{
    if (!read_name(reader, out->owner))
        return false;
    out->type = read_16(reader);
    out->class = read_16(reader);
    out->seconds = read_32(reader);
    out->length = read_16(reader);
    return !reader->is_bad && reader->length - reader->at >= out->length;
}

static void take_address(struct reader *reader, const struct record *record, struct dns_answer *out)
{
    struct reader body = *reader;

    if (record->length != 4 || out->count == DNS_ADDRESSES)
        return;
    uint32_t address = read_32(&body);
    if (!address)
        return;
    out->addresses[out->count++] = address;
    if (record->seconds < out->seconds)
        out->seconds = record->seconds;
}

/* One walk over the answers, which takes the addresses of `owner` and, where it has one, its other name. True: there is another name. */
static bool walk(struct reader reader, unsigned answers, const char *owner,
                 char next[POLICY_NAME_LENGTH], struct dns_answer *out)
{
    struct record record;
    bool has_next = false;

    for (unsigned i = 0; i < answers && i < RECORDS && read_record(&reader, &record); i++) {
        bool is_meant = record.class == CLASS_IN && strcmp(record.owner, owner) == 0;
        struct reader body = {
            .bytes = reader.bytes, .length = reader.at + record.length, .at = reader.at};
        if (is_meant && record.type == DNS_A)
            take_address(&reader, &record, out);
        if (is_meant && record.type == DNS_CNAME && !has_next && read_name(&body, next) && *next) {
            has_next = true;
            if (record.seconds < out->seconds)
                out->seconds = record.seconds;
        }
        reader.at += record.length;
    }
    return has_next;
}

bool dns_read_answer(const unsigned char *message, size_t length, uint16_t id, const char *name,
                     dns_on_name on_name, void *data, struct dns_answer *out)
{
    struct reader reader = {.bytes = message, .length = length};
    char owner[POLICY_NAME_LENGTH], next[POLICY_NAME_LENGTH];

    *out = (struct dns_answer){.seconds = MAX_SECONDS};
    unsigned got = read_16(&reader), flags = read_16(&reader), questions = read_16(&reader),
             answers = read_16(&reader);
    (void)read_32(&reader);
    if (reader.is_bad || got != id || !(flags & RESPONSE) || questions != 1 ||
        !is_for(&reader, name))
        return false;
    out->code = flags & 15;
    out->is_cut = flags & CUT;
    (void)strcpy(owner, name);
    for (unsigned hops = 0;; hops++) {
        bool has_next = walk(reader, answers, owner, next, out);
        if (out->count || !has_next)
            break;
        if (hops == CHAIN || !on_name(data, next)) {
            out->target[0] = '\0';
            break;
        }
        (void)strcpy(owner, next);
        (void)strcpy(out->target, next);
    }
    if (out->count)
        out->target[0] = '\0';
    return true;
}
