/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one order in which locks are taken: a thread that holds one may only take one that stands further down. lock_take asserts it.
 * docs/internals/core.md says what each guards and for how long it may be held.
 * Threads: plain values.
 */
#pragma once

enum lock_rank {
    LOCK_NONE,
    LOCK_INIT_FILES, // in PID 1 of a box: looking at a file and replacing it
    LOCK_FILE_MAKER, // in the command line: files that two threads make
    // Held across system calls, the engine or the database, by workers only: never on a loop.
    LOCK_CONTEXTS,       // starting an interpreter in a sandbox
    LOCK_SANDBOX_BOX,    // the right to use a sandbox's box
    LOCK_SANDBOX_RECORD, // the right to change a sandbox's records
    LOCK_OUTLETS,        // making the way out of boxes ready
    LOCK_EGRESS,         // one call to burrow-egress at a time
    LOCK_STORE_WRITER,   // the database's one writer
    // Held for memory work only: nothing below blocks.
    LOCK_SANDBOX,         // what readers see of a sandbox
    LOCK_EXECUTION,       // what readers see of an execution
    LOCK_EXECUTION_INPUT, // the socket that takes an execution's input
    LOCK_QUEUE,           // executions that wait
    LOCK_EXECUTIONS,      // executions by id
    LOCK_REGISTRY,        // sandboxes by id
    LOCK_QUOTAS,          // what keys and organisations have in use
    LOCK_ENDINGS,         // sandboxes whose box is to be removed
    LOCK_MAILBOX,         // what is to be done for a sandbox, in order
    LOCK_OUTLET_TABLE,    // whose the ways out are
    LOCK_POOL,
    LOCK_RUNTIMES,
    LOCK_LIST_CACHE,
    LOCK_RECIPES, // builds that are under way
    LOCK_KEYS,
    LOCK_STREAM,
    LOCK_STREAM_TABLE,
    LOCK_STREAM_SPARES,
    LOCK_STREAM_RECENT,
    LOCK_WEBHOOKS, // who is told of their changes
    LOCK_PORTS,    // ports that are reached from outside
    LOCK_CHANNEL,  // the newest events
    LOCK_HUB,
    LOCK_FRONT,
    LOCK_BODY,
    LOCK_GATHER,      // memory that bodies take
    LOCK_CODE_MEMORY, // memory that what interpreters send takes
    LOCK_GAUGES,      // what sandboxes have used lately
    LOCK_RESPONSE,
    LOCK_AUDIT,       // the ring of changes that are to be recorded
    LOCK_TEMPORARIES, // the room that files on their way take
    LOCK_CANCEL,      // sockets of work that may be given up
    LOCK_ENGINE,      // the engine's own lists, one at a time
    LOCK_STORE,
    LOCK_WORKERS,
    LOCK_LOOP,      // the posts of a loop: whoever holds anything may post
    LOCK_LOG_QUEUE, // lines that wait for the log's writer
    LOCK_LOG,       // writing to the log: the one lock down here that may block, as stderr does
    LOCK_RANKS,
};
