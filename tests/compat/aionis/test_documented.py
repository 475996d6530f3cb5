# SPDX-License-Identifier: Apache-2.0
"""The vendor's examples in their own language, through a client of the same shape as theirs."""
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_documented_examples(server):
    environment = {**os.environ, "AIONIS_URL": f"http://127.0.0.1:{server.port}", "AIONIS_KEY": server.key}
    done = subprocess.run(["node", "documented.mjs"], cwd=HERE, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
