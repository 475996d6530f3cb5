/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For 'burrow runtime remove', which cannot read the database: who has the runtime that it could not remove.
 * usage: users DATA RUNTIME SENTENCE, the last being what is said where no record tells more
 */
#include "serve/serve.h"

#include "base/mem.h"
#include "core/repair.h"
#include "core/sandbox/runtime_users.h"
#include "store/store.h"

#include <unistd.h>

static void name_recorded(const char *data_dir, const char *runtime, struct error *err)
{
    autofree char *path = xasprintf("%s/burrow.db", data_dir);
    autoptr(store) store = NULL;
    struct error ignored = {0};

    if (access(path, F_OK) < 0 || repair_check(data_dir, &ignored) < 0 ||
        store_open(data_dir, &store, &ignored) < 0)
        return; // there was no server, or its database is unfit: the processes were named
    (void)runtime_name_recorded(store, runtime, err);
}

int users_command(int argc, char **argv)
{
    struct error err = {0};

    if (argc != 4)
        return 2;
    (void)error_refuse(&err, ERROR_BUSY, "runtime", "%s", argv[3]);
    name_recorded(argv[1], argv[2], &err);
    return serve_fail(&err);
}
