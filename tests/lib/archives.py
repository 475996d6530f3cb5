# SPDX-License-Identifier: Apache-2.0
"""Archives made by hand, good and bad."""
import io
import tarfile


def member(name, data=b"", mode=0o644, **fields):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def tar_of(*members, format=tarfile.PAX_FORMAT, compress=True):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if compress else "w", format=format) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
