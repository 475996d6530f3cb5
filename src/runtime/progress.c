/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the output of mmdebstrap into progress; see progress.h. */
#include "runtime/progress.h"

#include "base/auto.h"

#include <string.h>

// In order. Where each starts was measured over whole builds; inside a phase, steps are counted.
static const struct {
    const char *starts_with; // of the line that begins it
    const char *text;
    unsigned permille;
    unsigned steps_per_package;
} phases[] = {
    {"", "starting", 0, 0},
    {"I: running apt-get update", "reading package lists", 10, 0},
    {"I: downloading packages", "downloading essential packages", 50, 1},
    {"I: extracting archives", "extracting essential packages", 110, 0},
    {"I: installing essential packages", "installing essential packages", 220, 2},
    {"I: installing remaining packages", "installing packages", 420, 3},
    {"I: downloading npm packages", "downloading npm packages", 845, 0},
    {"I: setting npm packages up", "setting npm packages up", 848, 0},
    {"I: cleaning package lists", "cleaning up", 850, 0},
};

#define LAST_PERMILLE 860

void progress_start(struct progress_reader *reader)
{
    *reader = (struct progress_reader){.now = {.phase = phases[0].text, .detail = ""}};
}

static bool starts_with(const char *line, const char *start)
{
    return strncmp(line, start, strlen(start)) == 0;
}

static bool enter_phase(struct progress_reader *reader, const char *line)
{
    for (unsigned i = reader->phase + 1; i < ARRAY_SIZE(phases); i++) {
        if (!starts_with(line, phases[i].starts_with))
            continue;
        reader->phase = i;
        reader->done = 0;
        reader->total = reader->packages * phases[i].steps_per_package;
        reader->name[0] = '\0';
        reader->now = (struct runtime_progress){phases[i].text, reader->name, phases[i].permille};
        return true;
    }
    return false;
}

// "0 upgraded, 105 newly installed, ..."; and what is cached needs no download step.
static void read_counts(struct progress_reader *reader, const char *line)
{
    const char *comma = strstr(line, " upgraded, ");

    if (comma && strstr(line, " newly installed")) {
        reader->packages = (unsigned)strtoul(comma + strlen(" upgraded, "), NULL, 10);
        reader->total = reader->packages * phases[reader->phase].steps_per_package;
    }
    if (starts_with(line, "Need to get 0 B/") && phases[reader->phase].steps_per_package == 3)
        reader->done = reader->packages;
}

// The package's name out of "Unpacking git (1:2.39) ..." or "Get:3 http://... git amd64 ...".
static void keep_name(struct progress_reader *reader, const char *line)
{
    const char *at = line;

    if (starts_with(line, "Get:")) {
        for (int words = 0; words < 4 && at; words++)
            at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
    } else {
        at = starts_with(line, "Setting up ") ? line + 11 : line + 10;
    }
    size_t length = at ? strcspn(at, " :(") : 0;
    if (length >= sizeof reader->name)
        length = sizeof reader->name - 1;
    if (at)
        memcpy(reader->name, at, length);
    reader->name[length] = '\0';
}

bool progress_read(struct progress_reader *reader, const char *line)
{
    if (enter_phase(reader, line))
        return true;
    read_counts(reader, line);
    if (!phases[reader->phase].steps_per_package)
        return false;
    bool is_get = starts_with(line, "Get:");
    bool is_install = starts_with(line, "Unpacking ") || starts_with(line, "Setting up ");
    bool counts_gets = phases[reader->phase].steps_per_package != 2;
    if (!(is_get && counts_gets) && !is_install)
        return false;
    keep_name(reader, line);
    if (reader->done < reader->total)
        reader->done++;
    unsigned from = phases[reader->phase].permille;
    unsigned to =
        reader->phase + 1 < ARRAY_SIZE(phases) ? phases[reader->phase + 1].permille : LAST_PERMILLE;
    if (reader->total)
        reader->now.permille = from + (to - from) * reader->done / reader->total;
    return true;
}
