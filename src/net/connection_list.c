/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of connections; see connection_list.h. */
#include "net/connection_list.h"

void connection_list_add(struct connection_list *list, struct connection *connection,
                         enum connection_order order)
{
    *connection_place(connection, order) = (struct connection_place){.before = list->last};
    if (list->last)
        connection_place(list->last, order)->after = connection;
    else
        list->first = connection;
    list->last = connection;
    list->count++;
}

void connection_list_remove(struct connection_list *list, struct connection *connection,
                            enum connection_order order)
{
    struct connection_place *place = connection_place(connection, order);

    if (place->before)
        connection_place(place->before, order)->after = place->after;
    else
        list->first = place->after;
    if (place->after)
        connection_place(place->after, order)->before = place->before;
    else
        list->last = place->before;
    *place = (struct connection_place){0};
    list->count--;
}

struct connection *connection_after(struct connection *connection, enum connection_order order)
{
    return connection_place(connection, order)->after;
}
