/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/address.c: which addresses a stranger's URL may lead to. */
#include "base/address.h"
#include "base/auto.h"
#include "test.h"

#include <arpa/inet.h>
#include <string.h>

union any_address {
    struct sockaddr plain;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static union any_address address_of(const char *text)
{
    union any_address address = {0};

    if (inet_pton(AF_INET, text, &address.four.sin_addr) == 1) {
        address.four.sin_family = AF_INET;
        return address;
    }
    CHECK(inet_pton(AF_INET6, text, &address.six.sin6_addr) == 1);
    address.six.sin6_family = AF_INET6;
    return address;
}

static bool is_public(const char *text)
{
    union any_address address = address_of(text);

    return address_is_public(&address.plain);
}

TEST(addresses_of_the_public_internet_are_public)
{
    static const char *const rows[] = {
        "1.1.1.1",         "8.8.8.8",          "9.255.255.255",
        "11.0.0.0",        "100.63.255.255",   "100.128.0.0",
        "126.255.255.255", "128.0.0.0",        "169.253.255.255",
        "172.15.255.255",  "172.32.0.0",       "192.167.255.255",
        "198.17.255.255",  "198.20.0.0",       "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1",     "2001:4860:4860::8888",
        "::ffff:1.1.1.1",  "64:ff9b::1.1.1.1", "2002:101:101::1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK(is_public(rows[i]));
}

TEST(no_other_address_is_public_however_it_is_written)
{
    static const char *const rows[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.2.3",
        "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1.1.1.1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:101::",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "5f00::1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (is_public(rows[i]))
            printf("# %s\n", rows[i]);
        CHECK(!is_public(rows[i]));
    }
    CHECK(!address_is_public(&(struct sockaddr){.sa_family = AF_UNIX}));
}

static bool have(const char *list, const char *text)
{
    struct networks networks = {0};
    union any_address address = address_of(text);
    struct error err = {0};

    CHECK_OK(networks_read(list, &networks, &err), err);
    bool result = networks_have(&networks, &address.plain);
    networks_clear(&networks);
    return result;
}

TEST(networks_are_named_by_an_operator)
{
    CHECK(have("127.0.0.1", "127.0.0.1"));
    CHECK(!have("127.0.0.1", "127.0.0.2"));
    CHECK(have("10.0.0.0/8, 192.168.0.0/16", "192.168.7.7"));
    CHECK(have("10.0.0.0/8", "::ffff:10.1.1.1"));
    CHECK(have("10.0.0.0/8", "64:ff9b::10.1.1.1"));
    CHECK(have("fd00::/8", "fd12::1"));
    CHECK(!have("fd00::/8", "fc12::1"));
    CHECK(!have("10.0.0.0/8", "::1"));
    CHECK(have("172.16.0.0/12", "172.31.0.1"));
    CHECK(!have("172.16.0.0/12", "172.32.0.1"));
    CHECK(have("0.0.0.0/0", "127.0.0.1"));
    CHECK(!have("0.0.0.0/0", "::1"));
    CHECK(!have("", "1.1.1.1"));
    CHECK(!have(NULL, "1.1.1.1"));
}

TEST(what_is_no_network_is_named)
{
    static const char *const rows[] = {"10.0.0.0/33", "localhost",   "10.0.0.0/",  "::/129",
                                       "1.2.3",       "10.0.0.0/-1", "10.0.0.0/8x"};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct networks networks = {0};
        struct error err = {0};
        CHECK(networks_read(rows[i], &networks, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(strstr(err.text, rows[i]) != NULL);
        CHECK(networks.items == NULL);
    }
}

TEST(addresses_have_ports_where_they_say_so)
{
    static const struct {
        const char *text;
        size_t count; // 0: it is refused
        const char *last;
        unsigned port;
    } rows[] = {
        {"192.0.2.53", 1, "::ffff:192.0.2.53", 53},
        {"192.0.2.53:5353", 1, "::ffff:192.0.2.53", 5353},
        {"2001:db8::53", 1, "2001:db8::53", 53},
        {"[2001:db8::53]", 1, "2001:db8::53", 53},
        {"[2001:db8::53]:1", 1, "2001:db8::53", 1},
        {"192.0.2.1,192.0.2.2 , [::1]:9", 3, "::1", 9},
        {"", 0, NULL, 0},
        {"nonsense", 0, NULL, 0},
        {"192.0.2", 0, NULL, 0},
        {"192.0.2.1:", 0, NULL, 0},
        {"192.0.2.1:0", 0, NULL, 0},
        {"192.0.2.1:65536", 0, NULL, 0},
        {"192.0.2.1: 53", 0, NULL, 0},
        {"192.0.2.1:-1", 0, NULL, 0},
        {"[::1]x", 0, NULL, 0},
        {"[::1", 0, NULL, 0},
        {"[]", 0, NULL, 0},
        {"192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4", 0, NULL, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct sockaddr_in6 found[3];
        struct error err = {0};
        char text[INET6_ADDRSTRLEN];
        size_t count = 0;
        int result = addresses_read(rows[i].text, 53, found, ARRAY_SIZE(found), &count, &err);

        if (!rows[i].count) {
            CHECK(result < 0 || count == 0);
            continue;
        }
        CHECK_OK(result, err);
        CHECK_INT(count, rows[i].count);
        CHECK_STR(inet_ntop(AF_INET6, &found[count - 1].sin6_addr, text, sizeof text),
                  rows[i].last);
        CHECK_INT(ntohs(found[count - 1].sin6_port), rows[i].port);
    }
}
