/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One POST to a stranger's server, by libcurl: where it may connect to is decided by the address it really connects to, so that no name, however it
 * resolves, leads anywhere else. No redirects, no proxies, no cookies; certificates are checked; of the answer only the status counts.
 * Threads: one thread.
 */
#pragma once
#include "base/address.h"
#include "base/auto.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct post;

struct post_limits {
    struct networks networks; // allowed beside public addresses
    bool is_http_allowed;
};

struct post_request {
    const char *url;
    const char *body; // JSON; copied, like all here
    size_t length;
    const char *const *headers;       // "Name: value", ended by NULL
    const struct post_limits *limits; // must stay
    uint64_t id;                      // the caller's
};

/* Begins it. ERROR_SYSTEM where libcurl cannot. */
int post_new(CURLM *multi, const struct post_request *request, struct post **out,
             struct error *err);
void post_free(struct post *post); // also ends it

/* Of a handle that CURLMSG_DONE came for. */
struct post *post_of(CURL *easy);
uint64_t post_id(const struct post *post);

struct post_result {
    bool is_delivered; // status 2xx
    long status;       // 0: no answer came
    char error[256];   // "": none
};
void post_finish(struct post *post, CURLcode code, struct post_result *out);
