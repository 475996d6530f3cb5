/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes with network: what they reach by their class and rules, how that changes while they live, and what is left of them. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/gateway.h"
#include "engine/spare_boxes.h"
#include "network_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define REFUSED "connect: Connection refused\n"

static struct gateway *gateway(void)
{
    struct gateway *found = NULL;
    struct error err = {0};
    CHECK_OK(engine_gateway(engine, &found, &err), err);
    return found;
}

static struct box *launch_wired(void)
{
    struct box_spec spec = plain_spec();
    spec.has_network = true;
    return launch(&spec);
}

static uint32_t number_of(const char *text)
{
    struct in_addr address;
    CHECK(inet_pton(AF_INET, text, &address) == 1);
    return ntohl(address.s_addr);
}

/* "+RULE" allows, "-RULE" refuses, "=RULE" is an operator's that allows. */
static void admit(struct box *box, const char *const *rules, bool is_default_allow)
{
    static uint32_t generation = 100;
    autopolicy policy = {.mode = POLICY_RULES, .is_default_allow = is_default_allow};
    struct policy_kernel kernel = {0};
    struct error err = {0};

    for (; *rules; rules++)
        CHECK_OK(policy_add(&policy, **rules == '=' ? POLICY_ALWAYS : POLICY_USER, **rules != '-',
                            *rules + 1, &err),
                 err);
    policy_compile(&policy, &kernel);
    CHECK_OK(gateway_admit(gateway(), box_slot(box), &kernel, ++generation, &err), err);
    policy_kernel_clear(&kernel);
}

static void admit_open(struct box *box)
{
    const struct policy_kernel open = {.class = POLICY_CLASS_OPEN, .is_default_allow = true};
    struct error err = {0};
    CHECK_OK(gateway_admit(gateway(), box_slot(box), &open, 1, &err), err);
}

static const char *says(struct box *box, const char *command)
{
    (void)run(box, command);
    return last_output();
}

#define TO(address) "connect " address " 8000"

BOX_TEST(a_box_without_network_has_loopback_alone)
{
    world_open();
    struct box *box = launch_plain();
    CHECK_STR(says(box, TO(WORLD_SERVER)), "connect: Network unreachable\n");
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 quiet"), "connect: Network unreachable\n");
    CHECK_INT(world_heard("quiet"), 0);
    end(box);
    // and nothing was made for it
    struct error err = {0};
    struct gateway *none = NULL;
    CHECK(gateway_find(data_dir, &none, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND));
}

BOX_TEST(a_box_with_network_is_refused_everything_until_it_is_admitted)
{
    world_open();
    struct box *box = launch_wired();
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    CHECK_STR(says(box, "ping " WORLD_SERVER), "recv: Host is unreachable\n");
    admit_open(box);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 word"), "word\n");
    CHECK_STR(says(box, "ping " WORLD_SERVER), "pong\n");
    end(box);
}

BOX_TEST(names_are_asked_of_the_gateway)
{
    struct error err = {0};
    world_open();
    struct box *box = launch_wired();
    CHECK_STR(says(box, "cat /etc/resolv.conf"), "nameserver 10.213.0.1\n");
    admit_open(box);
    autofd listener = -1;
    int second = -1;
    CHECK_OK(gateway_listen(gateway(), GATEWAY_DNS_UDP, &listener, &err), err);
    CHECK(gateway_listen(gateway(), GATEWAY_DNS_UDP, &second, &err) < 0);
    CHECK(error_is(&err, ERROR_CONFLICT));
    uint32_t id = start(box, NULL, "datagram 10.213.0.1 53 question");
    char text[32] = "";
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    CHECK_INT(poll(&ready, 1, PATIENCE_MS), 1);
    CHECK_INT(recvfrom(listener, text, sizeof text, 0, (struct sockaddr *)&from, &length), 8);
    CHECK_INT(gateway_slot_of(gateway(), ntohl(from.sin_addr.s_addr)), box_slot(box));
    CHECK_INT(sendto(listener, "answer", 6, 0, (struct sockaddr *)&from, length), 6);
    CHECK_INT(finish(box, id).code, 0);
    CHECK_STR(output_of(id), "answer\n");
    end(box);
}

BOX_TEST(rules_for_addresses_and_ports_hold)
{
    static const char *const some[] = {"+" WORLD_SERVER ":8000/tcp", NULL};
    static const char *const others[] = {"-93.184.1.0/24", NULL};
    static const char *const ports[] = {"+93.184.0.0/16:7990-8010/udp", NULL};

    world_open();
    struct box *box = launch_wired();
    admit(box, some, false);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(says(box, TO(WORLD_OTHER)), REFUSED);
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 nothing"), "recv: Host is unreachable\n");
    admit(box, others, true);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(says(box, TO(WORLD_OTHER)), REFUSED);
    admit(box, ports, false);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    CHECK_STR(says(box, "datagram " WORLD_OTHER " 8000 ports"), "ports\n");
    end(box);
}

BOX_TEST(what_is_closed_opens_by_an_operators_rule_alone)
{
    static const char *const users[] = {"+10.0.0.0/8", "+169.254.169.254", NULL};
    static const char *const operators[] = {"=" WORLD_LAN ":8000", NULL};

    world_open();
    struct box *box = launch_wired();
    admit(box, users, false);
    CHECK_STR(says(box, TO(WORLD_LAN)), REFUSED);
    CHECK_STR(says(box, TO(WORLD_METADATA)), REFUSED);
    admit(box, operators, false);
    CHECK_STR(says(box, TO(WORLD_LAN)), "hello\n");
    CHECK_STR(says(box, TO(WORLD_METADATA)), REFUSED);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    end(box);
}

BOX_TEST(a_box_with_names_reaches_what_is_pinned)
{
    static const char *const names[] = {"+example.com", NULL};
    struct error err = {0};

    world_open();
    struct box *box = launch_wired();
    struct box *other = launch_wired();
    unsigned slot = box_slot(box);
    admit(box, names, false);
    admit(other, names, false);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    CHECK_OK(gateway_pin(gateway(), slot, number_of(WORLD_SERVER), POLICY_TCP, 8000, 60, &err),
             err);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 none"), "recv: Host is unreachable\n");
    CHECK_STR(says(other, TO(WORLD_SERVER)), REFUSED); // the pin is one box's
    CHECK_STR(says(box, TO(WORLD_OTHER)), REFUSED);
    CHECK_OK(
        gateway_pin(gateway(), slot, number_of(WORLD_OTHER), POLICY_TCP | POLICY_UDP, 0, 60, &err),
        err);
    CHECK_STR(says(box, TO(WORLD_OTHER)), "hello\n");
    CHECK_STR(says(box, "datagram " WORLD_OTHER " 8000 whole"), "whole\n");
    CHECK_OK(gateway_unpin_all(gateway(), slot, &err), err);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    CHECK_STR(says(box, TO(WORLD_OTHER)), REFUSED);
    // a box that comes into its slot has none of it
    CHECK_OK(gateway_pin(gateway(), slot, number_of(WORLD_SERVER), POLICY_TCP, 8000, 60, &err),
             err);
    end(box);
    box = launch_wired();
    CHECK_INT(box_slot(box), slot);
    admit(box, names, false);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    end(box);
    end(other);
}

BOX_TEST(first_bytes_of_a_box_with_names_go_to_who_reads_them)
{
    static const char *const names[] = {"+example.com", NULL};
    struct error err = {0};
    autofd flows = -1;
    autofd host = -1;

    world_open();
    struct box *box = launch_wired();
    CHECK_OK(gateway_listen(gateway(), GATEWAY_FLOWS, &flows, &err), err);
    CHECK_OK(gateway_listen(gateway(), GATEWAY_HOST, &host, &err), err);
    admit(box, names, false);
    const struct {
        const char *command;
        int fd;
        uint16_t port;
    } ways[] = {{"connect " WORLD_SERVER " 443", flows, 443},
                {"connect " WORLD_SERVER " 80", flows, 80},
                {"connect 10.213.0.1 11434", host, 11434}};
    for (unsigned i = 0; i < ARRAY_SIZE(ways); i++) {
        uint32_t id = start(box, NULL, ways[i].command);
        struct pollfd ready = {.fd = ways[i].fd, .events = POLLIN};
        CHECK_INT(poll(&ready, 1, PATIENCE_MS), 1);
        autofd peer = accept(ways[i].fd, NULL, NULL);
        struct sockaddr_in meant;
        socklen_t length = sizeof meant;
        CHECK(getsockopt(peer, IPPROTO_IP, 80 /* SO_ORIGINAL_DST */, &meant, &length) == 0);
        CHECK_INT(ntohs(meant.sin_port), ways[i].port);
        CHECK_INT(send(peer, "read\n", 5, 0), 5);
        (void)finish(box, id);
        CHECK_STR(output_of(id), "read\n");
    }
    // nobody gets there by its own number
    CHECK_STR(says(box, "connect " WORLD_SERVER " 1080"), REFUSED);
    // where nobody reads, nothing passes
    closep(&flows);
    CHECK_STR(says(box, "connect " WORLD_SERVER " 443"), REFUSED);
    end(box);
}

BOX_TEST(a_change_cuts_what_is_no_longer_allowed_and_nothing_else)
{
    static const char *const both[] = {"+" WORLD_SERVER, "+" WORLD_OTHER, NULL};
    static const char *const one[] = {"+" WORLD_SERVER, NULL};

    world_open();
    struct box *box = launch_wired();
    admit(box, both, false);
    uint32_t stays = start_ready(box, NULL, "hold " WORLD_SERVER " 8000");
    uint32_t goes = start_ready(box, NULL, "hold " WORLD_OTHER " 8000");
    uint32_t reads = start_ready(box, NULL, "read " WORLD_OTHER " 8000");
    uint32_t reads_on = start_ready(box, NULL, "read " WORLD_SERVER " 8000");
    admit(box, one, false);
    await_output(goes, "cut\n");
    CHECK_INT(finish(box, goes).code, 0);
    await_output(reads, "cut\n"); // in the middle of a download
    CHECK_INT(finish(box, reads).code, 0);
    admit(box, one, false);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(output_of(stays), "ready\n");
    CHECK_STR(output_of(reads_on), "ready\n");
    end(box);
}

BOX_TEST(bytes_and_refusals_are_counted_and_refusals_told)
{
    static const char *const rules[] = {"+" WORLD_SERVER, NULL};
    struct gateway_counters before;
    struct gateway_counters after;
    struct gateway_refusal refusals[64];
    struct error err = {0};
    autofd log = -1;

    world_open();
    struct box *box = launch_wired();
    struct box *other = launch_wired();
    CHECK_OK(gateway_refusals(gateway(), &log, &err), err);
    admit(box, rules, false);
    admit(other, rules, false);
    CHECK_OK(gateway_counters(gateway(), box_slot(box), &before, &err), err);
    CHECK_INT(before.sent_bytes, 0);
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 counted"), "counted\n");
    CHECK_OK(gateway_counters(gateway(), box_slot(box), &after, &err), err);
    CHECK_INT(after.sent_bytes, 28 + 7);
    CHECK_INT(after.sent_packets, 1);
    CHECK_INT(after.refused_packets, 0);
    CHECK_STR(says(box, TO(WORLD_OTHER)), REFUSED);
    CHECK_OK(gateway_counters(gateway(), box_slot(box), &after, &err), err);
    CHECK_INT(after.refused_packets, 1);
    CHECK_INT(gateway_read_refusals(gateway(), log, refusals, 64, &err), 1);
    CHECK_INT(refusals[0].slot, box_slot(box));
    CHECK_INT(refusals[0].address, number_of(WORLD_OTHER));
    CHECK_INT(refusals[0].port, 8000);
    CHECK_INT(refusals[0].protocol, IPPROTO_TCP);
    CHECK(!refusals[0].would_refuse);
    CHECK_INT(gateway_read_refusals(gateway(), log, refusals, 64, &err), 0);
    CHECK_OK(gateway_counters(gateway(), box_slot(other), &after, &err), err);
    CHECK_INT(after.sent_packets + after.refused_packets, 0);
    // what is observed passes and is told
    const struct policy_kernel observed = {.class = POLICY_CLASS_RULES, .is_observing = true};
    CHECK_OK(gateway_admit(gateway(), box_slot(other), &observed, 7, &err), err);
    CHECK_STR(says(other, TO(WORLD_OTHER)), "hello\n");
    CHECK_INT(gateway_read_refusals(gateway(), log, refusals, 64, &err), 1);
    CHECK(refusals[0].would_refuse);
    CHECK_STR(says(other, TO(WORLD_LAN)), REFUSED);
    end(box);
    end(other);
}

BOX_TEST(a_rate_holds_and_can_be_lifted)
{
    struct error err = {0};

    world_open();
    struct box *box = launch_wired();
    admit_open(box);
    CHECK_OK(box_set_network_rate(box, 0, &err), err);
    CHECK_OK(box_set_network_rate(box, 1000, &err), err);
    run_well(box, "flood " WORLD_SERVER " 8000 1000"); // for 20 minutes, at that rate
    CHECK_OK(box_set_network_rate(box, 0, &err), err);
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 then"), "then\n");
    unsigned before = world_heard("flood");
    CHECK(before > 0 && before < 500);
    CHECK_OK(box_set_network_rate(box, 10000000000, &err), err);
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 fast"), "fast\n");
    end(box);
}

BOX_TEST(networks_and_boxes_with_wires_are_made_ahead)
{
    struct limits no_limits = {0};
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = 2};
    struct error err = {0};
    unsigned made = 0;

    world_open();
    spec.has_network = true;
    CHECK_OK(engine_fill_wires(engine, 3, &err), err);
    CHECK_OK(engine_fill_wires(engine, 3, &err), err);
    autoptr(spare_boxes) spares = NULL;
    CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
    CHECK_OK(spare_boxes_fill(spares, 2, true, &made, &err), err);
    CHECK_INT(made, 2);
    struct box *box = own(spare_boxes_take(spares, &no_limits));
    CHECK(box);
    CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
    admit_open(box);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    end(box);
}

/* As by kill -9: neither it nor its box had a last word. */
static void die_with_a_box(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct error err = {0};
        struct engine *mine = NULL;
        struct gateway *way = NULL;
        struct box *box = NULL;
        struct box_spec spec = plain_spec();
        struct engine_options options = {.data_dir = data_dir};
        const struct policy_kernel open = {.class = POLICY_CLASS_OPEN, .is_default_allow = true};
        spec.has_network = true;
        if (engine_open(&options, &mine, &err) < 0 || box_launch(mine, &spec, &box, &err) < 0 ||
            engine_gateway(mine, &way, &err) < 0 ||
            gateway_admit(way, box_slot(box), &open, 1, &err) < 0)
            _exit(200);
        (void)kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

static bool is_nobodys(unsigned slot, void *data)
{
    (void)slot;
    ++*(unsigned *)data;
    return true;
}

static unsigned count_left(void)
{
    struct error err = {0};
    unsigned count = 0;
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK_OK(gateway_sweep(gateway(), is_nobodys, &count, &err), err);
    return count;
}

BOX_TEST(what_dead_owners_left_is_swept_and_is_nobody_elses)
{
    struct error err = {0};
    unsigned count = 0;

    world_open();
    die_with_a_box();
    CHECK_OK(gateway_sweep(gateway(), is_nobodys, &count, &err), err);
    CHECK_INT(count, 1);
    // Whoever comes into the slot has nothing of what was allowed there. The dead one's PID 1 may hold it for a moment.
    for (unsigned i = 0; i < 3; i++) {
        struct box *box = launch_wired();
        CHECK_STR(says(box, TO(WORLD_SERVER)), REFUSED);
        end(box);
    }
    AWAIT(count_left() == 0);
}

BOX_TEST(the_way_out_outlives_engines_and_is_given_back)
{
    struct error err = {0};
    struct gateway *found = NULL;

    world_open();
    struct box *box = launch_wired();
    admit_open(box);
    CHECK(strstr(world_leftovers(), "burrow0"));
    end(box);
    struct engine *other = open_engine(NULL);
    CHECK_OK(engine_gateway(other, &found, &err), err);
    close_engine(other);
    CHECK_OK(gateway_find(data_dir, &found, &err), err);
    gateway_free(found);
    CHECK_OK(gateway_remove(data_dir, &err), err);
    CHECK_OK(gateway_remove(data_dir, &err), err);
    CHECK_STR(world_leftovers(), "");
}

BOX_TEST(a_way_that_somebody_took_down_is_made_again)
{
    struct error err = {0};
    struct gateway *again = NULL;

    world_open();
    (void)gateway();
    CHECK_INT(system("ip link del burrow0"), 0);
    CHECK_OK(gateway_open(data_dir, NULL, &again, &err), err);
    CHECK(strstr(world_leftovers(), "burrow0"));
    gateway_free(again);
}

BOX_TEST(one_that_was_not_made_whole_is_made_again)
{
    struct error err = {0};
    struct gateway *again = NULL;
    char command[400];

    world_open();
    (void)gateway();
    // as if its maker had died before the last step: everything is there but the word that it is
    (void)snprintf(command, sizeof command,
                   "rm /run/burrow/burrow-$(stat -c %%d '%s' | xargs printf '%%x')-$(stat -c %%i "
                   "'%s' | xargs printf '%%x')/gateway.settings",
                   data_dir, data_dir);
    CHECK_INT(system(command), 0);
    CHECK(gateway_find(data_dir, &again, &err) < 0);
    CHECK_OK(gateway_open(data_dir, NULL, &again, &err), err);
    gateway_free(again);
    CHECK_STR(world_leftovers(), "burrow0\ntable ip burrow0\ntable ip burrow_guard\n1\n");
    CHECK_OK(gateway_remove(data_dir, &err), err);
    CHECK_STR(world_leftovers(), "");
}

BOX_TEST(rules_of_others_that_drop_are_opened_and_given_back)
{
    struct error err = {0};

    world_open();
    CHECK_INT(system("nft add table ip filter; nft 'add chain ip filter FORWARD { type filter hook "
                     "forward priority 0; policy drop; }'; nft add rule ip filter FORWARD counter"),
              0);
    struct box *box = launch_wired();
    admit_open(box);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    // everything flushed, and such a chain there again: the next who opens it mends it, and the box lives on
    CHECK_INT(system("nft flush ruleset; nft add table ip filter; nft 'add chain ip filter FORWARD "
                     "{ type filter hook forward priority 0; policy drop; }'"),
              0);
    struct gateway *again = NULL;
    CHECK_OK(gateway_open(data_dir, NULL, &again, &err), err);
    gateway_free(again);
    CHECK_STR(says(box, TO(WORLD_SERVER)), "hello\n");
    CHECK_STR(says(box, "connect " WORLD_HOST " 8001"), REFUSED);
    end(box);
    CHECK_OK(gateway_remove(data_dir, &err), err);
    CHECK_INT(system("nft list chain ip filter FORWARD | grep -q burrow"), 256);
    CHECK_STR(world_leftovers(), "");
    CHECK_INT(system("nft delete table ip filter"), 0);
}

BOX_TEST(settings_that_cannot_be_are_refused_by_a_sentence)
{
    struct error err = {0};
    struct gateway *none = NULL;
    const struct {
        struct gateway_options options;
        const char *text;
    } bad[] = {
        {{.addresses = "10.0.0.0"}, "is no network of IPv4"},
        {{.addresses = "ten/8"}, "is no network of IPv4"},
        {{.addresses = "10.0.0.0/24"}, "must be a /8 to /17"},
        {{.uplink = "a name that is too long"}, "is no name of an interface"},
        {{.uplink = "none0"}, "this machine has no interface 'none0'"},
    };

    world_open();
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(gateway_open(data_dir, &bad[i].options, &none, &err) < 0);
        CHECK(strstr(err.text, bad[i].text));
    }
    const struct gateway_options other = {.addresses = "10.77.0.0/16"};
    struct box *box = launch_wired();
    CHECK(gateway_open(data_dir, &other, &none, &err) < 0);
    CHECK(error_is(&err, ERROR_CONFLICT));
    end(box);
    CHECK_STR(world_leftovers(), "burrow0\ntable ip burrow0\ntable ip burrow_guard\n1\n");
}

NOTHING_IS_LEFT_TEST

TEST(nothing_of_a_network_is_left)
{
    CHECK_STR(world_leftovers(), "");
}
