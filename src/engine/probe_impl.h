/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind probe.h share, and the probes themselves.
 * Threads: one thread; the calls fork.
 */
#pragma once
#include "engine/probe.h"

#include "base/error.h"

typedef void probe_function(const struct probe *probe, const struct probe_context *context,
                            struct probe_result *result);

/* Answers. Cost and fix are literals. */
void probe_fine(struct probe_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_say(struct probe_result *result, enum probe_state state, const char *cost,
               const char *fix, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Runs `run` in a child, so that it may change namespaces, credentials and filters at will, and
 * takes over its answer. A child that dies or does not answer within seconds is PROBE_MISSING.
 */
void probe_in_child(probe_function *run, const struct probe *probe,
                    const struct probe_context *context, struct probe_result *result);

/* The data directory, or the nearest directory above that exists: an O_PATH fd, or -1 with errno.
 */
int probe_open_data(const struct probe_context *context);

/* A user namespace with a box's id maps, held by an fd; -1 with `err` filled. */
int probe_user_namespace(struct error *err);

/* Finds a program as the shell would, and in the sbin directories. */
bool probe_has_program(const char *name);

// probe_process.c
probe_function probe_root, probe_capabilities, probe_kernel, probe_namespace, probe_id_maps;
probe_function probe_pidfd, probe_pidfd_namespace, probe_seccomp, probe_memfd, probe_openat2;
// probe_cgroup.c
probe_function probe_cgroups, probe_clone_into_cgroup, probe_cgroup_kill, probe_socket_memory;
// probe_storage.c
probe_function probe_filesystem, probe_overlay, probe_overlay_fd, probe_idmapped_mounts;
probe_function probe_quota, probe_loop, probe_mkfs, probe_space;
// probe_network.c
probe_function probe_nftables, probe_forwarding, probe_forward_policy, probe_addresses;
// probe_ssh.c
probe_function probe_ssh_key;
// probe_host.c
probe_function probe_id_range, probe_namespace_limits, probe_pid_max, probe_inotify, probe_files;
probe_function probe_mmdebstrap, probe_apt_sources, probe_core_pattern;
probe_function probe_suid_dumpable, probe_modprobe;
