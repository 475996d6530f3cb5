/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server and burrow-courier say to each other, one message at a time over a socket that keeps them apart: requests, and their results in any order.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

/* Followed by the URL, the headers (a line each, with \n behind it) and the body, each with a NUL behind it that its length does not count. */
struct courier_request {
    uint64_t id;
    uint32_t url_length, headers_length, body_length;
};
#define COURIER_MESSAGE (96u << 10) // bytes, at most

#define COURIER_ERROR 256
struct courier_result {
    uint64_t id;
    int32_t status;            // HTTP's; 0: no answer came
    uint32_t is_delivered;     // 0 or 1
    char error[COURIER_ERROR]; // "": none
};
