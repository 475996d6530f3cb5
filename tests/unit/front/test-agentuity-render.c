/* SPDX-License-Identifier: Apache-2.0 */
#include "front/agentuity/render.h"

#include "base/strings.h"
#include "test.h"

#define ID "0123456789abcdefghjkmnpqrs"
#define EXE "zyxwvtsrqpnmkjhgfedcba9876"
#define BASE "http://here:1"

static const struct organisation_info organisation = {.id = "acme", .name = "Acme"};

/* One object, as text; NULL-terminated in the buffer. */
#define CHECK_JSON(write, want)                                                                    \
    do {                                                                                           \
        autobuffer text = {0};                                                                     \
        struct json_writer writer;                                                                 \
        struct json_writer *json = &writer;                                                        \
        struct error err = {0};                                                                    \
        json_writer_init(json, &text);                                                             \
        write;                                                                                     \
        CHECK_OK(json_writer_finish(json, &err), err);                                             \
        CHECK_STR(text.data, want);                                                                \
    } while (0)

static struct sandbox_info plain_info(void)
{
    return (struct sandbox_info){
        .id = ID,
        .state = SANDBOX_IDLE,
        .mode = SANDBOX_INTERACTIVE,
        .exit_code = NO_EXIT_CODE,
        .created_at = 1500,
    };
}

#define PLAIN                                                                                      \
    "{\"sandboxId\":\"sbx_" ID                                                                     \
    "\",\"status\":\"idle\",\"createdAt\":\"1970-01-01T00:00:01.500Z\","                           \
    "\"executions\":0,\"identifier\":\"0123456789ab\",\"mode\":\"interactive\",\"region\":"        \
    "\"local\","                                                                                   \
    "\"networkEnabled\":false,\"timeout\":{},\"org\":{\"id\":\"org_acme\",\"name\":\"Acme\"}"

TEST(a_plain_sandbox_has_no_null_in_it)
{
    struct sandbox_info info = plain_info();
    struct sandbox_view view = {
        .info = &info, .organisation = &organisation, .region = "local", .base_url = BASE};

    CHECK_JSON(render_sandbox_entry(json, &view), PLAIN "}");
    CHECK_JSON(render_sandbox(json, &view), PLAIN
               ",\"resources\":{},\"cpuTimeMs\":0,\"memoryByteSec\":0,\"networkEgressBytes\":0,"
               "\"user\":{\"id\":\"user_local\"}}");
}

TEST(a_sandbox_says_back_what_was_asked_as_it_was_spelled)
{
    static const char *const argv[] = {"sh", "-c", "echo \"a\nb\"", NULL};
    struct execution_info first = {.id = EXE, .stdout_stream = "out", .stderr_stream = "err"};
    struct sandbox_info info = plain_info();
    struct sandbox_view view = {.info = &info,
                                .organisation = &organisation,
                                .organisation_name = "Mine",
                                .first = &first,
                                .region = "local",
                                .base_url = BASE};

    info.state = SANDBOX_ENDED;
    info.mode = SANDBOX_ONE_SHOT;
    info.exit_code = 3;
    info.name = "n";
    info.description = "d";
    info.key_id = "k";
    info.owner.project = "proj_1";
    info.metadata = "{\"big\":12345678901234567890,\"deep\":[{}]}";
    info.scopes = "[\"a\",\"b\"]";
    info.asked = "{\"memory\":\"1.5Gi\",\"cpu\":\"0.5\",\"idle\":\"1h30m\",\"execution\":\"0\"}";
    info.limits.memory_bytes = 1;
    info.limits.cpu_millicores = 500;
    info.limits.disk_bytes = 2147483648;
    info.idle_timeout_ms = 5400000;
    info.paused_timeout_ms = 600000;
    info.command.argv = argv;
    info.used.executions = 1;
    info.used.cpu_ms = 7;
    info.used.memory_mib_ms = 1500;
    info.used.egress_bytes = 9;
    CHECK_JSON(
        render_sandbox(json, &view),
        "{\"sandboxId\":\"sbx_" ID
        "\",\"status\":\"terminated\",\"createdAt\":\"1970-01-01T00:00:01.500Z\","
        "\"executions\":1,\"identifier\":\"0123456789ab\",\"name\":\"n\",\"description\":\"d\","
        "\"mode\":\"oneshot\",\"region\":\"local\","
        "\"stdoutStreamUrl\":\"http://here:1/stream/stream_out\","
        "\"stderrStreamUrl\":\"http://here:1/stream/stream_err\",\"networkEnabled\":false,"
        "\"timeout\":{\"idle\":\"1h30m\",\"execution\":\"0\",\"paused\":\"10m\"},"
        "\"command\":{\"exec\":[\"sh\",\"-c\",\"echo \\\"a\\nb\\\"\"],\"mode\":\"oneshot\"},"
        "\"org\":{\"id\":\"org_acme\",\"name\":\"Mine\"},\"exitCode\":3,"
        "\"metadata\":{\"big\":12345678901234567890,\"deep\":[{}]},\"scopes\":[\"a\",\"b\"],"
        "\"resources\":{\"memory\":\"1.5Gi\",\"cpu\":\"0.5\"},"
        "\"cpuTimeMs\":7,\"memoryByteSec\":1572864,\"networkEgressBytes\":9,"
        "\"user\":{\"id\":\"user_k\"},\"project\":{\"id\":\"proj_1\",\"name\":\"proj_1\"}}");
}

TEST(a_sandbox_that_asked_for_no_limits_says_what_it_got)
{
    struct sandbox_info info = plain_info();
    struct sandbox_view view = {.info = &info, .region = "local", .base_url = BASE};
    autobuffer text = {0};
    struct json_writer json;

    info.asked = "{}";
    info.limits.memory_bytes = 536870912;
    info.limits.cpu_millicores = 1000;
    info.limits.disk_bytes = 2147483648;
    info.idle_timeout_ms = 600000;
    json_writer_init(&json, &text);
    render_sandbox(&json, &view);
    CHECK(strstr(text.data,
                 "\"resources\":{\"memory\":\"512Mi\",\"cpu\":\"1000m\",\"disk\":\"2Gi\"}"));
    CHECK(strstr(text.data, "\"timeout\":{\"idle\":\"10m\"}"));
}

TEST(a_sandbox_says_what_runtime_it_has)
{
    struct sandbox_info info = plain_info();
    struct sandbox_view view = {.info = &info, .region = "local", .base_url = BASE};
    autobuffer text = {0};
    struct json_writer json;

    info.runtime = "base:latest";
    json_writer_init(&json, &text);
    render_sandbox_entry(&json, &view);
    CHECK(strstr(text.data, "\"runtime\":{\"id\":\"srt_"));
    CHECK(strstr(text.data, "\",\"name\":\"base:latest\"}"));
}

TEST(every_state_has_a_word_that_clients_know)
{
    for (unsigned state = 0; state < SANDBOX_STATES; state++) {
        bool is_known = false;
        for (const char *const *word = render_statuses; *word; word++)
            is_known |= strcmp(*word, render_status(state)) == 0;
        CHECK(is_known);
        CHECK(render_states(render_status(state)) & sandbox_in(state));
    }
    CHECK_STR(render_status(SANDBOX_PAUSED), "suspended");
    CHECK_STR(render_status(SANDBOX_ENDED), "terminated");
    CHECK_INT(render_states("nonsense"), 0);
}

TEST(a_one_shot_sandbox_has_an_exit_code_exactly_when_it_is_over)
{
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_RUNNING, NO_EXIT_CODE), NO_EXIT_CODE);
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_STOPPING, 0), NO_EXIT_CODE);
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_ENDED, 0), 0);
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_ENDED, NO_EXIT_CODE), 137);
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_DELETED, NO_EXIT_CODE), 137);
    CHECK_INT(render_exit_code(SANDBOX_ONE_SHOT, SANDBOX_FAILED, NO_EXIT_CODE), 1);
    CHECK_INT(render_exit_code(SANDBOX_INTERACTIVE, SANDBOX_ENDED, NO_EXIT_CODE), NO_EXIT_CODE);
}

static const char *const sleep_argv[] = {"sleep", "1", NULL};

TEST(a_running_execution_has_no_exit_code)
{
    struct execution_info info = {.id = EXE,
                                  .sandbox_id = ID,
                                  .state = EXECUTION_RUNNING,
                                  .exit.code = -1,
                                  .command.argv = sleep_argv,
                                  .started_at = 1000,
                                  .stdout_stream = "out"};

    CHECK_JSON(render_execution(json, &info, BASE),
               "{\"executionId\":\"exe_" EXE "\",\"sandboxId\":\"sbx_" ID
               "\",\"type\":\"exec\",\"status\":\"running\","
               "\"command\":[\"sleep\",\"1\"],\"startedAt\":\"1970-01-01T00:00:01.000Z\","
               "\"stdoutStreamUrl\":\"http://here:1/stream/stream_out\"}");
}

TEST(a_command_that_exits_badly_is_completed)
{
    struct execution_info info = {.id = EXE,
                                  .sandbox_id = ID,
                                  .state = EXECUTION_COMPLETED,
                                  .exit.code = 2,
                                  .ended_at = 2000,
                                  .exit.duration_us = 1999,
                                  .exit.is_truncated = true};

    CHECK_JSON(
        render_execution(json, &info, BASE),
        "{\"executionId\":\"exe_" EXE "\",\"sandboxId\":\"sbx_" ID "\",\"type\":\"exec\","
        "\"status\":\"completed\",\"exitCode\":2,\"completedAt\":\"1970-01-01T00:00:02.000Z\","
        "\"durationMs\":1,\"outputTruncated\":true}");
}

static void check_end(enum execution_state state, enum execution_cause cause, int64_t signal,
                      const char *want)
{
    struct execution_info info = {.id = EXE,
                                  .sandbox_id = ID,
                                  .state = state,
                                  .exit.cause = cause,
                                  .exit.signal = signal,
                                  .exit.code = -1,
                                  .error = "why"};
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    render_execution(&json, &info, BASE);
    if (!strstr(text.data, want))
        test_fail(__FILE__, __LINE__, "no %s in %s", want, text.data);
}

TEST(whatever_ends_an_execution_leaves_an_exit_code)
{
    check_end(EXECUTION_TIMED_OUT, EXECUTION_TIMEOUT, 0,
              "\"status\":\"timeout\",\"exitCode\":124,\"error\":\"why\"");
    check_end(EXECUTION_CANCELLED, EXECUTION_STOPPED, 0,
              "\"status\":\"cancelled\",\"exitCode\":137");
    check_end(EXECUTION_CANCELLED, EXECUTION_STOPPED, 15,
              "\"status\":\"cancelled\",\"exitCode\":143");
    check_end(EXECUTION_FAILED, EXECUTION_NOT_FOUND, 0, "\"status\":\"failed\",\"exitCode\":127");
    check_end(EXECUTION_FAILED, EXECUTION_NOT_RUN, 0, "\"status\":\"failed\",\"exitCode\":126");
    check_end(EXECUTION_FAILED, EXECUTION_BOX_ENDED, 0, "\"status\":\"failed\",\"exitCode\":1,");
}

static void check_job(enum execution_state state, int64_t exit_code, const char *want)
{
    struct execution_info info = {
        .id = EXE, .sandbox_id = ID, .kind = EXECUTION_JOB, .state = state, .exit.code = exit_code};
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    render_job(&json, &info, BASE);
    CHECK_STR(text.data, want);
}

#define JOB(rest) "{\"jobId\":\"job_" EXE "\",\"sandboxId\":\"sbx_" ID "\",\"status\":" rest "}"

TEST(a_job_is_completed_only_when_it_went_well)
{
    check_job(EXECUTION_QUEUED, -1, JOB("\"pending\""));
    check_job(EXECUTION_RUNNING, -1, JOB("\"running\""));
    check_job(EXECUTION_COMPLETED, 0, JOB("\"completed\",\"exitCode\":0"));
    check_job(EXECUTION_COMPLETED, 1, JOB("\"failed\",\"exitCode\":1"));
    check_job(EXECUTION_TIMED_OUT, 124, JOB("\"failed\",\"exitCode\":124"));
    check_job(EXECUTION_CANCELLED, 0, JOB("\"cancelled\",\"exitCode\":0"));
}

TEST(an_event_without_facts_has_an_empty_object)
{
    struct event_info info = {.id = "e", .sandbox_id = ID, .type = EVENT_CREATE, .created_at = 1};

    CHECK_JSON(render_event(json, &info), "{\"eventId\":\"evt_e\",\"sandboxId\":\"sbx_" ID
                                          "\",\"type\":\"create\",\"event\":{},"
                                          "\"createdAt\":\"1970-01-01T00:00:00.001Z\"}");
}

TEST(facts_of_an_event_are_spelled_as_clients_spell)
{
    static const char *const facts[] = {
        "execution=" EXE,         "job=" ID, "exit_code=-1", "state=timed_out", "run_time_name=a=b",
        "large=1234567890123456", NULL};
    struct event_info info = {.id = "e",
                              .sandbox_id = ID,
                              .type = EVENT_TERMINATED,
                              .reason = "idle",
                              .facts = facts,
                              .created_at = 1};

    CHECK_JSON(
        render_event(json, &info),
        "{\"eventId\":\"evt_e\",\"sandboxId\":\"sbx_" ID "\",\"type\":\"lifecycle:terminated\","
        "\"event\":{\"reason\":\"idle\",\"executionId\":\"exe_" EXE "\",\"jobId\":\"job_" ID "\","
        "\"exitCode\":-1,\"status\":\"timeout\",\"runTimeName\":\"a=b\",\"large\":"
        "\"1234567890123456\"},"
        "\"createdAt\":\"1970-01-01T00:00:00.001Z\"}");
}

TEST(memory_over_time_is_in_byte_seconds)
{
    CHECK_INT(render_byte_seconds(0), 0);
    CHECK_INT(render_byte_seconds(1), 1048);
    CHECK_INT(render_byte_seconds(1000), 1048576);
    CHECK_INT(render_byte_seconds(8000000000000), 8388608000000000);
}
