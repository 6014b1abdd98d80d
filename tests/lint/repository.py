"""The files of this repository, for the lint tests."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLMC_BUILD", ROOT / "build"))

CXX = (".cpp", ".h", ".c")


def files(*suffixes):
    """Paths relative to ROOT of the tracked and new files, with one of the suffixes if given."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(pathlib.PurePosixPath(f) for f in set(listed)
                  if f and (ROOT / f).is_file() and (not suffixes or f.endswith(suffixes)))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")
