/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/policy: rules as text, and every decision that follows from them. */
#include "policy/policy.h"
#include "base/auto.h"
#include "test.h"

#include <string.h>

#define A(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static const char *canonical(const char *text)
{
    static char out[POLICY_RULE_TEXT];
    struct policy_rule rule = {0};
    struct error err = {0};

    return policy_parse_rule(text, &rule, &err) < 0 ? "refused" : policy_rule_text(&rule, out);
}

TEST(rules_are_read_and_written_in_one_form)
{
    static const char *const rows[][2] = {
        {"example.com", "example.com"},
        {"Example.COM.", "example.com"},
        {"*.Example.com:443/TCP", "*.example.com:443/tcp"},
        {"a_b.example.com:1000-1010", "a_b.example.com:1000-1010"},
        {"192.0.2.7", "192.0.2.7"},
        {"192.0.2.7/32", "192.0.2.7"},
        {"10.0.0.0/8:5432/tcp", "10.0.0.0/8:5432/tcp"},
        {"198.51.100.0/24/udp", "198.51.100.0/24/udp"},
        {"0.0.0.0/0", "*"},
        {"*", "*"},
        {"*:443", "*:443"},
        {"*/icmp", "*/icmp"},
        {"host:11434", "host:11434"},
        {"localhost:11434", "host:11434"},
        {"127.0.0.1:11434/tcp", "host:11434"},
        {"::1", "host"},
        {"host.docker.internal:80", "host:80"},
        {"bücher.example", "xn--bcher-kva.example"},
        {"*.MÜNCHEN.example", "*.xn--mnchen-3ya.example"},
        {"παράδειγμα.example", "xn--hxajbheg2az3al.example"},
        {"例え.テスト", "xn--r8jz45g.xn--zckzah"},
        {"пример.example", "xn--e1afmkfd.example"},
        {"8.8.8.8.example", "8.8.8.8.example"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_STR(canonical(rows[i][0]), rows[i][1]);
}

TEST(what_is_no_rule_is_refused)
{
    static const char *const rows[] = {
        "",
        ".",
        "..",
        "a..b",
        ".example.com",
        "-a.example",
        "a-.example",
        "*example.com",
        "a.*.example.com",
        "*.*.example.com",
        "*.",
        "**",
        "https://example.com",
        "user@example.com",
        "exa mple.com",
        "example.com\n",
        "example.com:0",
        "example.com:65536",
        "example.com:10-9",
        "example.com:",
        "example.com:80:90",
        "example.com:+80",
        "example.com: 80",
        "example.com:1-65535",
        "example.com/sctp",
        "example.com/",
        "example.com:7/icmp",
        "host/udp",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.4.",
        "1.2.3.4/33",
        "1.2.3.4/",
        "1.2.3.4/8",
        "0x7f.1",
        "2130706433",
        "example.0x10",
        "fe80::1",
        "[::1]:80",
        "\xff\xfe.example",
        "\xc0\xae.example",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example",
    };
    char longest[400];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(canonical(rows[i]), "refused") != 0)
            test_fail(__FILE__, __LINE__, "'%s' is taken for '%s'", rows[i], canonical(rows[i]));
    }
    for (size_t i = 0; i < 260; i++)
        longest[i] = i % 10 == 9 ? '.' : 'a';
    longest[259] = '\0';
    CHECK_STR(canonical(longest), "refused");
}

TEST(a_refused_rule_says_what_to_write)
{
    struct policy_rule rule = {0};
    struct error err = {0};

    CHECK(policy_parse_rule("10.1.2.3/8", &rule, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK_STR(err.text, "'10.1.2.3/8' is in the middle of a network; write 10.0.0.0/8");
    CHECK(policy_parse_rule("https://example.com/x", &rule, &err) < 0);
    CHECK(strstr(err.text, "is a URL; give the name in it"));
    CHECK(policy_parse_rule("fe80::1", &rule, &err) < 0);
    CHECK(strstr(err.text, "IPv6, which sandboxes do not have"));
}

TEST(names_are_folded_or_refused)
{
    char out[POLICY_NAME_LENGTH];

    CHECK(policy_fold_name("API.Example.com.", 16, out));
    CHECK_STR(out, "api.example.com");
    CHECK(!policy_fold_name("a\0b.example", 11, out));
    CHECK(!policy_fold_name("a b", 3, out));
    CHECK(!policy_fold_name("", 0, out));
    CHECK(!policy_fold_name(".", 1, out));
    CHECK(!policy_fold_name("example.com..", 13, out));
    CHECK(!policy_fold_name("127.0.0.1", 9, out));
    CHECK(!policy_fold_name("0x7f000001", 10, out));
    CHECK(!policy_fold_name("b\xc3\xbc.example", 11, out)); // on the wire names are ASCII
}

// ---- decisions ----

/* A policy of lines: "+example.com" the user allows, "-" denies, "!+" the operator always, "~+" the baseline. */
static struct policy policy_of(bool is_default_allow, const char *const *rules)
{
    struct policy policy = {.mode = POLICY_RULES, .is_default_allow = is_default_allow};
    struct error err = {0};

    for (; *rules; rules++) {
        const char *text = *rules;
        enum policy_tier tier = *text == '!'   ? POLICY_ALWAYS
                                : *text == '~' ? POLICY_BASELINE
                                               : POLICY_USER;
        text += tier != POLICY_USER;
        CHECK_OK(policy_add(&policy, tier, *text == '+', text + 1, &err), err);
    }
    return policy;
}
#define RULES(...) ((const char *const[]){__VA_ARGS__, NULL})

struct row {
    const char *name;
    uint32_t address;
    uint16_t port;
    unsigned protocol;
    bool is_allowed;
};

static void check_rows(const struct policy *policy, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct policy_verdict verdict;
        const struct policy_question question = {rows[i].name, rows[i].address, rows[i].port,
                                                 (enum policy_protocol)rows[i].protocol};
        policy_decide(policy, &question, &verdict);
        if (verdict.is_allowed != rows[i].is_allowed)
            test_fail(__FILE__, __LINE__, "row %zu ('%s' %#x:%u): %s", i,
                      rows[i].name ? rows[i].name : "", rows[i].address, rows[i].port,
                      verdict.reason);
        CHECK(*verdict.reason);
        CHECK(verdict.is_allowed == !*verdict.remedy);
    }
}
#define CHECK_ROWS(policy, rows) check_rows(policy, rows, ARRAY_SIZE(rows))

TEST(names_are_matched_as_a_whole)
{
    autopolicy policy = policy_of(false, RULES("+example.com:443/tcp", "+*.wild.example"));
    static const struct row rows[] = {
        {"example.com", 0, 0, 0, true},
        {"example.com", A(93, 184, 216, 34), 443, POLICY_TCP, true},
        {"example.com", A(93, 184, 216, 34), 80, POLICY_TCP, false},
        {"example.com", A(93, 184, 216, 34), 443, POLICY_UDP, false},
        {"evilexample.com", 0, 0, 0, false},
        {"example.com.evil.example", 0, 0, 0, false},
        {"www.example.com", 0, 0, 0, false},
        {"com", 0, 0, 0, false},
        {"a.wild.example", 0, 0, 0, true},
        {"b.a.wild.example", 0, 0, 0, true},
        {"wild.example", 0, 0, 0, false},
        {"awild.example", 0, 0, 0, false},
        {NULL, A(93, 184, 216, 34), 443, POLICY_TCP, false},
        {NULL, 0, 0, 0, false},
    };

    CHECK_ROWS(&policy, rows);
}

TEST(the_first_rule_that_matches_decides)
{
    autopolicy policy = policy_of(true, RULES("-bad.example.com", "+*.example.com",
                                              "-*.example.com", "-*:25", "-203.0.113.0/24"));
    static const struct row rows[] = {
        {"bad.example.com", 0, 0, 0, false},
        {"good.example.com", 0, 0, 0, true},
        {"other.example", 0, 0, 0, true},
        {"other.example", A(8, 8, 8, 8), 25, POLICY_TCP, false},
        {NULL, A(8, 8, 8, 8), 26, POLICY_TCP, true},
        {NULL, A(8, 8, 8, 8), 0, POLICY_ICMP, true},
    };

    CHECK_ROWS(&policy, rows);
}

TEST(the_operator_stands_above_and_below_the_user)
{
    autopolicy policy = policy_of(
        false, RULES("!-evil.example", "!+packages.example", "+evil.example", "-packages.example",
                     "-mirror.example", "~+mirror.example", "~+time.example"));
    static const struct row rows[] = {
        {"evil.example", 0, 0, 0, false},   {"packages.example", 0, 0, 0, true},
        {"mirror.example", 0, 0, 0, false}, // the user may close what is only a baseline
        {"time.example", 0, 0, 0, true},    {"else.example", 0, 0, 0, false},
    };

    CHECK_ROWS(&policy, rows);
}

TEST(what_is_closed_no_user_opens)
{
    autopolicy policy =
        policy_of(true, RULES("+*", "+10.0.0.0/8", "+169.254.169.254", "+rebind.example", "+host",
                              "+192.168.0.0/16", "~+192.168.7.0/24", "~+zone.example"));
    static const struct row rows[] = {
        {NULL, A(10, 1, 2, 3), 443, POLICY_TCP, false},
        {NULL, A(169, 254, 169, 254), 80, POLICY_TCP, false},
        {NULL, A(127, 0, 0, 1), 80, POLICY_TCP, false},
        {NULL, A(100, 64, 0, 1), 80, POLICY_TCP, false},
        {NULL, A(224, 0, 0, 251), 5353, POLICY_UDP, false},
        {NULL, A(255, 255, 255, 255), 67, POLICY_UDP, false},
        {"rebind.example", A(192, 168, 1, 1), 443, POLICY_TCP, false},
        {"rebind.example", A(8, 8, 4, 4), 443, POLICY_TCP, true},
        {"host.burrow", 0, 11434, POLICY_TCP, false},
        {"host", 0, 22, POLICY_TCP, false},
        {"localhost", 0, 0, 0, false},
        {NULL, A(192, 168, 7, 9), 443, POLICY_TCP, true},
        {NULL, A(192, 168, 8, 9), 443, POLICY_TCP, false},
        {"zone.example", A(10, 0, 0, 1), 443, POLICY_TCP, true}, // the operator opened the zone
    };

    CHECK_ROWS(&policy, rows);
}

TEST(services_of_the_host_are_opened_by_port_and_by_every_alias)
{
    autopolicy policy = policy_of(true, RULES("!+localhost:11434", "-host:5432", "~+host:5432"));
    static const struct row rows[] = {
        {"host", 0, 11434, POLICY_TCP, true},
        {"host.burrow", 0, 11434, POLICY_TCP, true},
        {"host.docker.internal", 0, 11434, POLICY_TCP, true},
        {"localhost", 0, 11434, POLICY_TCP, true},
        {"host.burrow", 0, 0, 0, true}, // to be looked up
        {"host.burrow", 0, 22, POLICY_TCP, false},
        {"host.burrow", 0, 5432, POLICY_TCP, false},
        {"host.burrow", 0, 11434, POLICY_UDP, false},
    };

    CHECK_ROWS(&policy, rows);
}

TEST(off_refuses_everything_and_open_only_what_is_closed)
{
    autopolicy off = policy_of(true, RULES("!+*", "+example.com"));
    autopolicy open = policy_of(false, RULES("!-evil.example"));
    static const struct row none[] = {
        {"example.com", 0, 0, 0, false},
        {NULL, A(8, 8, 8, 8), 443, POLICY_TCP, false},
    };
    static const struct row rows[] = {
        {"example.com", 0, 0, 0, true},
        {NULL, A(8, 8, 8, 8), 443, POLICY_TCP, true},
        {"evil.example", 0, 0, 0, false},
        {NULL, A(10, 0, 0, 1), 443, POLICY_TCP, false},
    };

    off.mode = POLICY_OFF;
    CHECK_ROWS(&off, none);
    open.mode = POLICY_OPEN;
    CHECK_ROWS(&open, rows);
}

TEST(what_is_observed_is_allowed_and_told_but_for_what_is_closed)
{
    autopolicy policy = policy_of(false, RULES("+example.com"));
    struct policy_verdict verdict;

    policy.is_observing = true;
    policy_decide(&policy, &(struct policy_question){.name = "other.example"}, &verdict);
    CHECK(verdict.is_allowed && verdict.would_deny);
    CHECK(strstr(verdict.remedy, "allow 'other.example' in the"));
    policy_decide(&policy, &(struct policy_question){.name = "example.com"}, &verdict);
    CHECK(verdict.is_allowed && !verdict.would_deny);
    policy_decide(&policy,
                  &(struct policy_question){
                      .address = A(169, 254, 169, 254), .port = 80, .protocol = POLICY_TCP},
                  &verdict);
    CHECK(!verdict.is_allowed && !verdict.would_deny);
}

TEST(a_verdict_says_which_rule_and_what_to_do)
{
    autopolicy policy =
        policy_of(false, RULES("!-evil.example", "-bad.example", "+*.wild.example:443"));
    struct policy_verdict verdict;

    policy_decide(&policy, &(struct policy_question){.name = "evil.example"}, &verdict);
    CHECK_STR(verdict.rule, "deny evil.example");
    CHECK_INT(verdict.tier, POLICY_ALWAYS);
    CHECK(strstr(verdict.remedy, "the operator's"));
    policy_decide(&policy, &(struct policy_question){.name = "bad.example"}, &verdict);
    CHECK_STR(verdict.remedy,
              "remove the rule 'deny bad.example' from the network policy of the sandbox");
    policy_decide(&policy, &(struct policy_question){"x.wild.example", 0, 443, POLICY_TCP},
                  &verdict);
    CHECK_STR(verdict.rule, "allow *.wild.example:443");
    CHECK(verdict.is_by_name);
    CHECK(strstr(verdict.reason, "every name below wild.example and not wild.example itself"));
    policy_decide(&policy, &(struct policy_question){"x.example", 0, 8080, POLICY_TCP}, &verdict);
    CHECK_INT(verdict.tier, POLICY_DEFAULT);
    CHECK_STR(verdict.rule, "");
    CHECK_STR(verdict.remedy, "allow 'x.example:8080' in the sandbox's network policy");
}

TEST(a_policy_is_the_same_after_writing_and_reading)
{
    autopolicy policy = policy_of(false, RULES("!+host:11434", "-bad.example",
                                               "+*.wild.example:443/tcp", "~-203.0.113.0/24"));
    autopolicy again = {0};
    autobuffer first = {0}, second = {0};
    struct error err = {0};

    policy.is_observing = true;
    CHECK_OK(policy_write(&policy, &first, &err), err);
    CHECK_STR(first.data, "policy 1\nmode rules\ndefault deny\nobserve yes\nsecrets no\n"
                          "always allow host:11434\nuser deny bad.example\n"
                          "user allow *.wild.example:443/tcp\nbaseline deny 203.0.113.0/24\n");
    CHECK_OK(policy_read(first.data, &again, &err), err);
    CHECK_OK(policy_write(&again, &second, &err), err);
    CHECK_STR(second.data, first.data);
}

TEST(what_is_no_policy_is_refused)
{
    static const char *const rows[] = {
        "",
        "policy 2\n",
        "policy 1\nmode maybe\n",
        "policy 1\nuser\n",
        "policy 1\nuser allow\n",
        "policy 1\nuser permit example.com\n",
        "policy 1\nuser allow a..b\n",
        "policy 1\nroot allow example.com\n",
        "policy 1\nobserve perhaps\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autopolicy policy = {0};
        struct error err = {0};
        CHECK(policy_read(rows[i], &policy, &err) < 0);
        CHECK_INT(err.reason, ERROR_INVALID);
    }
}

TEST(rules_that_no_kernel_can_hold_together_are_refused)
{
    const struct {
        const char *const *rules;
        bool is_good;
    } rows[] = {
        {RULES("-example.com:25", "+example.com"), false},
        {RULES("-*.example.com:25", "+a.example.com"), false},
        {RULES("-a.example.com:25", "+*.example.com"), false},
        {RULES("-*:25", "+example.com"), false},
        {RULES("-example.com:25", "+example.com:443"), true},
        {RULES("-other.example:25", "+example.com"), true},
        {RULES("+example.com", "-*:25"), true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autopolicy policy = policy_of(false, rows[i].rules);
        struct error err = {0};
        CHECK_INT(policy_check(&policy, &err) == 0, rows[i].is_good);
    }
}

// ---- the kernel's part ----

static enum policy_class class_of(bool is_default_allow, const char *const *rules)
{
    autopolicy policy = policy_of(is_default_allow, rules);
    struct policy_kernel kernel;

    policy_compile(&policy, &kernel);
    enum policy_class class = kernel.class;
    policy_kernel_clear(&kernel);
    return class;
}

TEST(the_class_is_the_cheapest_that_holds_it)
{
    CHECK_INT(class_of(true, RULES("~+host:80")), POLICY_CLASS_OPEN);
    CHECK_INT(class_of(true, RULES("+*")), POLICY_CLASS_OPEN);
    CHECK_INT(class_of(true, RULES("-*")), POLICY_CLASS_RULES);
    CHECK_INT(class_of(true, RULES("-203.0.113.0/24")), POLICY_CLASS_RULES);
    CHECK_INT(class_of(false, RULES("+203.0.113.0/24")), POLICY_CLASS_RULES);
    CHECK_INT(class_of(false, RULES("+example.com")), POLICY_CLASS_NAMES);
    CHECK_INT(class_of(true, RULES("-example.com")), POLICY_CLASS_NAMES);
    CHECK_INT(class_of(false, RULES("-*", "+example.com")), POLICY_CLASS_RULES); // never reached
}

TEST(the_kernel_gets_addresses_and_ports_in_order)
{
    autopolicy policy = policy_of(true, RULES("!+10.5.0.0/16", "-203.0.113.0/24:25", "+example.com",
                                              "+198.51.100.7", "-*", "+1.1.1.1"));
    struct policy_kernel kernel;

    policy_compile(&policy, &kernel);
    CHECK_INT(kernel.class, POLICY_CLASS_NAMES);
    CHECK_INT(kernel.count, 3);
    CHECK(!kernel.is_default_allow);
    CHECK(kernel.rules[0].is_operators && kernel.rules[0].is_allow);
    CHECK_INT(kernel.rules[0].bits, 16);
    CHECK(!kernel.rules[1].is_allow && kernel.rules[1].first_port == 25 &&
          !kernel.rules[1].is_after_pins);
    CHECK(kernel.rules[2].is_after_pins && kernel.rules[2].address == A(198, 51, 100, 7));
    policy_kernel_clear(&kernel);
}

TEST(pins_are_for_the_ports_that_a_name_may_be_used_for)
{
    autopolicy policy =
        policy_of(false, RULES("-8.8.8.0/24", "+example.com:443/tcp", "+example.com:80-81",
                               "+any.example", "+*.wild.example:22/tcp"));
    struct policy_pin pins[POLICY_MAX_PINS];

    CHECK_INT(policy_pins(&policy, "example.com", A(93, 184, 216, 34), pins), 3);
    CHECK(pins[0].port == 443 && pins[0].protocols == POLICY_TCP);
    CHECK(pins[1].port == 80 && pins[1].protocols == (POLICY_TCP | POLICY_UDP));
    CHECK(pins[2].port == 81);
    CHECK_INT(policy_pins(&policy, "example.com", A(8, 8, 8, 8), pins), 0);  // an earlier rule
    CHECK_INT(policy_pins(&policy, "example.com", A(10, 0, 0, 1), pins), 0); // closed
    CHECK_INT(policy_pins(&policy, "any.example", A(9, 9, 9, 9), pins), 1);
    CHECK(pins[0].port == 0 && pins[0].protocols == POLICY_ALL_PROTOCOLS);
    CHECK_INT(policy_pins(&policy, "x.wild.example", A(9, 9, 9, 9), pins), 1);
    CHECK_INT(policy_pins(&policy, "wild.example", A(9, 9, 9, 9), pins), 0);
}

TEST(a_pin_that_would_open_a_refused_port_is_not_made)
{
    autopolicy policy = policy_of(false, RULES("-93.184.216.0/24:25", "+example.com"));
    struct policy_pin pins[POLICY_MAX_PINS];

    CHECK_INT(policy_pins(&policy, "example.com", A(93, 184, 216, 34), pins), 0);
    CHECK_INT(policy_pins(&policy, "example.com", A(9, 9, 9, 9), pins), 1);
}

TEST(more_rules_than_there_may_be_are_refused)
{
    autopolicy policy = {.mode = POLICY_RULES};
    struct error err = {0};

    for (int i = 0; i < POLICY_MAX_RULES; i++)
        CHECK_OK(policy_add(&policy, POLICY_USER, true, "example.com", &err), err);
    CHECK(policy_add(&policy, POLICY_USER, true, "example.com", &err) < 0);
    CHECK_INT(err.reason, ERROR_LIMIT);
}
