/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core with what its rooms are made of.
 * Threads: none; declarations.
 */
#pragma once
#include "core/core.h"
#include "core/sandbox/sandboxes.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "loop/workers.h"
#include "store/store.h"
