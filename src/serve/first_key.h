/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server has a key before anybody can reach it.
 * Threads: one thread; the main one, before there are others.
 */
#pragma once
#include "core/account/key.h"
#include "serve/config.h"

/*
 * Before anything is touched: whether BURROW_API_KEY is one (ERROR_INVALID), and, where the server would listen beyond this machine,
 * whether there is a key (ERROR_DENIED). Looks at a database that exists, and changes nothing in it.
 */
int first_key_check(const struct config *config, struct error *err);

/*
 * Puts BURROW_API_KEY among the keys, in place of the one it was before. Where there is none and never was any key, makes the first one, whose
 * text comes out in `text` (KEY_TEXT bytes; else ""). A stand-in changes no keys: nobody would see a first one, and the variable is that of the
 * command that started it.
 */
int first_key_prepare(struct accounts *accounts, const struct config *config, char *text,
                      struct error *err);
