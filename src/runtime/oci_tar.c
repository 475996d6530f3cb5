/* SPDX-License-Identifier: Apache-2.0 */
/* Writes entries of a tar; see oci_tar.h. */
#include "runtime/oci_tar.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "runtime/oci_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SIZE 077777777777ULL // that eleven octal digits hold

struct head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct head) == OCI_TAR_BLOCK, "one block");

/* Digits with leading zeros and a NUL. */
static void put_number(char *field, size_t size, uint64_t number)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; number >>= 3)
        field[i] = (char)('0' + (number & 7));
}

/* A text without its end fills a field to the last byte. */
static void put_text(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);
    memcpy(field, text, length < size ? length : size);
}

static void put_sum(struct head *head)
{
    unsigned sum = 0;

    memset(head->sum, ' ', sizeof head->sum);
    for (size_t i = 0; i < sizeof *head; i++)
        sum += ((const uint8_t *)head)[i];
    put_number(head->sum, 7, sum);
}

static char type_of(const struct files_item *item)
{
    if (item->is_hard_link)
        return '1';
    return S_ISDIR(item->mode) ? '5' : S_ISLNK(item->mode) ? '2' : '0';
}

static uint64_t size_of(const struct files_item *item)
{
    return type_of(item) == '0' ? item->size : 0;
}

static void fill_head(const struct files_item *item, char type, struct head *head)
{
    uint64_t seconds = item->mtime_ns > 0 ? (uint64_t)item->mtime_ns / 1000000000 : 0;
    uint64_t size = type == 'x' ? item->size : size_of(item);

    memset(head, 0, sizeof *head);
    put_text(head->name, sizeof head->name, item->path);
    put_number(head->mode, sizeof head->mode, item->mode & 07777);
    put_number(head->uid, sizeof head->uid, item->uid);
    put_number(head->gid, sizeof head->gid, item->gid);
    put_number(head->size, sizeof head->size, size > MAX_SIZE ? 0 : size);
    put_number(head->mtime, sizeof head->mtime, seconds > MAX_SIZE ? 0 : seconds);
    head->type = type;
    put_text(head->link, sizeof head->link, item->target);
    memcpy(head->magic, "ustar", 6);
    memcpy(head->version, "00", 2);
    put_number(head->major, sizeof head->major, 0);
    put_number(head->minor, sizeof head->minor, 0);
    put_sum(head);
}

void oci_tar_head(const struct files_item *item, uint8_t head[OCI_TAR_BLOCK])
{
    struct head filled;

    fill_head(item, '0', &filled);
    memcpy(head, &filled, sizeof filled);
}

// ---- what a head has no room for ----

/* "LENGTH KEY=VALUE\n", the length being of all of it. */
static int add_record(struct buffer *out, const char *key, const char *name, const void *value,
                      size_t size, struct error *err)
{
    size_t rest = strlen(key) + strlen(name) + size + 3, length = rest + 1;

    while (length < rest + (size_t)snprintf(NULL, 0, "%zu", length))
        length++;
    if (buffer_addf(out, err, "%zu %s%s=", length, key, name) < 0 ||
        buffer_add(out, value, size, err) < 0)
        return -1;
    return buffer_add(out, "\n", 1, err);
}

static int add_text(struct buffer *out, const char *key, const char *text, struct error *err)
{
    return add_record(out, key, "", text, strlen(text), err);
}

static int gather(const struct files_item *item, const struct oci_attribute *attributes,
                  size_t n_attributes, struct buffer *out, struct error *err)
{
    char number[24];

    if (strlen(item->path) > sizeof((struct head *)0)->name &&
        add_text(out, "path", item->path, err) < 0)
        return -1;
    if (strlen(item->target) > sizeof((struct head *)0)->link &&
        add_text(out, "linkpath", item->target, err) < 0)
        return -1;
    (void)snprintf(number, sizeof number, "%" PRIu64, size_of(item));
    if (size_of(item) > MAX_SIZE && add_text(out, "size", number, err) < 0)
        return -1;
    for (size_t i = 0; i < n_attributes; i++)
        if (add_record(out, "SCHILY.xattr.", attributes[i].name, attributes[i].value,
                       attributes[i].size, err) < 0)
            return -1;
    return 0;
}

int oci_tar_entry(const struct files_item *item, const struct oci_attribute *attributes,
                  size_t n_attributes,
                  int (*add)(void *data, const void *bytes, size_t length, struct error *err),
                  void *data, struct error *err)
{
    static const uint8_t zeros[OCI_TAR_BLOCK];
    autobuffer more = {0};
    struct head head;

    if (gather(item, attributes, n_attributes, &more, err) < 0)
        return -1;
    if (more.length) {
        const struct files_item extension = {
            .path = "PaxHeaders/x", .target = "", .mode = S_IFREG | 0644, .size = more.length};
        size_t rest = more.length % OCI_TAR_BLOCK;
        fill_head(&extension, 'x', &head);
        if (add(data, &head, sizeof head, err) < 0 || add(data, more.data, more.length, err) < 0 ||
            (rest && add(data, zeros, OCI_TAR_BLOCK - rest, err) < 0))
            return -1;
    }
    fill_head(item, type_of(item), &head);
    return add(data, &head, sizeof head, err);
}
