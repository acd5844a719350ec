#!/usr/bin/python3
"""Compiles each public header alone, with the compilers given (default: g++)."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def flags_of_mpi():
    """Headers of the room mpi speak of MPI's types."""
    return subprocess.run(["pkg-config", "--cflags", "ompi-c"], capture_output=True, text=True).stdout.split()


def compile_alone(compiler, header):
    extra = flags_of_mpi() if header.parent.name == "mpi" else []
    done = subprocess.run(
        [compiler, *extra, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header",
         f"-I{ROOT / 'include'}", "-x", "c++", str(header)],
        capture_output=True, text=True)
    return header, compiler, done.returncode, done.stderr


def main():
    compilers = sys.argv[1:] or ["g++"]
    headers = sorted((ROOT / "include").rglob("*.h"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(compile_alone, c, h) for c in compilers for h in headers]
        bad = [job.result() for job in jobs if job.result()[2] != 0]
    for header, compiler, _, errors in bad:
        print(f"{header.relative_to(ROOT)} does not compile alone with {compiler}:\n{errors}")
    if not bad:
        print(f"self-contained: {len(headers)} headers, {', '.join(compilers)}, no fault")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
