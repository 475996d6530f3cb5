/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of what a creation still needs of its request once its record is made: for one that goes on after its caller was answered.
 * Threads: one per object.
 */
#pragma once
#include "core/create.h"

struct create_copy {
    struct sandbox_request request; // without name, labels, network: they are in the record
    struct execution_request command;
    void *memory; // owns the strings and contents
};

struct create_copy *create_copy_new(const struct sandbox_request *request);
void create_copy_free(struct create_copy *copy);
DEFINE_AUTOPTR(create_copy)
