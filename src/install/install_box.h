/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The box in which packages are installed. Private to the folder.
 * Threads: any but loops; blocks.
 */
#pragma once
#include "base/buffer.h"
#include "install/install.h"

/* Installs into a scratch of this name, which stays. The box is gone when it returns. */
int install_box_run(struct engine *engine, const struct runtime_image *image, const char *list,
                    const struct install_options *options, const char *scratch, struct error *err);

/* Adds the names of all apt packages of the image's mirror, one a line. Within two minutes. */
int install_box_names(struct engine *engine, const struct runtime_image *image,
                      const struct install_options *options, struct buffer *names,
                      struct error *err);
