/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for conversations about files; see conversation.h. */
#include "init/conversation.h"

#include "base/auto.h"
#include "base/error.h"
#include "engine/files_wire.h"
#include "init/files_answer.h"
#include "init/users.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONVERSATIONS 64
#define STACK_SIZE (128 * 1024)

static atomic_int n_conversations;

struct conversation {
    int sock;
    bool drops_set_ids;
    struct user_info user;
    char base[4096];
    char name[320];
};

/* The user is looked up here, not in PID 1's loop: the file may be a guest's trap. */
static void *converse(void *data)
{
    struct conversation *c = data;
    char message[160];

    if (users_find(*c->name ? c->name : "0", &c->user, message, sizeof message) == 0) {
        struct files_user who = {
            .uid = c->user.uid,
            .gid = c->user.gid,
            .groups = c->user.groups,
            .n_groups = c->user.n_groups,
            .base = *c->base ? c->base : c->user.home,
            .drops_set_ids = c->drops_set_ids,
        };
        files_serve(c->sock, &who);
    } else {
        files_refuse(c->sock, message);
    }
    free(c);
    atomic_fetch_sub(&n_conversations, 1);
    return NULL;
}

/* Says why nobody serves, in a frame that a fresh socket has room for, and closes it: the asker reads that behind the end. */
static void refuse(int sock, enum error_reason reason, const char *sentence)
{
    struct files_failure failure = {.kind = (uint32_t)reason};
    struct iovec parts[] = {{&failure, sizeof failure}, {(void *)sentence, strlen(sentence) + 1}};

    (void)files_frame_send(sock, FILES_ERROR, 0, parts, 2);
    (void)close(sock);
}

void conversation_start(int sock, const char *user, const char *base, bool drops_set_ids)
{
    pthread_attr_t attributes;
    pthread_t thread;
    struct conversation *c = NULL;

    if (strlen(user) >= sizeof c->name || strlen(base) >= sizeof c->base) {
        refuse(sock, ERROR_INVALID, "user '...' is too long, or the directory is");
        return;
    }
    if (atomic_fetch_add(&n_conversations, 1) >= MAX_CONVERSATIONS || !(c = calloc(1, sizeof *c))) {
        atomic_fetch_sub(&n_conversations, 1);
        refuse(sock, ERROR_CONFLICT, "too much is done with files of the sandbox; try again");
        return;
    }
    c->sock = sock;
    c->drops_set_ids = drops_set_ids;
    (void)strcpy(c->name, user);
    (void)strcpy(c->base, base);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, converse, c) != 0) {
        refuse(sock, ERROR_CONFLICT,
               "the sandbox has reached its limit of processes or memory, so that nothing can be "
               "done with its files; end something in it");
        free(c);
        atomic_fetch_sub(&n_conversations, 1);
    }
    (void)pthread_attr_destroy(&attributes);
}
