# SPDX-License-Identifier: Apache-2.0
"""The project's own rules about itself: who may include whom, and how long things may be."""
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_includes_point_downwards_only():
    done = subprocess.run([TOP / "tools/check-layers"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_an_arrow_that_is_not_in_the_table_is_found(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base/x.c").write_text('#include "engine/box.h"\n')
    done = subprocess.run([TOP / "tools/check-layers", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'base must not include "engine/box.h"' in done.stdout
