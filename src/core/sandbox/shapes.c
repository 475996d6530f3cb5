/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for lately; see shapes.h. */
#include "core/sandbox/shapes.h"

#include "base/mem.h"

#include <string.h>

void shapes_init(struct shapes *shapes)
{
    lock_init(&shapes->lock, LOCK_POOL);
}

struct shape *shape_ref(struct shape *shape)
{
    shape->refs++;
    return shape;
}

void shape_free(struct shape *shape)
{
    if (!shape || --shape->refs > 0)
        return;
    spare_boxes_free(shape->boxes);
    image_free(shape->key.image);
    free((char *)shape->key.directory);
    free(shape);
}

void shapes_clear(struct shapes *shapes)
{
    for (unsigned i = 0; i < shapes->count; i++)
        shape_free(shapes->rows[i]);
    for (unsigned i = 0; i < shapes->n_leaving; i++)
        shape_free(shapes->leaving[i]);
    shapes->count = shapes->n_leaving = 0;
    lock_clear(&shapes->lock);
}

static struct shape *new_shape(const struct shape_key *key)
{
    struct shape *shape = xnew(struct shape);

    shape->refs = 1;
    shape->key = *key;
    shape->key.image = image_ref(key->image);
    shape->key.directory = key->directory ? xstrdup(key->directory) : NULL;
    return shape;
}

static bool is_same_text(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static bool is_same(const struct shape_key *one, const struct shape_key *other)
{
    return one->image == other->image && one->is_one_shot == other->is_one_shot &&
           one->has_network == other->has_network && one->uid == other->uid &&
           one->gid == other->gid && is_same_text(one->directory, other->directory);
}

static unsigned count_waiting(const struct shape *shape)
{
    struct spare_boxes *boxes = shape->boxes;
    return boxes ? spare_boxes_count(boxes) : 0;
}

// ---- under the lock ----

static struct shape *find(struct shapes *shapes, const struct shape_key *key)
{
    for (unsigned i = 0; i < shapes->count; i++)
        if (is_same(&shapes->rows[i]->key, key))
            return shapes->rows[i];
    return NULL;
}

static bool has_usual(const struct shapes *shapes, const struct image *image)
{
    for (unsigned i = 0; i < shapes->count; i++)
        if (shapes->rows[i]->is_usual && shapes->rows[i]->key.image == image)
            return true;
    return false;
}

static struct shape *take_out(struct shapes *shapes, unsigned i)
{
    struct shape *shape = shapes->rows[i];
    shapes->rows[i] = shapes->rows[--shapes->count];
    return shape;
}

// The one that was asked for longest ago leaves, where the table is full.
static bool make_room(struct shapes *shapes)
{
    unsigned oldest = SHAPES_MOST;

    if (shapes->count < SHAPES_MOST)
        return true;
    for (unsigned i = 0; i < shapes->count; i++)
        if (!shapes->rows[i]->is_usual &&
            (oldest == SHAPES_MOST || shapes->rows[i]->asked_ms < shapes->rows[oldest]->asked_ms))
            oldest = i;
    if (oldest == SHAPES_MOST || shapes->n_leaving == SHAPES_MOST)
        return false;
    shapes->leaving[shapes->n_leaving++] = take_out(shapes, oldest);
    return true;
}

// NULL: there is no room.
static struct shape *add(struct shapes *shapes, const struct shape_key *key, unsigned most)
{
    if (!make_room(shapes))
        return NULL;
    struct shape *shape = new_shape(key);
    shape->most = most;
    shape->wanted = has_usual(shapes, key->image) ? most : 1;
    shapes->rows[shapes->count++] = shape;
    return shape;
}

// ---- what callers ask ----

struct shape *shapes_ask(struct shapes *shapes, const struct shape_key *key, unsigned most,
                         uint64_t now_ms)
{
    autolock(&shapes->lock);
    struct shape *shape = find(shapes, key);
    if (shape && count_waiting(shape) == 0)
        shape->wanted = shape->wanted * 2 < shape->most ? shape->wanted * 2 : shape->most;
    if (!shape && !(shape = add(shapes, key, most)))
        return NULL;
    shape->asked_ms = now_ms;
    for (unsigned i = 0; i < shapes->count; i++)
        shapes->rows[i]->is_held_back = false; // there may be memory again
    return shape_ref(shape);
}

struct shape *shapes_find(struct shapes *shapes, const struct shape_key *key)
{
    autolock(&shapes->lock);
    struct shape *shape = find(shapes, key);
    return shape ? shape_ref(shape) : NULL;
}

void shapes_set_usual(struct shapes *shapes, const struct shape_key *key, unsigned most)
{
    autolock(&shapes->lock);
    struct shape *shape = find(shapes, key);
    if (!shape && !(shape = add(shapes, key, most)))
        return;
    shape->is_usual = true;
    shape->wanted = most;
}

bool shapes_is_usual(struct shapes *shapes, const struct image *image)
{
    autolock(&shapes->lock);
    return has_usual(shapes, image);
}

bool shapes_is_empty(struct shapes *shapes)
{
    autolock(&shapes->lock);
    return shapes->count == 0;
}

static bool is_before(const struct shape *one, const struct shape *other)
{
    return one->is_usual != other->is_usual ? one->is_usual : one->asked_ms > other->asked_ms;
}

unsigned shapes_list(struct shapes *shapes, struct shape *out[SHAPES_MOST])
{
    autolock(&shapes->lock);
    for (unsigned i = 0; i < shapes->count; i++) {
        unsigned at = i;
        for (; at > 0 && is_before(shapes->rows[i], out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = shape_ref(shapes->rows[i]);
    }
    return shapes->count;
}

struct shape *shapes_remove(struct shapes *shapes,
                            bool (*is_over)(const struct shape *shape, const void *data),
                            const void *data)
{
    autolock(&shapes->lock);
    for (unsigned i = 0; i < shapes->count; i++)
        if (is_over(shapes->rows[i], data))
            return take_out(shapes, i);
    return NULL;
}

struct shape *shapes_next_leaving(struct shapes *shapes)
{
    autolock(&shapes->lock);
    return shapes->n_leaving ? shapes->leaving[--shapes->n_leaving] : NULL;
}

struct shapes_tally shapes_tally(struct shapes *shapes, uint64_t since_ms)
{
    autolock(&shapes->lock);
    struct shapes_tally tally = {.is_over = shapes->n_leaving > 0};
    for (unsigned i = 0; i < shapes->count; i++) {
        const struct shape *shape = shapes->rows[i];
        struct spare_boxes *boxes = shape->boxes;
        unsigned waiting = count_waiting(shape);

        tally.waiting += waiting;
        tally.bytes += boxes ? spare_boxes_bytes(boxes) : 0;
        tally.wanted += shape->is_held_back ? waiting : shape->wanted;
        tally.has_usual |= shape->is_usual;
        tally.is_short |= !shape->is_held_back && waiting < shape->wanted;
        tally.is_over |= !shape->is_usual && shape->asked_ms < since_ms;
    }
    return tally;
}

unsigned shapes_missing(struct shapes *shapes, const struct shape *shape)
{
    autolock(&shapes->lock);
    unsigned waiting = count_waiting(shape);
    return shape->is_held_back || waiting >= shape->wanted ? 0 : shape->wanted - waiting;
}

void shapes_hold_back(struct shapes *shapes, struct shape *shape)
{
    autolock(&shapes->lock);
    shape->is_held_back = true;
}
