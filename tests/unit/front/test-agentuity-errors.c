/* SPDX-License-Identifier: Apache-2.0 */
#include "front/agentuity/envelope.h"
#include "web/instant.h"

#include "web/reply.h"
#include "test.h"

/* What a client gets for an error of the core. */
static void check(enum error_reason reason, const char *noun, int status, const char *code)
{
    struct error err = {.reason = reason, .noun = noun, .text = "x"};
    char text[ENVELOPE_CODE];

    CHECK_STR(envelope_code(&err, text), code);
    CHECK_INT(error_status(&err), status);
}

TEST(bad_requests_have_one_code)
{
    check(ERROR_INVALID, NULL, 400, "INVALID_ARGUMENT");
    check(ERROR_INVALID, "stream", 400, "INVALID_ARGUMENT");
    check(ERROR_TOO_LARGE, "body", 413, "TOO_LARGE");
    check(ERROR_METHOD, "route", 405, "METHOD_NOT_ALLOWED");
}

TEST(a_missing_key_is_not_a_forbidden_call)
{
    check(ERROR_UNAUTHORIZED, NULL, 401, "UNAUTHORIZED");
    check(ERROR_DENIED, NULL, 403, "FORBIDDEN");
}

TEST(what_is_not_there_is_named_in_the_code)
{
    check(ERROR_NOT_FOUND, "sandbox", 404, "SANDBOX_NOT_FOUND");
    check(ERROR_NOT_FOUND, "execution", 404, "EXECUTION_NOT_FOUND");
    check(ERROR_NOT_FOUND, "snapshot", 404, "SNAPSHOT_NOT_FOUND");
    check(ERROR_NOT_FOUND, "runtime", 404, "RUNTIME_NOT_FOUND");
    check(ERROR_NOT_FOUND, "job", 404, "JOB_NOT_FOUND");
    check(ERROR_NOT_FOUND, "stream", 404, "STREAM_NOT_FOUND");
    check(ERROR_NOT_FOUND, "file", 404, "FILE_NOT_FOUND");
    check(ERROR_NOT_FOUND, NULL, 404, "NOT_FOUND");
    check(ERROR_NOT_FOUND, "a noun that is much too long to be a part of a code", 404,
          "A_NOUN_THAT_IS_MUCH_TOO_LONG_TO_BE_A__NOT_FOUND");
}

TEST(an_ended_sandbox_and_a_busy_one_are_told_apart)
{
    check(ERROR_ENDED, "sandbox", 404, "SANDBOX_TERMINATED");
    check(ERROR_BUSY, "sandbox", 409, "SANDBOX_BUSY");
    check(ERROR_STATE, "sandbox", 409, "INVALID_STATE");
    check(ERROR_BUSY, "stream", 409, "INVALID_STATE");
    check(ERROR_CONFLICT, "checkpoint", 409, "CHECKPOINT_EXISTS");
    check(ERROR_STATE, "snapshot", 409, "INVALID_STATE");
    check(ERROR_DIFFERS, "runtime", 409, "RUNTIME_DIFFERS");
}

TEST(full_is_not_unavailable)
{
    check(ERROR_FULL, "sandbox", 429, "CAPACITY");
    check(ERROR_LIMIT, NULL, 429, "CAPACITY");
    check(ERROR_RESTARTING, NULL, 503, "RESTARTING");
}

TEST(a_full_disk_of_a_sandbox_is_not_a_full_server)
{
    check(ERROR_DISK_FULL, "sandbox", 413, "DISK_FULL");
    check(ERROR_DISK_FULL, "file", 413, "DISK_FULL");
    check(ERROR_NO_SPACE, "volume", 429, "CAPACITY");
    check(ERROR_NO_SPACE, "stream", 429, "CAPACITY");
    check(ERROR_TOO_LARGE, "file", 413, "TOO_LARGE");
}

TEST(faults_of_the_server_are_internal)
{
    check(ERROR_SYSTEM, NULL, 500, "INTERNAL");
    check(ERROR_TIMEOUT, NULL, 500, "INTERNAL");
    check(ERROR_UNAVAILABLE, NULL, 500, "INTERNAL");
    check(ERROR_NONE, NULL, 500, "INTERNAL");
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
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(ms, -1);
    }
}
