/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of SFTP, version 3 (draft-ietf-secsh-filexfer-02, and OpenSSH's PROTOCOL where it differs): a request read into its parts, an answer
 * put together. Nothing here allocates or calls the kernel.
 * Threads: one per object.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SFTP_VERSION 3
#define SFTP_PACKET_MAX (256u << 10) // behind its length, as OpenSSH has it
#define SFTP_DATA_MAX (SFTP_PACKET_MAX - 1024)
#define SFTP_PATH_MAX 4096 // with its NUL
#define SFTP_HANDLE 8

enum sftp_type {
    SFTP_INIT = 1,
    SFTP_HELLO, // VERSION
    SFTP_OPEN,
    SFTP_CLOSE,
    SFTP_READ,
    SFTP_WRITE,
    SFTP_LSTAT,
    SFTP_FSTAT,
    SFTP_SETSTAT,
    SFTP_FSETSTAT,
    SFTP_OPENDIR,
    SFTP_READDIR,
    SFTP_REMOVE,
    SFTP_MKDIR,
    SFTP_RMDIR,
    SFTP_REALPATH,
    SFTP_STAT,
    SFTP_RENAME,
    SFTP_READLINK,
    SFTP_SYMLINK,
    SFTP_REQUESTS, // one more than the last
    SFTP_STATUS = 101,
    SFTP_HANDLED,
    SFTP_DATA,
    SFTP_NAME,
    SFTP_ATTRIBUTES,
    SFTP_EXTENDED = 200,
    SFTP_EXTENDED_REPLY,
};

/* Requests beyond the protocol's own, by their names; in the order in which they are announced. */
enum sftp_extension {
    SFTP_POSIX_RENAME,
    SFTP_STATVFS,
    SFTP_FSTATVFS,
    SFTP_HARDLINK,
    SFTP_FSYNC,
    SFTP_LSETSTAT,
    SFTP_LIMITS,
    SFTP_EXPAND_PATH,
    SFTP_EXTENSIONS,
};

enum sftp_status {
    SFTP_OK,
    SFTP_EOF,
    SFTP_NO_SUCH_FILE,
    SFTP_PERMISSION_DENIED,
    SFTP_FAILURE,
    SFTP_BAD_MESSAGE,
    SFTP_NO_CONNECTION,
    SFTP_CONNECTION_LOST,
    SFTP_UNSUPPORTED,
};

#define SFTP_HAS_SIZE 1u
#define SFTP_HAS_IDS 2u
#define SFTP_HAS_MODE 4u
#define SFTP_HAS_TIMES 8u
#define SFTP_HAS_MORE 0x80000000u

struct sftp_attributes {
    uint32_t flags;
    uint64_t size;
    uint32_t uid, gid, mode, accessed_at, modified_at;
};

/* A part of the packet it was read from. */
struct sftp_text {
    const char *at;
    uint32_t length;
};

#define SFTP_FOR_READING 1u
#define SFTP_FOR_WRITING 2u
#define SFTP_APPENDING 4u
#define SFTP_CREATING 8u
#define SFTP_TRUNCATING 0x10u
#define SFTP_EXCLUSIVE 0x20u

struct sftp_request {
    uint8_t type;
    uint32_t id;                   // of SFTP_INIT: the client's version
    enum sftp_extension extension; // SFTP_EXTENDED; SFTP_EXTENSIONS: one that is not known
    struct sftp_text handle, data;
    char path[SFTP_PATH_MAX], other[SFTP_PATH_MAX]; // "" where the request has none
    uint32_t flags, length;
    uint64_t offset;
    struct sftp_attributes attributes;
};

enum sftp_read {
    SFTP_IS_READ,
    SFTP_IS_UNKNOWN,   // a type that is none; id is set
    SFTP_IS_MALFORMED, // cut off, or a path with a NUL or too long; id is set
    SFTP_IS_GARBAGE,   // not even an id
};
/* `packet` is what comes behind the length. What stands behind a request's last part is ignored, as others do. */
enum sftp_read sftp_request_read(const void *packet, size_t length, struct sftp_request *out);

/* The length in front of a packet: 0 when there is none that could be one. */
uint32_t sftp_packet_length(const unsigned char bytes[4]);

/* Name and version of an extension. */
extern const char *const sftp_extension_names[SFTP_EXTENSIONS][2];

/* An answer on its way into memory that is large enough: the caller checks by SFTP_PACKET_MAX. */
struct sftp_answer {
    unsigned char *begin, *at;
};
void sftp_answer_begin(struct sftp_answer *answer, void *memory, enum sftp_type type, uint32_t id);
void sftp_put_number(struct sftp_answer *answer, uint32_t number);
void sftp_put_large(struct sftp_answer *answer, uint64_t number);
void sftp_put_text(struct sftp_answer *answer, const void *text, size_t length);
void sftp_put_attributes(struct sftp_answer *answer, const struct sftp_attributes *attributes);
/* Writes the length in front; returns how many bytes it is in all. */
size_t sftp_answer_end(struct sftp_answer *answer);
