/* SPDX-License-Identifier: Apache-2.0 */
/* Counters under one lock; see code_memory.h. */
#include "core/code/code_memory.h"

#include "base/mem.h"
#include "core/sandbox/sandbox_object.h"

#include <stdlib.h>
#include <string.h>

struct code_share {
    struct code_share *next;
    uint64_t bytes;
    char organisation[];
};

void code_memory_init(struct code_memory *memory)
{
    *memory = (struct code_memory){0};
    lock_init(&memory->lock, LOCK_CODE_MEMORY);
}

void code_memory_clear(struct code_memory *memory)
{
    for (struct code_share *at = memory->shares, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    lock_clear(&memory->lock);
}

/* Where its share hangs; *place is NULL where it has none. With the lock held. */
static struct code_share **find(struct code_memory *memory, const char *organisation)
{
    struct code_share **at = &memory->shares;

    while (*at && strcmp((*at)->organisation, organisation) != 0)
        at = &(*at)->next;
    return at;
}

/* Never changes while the sandbox lives. */
static const char *organisation_of(const struct sandbox *sandbox)
{
    return sandbox->record.owner.organisation ? sandbox->record.owner.organisation : "";
}

static struct code_share *share_new(const char *organisation)
{
    size_t size = strlen(organisation) + 1;
    struct code_share *share = xcalloc(1, sizeof *share + size);

    memcpy(share->organisation, organisation, size);
    return share;
}

bool code_memory_take(struct code_memory *memory, struct sandbox *sandbox, uint64_t bytes)
{
    const char *organisation = organisation_of(sandbox);

    autolock(&memory->lock);
    struct code_share **share = find(memory, organisation);
    uint64_t theirs = *share ? (*share)->bytes : 0;
    if (bytes > CODE_MEMORY_SANDBOX || sandbox->code_bytes + bytes > CODE_MEMORY_SANDBOX ||
        theirs + bytes > CODE_MEMORY_ORGANISATION || memory->bytes + bytes > CODE_MEMORY_ALL)
        return false;
    if (!*share)
        *share = share_new(organisation);
    (*share)->bytes += bytes;
    sandbox->code_bytes += bytes;
    memory->bytes += bytes;
    return true;
}

void code_memory_give(struct code_memory *memory, struct sandbox *sandbox, uint64_t bytes)
{
    if (bytes == 0)
        return;
    autolock(&memory->lock);
    struct code_share **place = find(memory, organisation_of(sandbox));
    struct code_share *share = *place;
    sandbox->code_bytes -= bytes;
    memory->bytes -= bytes;
    share->bytes -= bytes;
    if (share->bytes == 0) {
        *place = share->next;
        free(share);
    }
}
