/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the worker gives up before it reads anything: files, rights, and all system calls but those of a short list.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"

int egress_confine(struct error *err);
