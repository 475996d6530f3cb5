/* SPDX-License-Identifier: Apache-2.0 */
/* A server has a key before anybody can reach it. */
#pragma once
#include "core/key.h"
#include "serve/config.h"

/*
 * Puts BURROW_API_KEY among the keys, in place of the one it was before. Where there is none and never was any key, makes the first one, whose
 * text comes out in `text` (KEY_TEXT bytes; else ""). ERROR_DENIED when the server would listen beyond this machine and no key is in use.
 */
int first_key_prepare(struct keys *keys, const struct config *config, char *text,
                      struct error *err);
