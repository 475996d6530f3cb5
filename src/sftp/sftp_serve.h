/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of SFTP asks for, done: files and directories as the process's own user may have them, with its own rights and no others. Runs inside
 * a box (burrow-sftp), so a path is a path there.
 * Threads: one per object; blocks for the file system.
 */
#pragma once
#include "sftp/sftp_packet.h"

#define SFTP_HANDLES 1000            // open at once
#define SFTP_NAMES_BYTES (64u << 10) // of one answer to READDIR, about
#define SFTP_ANSWER_ROOM (SFTP_PACKET_MAX + 4)

struct sftp;
struct sftp *sftp_new(void); // NULL: there is no memory
void sftp_free(struct sftp *sftp);

/*
 * Does what a packet (behind its length) asks for. `memory` has room for SFTP_ANSWER_ROOM bytes and gets the one answer there is to each. Returns its
 * length; 0: the client does not speak the protocol, and is to be hung up on.
 */
size_t sftp_answer_packet(struct sftp *sftp, const void *packet, size_t length, void *memory);
