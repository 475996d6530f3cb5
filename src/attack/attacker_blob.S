/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the built burrow-attacker; ATTACKER_PATH comes from the build. */
    .section .blob, "a", @progbits // apart from what is read at every start
    .balign 16
    .global burrow_attacker_start
    .hidden burrow_attacker_start
burrow_attacker_start:
    .incbin ATTACKER_PATH
    .global burrow_attacker_end
    .hidden burrow_attacker_end
burrow_attacker_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
