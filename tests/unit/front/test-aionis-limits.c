/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/front/aionis/commands.c, budget.c, rate.c and settings.c. */
#include "core/execution/execution.h"
#include "front/aionis/aionis.h"
#include "front/aionis/budget.h"
#include "front/aionis/commands.h"
#include "front/aionis/rate.h"
#include "test.h"

static void check_commands(const char *text, const char *want)
{
    struct commands commands = {0};
    char names[200] = "";
    struct error err = {0};

    CHECK_OK(commands_read(text, &commands, &err), err);
    for (size_t i = 0; i < commands.count; i++)
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s|",
                       commands.names[i]);
    CHECK_STR(names, want);
    commands_clear(&commands);
}

TEST(lists_of_commands_in_every_form)
{
    check_commands("[]", "");
    check_commands("[\"echo\"]", "echo|");
    check_commands(" [ \" echo \" , \"\" , \"  \" , 7 , null , \"a b\" ] ", "echo|a b|");
    check_commands("'[\"echo\",\"ls\"]'", "echo|ls|");
    check_commands("\"[echo,ls]\"", "echo|ls|");
    check_commands("[echo, python3 ,/usr/bin/g++,a:b_c.d-e]",
                   "echo|python3|/usr/bin/g++|a:b_c.d-e|");
    check_commands("[echo,,]", "echo|");
    check_commands("[\"a\\u0000b\",\"c\"]", "c|");
}

TEST(what_is_no_list_of_commands)
{
    static const char *const cases[] = {
        "",   "echo",     "echo,ls",       "[",           "[echo", "[\"echo\"", "[a;b]",
        "{}", "\"echo\"", "[echo,\"ls\"]", "[$(reboot)]", "null",  "[a b|c]"};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct commands commands = {0};
        struct error err = {0};
        CHECK(commands_read(cases[i], &commands, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(!commands.names && !commands.memory);
    }
}

TEST(a_command_is_allowed_by_its_exact_name)
{
    struct commands commands = {0};
    struct error err = {0};

    CHECK_OK(commands_read("[\"echo\",\"/bin/ls\"]", &commands, &err), err);
    CHECK(commands_allow(&commands, "echo") && commands_allow(&commands, "/bin/ls"));
    CHECK(!commands_allow(&commands, "Echo") && !commands_allow(&commands, "/bin/echo"));
    CHECK(!commands_allow(&commands, "ls") && !commands_allow(&commands, ""));
    commands_clear(&commands);
}

TEST(a_tenants_own_budget_stands_alone)
{
    struct budgets *budgets = NULL;
    struct error err = {0};

    CHECK_OK(
        budgets_read(
            "{\"a\":{\"daily_run_cap\":5},\"*\":{\"daily_run_cap\":1,\"daily_timeout_cap\":null}}",
            &budgets, &err),
        err);
    CHECK_INT(budgets_tenants(budgets), 2);
    CHECK_INT(budgets_find(budgets, "a")->runs, 5);
    CHECK(!budgets_find(budgets, "a")->is_default);
    CHECK_INT(budgets_find(budgets, "b")->runs, 1);
    CHECK(budgets_find(budgets, "b")->is_default);
    CHECK_INT(budgets_find(budgets, "b")->timeouts, 0);
    budgets_free(budgets);
    CHECK_OK(budgets_read("{}", &budgets, &err), err);
    CHECK(!budgets_find(budgets, "a"));
    budgets_free(budgets);
}

TEST(caps_are_looked_at_in_order)
{
    const struct budget all = {.runs = 10, .timeouts = 2, .failures = 3};
    struct execution_outcomes outcomes = {
        .total = 9, .succeeded = 4, .timed_out = 1, .lost = 0, .cancelled = 2, .open = 1};
    struct budget_excess excess;

    CHECK(!budget_is_used_up(&all, &outcomes, &excess)); // two have failed, one of them timed out
    outcomes.lost = 1;
    CHECK(budget_is_used_up(&all, &outcomes, &excess));
    CHECK_STR(excess.metric, "timeout_runs");
    CHECK_INT(excess.used, 2);
    outcomes.total = 10;
    CHECK(budget_is_used_up(&all, &outcomes, &excess));
    CHECK_STR(excess.metric, "total_runs");
    outcomes = (struct execution_outcomes){.total = 3};
    CHECK(budget_is_used_up(&all, &outcomes, &excess));
    CHECK_STR(excess.metric, "failed_runs");
    CHECK(!budget_is_used_up(&(struct budget){0}, &outcomes, &excess));
}

TEST(those_who_enter_are_counted_until_they_leave)
{
    struct budgets *budgets = NULL;
    struct error err = {0};

    CHECK_OK(budgets_read("{}", &budgets, &err), err);
    CHECK_INT(budgets_enter(budgets, "a"), 0);
    CHECK_INT(budgets_enter(budgets, "a"), 1);
    CHECK_INT(budgets_enter(budgets, "b"), 0);
    budgets_leave(budgets, "a");
    CHECK_INT(budgets_enter(budgets, "a"), 1);
    budgets_free(budgets);
}

TEST(a_bucket_has_its_burst_and_no_more)
{
    const struct rate_limits limits = {.of = {[RATE_WRITE] = {0.001, 3}, [RATE_READ] = {0.001, 1}},
                                       .ttl_ms = 600000};
    struct rate_limiter *limiter = rate_limiter_new(&limits);

    for (int i = 0; i < 3; i++)
        CHECK_INT(rate_take(limiter, RATE_WRITE, "a"), 0);
    int64_t wait_ms = rate_take(limiter, RATE_WRITE, "a");
    CHECK(wait_ms > 900000 && wait_ms <= 1000001);
    CHECK_INT(rate_take(limiter, RATE_READ, "a"), 0);
    CHECK_INT(rate_take(limiter, RATE_WRITE, "b"), 0);
    rate_limiter_free(limiter);
}

static bool is_in(const char *networks, const char *address)
{
    struct proxies *proxies = NULL;
    struct in6_addr parsed;
    struct error err = {0};

    CHECK_OK(proxies_read(networks, &proxies, &err), err);
    CHECK(rate_client_parse(address, &parsed));
    bool result = proxies_contain(proxies, &parsed);
    proxies_free(proxies);
    return result;
}

TEST(networks_of_proxies)
{
    CHECK(is_in("10.0.0.0/8", "10.255.0.1"));
    CHECK(!is_in("10.0.0.0/8", "11.0.0.1"));
    CHECK(is_in("192.0.2.128/25", "192.0.2.200") && !is_in("192.0.2.128/25", "192.0.2.100"));
    CHECK(is_in("0.0.0.0/0", "1.2.3.4") && !is_in("0.0.0.0/0", "::1"));
    CHECK(is_in("192.0.2.7", "192.0.2.7") && !is_in("192.0.2.7", "192.0.2.8"));
    CHECK(is_in("fd00::/8, 10.0.0.0/8", "fdff::1") && is_in("fd00::/8 ,10.0.0.0/8", "10.1.1.1"));
    CHECK(!is_in("", "127.0.0.1"));
}

TEST(what_is_no_network)
{
    static const char *const cases[] = {"x",         "10.0.0.0/33", "10.0.0/8",  "::/129",
                                        "10.0.0.0/", "10.0.0.0/8x", "1.2.3.4/-1"};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct proxies *proxies = NULL;
        struct error err = {0};
        CHECK(proxies_read(cases[i], &proxies, &err) < 0);
        CHECK(!proxies);
    }
}

TEST(the_defaults_are_settings_that_can_be)
{
    struct aionis_settings settings = aionis_settings_default;
    struct error err = {0};

    CHECK_OK(aionis_settings_check(&settings, &err), err);
    settings.executor = "mock";
    CHECK(aionis_settings_check(&settings, &err) < 0);
    CHECK(strstr(err.text, "runs nothing"));
}
