/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/front/api/api_manners.c: POSTs with an Idempotency-Key, over a real server and a real store. */
#include "front/api/api_manners.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "store/store.h"
#include "test.h"
#include "unit/web/front_fixture.h"
#include "web/replay.h"
#include "web/waiting_call.h"

#include <fcntl.h>

#define LONG_TEXT (REPLAY_MAXIMUM + 100)

static atomic_int made; // how often a handler did its work
static atomic_int begun;
static sem_t go;

struct made_answer {
    int64_t number;
    const char *text;
};
static const struct answer_field made_fields[] = {
    {"number", ANSWER_INTEGER, offsetof(struct made_answer, number)},
    {"text", ANSWER_TEXT, offsetof(struct made_answer, text)},
    {0},
};

static int make(struct call *call, struct error *err)
{
    (void)err;
    return api_answer(call, 201, made_fields,
                      &(struct made_answer){atomic_fetch_add(&made, 1) + 1, NULL});
}

/* Answers from the loop, as whoever waits for a change does. */
static void answer_later(void *data)
{
    struct waiting_call *waiting = data;
    struct call call = waiting_call_get(waiting);

    (void)api_answer(&call, 200, made_fields,
                     &(struct made_answer){atomic_fetch_add(&made, 1) + 1, NULL});
    waiting_call_clear(waiting);
    free(waiting);
}

static int make_later(struct call *call, struct error *err)
{
    struct waiting_call *waiting = xnew(struct waiting_call);

    (void)err;
    waiting_call_init(waiting, call);
    loop_post(call_loop(call), answer_later, waiting);
    return 0;
}

static int make_slowly(struct call *call, struct error *err)
{
    atomic_fetch_add(&begun, 1);
    (void)sem_wait(&go);
    return make(call, err);
}

static int fail(struct call *call, struct error *err)
{
    (void)call;
    atomic_fetch_add(&made, 1);
    return error_refuse(err, ERROR_BUSY, "thing", "not now");
}

static int forget(struct call *call, struct error *err)
{
    (void)call;
    (void)err;
    atomic_fetch_add(&made, 1);
    return 0;
}

static int make_long(struct call *call, struct error *err)
{
    char *text = call_alloc(call, LONG_TEXT);

    (void)err;
    memset(text, 'x', LONG_TEXT - 1);
    return api_answer(call, 200, made_fields,
                      &(struct made_answer){atomic_fetch_add(&made, 1) + 1, text});
}

static int make_pieces(struct call *call, struct error *err)
{
    (void)err;
    atomic_fetch_add(&made, 1);
    (void)response_begin(call->response, 200, NULL, RESPONSE_LENGTH_UNKNOWN);
    (void)response_append(call->response, "piece", 5);
    response_finish(call->response, true);
    return 0;
}

static const struct field body_fields[] = {{"name", FIELD_TEXT, 0}, {0}};
static const struct route routes[] = {
    {"POST", "/make", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, make, .fields = body_fields},
    {"POST", "/later", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, make_later, .fields = body_fields},
    {"POST", "/slow", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, make_slowly, .fields = body_fields},
    {"POST", "/loop", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, make},
    {"POST", "/fail", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, fail},
    {"POST", "/forget", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, forget},
    {"POST", "/long", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, make_long},
    {"POST", "/pieces", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, make_pieces},
    {"PUT", "/make", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, make},
    {0},
};

struct rig {
    char dir[32];
    struct core core; // with store and keys alone
    struct front_fixture *fixture;
    struct api_manners *manners;
    char keys[2][KEY_TEXT];
};

static void rig_clear(struct rig *rig)
{
    struct error err;

    front_fixture_free(rig->fixture);
    api_manners_free(rig->manners);
    accounts_free(rig->core.accounts);
    store_free(rig->core.store);
    (void)fd_remove_tree(AT_FDCWD, rig->dir, &err);
    (void)sem_destroy(&go);
}
#define autorig __attribute__((cleanup(rig_clear))) struct rig

static void rig_init(struct rig *rig)
{
    struct error err = {0};

    atomic_store(&made, 0);
    atomic_store(&begun, 0);
    (void)sem_init(&go, 0, 0);
    (void)snprintf(rig->dir, sizeof rig->dir, "/tmp/manners-XXXXXX");
    CHECK(mkdtemp(rig->dir));
    CHECK_OK(store_open(rig->dir, &rig->core.store, &err), err);
    CHECK_OK(accounts_open(rig->core.store, &rig->core.accounts, &err), err);
    for (int i = 0; i < 2; i++) {
        struct key_info info = {0};
        CHECK_OK(key_create(rig->core.accounts, &(struct key_request){.name = "test"}, rig->keys[i],
                            &info, &err),
                 err);
        key_info_clear(&info);
    }
    rig->manners = api_manners_new(&(struct api_settings){0});
    const struct front front = {
        .name = "api",
        .routes = routes,
        .top = "/",
        .on_error = api_on_error,
        .settings = rig->manners,
        .on_call = api_manners_on_call,
        .on_actor = api_manners_on_actor,
        .on_post = api_manners_on_post,
        .is_once_by_key = true,
    };
    rig->fixture = front_fixture_new(&(struct front_options){.core = &rig->core, .front = &front});
}

/* With an Idempotency-Key, or without (NULL); as the first or the second key. */
static int post(struct rig *rig, const char *path, const char *once, int who, const char *body,
                struct answer *answer)
{
    autofree char *what = xasprintf("POST %s", path);
    autofree char *headers =
        xasprintf("X-Api-Key: %s\r\n%s%s%s", rig->keys[who], once ? "Idempotency-Key: " : "",
                  once ? once : "", once ? "\r\n" : "");

    return ask(rig->fixture, what, headers, body, answer);
}

static void check_again(struct rig *rig, const char *path, const char *body, int status)
{
    autoanswer first = {0}, second = {0}, other = {0}, without = {0};

    atomic_store(&made, 0);
    CHECK_INT(post(rig, path, "k", 0, body, &first), status);
    CHECK(!strstr(first.head, "Idempotency-Replayed"));
    CHECK_INT(post(rig, path, "k", 0, body, &second), status);
    CHECK(strstr(second.head, "Idempotency-Replayed: true"));
    CHECK(strstr(second.head, "Content-Type: application/json"));
    CHECK_STR(first.body.data, second.body.data);
    CHECK_INT(atomic_load(&made), 1);
    CHECK_INT(post(rig, path, "other", 0, body, &other), status);
    CHECK_INT(post(rig, path, NULL, 0, body, &without), status);
    CHECK_INT(atomic_load(&made), 3);
}

TEST(a_request_sent_again_gets_the_same_answer)
{
    autorig rig = {0};

    rig_init(&rig);
    check_again(&rig, "/make", "{\"name\":\"x\"}", 201);
}

TEST(also_where_the_loop_gives_the_answer)
{
    autorig rig = {0};

    rig_init(&rig);
    check_again(&rig, "/later", "{}", 200);
}

TEST(also_where_the_handler_would_run_on_the_loop)
{
    autorig rig = {0};

    rig_init(&rig);
    check_again(&rig, "/loop", NULL, 201);
}

TEST(another_request_with_the_key_is_refused)
{
    autorig rig = {0};
    autoanswer first = {0}, body = {0}, query = {0}, path = {0}, longer = {0};
    char text[300];

    rig_init(&rig);
    CHECK_INT(post(&rig, "/make", "k", 0, "{\"name\":\"a\"}", &first), 201);
    CHECK_INT(post(&rig, "/make", "k", 0, "{\"name\":\"b\"}", &body), 422);
    CHECK(strstr(body.body.data, "\"code\":\"idempotency_mismatch\""));
    CHECK_INT(post(&rig, "/make?x=1", "k", 0, "{\"name\":\"a\"}", &query), 422);
    CHECK_INT(post(&rig, "/later", "k", 0, "{\"name\":\"a\"}", &path), 422);
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_INT(post(&rig, "/make", text, 0, "{}", &longer), 400);
    CHECK_INT(atomic_load(&made), 1);
}

TEST(a_key_of_somebody_else_is_another_one)
{
    autorig rig = {0};
    autoanswer first = {0}, second = {0};

    rig_init(&rig);
    CHECK_INT(post(&rig, "/make", "k", 0, "{}", &first), 201);
    CHECK_INT(post(&rig, "/make", "k", 1, "{}", &second), 201);
    CHECK_INT(atomic_load(&made), 2);
    CHECK(!strstr(second.head, "Idempotency-Replayed"));
}

struct asking {
    struct rig *rig;
    struct answer answer;
    int status;
};

static void *ask_slowly(void *data)
{
    struct asking *asking = data;

    asking->status = post(asking->rig, "/slow", "k", 0, "{}", &asking->answer);
    return NULL;
}

TEST(a_request_under_way_is_not_begun_again)
{
    autorig rig = {0};
    struct asking asking = {.rig = &rig};
    autoanswer second = {0}, third = {0};
    pthread_t thread;

    rig_init(&rig);
    CHECK_INT(pthread_create(&thread, NULL, ask_slowly, &asking), 0);
    fixture_wait(&begun, 1);
    CHECK_INT(post(&rig, "/slow", "k", 0, "{}", &second), 409);
    CHECK(strstr(second.body.data, "\"code\":\"idempotency_pending\""));
    (void)sem_post(&go);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(asking.status, 201);
    CHECK_INT(post(&rig, "/slow", "k", 0, "{}", &third), 201);
    CHECK_STR(third.body.data, asking.answer.body.data);
    CHECK_INT(atomic_load(&begun), 1);
    answer_clear(&asking.answer);
}

/* Each of these does its work again. */
static void check_not_kept(const char *path, int status)
{
    autorig rig = {0};

    rig_init(&rig);
    for (int i = 1; i <= 3; i++) {
        autoanswer answer = {0};
        CHECK_INT(post(&rig, path, "k", 0, NULL, &answer), status);
        CHECK_INT(atomic_load(&made), i);
        CHECK(!strstr(answer.head, "Idempotency-Replayed"));
    }
}

TEST(what_failed_can_be_tried_again)
{
    check_not_kept("/fail", 409);
}

TEST(a_handler_that_forgets_to_answer_frees_the_key)
{
    check_not_kept("/forget", 500);
}

TEST(what_is_too_long_or_in_pieces_is_not_kept)
{
    check_not_kept("/long", 200);
    check_not_kept("/pieces", 200);
}

TEST(answers_of_a_day_have_a_limit_together)
{
    struct replay_budget budget;
    const uint64_t day = 24 * 3600 * 1000;

    replay_budget_init(&budget);
    CHECK(replay_budget_take(&budget, 5, REPLAY_DAY_BYTES - 10));
    CHECK(!replay_budget_take(&budget, 6, 11));
    CHECK(replay_budget_take(&budget, 7, 10));
    CHECK(!replay_budget_take(&budget, day - 1, 1));
    CHECK(replay_budget_take(&budget, day, 1));
    CHECK(!replay_budget_take(&budget, day + 1, UINT64_MAX));
    replay_budget_clear(&budget);
}

TEST(only_POST_has_keys)
{
    autorig rig = {0};

    rig_init(&rig);
    autofree char *headers = xasprintf("X-Api-Key: %s\r\nIdempotency-Key: k\r\n", rig.keys[0]);
    for (int i = 1; i <= 2; i++) {
        autoanswer answer = {0};
        CHECK_INT(ask(rig.fixture, "PUT /make", headers, NULL, &answer), 201);
        CHECK_INT(atomic_load(&made), i);
    }
}
