/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words about ports of sandboxes that are reached from outside.
 * Threads: plain values.
 */
#pragma once

enum port_protocol { PORT_HTTP, PORT_TCP };
