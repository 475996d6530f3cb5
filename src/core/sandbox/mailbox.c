/* SPDX-License-Identifier: Apache-2.0 */
/* Work for a sandbox, in order; see mailbox.h. */
#include "core/sandbox/mailbox.h"

#include "base/mem.h"

struct letter {
    struct letter *next;
    void (*fn)(struct sandbox *sandbox, void *data);
    void *data;
};

static struct letter *take_letter(struct sandbox *sandbox)
{
    autolock(&sandbox->mailbox.lock);
    struct letter *letter = sandbox->mailbox.first;
    sandbox->mailbox.first = letter->next;
    return letter;
}

/* Closes it where nothing is left; whether it did. */
static bool close_empty(struct sandbox *sandbox)
{
    autolock(&sandbox->mailbox.lock);
    sandbox->mailbox.is_open = sandbox->mailbox.first != NULL;
    return !sandbox->mailbox.is_open;
}

/* One letter, and then in line again behind other sandboxes. */
static void work_through(void *data)
{
    struct sandbox *sandbox = data;
    autofree struct letter *letter = take_letter(sandbox);

    letter->fn(sandbox, letter->data);
    if (close_empty(sandbox))
        sandbox_free(sandbox); // of whoever opened it
    else
        workers_run(sandbox->sandboxes->recorders, WORKERS_SLOW, work_through, sandbox);
}

/* True: it was closed, and is the caller's to have worked through. */
static bool append(struct sandbox *sandbox, struct letter *letter)
{
    autolock(&sandbox->mailbox.lock);
    if (sandbox->mailbox.first)
        sandbox->mailbox.last->next = letter;
    else
        sandbox->mailbox.first = letter;
    sandbox->mailbox.last = letter;
    bool was_open = sandbox->mailbox.is_open;
    sandbox->mailbox.is_open = true;
    return !was_open;
}

void mailbox_post(struct sandbox *sandbox, void (*fn)(struct sandbox *sandbox, void *data),
                  void *data)
{
    struct letter *letter = xnew(struct letter);

    *letter = (struct letter){NULL, fn, data};
    if (append(sandbox, letter))
        workers_run(sandbox->sandboxes->recorders, WORKERS_SLOW, work_through,
                    sandbox_ref(sandbox));
}
