/* SPDX-License-Identifier: Apache-2.0 */
/* burrow-sftp as a file; see sftp_blob.h. */
#include "engine/sftp_blob.h"

#include "base/auto.h"
#include "base/fd.h"
#include "engine/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

extern const char burrow_sftp_start[] __attribute__((visibility("hidden")));
extern const char burrow_sftp_end[] __attribute__((visibility("hidden")));

int sftp_blob_open(struct error *err)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    autofd fd = memfd_create("burrow-sftp", flags | MFD_EXEC);

    if (fd < 0 && errno == EINVAL) // a kernel without MFD_EXEC
        fd = memfd_create("burrow-sftp", flags);
    if (fd < 0)
        return error_sys(err, "make a memory file for burrow-sftp (is vm.memfd_noexec 2?)");
    if (fd_write_all(fd, burrow_sftp_start, (size_t)(burrow_sftp_end - burrow_sftp_start)) < 0)
        return error_sys(err, "write burrow-sftp");
    // Not to be read: so nobody in a box may trace who executes it, or take its descriptors (would_dump in fs/exec.c).
    if (fchmod(fd, 0111) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return error_sys(err, "seal burrow-sftp");
    return take_fd(fd);
}
