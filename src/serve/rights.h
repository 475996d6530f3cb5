/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server gives up when it starts: the capabilities that neither it, nor launching a box, nor building a runtime
 * needs, for itself and for every program it will ever start; and gaining rights by executing a file.
 * Threads: one thread; the first one, before there are others: they inherit it.
 */
#pragma once
#include "base/error.h"

int rights_drop(struct error *err);
