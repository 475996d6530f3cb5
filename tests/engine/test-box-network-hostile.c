/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes with network that try to be others, to hear others, and to reach what is closed to all of them. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/gateway.h"
#include "engine/netlink.h"
#include "network_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <sys/socket.h>

#define REFUSED "connect: Connection refused\n"

static struct gateway *gateway(void)
{
    struct gateway *found = NULL;
    struct error err = {0};
    CHECK_OK(engine_gateway(engine, &found, &err), err);
    return found;
}

static struct box *launch_open(void)
{
    const struct policy_kernel open = {.class = POLICY_CLASS_OPEN, .is_default_allow = true};
    struct box_spec spec = plain_spec();
    struct error err = {0};

    spec.has_network = true;
    struct box *box = launch(&spec);
    CHECK_OK(gateway_admit(gateway(), box_slot(box), &open, 1, &err), err);
    return box;
}

static const char *says(struct box *box, const char *format, ...)
{
    char command[200];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    (void)run(box, command);
    return last_output();
}

static const char *address_of(struct box *box)
{
    static char text[2][INET_ADDRSTRLEN];
    static unsigned turn;
    struct in_addr address = {htonl(gateway_box_address(gateway(), box_slot(box)))};
    turn ^= 1;
    return inet_ntop(AF_INET, &address, text[turn], INET_ADDRSTRLEN);
}

/* A socket in the box's network with rights that no guest has. */
static int socket_inside(struct box *box, int family, int type, int protocol)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)box_pid(box));
    autofd network = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(network >= 0);
    int sock = netlink_socket_in(network, family, type, protocol);
    CHECK(sock >= 0);
    return sock;
}

BOX_TEST(a_guest_gets_no_socket_to_forge_or_hear_with)
{
    world_open();
    struct box *box = launch_open();
    CHECK_STR(says(box, "forge 93.184.0.77 " WORLD_SERVER " 8000"), "done\n");
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 after"), "after\n");
    CHECK_INT(world_heard("forged"), 0);
    end(box);
}

/* Even with a raw socket, which a guest cannot have. */
static void send_forged(int raw, const char *from, const char *word)
{
    struct {
        struct iphdr ip;
        struct udphdr udp;
        char text[8];
    } __attribute__((packed)) packet = {
        .ip = {.version = 4,
               .ihl = 5,
               .ttl = 64,
               .protocol = IPPROTO_UDP,
               .saddr = inet_addr(from),
               .daddr = inet_addr(WORLD_SERVER)},
        .udp = {.source = htons(4444), .dest = htons(WORLD_PORT)},
    };
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(WORLD_SERVER)};
    size_t length = strlen(word);

    memcpy(packet.text, word, length);
    packet.udp.len = htons((uint16_t)(sizeof packet.udp + length));
    packet.ip.tot_len = htons((uint16_t)(sizeof packet.ip + sizeof packet.udp + length));
    (void)sendto(raw, &packet, sizeof packet.ip + sizeof packet.udp + length, 0,
                 (struct sockaddr *)&to, sizeof to);
}

BOX_TEST(a_forged_source_is_not_heard)
{
    world_open();
    struct box *box = launch_open();
    struct box *other = launch_open();
    autofd raw = socket_inside(box, AF_INET, SOCK_RAW, IPPROTO_RAW);
    send_forged(raw, address_of(other), "sibling");
    send_forged(raw, "10.213.0.3", "uplink");
    send_forged(raw, WORLD_HOST, "host");
    send_forged(raw, "93.184.0.77", "other");
    send_forged(raw, "127.0.0.1", "loop");
    send_forged(raw, address_of(box), "own"); // the way of sending itself works
    AWAIT(world_heard("own") == 1);
    CHECK_INT(world_heard("sibling") + world_heard("uplink") + world_heard("host"), 0);
    CHECK_INT(world_heard("other") + world_heard("loop"), 0);
    end(box);
    end(other);
}

BOX_TEST(a_neighbour_is_neither_reached_nor_heard)
{
    char frame[2048];
    struct sockaddr_ll any = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

    world_open();
    struct box *box = launch_open();
    struct box *other = launch_open();
    (void)start_ready(other, NULL, "serve 7000");
    CHECK_STR(says(other, "connect 127.0.0.1 7000"), "neighbour\n");
    CHECK_STR(says(box, "connect %s 7000", address_of(other)), REFUSED);
    CHECK_STR(says(box, "datagram %s 7000 hi", address_of(other)), "recv: Host is unreachable\n");
    CHECK_STR(says(box, "ping %s", address_of(other)), "recv: Host is unreachable\n");
    autofd ear = socket_inside(box, AF_PACKET, SOCK_DGRAM, 0);
    CHECK(bind(ear, (struct sockaddr *)&any, sizeof any) == 0);
    CHECK_STR(says(other, "datagram " WORLD_SERVER " 8000 secret"), "secret\n");
    CHECK_STR(says(box, "datagram " WORLD_SERVER " 8000 mine"), "mine\n");
    bool has_own = false;
    for (ssize_t got; (got = recv(ear, frame, sizeof frame, MSG_DONTWAIT)) > 0;) {
        CHECK(!memmem(frame, (size_t)got, "secret", 6));
        has_own |= memmem(frame, (size_t)got, "mine", 4) != NULL;
    }
    CHECK(has_own);
    end(box);
    end(other);
}

BOX_TEST(what_is_not_the_internet_is_closed)
{
    static const char *const addresses[] = {
        WORLD_METADATA, WORLD_LAN,     "192.168.1.1", "172.16.0.1",      "100.64.0.1",
        "127.0.0.2",    "198.18.0.1",  "10.213.0.2",  "10.213.0.3",      "10.213.0.1",
        "0.0.0.0",      "224.0.0.1",   "240.0.0.1",   "168.63.129.16",   "192.0.0.192",
        "169.254.0.1",  "203.0.113.1", "192.0.2.1",   "100.100.100.200",
    };

    world_open();
    struct box *box = launch_open();
    for (unsigned i = 0; i < ARRAY_SIZE(addresses); i++) {
        const char *said = says(box, "connect %s 8000", addresses[i]);
        if (strncmp(said, "connect: ", 9) != 0)
            test_fail(__FILE__, __LINE__, "%s says %s", addresses[i], said);
    }
    end(box);
}

BOX_TEST(the_host_and_its_services_are_closed)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(8001)};
    autofd server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    world_open();
    closep(&server);
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // now in the world
    CHECK(bind(server, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(server, 16) == 0);
    struct box *box = launch_open();
    CHECK_STR(says(box, "connect " WORLD_HOST " 8001"), REFUSED);
    CHECK_STR(says(box, "connect 10.213.0.2 8001"), REFUSED);
    CHECK_STR(says(box, "connect 10.213.0.1 8001"), REFUSED);
    CHECK_STR(says(box, "ping " WORLD_HOST), "recv: Host is unreachable\n");
    // the host becomes no router for its neighbours either
    CHECK_INT(system("test \"$(nft list table ip burrow_guard | grep -c drop)\" = 1"), 0);
    end(box);
}

BOX_TEST(there_is_no_version_6)
{
    world_open();
    struct box *box = launch_open();
    (void)run(box, "cat /proc/net/if_inet6");
    CHECK(!strstr(last_output(), "eth0"));
    end(box);
}

NOTHING_IS_LEFT_TEST
