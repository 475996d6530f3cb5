/* SPDX-License-Identifier: Apache-2.0 */
/* Sifting up and down. */
#include "loop/timer_heap.h"

#include "base/mem.h"

static void place(struct timer_heap *heap, struct loop_timer *timer, size_t at)
{
    heap->at[at] = timer;
    timer->place = at;
}

static void sift(struct timer_heap *heap, struct loop_timer *timer)
{
    size_t at = timer->place;

    while (at > 1 && heap->at[at / 2]->when_ms > timer->when_ms) {
        place(heap, heap->at[at / 2], at);
        at /= 2;
    }
    for (size_t child; (child = at * 2) <= heap->count; at = child) {
        if (child < heap->count && heap->at[child + 1]->when_ms < heap->at[child]->when_ms)
            child++;
        if (heap->at[child]->when_ms >= timer->when_ms)
            break;
        place(heap, heap->at[child], at);
    }
    place(heap, timer, at);
}

struct loop_timer *timer_heap_first(const struct timer_heap *heap)
{
    return heap->count ? heap->at[1] : NULL;
}

void timer_heap_put(struct timer_heap *heap, struct loop_timer *timer)
{
    if (!timer->place) {
        if (heap->count + 1 >= heap->capacity) {
            heap->capacity = heap->capacity ? heap->capacity * 2 : 64;
            heap->at = xrealloc(heap->at, heap->capacity, sizeof(void *));
        }
        place(heap, timer, ++heap->count);
    }
    sift(heap, timer);
}

void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer)
{
    struct loop_timer *last = heap->at[heap->count--];

    if (last != timer) {
        place(heap, last, timer->place);
        sift(heap, last);
    }
    timer->place = 0;
}

void timer_heap_clear(struct timer_heap *heap)
{
    free(heap->at);
    *heap = (struct timer_heap){0};
}
