/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of volumes: a directory of their own in BURROW_TEST_DIR (else /var/tmp or /tmp), in
 * which everything is made and from which it is detached and removed after each test, also after a
 * failed one; and what every scheme promises. Needs root.
 */
#pragma once
#include "base/fd.h"
#include "engine/loop_device.h"
#include "engine/volume.h"
#include "test.h"

#define MIB ((uint64_t)1 << 20)

struct volume_places {
    char base[128];  // this test's directory
    char data[160];  // its data directory
    char other[160]; // another
    char disk[160];  // where a file system may be mounted, with a data directory 'data' in it
};
extern struct volume_places places;
extern const struct volume_options loop; // a gigabyte on a loop device

/* First in every test: removes what the test before left, makes new places. */
void fresh_places(void);

/* Skips the test on a machine without loop devices. */
void need_loop_devices(void);
/* Skips the test where the program is not installed. */
void need_program(const char *name);

/* Each fails the test with the error's sentence. */
struct volume *open_volume(const char *where, const struct volume_options *options);
int make_scratch(struct volume *volume, const char *name, uint64_t bytes, uint64_t inodes);

bool exists(int dir_fd, const char *name);

/* Writes up to `most` bytes to a file that may exist; how many it took, and why it stopped. */
uint64_t write_file(int dir_fd, const char *name, uint64_t most, int *why);

/* Lines of this mount namespace's mountinfo that hold the text. */
unsigned count_mounts(const char *text);

/* For volume_sweep: all; or those with an even digit after their first letter, counting calls in
 * *seen. */
bool owns_all(const char *name, void *unused);
bool owns_even(const char *name, void *seen);

/* What every scheme promises; and what those that count inodes do. */
void check_promises(struct volume *volume);
void check_inodes(struct volume *volume);

/* Project quota, where this kernel and this machine's tools can make such file systems. */
struct project_case {
    enum volume_scheme scheme;
    const char *type;
    const char *mkfs; // prints nothing
};
extern const struct project_case ext4_case, xfs_case;
/* A file system with project quota at `disk`; the image may be given ready-made in BURROW_TEST_IMAGES. */
void mount_with_quota(const struct project_case *one);
