/* SPDX-License-Identifier: Apache-2.0 */
/* A list of connections by age, and one for each address or key in a table; see door.h. */
#include "net/door.h"

#include "base/mem.h"

#include <sys/random.h>

#define BUCKETS 1024
#define LOOKS 64 // at the oldest, until one is found that can go

struct address {
    struct address *next; // in its bucket
    uint64_t group;
    size_t limit;
    struct connection_list connections; // the oldest first
};

struct door {
    size_t of_address, of_own;
    uint64_t salt; // so that nobody can choose addresses that share a bucket
    struct connection_list strangers;
    struct address *buckets[BUCKETS];
};

struct door *door_new(size_t of_address, size_t of_own)
{
    struct door *door = xnew(struct door);

    door->of_address = of_address;
    door->of_own = of_own > of_address ? of_own : of_address;
    (void)!getrandom(&door->salt, sizeof door->salt, 0);
    return door;
}

void door_free(struct door *door)
{
    free(door); // addresses go with their last connection
}

static struct address **find_place(struct door *door, uint64_t group)
{
    uint64_t mixed = (group ^ door->salt) * 0x9e3779b97f4a7c15u;
    struct address **at = &door->buckets[(mixed >> 32) % BUCKETS];

    while (*at && (*at)->group != group)
        at = &(*at)->next;
    return at;
}

static struct connection *find_idle(const struct connection_list *list, enum connection_order order)
{
    struct connection *connection = list->first;

    for (int i = 0; connection && i < LOOKS; i++) {
        if (connection_can_go(connection))
            return connection;
        connection = connection_after(connection, order);
    }
    return NULL;
}

struct connection *door_enter(struct door *door, struct connection *connection)
{
    const struct peer *peer = connection_peer(connection);
    struct address **place = find_place(door, connection_group(connection));

    if (!*place) {
        *place = xnew(struct address);
        (*place)->group = connection_group(connection);
        (*place)->limit = peer_is_own(peer) ? door->of_own : door->of_address;
    }
    struct connection_list *list = &(*place)->connections;
    connection_list_add(&door->strangers, connection, CONNECTION_STRANGER);
    connection_list_add(list, connection, CONNECTION_ADDRESS);
    if (list->count <= (*place)->limit)
        return NULL;
    struct connection *oldest = find_idle(list, CONNECTION_ADDRESS); // perhaps itself
    return oldest ? oldest : connection;
}

void door_leave(struct door *door, struct connection *connection)
{
    struct address **place = find_place(door, connection_group(connection));
    struct address *address = *place;

    connection_list_remove(&door->strangers, connection, CONNECTION_STRANGER);
    connection_list_remove(&address->connections, connection, CONNECTION_ADDRESS);
    if (address->connections.count)
        return;
    *place = address->next;
    free(address);
}

struct connection *door_oldest(const struct door *door)
{
    struct connection *oldest = find_idle(&door->strangers, CONNECTION_STRANGER);

    return oldest && !connection_is_young(oldest) ? oldest : NULL;
}

struct connection *door_largest(const struct door *door, size_t least)
{
    const struct connection_list *largest = NULL;

    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct address *at = door->buckets[i]; at; at = at->next) {
            if (at->connections.count >= (largest ? largest->count + 1 : least))
                largest = &at->connections;
        }
    }
    return largest && !connection_is_young(largest->first) ? largest->first : NULL;
}

size_t door_count(const struct door *door)
{
    return door->strangers.count;
}
