/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a file: attributes, and a line as `ls -l` writes it.
 * Threads: one per object.
 */
#pragma once
#include "sftp/sftp_packet.h"

#include <sys/stat.h>

#define SFTP_NAMES_KNOWN 16 // users and groups, each
#define SFTP_LINE_MAX 512

/* Names of users and groups that were looked up, so that a directory of thousands costs one look each. */
struct sftp_people {
    struct sftp_person {
        uint32_t id;
        char name[34]; // "": empty row
    } users[SFTP_NAMES_KNOWN], groups[SFTP_NAMES_KNOWN];
    int64_t now; // of the listing, in seconds: what is older than half a year has its year shown
};

struct sftp_attributes sftp_attributes_of(const struct stat *status);

/* Returns its length, below SFTP_LINE_MAX. */
size_t sftp_listing_line(struct sftp_people *people, const char *name, const struct stat *status,
                         char line[SFTP_LINE_MAX]);
