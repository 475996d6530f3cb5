/* SPDX-License-Identifier: Apache-2.0 */
/* Whether packages can be found; see runtime_packages.h. */
#include "core/runtime_packages.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/runtime/runtimes.h"
#include "install/install_names.h"

#include <string.h>

bool runtime_package_is_name(const char *name)
{
    return install_is_name(name);
}

static int find(struct core *core, const char *const *names, bool *is_there, struct error *err)
{
    const struct install_options options = {.data_dir = core->settings.data_dir,
                                            .cancel_fd = runtimes_cancel_fd(core->runtimes)};
    autoptr(image) image = NULL;

    if (!runtimes_is_ready(core->runtimes, core->settings.default_runtime))
        return error_set(err, ERROR_UNAVAILABLE, "the default runtime is not built yet");
    if (image_get(core->runtimes, core->settings.default_runtime, &image, err) < 0)
        return -1;
    return install_names_find(core->engine, image_runtime(image), &options, names, is_there, err);
}

int runtime_packages_find(struct core *core, const char *const *names, bool *is_there,
                          struct error *err)
{
    size_t count = 0, n_asked = 0;
    struct error why = {0};

    while (names[count])
        count++;
    if (count > INSTALL_MOST)
        return error_refuse(err, ERROR_INVALID, "packages", "packages: at most %d", INSTALL_MOST);
    autofree const char **asked = xcalloc(count + 1, sizeof *asked);
    autofree bool *found = xcalloc(count + 1, sizeof *found);
    for (size_t i = 0; i < count; i++)
        if (install_is_name(names[i]))
            asked[n_asked++] = names[i];
    bool is_told = n_asked && find(core, asked, found, &why) == 0;
    if (n_asked && !is_told)
        log_info("packages were not looked up", F("why", (const char *)why.text));
    for (size_t i = 0, at = 0; i < count; i++) {
        is_there[i] = install_is_name(names[i]);
        if (is_there[i] && is_told)
            is_there[i] = found[at];
        at += install_is_name(names[i]);
    }
    return 0;
}
