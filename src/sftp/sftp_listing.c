/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a file; see sftp_listing.h. */
#include "sftp/sftp_listing.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HALF_A_YEAR (365 / 2 * 24 * 60 * 60)

struct sftp_attributes sftp_attributes_of(const struct stat *status)
{
    return (struct sftp_attributes){
        .flags = SFTP_HAS_SIZE | SFTP_HAS_IDS | SFTP_HAS_MODE | SFTP_HAS_TIMES,
        .size = (uint64_t)status->st_size,
        .uid = status->st_uid,
        .gid = status->st_gid,
        .mode = status->st_mode,
        .accessed_at = (uint32_t)status->st_atime,
        .modified_at = (uint32_t)status->st_mtime,
    };
}

static const char *user_name(uint32_t id)
{
    const struct passwd *found = getpwuid(id);
    return found ? found->pw_name : NULL;
}

static const char *group_name(uint32_t id)
{
    const struct group *found = getgrgid(id);
    return found ? found->gr_name : NULL;
}

static const char *name_of(struct sftp_person known[SFTP_NAMES_KNOWN], uint32_t id,
                           const char *(*look_up)(uint32_t id))
{
    struct sftp_person *person = &known[id % SFTP_NAMES_KNOWN];

    if (*person->name && person->id == id)
        return person->name;
    const char *name = look_up(id);
    person->id = id;
    if (name && *name)
        (void)snprintf(person->name, sizeof person->name, "%.32s", name);
    else
        (void)snprintf(person->name, sizeof person->name, "%u", id);
    return person->name;
}

static void write_mode(mode_t mode, char out[11])
{
    static const struct {
        mode_t type;
        char letter;
    } types[] = {{S_IFREG, '-'}, {S_IFDIR, 'd'}, {S_IFLNK, 'l'}, {S_IFCHR, 'c'},
                 {S_IFBLK, 'b'}, {S_IFIFO, 'p'}, {S_IFSOCK, 's'}};
    static const char letters[] = "rwxrwxrwx";

    out[0] = '?';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((mode & S_IFMT) == types[i].type)
            out[0] = types[i].letter;
    for (int i = 0; i < 9; i++)
        out[i + 1] = mode & (0400u >> i) ? letters[i] : '-';
    if (mode & S_ISUID)
        out[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        out[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        out[9] = mode & S_IXOTH ? 't' : 'T';
    out[10] = '\0';
}

size_t sftp_listing_line(struct sftp_people *people, const char *name, const struct stat *status,
                         char line[SFTP_LINE_MAX])
{
    bool is_old = people->now < status->st_mtime || people->now - status->st_mtime > HALF_A_YEAR;
    char mode[11], when[16];
    struct tm parts;

    write_mode(status->st_mode, mode);
    if (!localtime_r(&(time_t){status->st_mtime}, &parts) ||
        !strftime(when, sizeof when, is_old ? "%b %e  %Y" : "%b %e %H:%M", &parts))
        (void)snprintf(when, sizeof when, "?");
    int length =
        snprintf(line, SFTP_LINE_MAX, "%s %3u %-8s %-8s %8llu %s %.255s", mode,
                 (unsigned)status->st_nlink, name_of(people->users, status->st_uid, user_name),
                 name_of(people->groups, status->st_gid, group_name),
                 (unsigned long long)status->st_size, when, name);
    return length < 0 ? 0 : length < SFTP_LINE_MAX ? (size_t)length : SFTP_LINE_MAX - 1;
}
