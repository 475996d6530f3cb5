/* SPDX-License-Identifier: Apache-2.0 */
#include "front/agentuity/envelope.h"
#include "front/agentuity/instant.h"

#include "web/reply.h"
#include "test.h"

/* What a client gets for an error of the core. */
static void check(enum error_kind kind, const char *noun, const char *reason, int status,
                  const char *code)
{
    struct error err = {.kind = kind, .noun = noun, .reason = reason, .text = "x"};
    char text[ENVELOPE_CODE];

    CHECK_STR(envelope_code(&err, text), code);
    CHECK_INT(reply_status(&err), status);
}

TEST(bad_requests_have_one_code)
{
    check(ERROR_INVALID, NULL, NULL, 400, "INVALID_ARGUMENT");
    check(ERROR_INVALID, "stream", NULL, 400, "INVALID_ARGUMENT");
    check(ERROR_LIMIT, "body", "too large", 413, "TOO_LARGE");
    check(ERROR_INVALID, "route", "method", 405, "METHOD_NOT_ALLOWED");
}

TEST(a_missing_key_is_not_a_forbidden_call)
{
    check(ERROR_DENIED, NULL, "unauthorized", 401, "UNAUTHORIZED");
    check(ERROR_DENIED, NULL, NULL, 403, "FORBIDDEN");
}

TEST(what_is_not_there_is_named_in_the_code)
{
    check(ERROR_NOT_FOUND, "sandbox", NULL, 404, "SANDBOX_NOT_FOUND");
    check(ERROR_NOT_FOUND, "execution", NULL, 404, "EXECUTION_NOT_FOUND");
    check(ERROR_NOT_FOUND, "snapshot", NULL, 404, "SNAPSHOT_NOT_FOUND");
    check(ERROR_NOT_FOUND, "runtime", NULL, 404, "RUNTIME_NOT_FOUND");
    check(ERROR_NOT_FOUND, "job", NULL, 404, "JOB_NOT_FOUND");
    check(ERROR_NOT_FOUND, "stream", NULL, 404, "STREAM_NOT_FOUND");
    check(ERROR_NOT_FOUND, "file", NULL, 404, "FILE_NOT_FOUND");
    check(ERROR_NOT_FOUND, NULL, NULL, 404, "NOT_FOUND");
    check(ERROR_NOT_FOUND, "a noun that is much too long to be a part of a code", NULL, 404,
          "A_NOUN_THAT_IS_MUCH_TOO_LONG_TO_BE_A__NOT_FOUND");
}

TEST(an_ended_sandbox_and_a_busy_one_are_told_apart)
{
    check(ERROR_GONE, "sandbox", "ended", 404, "SANDBOX_TERMINATED");
    check(ERROR_CONFLICT, "sandbox", "busy", 409, "SANDBOX_BUSY");
    check(ERROR_CONFLICT, "sandbox", "state", 409, "INVALID_STATE");
    check(ERROR_CONFLICT, "stream", "busy", 409, "INVALID_STATE");
    check(ERROR_CONFLICT, "checkpoint", NULL, 409, "CHECKPOINT_EXISTS");
    check(ERROR_CONFLICT, "snapshot", "state", 409, "INVALID_STATE");
    check(ERROR_CONFLICT, "runtime", "differs", 409, "RUNTIME_DIFFERS");
}

TEST(full_is_not_unavailable)
{
    check(ERROR_LIMIT, "sandbox", "full", 429, "CAPACITY");
    check(ERROR_LIMIT, NULL, NULL, 429, "CAPACITY");
    check(ERROR_UNAVAILABLE, NULL, "restarting", 503, "RESTARTING");
}

TEST(faults_of_the_server_are_internal)
{
    check(ERROR_SYSTEM, NULL, NULL, 500, "INTERNAL");
    check(ERROR_TIMEOUT, NULL, NULL, 500, "INTERNAL");
    check(ERROR_UNAVAILABLE, NULL, NULL, 500, "INTERNAL");
    check(ERROR_NONE, NULL, NULL, 500, "INTERNAL");
}

static void check_instant(const char *text, int64_t want)
{
    struct error err = {0};
    int64_t ms = -1;

    CHECK_OK(instant_parse(text, "start", &ms, &err), err);
    CHECK_INT(ms, want);
}

TEST(times_are_read_as_clients_write_them)
{
    check_instant("1970-01-02", 86400000);
    check_instant("1970-01-01T00:00:01Z", 1000);
    check_instant("1970-01-01T00:00:01.5Z", 1500);
    check_instant("1970-01-01T00:00:01.678912Z", 1678);
    check_instant("1970-01-01T02:00:00+02:00", 0);
    check_instant("1969-12-31T22:30:00-01:30", 0);
    check_instant("1970-01-01T00:01", 60000);
}

TEST(what_is_no_time_is_refused)
{
    static const char *const texts[] = {"",
                                        "now",
                                        "1970",
                                        "1970-13-01",
                                        "1970-00-01",
                                        "1970-01-00",
                                        "1970-01-01T",
                                        "1970-01-01T24:00Z",
                                        "1970-01-01T00:00:00+2",
                                        "1970-01-01T00:00:00.Z",
                                        "1970-01-01T00:00:00Zx",
                                        "1970-01-01Z",
                                        "197O-01-01"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {0};
        int64_t ms = -1;
        CHECK(instant_parse(texts[i], "start", &ms, &err) < 0);
        CHECK_INT(err.kind, ERROR_INVALID);
        CHECK_INT(ms, -1);
    }
}
