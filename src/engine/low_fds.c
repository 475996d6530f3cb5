/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors with low numbers; see low_fds.h. */
#include "engine/low_fds.h"

#include "base/auto.h"
#include "base/mem.h"

#include <fcntl.h>
#include <unistd.h>

static void close_numbers(struct low_fds *low)
{
    for (unsigned i = 0; i < LOW_BLOCKS * LOW_BLOCK_FDS; i++)
        closep(&low->numbers[i / LOW_BLOCK_FDS][i % LOW_BLOCK_FDS]);
    closep(&low->unused_fd);
}

void low_fds_free(struct low_fds *low)
{
    if (!low)
        return;
    close_numbers(low);
    free(low);
}

int low_fds_new(struct low_fds **out, struct error *err)
{
    autofree struct low_fds *low = xnew(struct low_fds);

    for (unsigned i = 0; i < LOW_BLOCKS * LOW_BLOCK_FDS; i++)
        low->numbers[i / LOW_BLOCK_FDS][i % LOW_BLOCK_FDS] = -1;
    low->unused_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < LOW_BLOCKS * LOW_BLOCK_FDS; i++) {
        int fd = fcntl(low->unused_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0) {
            (void)error_sys(err, "reserve descriptors for launches");
            close_numbers(low);
            return -1;
        }
        low->numbers[i / LOW_BLOCK_FDS][i % LOW_BLOCK_FDS] = fd;
        low->end = fd + 1; // each is the lowest that is free, unless another thread closed one
    }
    *out = take(low);
    return 0;
}

static bool take_block(struct low_fds *low, unsigned *block)
{
    for (unsigned i = 0; i < LOW_BLOCKS; i++) {
        if (!(atomic_fetch_or(&low->taken, 1u << i) & 1u << i)) {
            *block = i;
            return true;
        }
    }
    return false;
}

static bool move_one(struct low_move *move, int *fd)
{
    int number = move->low->numbers[move->block][move->count];

    if (dup3(*fd, number, O_CLOEXEC) < 0)
        return false;
    move->fds[move->count] = fd;
    move->before[move->count++] = *fd;
    *fd = number;
    return true;
}

void low_fds_move(struct low_fds *low, int *const *fds, unsigned count, struct low_move *move)
{
    bool is_moved = true;

    *move = (struct low_move){0};
    if (!low || !take_block(low, &move->block))
        return;
    move->low = low;
    for (unsigned i = 0; i < count && is_moved; i++)
        is_moved = *fds[i] < 0 || (move->count < LOW_BLOCK_FDS && move_one(move, fds[i]));
    if (!is_moved)
        low_fds_move_back(move);
}

void low_fds_move_back(struct low_move *move)
{
    struct low_fds *low = move->low;

    if (!low)
        return;
    for (unsigned i = 0; i < move->count; i++) {
        *move->fds[i] = move->before[i];
        (void)dup3(low->unused_fd, low->numbers[move->block][i], O_CLOEXEC);
    }
    move->low = NULL;
    (void)atomic_fetch_and(&low->taken, ~(1u << move->block));
}
