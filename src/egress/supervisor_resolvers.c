/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asked for names, and through what connections go: the host's own settings and the operator's; see supervisor.h. */
#include "base/address.h"
#include "base/auto.h"
#include "egress/egress_wire.h"
#include "egress/supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FILE_NAME "/etc/resolv.conf"

size_t supervisor_read_resolvers(const char *setting, struct sockaddr_in6 out[EGRESS_RESOLVERS])
{
    size_t count = 0;
    char line[512];

    memset(out, 0, EGRESS_RESOLVERS * sizeof *out);
    if (setting && *setting) {
        struct error ignored; // whoever starts us has checked it
        (void)addresses_read(setting, EGRESS_DNS_PORT, out, EGRESS_RESOLVERS, &count, &ignored);
        return count;
    }
    autofile file = fopen(FILE_NAME, "re");
    while (file && count < EGRESS_RESOLVERS && fgets(line, sizeof line, file)) {
        char word[128];
        if (sscanf(line, " nameserver %127s", word) != 1)
            continue;
        word[strcspn(word, "%#;")] = '\0';
        count += address_read(word, EGRESS_DNS_PORT, &out[count]);
    }
    return count;
}

int supervisor_read_proxy(const char *setting, struct sockaddr_in6 *out, struct error *err)
{
    char host[256], port[8] = "3128";
    struct addrinfo *found = NULL;
    const struct addrinfo want = {
        .ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_V4MAPPED | AI_ALL};

    if (strncmp(setting, "http://", 7) != 0 ||
        sscanf(setting + 7, "%255[^:/]:%7[0-9]", host, port) < 1)
        return error_set(err, ERROR_INVALID,
                         "the proxy '%.128s' is not like http://proxy.example:3128", setting);
    int code = getaddrinfo(host, port, &want, &found);
    if (code)
        return error_set(err, ERROR_UNAVAILABLE, "the proxy '%.128s': %s", setting,
                         gai_strerror(code));
    memcpy(out, found->ai_addr, sizeof *out);
    freeaddrinfo(found);
    return 0;
}

int supervisor_connect(const struct sockaddr_in6 *to, int type)
{
    bool is_four = IN6_IS_ADDR_V4MAPPED(&to->sin6_addr);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = to->sin6_port};

    memcpy(&four.sin_addr, to->sin6_addr.s6_addr + 12, 4);
    autofd fd = socket(is_four ? AF_INET : AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int result = is_four ? connect(fd, (const struct sockaddr *)&four, sizeof four)
                         : connect(fd, (const struct sockaddr *)to, sizeof *to);
    return result < 0 && errno != EINPROGRESS ? -1 : take_fd(fd);
}
