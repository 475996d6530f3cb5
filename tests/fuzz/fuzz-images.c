/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: texts of images. The first byte chooses: an index, a manifest, a config. What is taken is within its bounds. */
#include "base/mem.h"
#include "runtime/oci_image.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_descriptor(const struct oci_descriptor *named)
{
    check(strlen(named->hex) == SHA256_TEXT - 1);
    check(strspn(named->hex, "0123456789abcdef") == SHA256_TEXT - 1);
    check(named->media_type && named->os && named->architecture && named->variant && named->name);
}

static int read_index(const struct data_value *root, struct error *err)
{
    struct oci_descriptor named;

    (void)oci_is_index(root);
    if (oci_index_choose(root, NULL, &named, err) < 0)
        return -1;
    check_descriptor(&named);
    (void)oci_index_choose(root, "latest", &named, err);
    return 0;
}

static int read_manifest(const struct data_value *root, struct error *err)
{
    struct oci_manifest manifest;

    if (oci_manifest_read(root, &manifest, err) < 0)
        return -1;
    check_descriptor(&manifest.config);
    check(manifest.n_layers <= OCI_MAX_LAYERS);
    for (size_t i = 0; i < manifest.n_layers; i++)
        check_descriptor(&manifest.layers[i]);
    free(manifest.layers);
    return 0;
}

static int read_config(const struct data_value *root, struct error *err)
{
    struct oci_config config;

    if (oci_config_read(root, 2, &config, err) < 0)
        return -1;
    for (const char **pair = config.env; pair && *pair; pair++)
        check(strchr(*pair, '=') > *pair);
    check(!config.directory || config.directory[0] == '/');
    check(!config.user || config.user[0]);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const struct data_value *,
                                  struct error *) = {read_index, read_manifest, read_config};
    autoptr(data_document) document = NULL;
    struct error err = {0};

    if (size == 0)
        return 0;
    if (oci_read("the text", (const char *)data + 1, size - 1, &document, &err) < 0 ||
        readers[data[0] % ARRAY_SIZE(readers)](document->root, &err) < 0)
        check(err.text[0]);
    return 0;
}
