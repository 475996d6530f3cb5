/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast one address gets processes: whoever only connects and says hello would otherwise have the machine start them all day, and everybody else wait.
 * Those beyond the rate wait their turn; other addresses do not wait for them.
 */
#include "base/clock.h"
#include "ssh/ssh_server_impl.h"

#include <sys/random.h>

#define BURST_SECONDS 4 // so much of the rate at once, after a pause
#define TICK_MS 20

/* Two addresses may share a place, which the later one takes over; who meets whom is not for a stranger to know. */
static struct ssh_pace *find(struct ssh_server *server, uint64_t group, uint64_t now_ms)
{
    uint64_t mixed = (group ^ server->pace_secret) * UINT64_C(0x9e3779b97f4a7c15);
    struct ssh_pace *pace = &server->paces[mixed >> 56];
    double rate = server->settings.rate_of_address, most = rate * BURST_SECONDS;

    if (pace->group != group || !pace->since_ms)
        *pace = (struct ssh_pace){.group = group, .left = most};
    else
        pace->left += rate * (double)(now_ms - pace->since_ms) / 1000;
    pace->left = pace->left < most ? pace->left : most;
    pace->since_ms = now_ms;
    return pace;
}

static bool take_turn(struct ssh_server *server, const struct peer *peer, uint64_t now_ms)
{
    struct ssh_pace *pace = find(server, peer_group(peer), now_ms);

    if (pace->left < 1)
        return false;
    pace->left -= 1;
    return true;
}

/* The longest waiting first. */
static void on_tick(void *data)
{
    struct ssh_server *server = data;
    uint64_t now_ms = clock_monotonic_ms();
    struct ssh_connection *first;

    do {
        first = NULL;
        for (struct ssh_connection *at = server->connections; at; at = at->next) {
            if (at->is_paced) {
                loop_timer_set(&server->pace, TICK_MS);
                if (find(server, peer_group(&at->peer), now_ms)->left >= 1)
                    first = at; // new ones are in front
            }
        }
        if (first && take_turn(server, &first->peer, now_ms)) {
            first->is_paced = false;
            ssh_server_equip(first);
        }
    } while (first);
}

void ssh_pace_init(struct ssh_server *server)
{
    loop_timer_init(&server->pace, server->loop, on_tick, server);
    (void)getrandom(&server->pace_secret, sizeof server->pace_secret,
                    0); // without it, as good as none
}

void ssh_pace_equip(struct ssh_connection *connection)
{
    struct ssh_server *server = connection->server;

    if (connection->is_tunnel || take_turn(server, &connection->peer, clock_monotonic_ms())) {
        ssh_server_equip(connection);
        return;
    }
    connection->is_paced = true;
    loop_timer_set(&server->pace, TICK_MS);
}
