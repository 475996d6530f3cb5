/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: files of the kernel about control groups, whatever they say: fields of statistics, numbers, lists of processes. */
#include "place.h"

#include "base/mem.h"
#include "engine/cgroup_impl.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(pid_t pid, void *data)
{
    (void)pid;
    ++*(size_t *)data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    struct error err = {0};
    uint64_t number = 0;
    size_t pids = 0;

    (void)knob_field(text, "oom_kill");
    (void)knob_field(text, "");
    place_put("knob", data, size);
    if (knob_read_number(place_open(), ".", "knob", &number, &err) < 0 && !err.text[0])
        abort();
    if (knob_read_field(place_open(), ".", "knob", "usage_usec", &number, &err) < 0 && !err.text[0])
        abort();
    int listed = knob_each_pid(place_open(), ".", "knob", count, &pids, &err);
    if (listed < 0 || (size_t)listed != pids || pids > size)
        abort();
    return 0;
}
