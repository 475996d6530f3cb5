/* SPDX-License-Identifier: Apache-2.0 */
/* One POST by libcurl; see post.h. */
#include "hook/post.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS 5000
#define ALL_MS 15000
#define BODY_READ (64u << 10) // bytes of an answer; what follows is not waited for
#define HEAD_READ (64u << 10)

struct post {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    const struct post_limits *limits;
    uint64_t id;
    size_t body_read, head_read;
    bool is_refused; // the address
    bool is_long;    // more of an answer than is read
    char detail[CURL_ERROR_SIZE];
};

/* The address is what connect will be called with, after all names were resolved. */
static curl_socket_t on_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct post *post = data;

    if (purpose != CURLSOCKTYPE_IPCXN ||
        (!address_is_public(&address->addr) &&
         !networks_have(&post->limits->networks, &address->addr))) {
        post->is_refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t count(struct post *post, size_t *so_far, size_t size, size_t most)
{
    *so_far += size;
    post->is_long = *so_far > most;
    return post->is_long ? 0 : size; // 0 ends it
}

static size_t on_body(char *bytes, size_t size, size_t n, void *data)
{
    struct post *post = data;

    (void)bytes;
    return count(post, &post->body_read, size * n, BODY_READ);
}

static size_t on_head(char *bytes, size_t size, size_t n, void *data)
{
    struct post *post = data;

    (void)bytes;
    return count(post, &post->head_read, size * n, HEAD_READ);
}

static bool add_headers(struct post *post, const struct post_request *request)
{
    for (const char *const *header = request->headers; *header; header++) {
        struct curl_slist *longer = curl_slist_append(post->headers, *header);
        if (!longer)
            return false;
        post->headers = longer;
    }
    return true;
}

static bool set_where(CURL *easy, const struct post_request *request)
{
    return curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR,
                            request->limits->is_http_allowed ? "http,https" : "https") ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK;
}

static bool set_bounds(CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                           1L); // names that resolve slowly do not keep the end waiting
    return curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ALL_MS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
}

static bool set_callbacks(CURL *easy, struct post *post)
{
    return curl_easy_setopt(easy, CURLOPT_PRIVATE, post) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->detail) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, post) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, post) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, post) == CURLE_OK;
}

static bool set_body(CURL *easy, const struct post *post, const struct post_request *request)
{
    return curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers) == CURLE_OK;
}

int post_new(CURLM *multi, const struct post_request *request, struct post **out, struct error *err)
{
    struct post *post = xnew(struct post);

    post->limits = request->limits;
    post->id = request->id;
    post->easy = curl_easy_init();
    if (post->easy && add_headers(post, request) && set_where(post->easy, request) &&
        set_bounds(post->easy) && set_callbacks(post->easy, post) &&
        set_body(post->easy, post, request) &&
        curl_multi_add_handle(multi, post->easy) == CURLM_OK) {
        post->multi = multi;
        *out = post;
        return 0;
    }
    post_free(post);
    return error_set(err, ERROR_SYSTEM, "libcurl has no room for a request");
}

void post_free(struct post *post)
{
    if (!post)
        return;
    if (post->multi)
        (void)curl_multi_remove_handle(post->multi, post->easy);
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->headers);
    free(post);
}

struct post *post_of(CURL *easy)
{
    struct post *post = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &post);
    return post;
}

uint64_t post_id(const struct post *post)
{
    return post->id;
}

static void say(struct post_result *out, const char *text)
{
    (void)snprintf(out->error, sizeof out->error, "%s", text);
}

void post_finish(struct post *post, CURLcode code, struct post_result *out)
{
    *out = (struct post_result){0};
    (void)curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &out->status);
    bool is_answered = code == CURLE_OK ||
                       (code == CURLE_WRITE_ERROR && post->is_long && post->body_read > BODY_READ);

    if (is_answered && out->status >= 200 && out->status < 300)
        out->is_delivered = true;
    else if (is_answered && out->status >= 300 && out->status < 400)
        (void)snprintf(out->error, sizeof out->error, "status %ld: redirects are not followed",
                       out->status);
    else if (is_answered)
        (void)snprintf(out->error, sizeof out->error, "status %ld", out->status);
    else if (post->is_refused)
        say(out, "the URL leads to an address that is not public; whoever runs the server can "
                 "allow it: --webhook-networks");
    else
        say(out, *post->detail ? post->detail : curl_easy_strerror(code));
}
