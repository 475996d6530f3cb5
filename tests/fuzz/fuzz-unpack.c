/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: any bytes as an archive, as burrow-archive reads them. What it sends is what its server takes: it stays within what was
 * agreed on, and ends whole or with a sentence. The first byte chooses the format.
 */
#include "archive/program.h"
#include "archive/records.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ENTRIES 64
#define MAX_BYTES ((uint64_t)1 << 20)

static struct records records;
static struct program program;

/* The server's end. */
void program_send(uint16_t type, const void *data, size_t length)
{
    static uint8_t packet[sizeof(struct files_header) + FILES_MAX_FRAME];
    const struct files_header header = {.type = type, .length = (uint32_t)length};
    struct files_frame frame;
    struct files_item item;

    memcpy(packet, &header, sizeof header);
    memcpy(packet + sizeof header, data, length);
    if (!files_frame_parse(packet, sizeof header + length, &frame))
        abort();
    if (type == FILES_RECORDS) {
        const uint8_t *content;
        for (size_t at = 0; at < frame.length;)
            if (!records_take_whole(&records, &frame, &at, &item, &content))
                abort();
        return;
    }
    if (type == FILES_ITEM ? !records_take_item(&records, &frame, &item)
                           : !records_take_data(&records, &frame))
        abort();
}

/* The archive is fd 1 for burrow-archive; whoever prints there gets it back. */
static int unpack(const uint8_t *data, size_t size, struct error *err)
{
    autofd archive = memfd_create("archive", MFD_CLOEXEC);
    autofd printed = dup(PROGRAM_ARCHIVE);

    if (archive < 0 || printed < 0 || fd_write_all(archive, data, size) < 0 ||
        lseek(archive, 0, SEEK_SET) < 0 || dup2(archive, PROGRAM_ARCHIVE) < 0)
        abort();
    int result = program_unpack(&program, err);
    if (dup2(printed, PROGRAM_ARCHIVE) < 0)
        abort();
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};

    if (size == 0)
        return 0;
    program = (struct program){.is_unpacking = true,
                               .format = data[0] % (ARCHIVE_TAR_ZSTD + 1),
                               .max_bytes = MAX_BYTES,
                               .max_entries = MAX_ENTRIES};
    records = (struct records){.entries = MAX_ENTRIES, .bytes = MAX_BYTES};
    int result = unpack(data + 1, size - 1, &err);
    if (result < 0 ? !err.text[0] : records.data_left != 0)
        abort();
    return 0;
}
