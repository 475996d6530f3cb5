/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the built attacker, the list of kernel files a box may show and SECURITY.md; the paths come from the build. */
    .section .rodata
    .balign 16
    .global attacker_blob_start
    .hidden attacker_blob_start
attacker_blob_start:
    .incbin ATTACKER_PATH
    .global attacker_blob_end
    .hidden attacker_blob_end
attacker_blob_end:
    .byte 0
    .global golden_blob_start
    .hidden golden_blob_start
golden_blob_start:
    .incbin GOLDEN_PATH
    .byte 0
    .global security_blob_start
    .hidden security_blob_start
security_blob_start:
    .incbin SECURITY_PATH
    .byte 0
    .section .note.GNU-stack, "", @progbits
