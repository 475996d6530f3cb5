/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-sftp: executed inside a box, as the user of a session, without arguments. Requests come on standard input, answers go to standard output, in
 * order; what came together is answered together. Called "agent-socket", it is something else: agent_socket.h.
 */
#include "sftp/agent_socket.h"
#include "sftp/sftp_serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_ROOM (SFTP_PACKET_MAX + 4)
#define OUTPUT_ROOM (2 * SFTP_ANSWER_ROOM) // one more answer always fits behind a full one

struct server {
    struct sftp *sftp;
    unsigned char *input, *output;
    size_t n_input, n_output;
};

static int complain(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
    return 1;
}

static int flush(struct server *server)
{
    for (size_t done = 0; done < server->n_output;) {
        ssize_t put = write(STDOUT_FILENO, server->output + done, server->n_output - done);
        if (put < 0 && errno != EINTR)
            return -1;
        done += put < 0 ? 0 : (size_t)put;
    }
    server->n_output = 0;
    return 0;
}

// All packets that are there: what is left of the input moves to its front. -1: it is over.
static int answer_all(struct server *server)
{
    size_t at = 0;

    while (server->n_input - at >= 4) {
        uint32_t length = sftp_packet_length(server->input + at);
        if (!length)
            return -1;
        if (server->n_input - at < length + 4)
            break;
        size_t got = sftp_answer_packet(server->sftp, server->input + at + 4, length,
                                        server->output + server->n_output);
        if (!got)
            return -1;
        server->n_output += got;
        at += length + 4;
        if (server->n_output > OUTPUT_ROOM - SFTP_ANSWER_ROOM && flush(server) < 0)
            exit(0); // nobody reads any more
    }
    server->n_input -= at;
    memmove(server->input, server->input + at, server->n_input);
    return 0;
}

static int serve(struct server *server)
{
    for (;;) {
        ssize_t got =
            read(STDIN_FILENO, server->input + server->n_input, INPUT_ROOM - server->n_input);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        server->n_input += (size_t)got;
        int result = answer_all(server);
        if (flush(server) < 0)
            return 0;
        if (result < 0)
            return complain("sftp: what came is no SFTP\n");
    }
}

int main(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "agent-socket") == 0)
        return agent_socket_serve();
    struct server server = {
        .sftp = sftp_new(), .input = malloc(INPUT_ROOM), .output = malloc(OUTPUT_ROOM)};

    (void)signal(SIGPIPE, SIG_IGN);
    if (!server.sftp || !server.input || !server.output)
        return complain("sftp: there is no memory\n");
    int result = serve(&server);
    sftp_free(server.sftp);
    free(server.input);
    free(server.output);
    return result;
}
