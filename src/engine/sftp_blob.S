/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the built burrow-sftp; SFTP_PATH comes from the build. */
    .section .blob, "a", @progbits // apart from what is read at every start
    .balign 16
    .global burrow_sftp_start
    .hidden burrow_sftp_start
burrow_sftp_start:
    .incbin SFTP_PATH
    .global burrow_sftp_end
    .hidden burrow_sftp_end
burrow_sftp_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
