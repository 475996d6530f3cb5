/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager how it goes, as sd_notify(3) does. Does nothing where nobody wants to know.
 * Threads: any.
 */
#pragma once

/* Lines such as "READY=1\nSTATUS=...". */
void notify_send(const char *lines);

/* Settings are being read again; READY=1 ends it. */
void notify_reloading(void);
