/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the built burrow-init; INIT_PATH comes from the build. */
    .section .blob, "a", @progbits // apart from what is read at every start
    .balign 16
    .global init_blob_start
    .hidden init_blob_start
init_blob_start:
    .incbin INIT_PATH
    .global init_blob_end
    .hidden init_blob_end
init_blob_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
