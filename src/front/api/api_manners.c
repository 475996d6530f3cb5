/* SPDX-License-Identifier: Apache-2.0 */
/* What every answer of this front has in common; see api_manners.h. */
#include "front/api/api_manners.h"

#include "base/mem.h"
#include "base/thread.h"
#include "web/access.h"
#include "web/rate_limiter.h"
#include "web/replay.h"
#include "web/representation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BURST_SECONDS 10
#define BUCKET_TTL_MS (10 * 60 * 1000)
#define HEADERS 6   // of a refusal
#define RETRY_MS 20 // where no worker is free to keep an answer

struct api_manners {
    char **origins;           // ended by NULL
    const char *origins_text; // borrowed: the same as it was given
    const struct api_ssh *ssh;
    struct rate_limiter *limiter;
    struct replay_budget budget;
};

/* Of one call; goes with its response. */
struct manners {
    struct representation representation;
    struct replay replay;
    struct workers *workers;
    struct loop *loop;
    const char *request_id;    // as long as the response
    struct response *response; // while an answer waits to be kept
    struct response_answer answer;
    struct loop_timer retry;
    struct http_header headers[HEADERS + 1];
    char rate[3][24], retry_after[24];
};

// ---- settings ----

static void read_origins(struct api_manners *manners, const char *text)
{
    size_t count = 0;

    manners->origins = xcalloc(1, sizeof *manners->origins);
    for (const char *at = text ? text : ""; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        if (length == 0)
            continue;
        manners->origins = xrealloc(manners->origins, count + 2, sizeof *manners->origins);
        manners->origins[count++] = xstrndup(at, length);
        manners->origins[count] = NULL;
    }
}

struct api_manners *api_manners_new(const struct api_settings *settings)
{
    struct api_manners *manners = xnew(struct api_manners);
    int64_t burst = settings->burst > 0 ? settings->burst : settings->rate * BURST_SECONDS;

    read_origins(manners, settings->origins);
    replay_budget_init(&manners->budget);
    manners->origins_text = settings->origins;
    manners->ssh = settings->ssh;
    if (settings->rate > 0)
        manners->limiter = rate_limiter_new(&(struct rate_limits){
            .of = {{(double)settings->rate, burst}}, .ttl_ms = BUCKET_TTL_MS});
    return manners;
}

void api_manners_free(struct api_manners *manners)
{
    if (!manners)
        return;
    for (char **origin = manners->origins; *origin; origin++)
        free(*origin);
    free(manners->origins);
    rate_limiter_free(manners->limiter);
    replay_budget_clear(&manners->budget);
    free(manners);
}

bool api_manners_has_origins(const struct api_manners *manners)
{
    return manners->origins[0] != NULL;
}

const struct api_ssh *api_manners_ssh(const struct api_manners *manners)
{
    return manners->ssh;
}

const char *api_manners_origins(const struct api_manners *manners)
{
    return manners->origins_text;
}

// ---- the answer, when somebody gives it ----

static void keep_and_send(void *data)
{
    struct manners *manners = data;
    struct response *response = manners->response;
    struct response_answer answer = manners->answer;
    void *copy = (void *)(uintptr_t)answer.headers; // body and texts are in the same block

    replay_end(&manners->replay, &answer);
    representation_apply(&manners->representation, &answer);
    response_send_filtered(response, &answer);
    free(answer.owned);
    free(copy);
    response_free(response); // manners may go with it
}

static void submit(void *data);

static void on_retry(void *data)
{
    submit(data);
}

/* On the loop. */
static void submit(void *data)
{
    struct manners *manners = data;
    struct error err;

    if (workers_submit(manners->workers, WORKERS_CONTROL, keep_and_send, manners, &err) == 0)
        return;
    loop_timer_init(&manners->retry, manners->loop, on_retry, manners);
    loop_timer_set(&manners->retry, RETRY_MS);
}

static size_t size_of(const struct response_answer *answer, unsigned *count)
{
    size_t size = answer->length;

    *count = 0;
    for (const struct http_header *h = answer->headers; h && h->name; h++, (*count)++)
        size += strlen(h->name) + strlen(h->value) + 2;
    return size + (*count + 1) * sizeof(struct http_header);
}

/* All of it in one block, which begins with the headers. */
static struct response_answer copy_answer(const struct response_answer *answer)
{
    unsigned count;
    struct http_header *headers = xcalloc(1, size_of(answer, &count) + 1);
    char *at = (char *)(headers + count + 1);

    for (unsigned i = 0; i < count; i++) {
        headers[i].name = at;
        at = stpcpy(at, answer->headers[i].name) + 1;
        headers[i].value = at;
        at = stpcpy(at, answer->headers[i].value) + 1;
    }
    if (answer->length)
        memcpy(at, answer->body, answer->length);
    return (struct response_answer){
        .status = answer->status, .headers = headers, .body = at, .length = answer->length};
}

/* What knows no front, as ranges of streams, refuses with a status alone. */
static void word_refusal(struct manners *manners, struct response_answer *answer)
{
    unsigned count = 0;
    size_t length;
    void *body = answer->status >= 400 && answer->length == 0
                     ? api_problem_of_status(answer->status, manners->request_id, &length)
                     : NULL;

    if (!body)
        return;
    manners->headers[count++] = (struct http_header){"Content-Type", API_FAILURE_CONTENT};
    for (const struct http_header *h = answer->headers; h && h->name && count < HEADERS; h++) {
        if (strcmp(h->name, "Content-Type") != 0)
            manners->headers[count++] = *h;
    }
    answer->headers = manners->headers;
    answer->body = answer->owned = body;
    answer->length = length;
}

static bool on_answer(void *data, struct response *response, struct response_answer *answer)
{
    struct manners *manners = data;

    word_refusal(manners, answer);
    if (manners->replay.is_claimed && thread_is_loop()) { // the store may not be asked from here
        manners->answer = copy_answer(answer);
        free(answer->owned);
        manners->response = response_ref(response);
        submit(manners);
        return true;
    }
    replay_end(&manners->replay, answer);
    representation_apply(&manners->representation, answer);
    return false;
}

struct release {
    struct replay replay;
};

static void on_release(void *data)
{
    struct release *release = data;

    replay_give_up(&release->replay);
    replay_clear(&release->replay);
    free(release);
}

/* The key of a request that has no answer to keep. Where no worker is free it stays claimed until the server starts again. */
static void let_go_of_key(struct manners *manners)
{
    struct release *release;
    struct error err;

    if (!manners->replay.is_claimed)
        return;
    if (!thread_is_loop()) {
        replay_give_up(&manners->replay);
        return;
    }
    release = xnew(struct release);
    release->replay = manners->replay;
    manners->replay = (struct replay){0};
    if (workers_submit(manners->workers, WORKERS_CONTROL, on_release, release, &err) < 0) {
        replay_clear(&release->replay);
        free(release);
    }
}

static void on_pieces(void *data)
{
    let_go_of_key(data);
}

static void on_free(void *data)
{
    struct manners *manners = data;

    let_go_of_key(manners);
    replay_clear(&manners->replay);
    representation_clear(&manners->representation);
    free(manners);
}

static const struct response_filter filter = {
    .on_answer = on_answer, .on_pieces = on_pieces, .on_free = on_free};

static struct manners *manners_of(const struct call *call)
{
    return response_filter_data(call->response, &filter);
}

// ---- pages of others ----

/* As the operator wrote it; NULL: it may not. */
static const char *allowed_origin(const struct api_manners *manners, const struct call *call)
{
    const char *asking = call_header(call, "Origin");

    for (char **origin = manners->origins; asking && *origin; origin++) {
        if (strcmp(*origin, "*") == 0 || strcmp(*origin, asking) == 0)
            return *origin;
    }
    return NULL;
}

static void allow_origin(struct call *call)
{
    const char *origin = allowed_origin(call->settings, call);

    if (!api_manners_has_origins(call->settings))
        return;
    access_set_header(call->access, call->response, "Vary", "Origin");
    if (!origin)
        return;
    access_set_header(call->access, call->response, "Access-Control-Allow-Origin", origin);
    access_set_header(call->access, call->response, "Access-Control-Expose-Headers",
                      "Content-Range, ETag, Idempotency-Replayed, RateLimit-Limit, "
                      "RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id");
}

void api_manners_on_refusal(struct call *call)
{
    if (call->request && call->access && !manners_of(call))
        allow_origin(call);
}

int api_manners_preflight(struct call *call, struct error *err)
{
    static const struct http_header allowed[] = {
        {"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE"},
        {"Access-Control-Allow-Headers",
         "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "
         "Range, X-Api-Key, X-Request-Id"},
        {"Access-Control-Max-Age", "600"},
        {0},
    };
    bool is_allowed = allowed_origin(call->settings, call) != NULL;

    (void)err;
    (void)response_send(call->response, 204, is_allowed ? allowed : NULL, NULL, 0);
    return 0;
}

// ---- the front's callbacks ----

int api_manners_on_call(struct call *call, struct error *err)
{
    struct manners *manners = xnew(struct manners);

    (void)err;
    representation_init(&manners->representation, call->request);
    manners->request_id = call_request_id(call);
    manners->workers = call_workers(call);
    manners->loop = call_loop(call);
    response_set_filter(call->response, &filter, manners);
    allow_origin(call);
    return 0;
}

static const char *put(char text[24], int64_t number)
{
    (void)snprintf(text, 24, "%" PRId64, number);
    return text;
}

int api_manners_on_actor(struct call *call, struct error *err)
{
    static const char *const names[] = {"RateLimit-Limit", "RateLimit-Remaining",
                                        "RateLimit-Reset"};
    const struct api_manners *settings = call->settings;
    struct manners *manners = manners_of(call);
    struct rate_state state;

    if (!settings->limiter || !call->is_known || !manners)
        return 0;
    int64_t wait_ms = rate_take_state(settings->limiter, 0, call->actor.key_id, &state);
    const int64_t numbers[] = {state.limit, state.remaining, (state.full_ms + 999) / 1000};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        access_set_header(call->access, call->response, names[i],
                          put(manners->rate[i], numbers[i]));
    if (wait_ms == 0)
        return 0;
    access_set_header(call->access, call->response, "Retry-After",
                      put(manners->retry_after, (wait_ms + 999) / 1000));
    return error_refuse(err, ERROR_RATE, "key",
                        "the key has sent more than %" PRId64
                        " requests at once; the next is taken in %" PRId64 " ms",
                        state.limit, wait_ms);
}

int api_manners_on_post(struct call *call, struct error *err)
{
    struct manners *manners = manners_of(call);
    struct api_manners *settings = call->settings;
    int status = manners ? replay_begin(&manners->replay, &settings->budget, call, err) : 0;

    return status > 0 ? FRONT_ANSWERED : status;
}
