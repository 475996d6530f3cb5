/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kinds of control groups this machine has, read from its mounts by the tests themselves: a fault of burrow
 * must not look like a machine without them.
 */
#pragma once
#include "engine/cgroup.h"

/* Skips the test when the machine has no control groups of this mode. */
void need_cgroup_mode(enum cgroup_mode mode);
