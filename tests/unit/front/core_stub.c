/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in until the core can be linked. */
#include "core/core.h"
struct keys *core_keys(struct core *core)
{
    abort();
}
void core_health(struct core *core, struct core_health *out)
{
    abort();
}
int key_check(struct keys *keys, const char *text, struct actor *out, struct error *err)
{
    abort();
}
bool key_check_quick(struct keys *keys, const char *text, struct actor *out)
{
    abort();
}
void keys_local_actor(struct keys *keys, struct actor *out)
{
    abort();
}
