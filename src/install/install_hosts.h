/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where packages come from: the hosts that a runtime's own apt sources and npm name, with their addresses as this machine knows them. Private to the folder.
 * Threads: any but loops; blocks for names.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"
#include "policy/policy.h"
#include "runtime/image.h"

#define INSTALL_HOSTS_RULES 64

struct install_hosts {
    struct buffer lines; // for /etc/hosts
    struct policy_kernel_rule rules[INSTALL_HOSTS_RULES];
    size_t n_rules;
    char *registry; // address of npm's; NULL: not needed, or not known
};

/* ERROR_UNAVAILABLE where no address of a host is known. */
int install_hosts_find(const struct runtime_image *image, const char *list, const char *registry,
                       struct install_hosts *out, struct error *err);
void install_hosts_clear(struct install_hosts *hosts);
#define autohosts __attribute__((cleanup(install_hosts_clear))) struct install_hosts
