/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-courier: makes the requests that the server hands it over its standard input, a socket, and says what became of them. It is nobody, has no
 * capability, cannot gain any, and ends with the server.
 *
 * usage: burrow-courier NETWORKS http|https
 */
#include "base/auto.h"
#include "base/mem.h"
#include "base/strings.h"
#include "hook/courier_wire.h"
#include "hook/post.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534
#define FILES 512
#define MEMORY_BYTES ((rlim_t)1 << 30)
#define WAIT_MS 60000
#define HEADERS 16

struct work {
    CURLM *multi;
    struct post_limits limits;
    char *message; // COURIER_MESSAGE bytes
};

// ---- rights ----

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            return false;
    }
    return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
           setresuid(NOBODY, NOBODY, NOBODY) == 0 && syscall(SYS_capset, &header, none) == 0;
}

static bool set_limit(int resource, rlim_t most)
{
    const struct rlimit limit = {most, most};

    return setrlimit(resource, &limit) == 0;
}

/* In an order in which each is still possible. */
static bool confine(void)
{
    return syscall(SYS_close_range, 3, ~0U, 0) == 0 && chdir("/") == 0 &&
           set_limit(RLIMIT_NOFILE, FILES) && set_limit(RLIMIT_AS, MEMORY_BYTES) &&
           set_limit(RLIMIT_FSIZE, 0) && set_limit(RLIMIT_CORE, 0) && drop_capabilities() &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
           prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

// ---- results ----

static void answer(uint64_t id, const struct post_result *result)
{
    struct courier_result told = {
        .id = id, .status = (int32_t)result->status, .is_delivered = result->is_delivered};

    (void)snprintf(told.error, sizeof told.error, "%s", result->error);
    if (send(STDIN_FILENO, &told, sizeof told, MSG_NOSIGNAL) < 0)
        exit(1); // nobody is there
}

static void collect(struct work *work)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(work->multi, &left))) {
        struct post_result result;
        if (message->msg != CURLMSG_DONE)
            continue;
        struct post *post = post_of(message->easy_handle);
        post_finish(post, message->data.result, &result);
        answer(post_id(post), &result);
        post_free(post);
    }
}

// ---- requests ----

/* Cuts lines into a list; false where there are too many. */
static bool split_headers(char *text, const char *headers[HEADERS + 1])
{
    size_t count = 0;

    for (char *line; (line = strsep(&text, "\n"));) {
        if (!*line)
            continue;
        if (count == HEADERS)
            return false;
        headers[count++] = line;
    }
    headers[count] = NULL;
    return true;
}

static bool begin(struct work *work, size_t length)
{
    struct courier_request request;
    const char *headers[HEADERS + 1];
    struct post *post = NULL;
    struct error err = {0};

    if (length < sizeof request)
        return false;
    memcpy(&request, work->message, sizeof request);
    if (length != sizeof request + (size_t)request.url_length + 1 + request.headers_length + 1 +
                      request.body_length + 1)
        return false;
    char *url = work->message + sizeof request, *lines = url + request.url_length + 1;
    if (!split_headers(lines, headers))
        return false;
    const struct post_request wanted = {
        .id = request.id,
        .url = url,
        .headers = headers,
        .body = lines + request.headers_length + 1,
        .length = request.body_length,
        .limits = &work->limits,
    };
    if (post_new(work->multi, &wanted, &post, &err) < 0) {
        struct post_result result = {0};
        (void)snprintf(result.error, sizeof result.error, "%.255s", err.text);
        answer(request.id, &result);
    }
    return true;
}

/* False: it is over. */
static bool take_requests(struct work *work)
{
    for (;;) {
        ssize_t got = recv(STDIN_FILENO, work->message, COURIER_MESSAGE, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0 || !begin(work, (size_t)got))
            return false;
    }
}

static bool do_round(struct work *work)
{
    struct curl_waitfd more = {.fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN};
    int running;

    (void)curl_multi_perform(work->multi, &running);
    collect(work);
    (void)curl_multi_poll(work->multi, &more, 1, WAIT_MS, NULL);
    return take_requests(work);
}

int main(int argc, char **argv)
{
    struct work work = {0};
    struct error err = {0};

    if (argc != 3 || !confine() || networks_read(argv[1], &work.limits.networks, &err) < 0 ||
        curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(work.multi = curl_multi_init()))
        return 1;
    work.limits.is_http_allowed = strcmp(argv[2], "http") == 0;
    work.message = xcalloc(1, COURIER_MESSAGE);
    while (do_round(&work))
        continue;
    return 0;
}
