/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No set-user-id and set-group-id bits, for boxes that write into directories of the host: inside nobody gains by such a file, but outside whoever
 * runs it becomes the directory's owner. The filter goes over that of the box; a call that asks for such a bit fails with EPERM. openat2, whose mode
 * no filter sees, is told to be missing, as on older kernels.
 * Threads: plain values.
 */
#pragma once
#include <linux/filter.h>

/* For SECCOMP_SET_MODE_FILTER. */
extern const struct sock_fprog set_ids_filter;
