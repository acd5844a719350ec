#!/usr/bin/env python3
"""Runs every command of the README and the guides: each ```sh block, in order, one shell a file, in an
empty folder, with the built `tutti` first on the PATH. Lines that start with ./scripts/ or make are CI
stages of their own. A ```sh block that should not be run is written ```text."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
OWN_STAGE = re.compile(r"^\s*(\./scripts/|make |git clone|cd tutti)")


def commands_of(path):
    blocks = BLOCK.findall(path.read_text())
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if not OWN_STAGE.match(line)]


def main():
    environment = dict(os.environ, PATH=f"{ROOT / 'build/release/bin'}:{os.environ['PATH']}")
    failed, ran = [], 0
    for path in FILES:
        commands = commands_of(path)
        if not commands:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "examples", pathlib.Path(folder) / "examples")
            script = "set -eux\n" + "\n".join(commands) + "\n"
            done = subprocess.run(["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=600)
        ran += sum(1 for line in commands if line.strip() and not line.lstrip().startswith("#"))
        if done.returncode != 0:
            failed.append(f"{path.relative_to(ROOT)}:\n{done.stderr[-2000:]}")
    print("\n".join(failed) if failed else f"readme and guides: {ran} command lines run")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
