/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each seed of a fuzz target to it once, as a test: a target that survives a seed passes. Usage: TARGET SEED-DIR */
#include "base/auto.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_SEED_BYTES (4u << 20)

static int is_seed(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In a block of exactly its size, so that a sanitizer sees a read past the end. */
static int replay(const char *path)
{
    static uint8_t content[MAX_SEED_BYTES];
    autofile file = fopen(path, "re");
    if (!file)
        return -1;
    size_t size = fread(content, 1, sizeof content, file);
    autofree uint8_t *exact = malloc(size ? size : 1);
    if (!exact || ferror(file))
        return -1;
    memcpy(exact, content, size);
    LLVMFuzzerTestOneInput(exact, size);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **seeds;
    int count = argc == 2 ? scandir(argv[1], &seeds, is_seed, alphasort) : -1;
    if (count < 0) {
        perror(argc == 2 ? argv[1] : "usage: TARGET SEED-DIR");
        return 2;
    }
    int failed = 0;
    printf("TAP version 13\n1..%d\n", count + 1);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    printf("ok 1 - nothing at all\n");
    for (int i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], seeds[i]->d_name);
        (void)fflush(stdout);
        int status = replay(path);
        printf("%sok %d - %s\n", status < 0 ? "not " : "", i + 2, seeds[i]->d_name);
        failed += status < 0;
        free(seeds[i]);
    }
    free(seeds);
    return failed > 0;
}
