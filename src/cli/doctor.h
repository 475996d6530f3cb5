/* SPDX-License-Identifier: Apache-2.0 */
/* burrow doctor: says what this machine can do for boxes, and what to do about the rest. */
#pragma once

/* 0: burrow can run here. 1: it cannot. 2: wrong usage. */
int cli_doctor(int argc, char **argv);
