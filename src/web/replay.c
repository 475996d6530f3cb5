/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are given again; see replay.h. */
#include "web/replay.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/webhook/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY_HEADERS 6

#define DAY_MS (24 * 3600 * 1000)

void replay_budget_init(struct replay_budget *budget)
{
    *budget = (struct replay_budget){0};
    lock_init(&budget->lock, LOCK_FRONT);
}

void replay_budget_clear(struct replay_budget *budget)
{
    lock_clear(&budget->lock);
}

bool replay_budget_take(struct replay_budget *budget, uint64_t now_ms, uint64_t bytes)
{
    autolock(&budget->lock);
    if (now_ms - budget->since_ms >= DAY_MS) {
        budget->since_ms = now_ms;
        budget->bytes = 0;
    }
    if (bytes > REPLAY_DAY_BYTES - budget->bytes)
        return false;
    budget->bytes += bytes;
    return true;
}

/* "201\nContent-Type: application/json\n\n{…}" */
static int format(const struct response_answer *answer, struct buffer *out, struct error *err)
{
    if (buffer_addf(out, err, "%d\n", answer->status) < 0)
        return -1;
    for (const struct http_header *header = answer->headers; header && header->name; header++) {
        if (buffer_addf(out, err, "%s: %s\n", header->name, header->value) < 0)
            return -1;
    }
    if (buffer_add_text(out, "\n", err) < 0 ||
        buffer_add(out, answer->body, answer->length, err) < 0)
        return -1;
    return buffer_add(out, "", 1, err);
}

/* How much of it may be told again. */
static size_t shown_of(const char *text, size_t length)
{
    static const char webhook[] = WEBHOOK_SECRET_PREFIX;
    char key[KEY_TEXT];

    (void)snprintf(key, sizeof key, "%.*s", length < KEY_TEXT ? (int)length : 0, text);
    if (key_shown(key) == KEY_SHOWN)
        return KEY_SHOWN;
    bool is_webhook = length == strlen(webhook) + WEBHOOK_SECRET_LETTERS &&
                      strncmp(text, webhook, strlen(webhook)) == 0;
    return is_webhook ? strlen(webhook) : length;
}

/* Keys, tokens and the secrets of webhooks are told once: all but what lists show of them becomes stars. */
static void hide_secrets(char *text)
{
    while ((text = strchr(text, '"'))) {
        size_t length = strcspn(++text, "\""), shown = shown_of(text, length);
        memset(text + shown, '*', length - shown);
        text += length;
    }
}

/* Cuts the text in place. */
static void send_again(struct call *call, char *text)
{
    struct http_header headers[REPLAY_HEADERS + 2] = {{"Idempotency-Replayed", "true"}};
    int status = (int)strtol(text, &text, 10);
    unsigned count = 1;

    text += *text == '\n';
    while (*text && *text != '\n') {
        char *end = strchr(text, '\n'), *colon = strstr(text, ": ");
        if (!end || !colon || colon > end)
            break;
        *end = *colon = '\0';
        if (count <= REPLAY_HEADERS)
            headers[count++] = (struct http_header){text, colon + 2};
        text = end + 1;
    }
    text += *text == '\n';
    (void)response_send(call->response, status, headers, text, strlen(text));
}

int replay_begin(struct replay *replay, struct replay_budget *budget, struct call *call,
                 struct error *err)
{
    const struct once *once;
    autofree char *answer = NULL;
    bool is_new;

    if (call_once(call, &once, err) < 0)
        return -1;
    if (!once || !call->core)
        return 0;
    *replay = (struct replay){
        .accounts = call->core->accounts,
        .budget = budget,
        .once = {.realm = xasprintf("%s answer %s%s", call->front->name, call->actor.key_id,
                                    call->actor.token_id),
                 .key = xstrdup(once->key)},
    };
    memcpy(replay->actor.organisation, call->actor.organisation, sizeof call->actor.organisation);
    memcpy(replay->once.request_hash, once->request_hash, sizeof once->request_hash);
    if (once_claim_answer(replay->accounts, &replay->actor, &replay->once, &is_new, &answer, err) <
        0)
        return -1;
    replay->is_claimed = is_new;
    if (is_new)
        return 0;
    send_again(call, answer);
    return 1;
}

static bool is_worth_keeping(const struct response_answer *answer)
{
    return answer->status >= 200 && answer->status < 300 && answer->length <= REPLAY_MAXIMUM &&
           !memchr(answer->body ? answer->body : "", '\0', answer->length) &&
           utf8_is_valid(answer->body, answer->length);
}

void replay_end(struct replay *replay, const struct response_answer *answer)
{
    autobuffer text = {0};
    struct error err = {0};

    if (!replay->is_claimed)
        return;
    if (!is_worth_keeping(answer) || format(answer, &text, &err) < 0 ||
        !replay_budget_take(replay->budget, clock_monotonic_ms(), text.length)) {
        replay_give_up(replay);
        return;
    }
    replay->is_claimed = false;
    hide_secrets(text.data);
    if (once_finish_answer(replay->accounts, &replay->actor, &replay->once, text.data, &err) < 0)
        log_warn("an answer could not be kept for its idempotency key",
                 F("error", (const char *)err.text));
}

void replay_give_up(struct replay *replay)
{
    if (!replay->is_claimed)
        return;
    replay->is_claimed = false;
    once_release(replay->accounts, &replay->actor, &replay->once);
}

void replay_clear(struct replay *replay)
{
    free((char *)(uintptr_t)replay->once.realm);
    free((char *)(uintptr_t)replay->once.key);
}
