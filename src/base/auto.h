/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup attributes: what a function opened is closed at every return, unless it is handed on with take().
 * Threads: plain values.
 */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void closep(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        (void)close(*fd);
        errno = saved;
    }
    *fd = -1;
}

static inline void freep(void *p)
{
    free(*(void **)p);
}

static inline void fclosep(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}

static inline void closedirp(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

#define autofd __attribute__((cleanup(closep), unused)) int
#define autofree __attribute__((cleanup(freep), unused))
#define autofile __attribute__((cleanup(fclosep), unused)) FILE *
#define autodir __attribute__((cleanup(closedirp), unused)) DIR *
#define autoptr(T) __attribute__((cleanup(T##_freep), unused)) struct T *
/* A struct whose T_clear gives back what is in it: autoclear(page) page = {0}; */
#define autoclear(T) __attribute__((cleanup(T##_clear), unused)) struct T
#define DEFINE_AUTOPTR(T)                                                                          \
    static inline void T##_freep(struct T **p)                                                     \
    {                                                                                              \
        T##_free(*p);                                                                              \
    }
#define take(p)                                                                                    \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
#define take_fd(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })
#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))
