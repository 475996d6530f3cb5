/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the network: families of sockets, ways out, settings of interfaces. */
#include "attack/attacker.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void check_family(int family, int type)
{
    bool is_open =
        family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    int fd = socket(family, type, 0);
    int code = errno;
    if (fd >= 0)
        (void)close(fd);
    if (is_open && fd < 0 && !(family == AF_INET6 && code == EAFNOSUPPORT) &&
        code != ESOCKTNOSUPPORT)
        complain("family %d type %d: %s", family, type, strerror(code));
    if (!is_open && (fd >= 0 || code != EAFNOSUPPORT))
        complain("family %d type %d: %s", family, type, fd >= 0 ? "opens" : strerror(code));
}

static void socket_families(int argc, char **argv)
{
    int pair[2];
    for (int family = 0; family <= 50; family++) {
        check_family(family, SOCK_DGRAM);
        check_family(family, SOCK_STREAM | SOCK_CLOEXEC);
        if (family != AF_UNIX)
            REFUSED(socketpair(family, SOCK_STREAM, 0, pair), EAFNOSUPPORT);
    }
    for (int protocol = 1; protocol < 64; protocol++)
        REFUSED(socket(AF_NETLINK, SOCK_RAW, protocol), EAFNOSUPPORT);
    REFUSED(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), EPROTONOSUPPORT);
    REFUSED(socket(AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT);
}

static void raw_sockets(int argc, char **argv)
{
    REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM);
    REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), EPERM);
    REFUSED(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), EPERM);
    REFUSED(socket(AF_INET, SOCK_PACKET, 0x300), EPERM);
    REFUSED(socket(AF_PACKET, SOCK_RAW, 0x300), EAFNOSUPPORT);
    REFUSED(syscall(SYS_socket, (long)AF_PACKET | 1L << 32, SOCK_RAW, 0), EAFNOSUPPORT);
}

/* The error with which the kernel answers a request to change interface `index`. */
static int ask_netlink(int sock, uint16_t type, int index)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } ask = {.header = {.nlmsg_len = sizeof ask,
                        .nlmsg_type = type,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
             .link = {.ifi_index = index}};
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[512];
    } answer = {0};
    if (send(sock, &ask, sizeof ask, 0) < 0 || recv(sock, &answer, sizeof answer, 0) < 0)
        return -1;
    errno = -answer.error.error;
    return answer.error.error == 0 ? 0 : -1;
}

/* Interfaces are set to what they are, and one is changed that does not exist: only a right would get as far as that. */
static void network_settings(int argc, char **argv)
{
    struct ifreq lo = {.ifr_name = "lo"};
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    WORKS(ioctl(sock, SIOCGIFFLAGS, &lo));
    REFUSED(ioctl(sock, SIOCSIFFLAGS, &lo), EPERM);
    REFUSED(ask_netlink(route, RTM_SETLINK, 999999), EPERM);
    REFUSED(ask_netlink(route, RTM_DELLINK, 999999), EPERM);
}

static int try_connect(const char *address, int port, int type)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int sock = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
        complain("'%s' is no address", address);
    int result = connect(sock, (struct sockaddr *)&to, sizeof to);
    int code = errno;
    (void)close(sock);
    errno = code;
    return result;
}

static void check_interfaces(void)
{
    const char *text = read_text("/proc/net/dev");
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    if (lines != 3 || !strstr(text, "\n    lo:"))
        complain("interfaces: %s", text);
    text = read_text("/proc/net/route");
    if (strchr(text, '\n') && strchr(text, '\n')[1])
        complain("routes: %s", text);
}

/* argv: the port of a listener on the host's loopback, then addresses of the host. */
static void network_off(int argc, char **argv)
{
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int port = argc > 0 ? atoi(argv[0]) : 1;
    static const char *const outside[] = {"8.8.8.8",     "169.254.169.254", "10.0.0.1",
                                          "192.168.0.1", "172.17.0.1",      "224.0.0.1"};
    REFUSED(try_connect("127.0.0.1", port, SOCK_STREAM), ECONNREFUSED);
    REFUSED(try_connect("0.0.0.0", port, SOCK_STREAM), ECONNREFUSED);
    for (size_t i = 0; i < COUNT(outside); i++)
        REFUSED(try_connect(outside[i], 53, SOCK_DGRAM), ENETUNREACH);
    for (int i = 1; i < argc; i++)
        REFUSED(try_connect(argv[i], port, SOCK_STREAM), ENETUNREACH);
    to6.sin6_port = htons((uint16_t)port);
    int sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock >= 0)
        REFUSED_AS(connect(sock, (struct sockaddr *)&to6, sizeof to6), ECONNREFUSED, EADDRNOTAVAIL);
    check_interfaces();
    WORKS(try_connect("127.0.0.1", 9, SOCK_DGRAM)); // loopback itself is up
}

const struct inside_attack inside_network[] = {
    {"socket-families", socket_families},
    {"raw-sockets", raw_sockets},
    {"network-settings", network_settings},
    {"network-off", network_off},
    {0},
};
