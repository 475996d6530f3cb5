/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can become of telling a webhook of an event.
 * Threads: plain values.
 */
#pragma once

enum delivery_state {
    DELIVERY_FAILING,   // tried, and will be again
    DELIVERY_DELIVERED, // the other side said so
    DELIVERY_FAILED,    // given up
    DELIVERY_STATES
};
