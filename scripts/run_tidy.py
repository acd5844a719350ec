#!/usr/bin/env python3
"""clang-tidy over src/, with the checks of .clang-tidy; fails on any finding."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "clang"


def tidy(path):
    done = subprocess.run(["clang-tidy-14", "-p", str(BUILD), "--quiet", "--warnings-as-errors=*", str(path)],
                          capture_output=True, text=True)
    return path, done.returncode, done.stdout


def main():
    if not (BUILD / "compile_commands.json").exists():
        print("build the preset clang first: scripts/build clang")
        return 2
    files = sorted((ROOT / "src").rglob("*.cc"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tidy, files))
    bad = [(path, text) for path, code, text in results if code != 0]
    for path, text in bad:
        print(f"{path.relative_to(ROOT)}\n{text}")
    if not bad:
        print(f"clang-tidy: {len(files)} files, no finding")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
