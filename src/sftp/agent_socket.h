/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of a client's agent, inside the box as the session's user.
 * Threads: one thread.
 */
#pragma once

/*
 * Gives the socket that is standard input a path, in a directory that is the user's alone, and listens; whoever has its other copy accepts. Tells the path on standard
 * output. When nobody reads that any more, removes what it made and returns the exit code.
 */
int agent_socket_serve(void);
