/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to attack/: how the rows of the table are carried out.
 * Threads: one thread.
 */
#pragma once
#include "attack/attack_range.h"

#define ROW(name)                                                                                  \
    void name(struct range *range, const struct attack *attack, struct attack_result *result)

// inside_rows.c: the attack of burrow-attacker that has the row's name
ROW(run_inside);         // as root of the box and as an ordinary user
ROW(run_inside_as_root); // for what an ordinary user may not even begin
ROW(run_rights);
ROW(run_first_signals);
ROW(run_setuid);
ROW(run_other_users);
ROW(run_volume_requests);
ROW(run_shared_files);
ROW(run_hard_links);

// between_rows.c
ROW(run_neighbour_processes);
ROW(run_neighbour_secrets);
ROW(run_neighbour_files);
ROW(run_neighbour_sockets);
ROW(run_neighbour_name);
ROW(run_kill_all);

// host_rows.c
ROW(run_host_processes);
ROW(run_host_sockets);
ROW(run_host_network);
ROW(run_host_paths);
ROW(run_path_escape);
ROW(run_host_users);

// file_rows.c
ROW(run_file_links);
ROW(run_file_special);
ROW(run_file_exchange);

// limit_rows.c
ROW(run_memory_limit);
ROW(run_process_limit);
ROW(run_disk_limit);
ROW(run_open_files);
ROW(run_cpu_limit);
ROW(run_socket_memory); // of the row's kind of sockets

// count_rows.c
ROW(run_accounts);
ROW(run_count); // what the kernel counts for a user: the row's subject
ROW(run_share); // what it counts for the whole machine
