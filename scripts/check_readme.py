#!/usr/bin/python3
"""Runs every command of the README and the guides: each ```sh and ```console block, in order, one shell a file,
in an empty folder, with the built `tutti` first on the PATH. Lines that start with ./scripts/ or make are CI
stages of their own. A block that should not be run is written ```text.

In a ```console block a command stands behind "$ ", and below it what it prints, which is compared line by line.
A line "..." stands for any lines. Not compared is what is measured: the columns `synthesis` and `took` of a table, the time and
the memory behind "took" at the begin of a line, and the time behind "made in"."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OWN_STAGE = re.compile(r"^\s*(\./scripts/|make |git clone|cd tutti)")


def steps_of(path):
    """(command, the lines it must print, or None) of the file's blocks in order."""
    steps = []
    for kind, block in BLOCK.findall(path.read_text()):
        if kind == "sh":
            lines = [line for line in block.splitlines() if not OWN_STAGE.match(line)]
            steps.append(("\n".join(lines), None))
            continue
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            elif steps and steps[-1][1] is not None:
                steps[-1][1].append(line)
            else:
                raise ValueError(f"{path}: a console block must begin with '$ ': {line}")
    return steps


def comparable(lines):
    """Without what is measured, and without blanks at the ends of lines."""
    measured = re.compile(r"(?<=^  took )\s*\S+ (?:ns|us|ms|s)\b|(?<=, made in )\S+ (?:ns|us|ms|s)\b|(?<=passes, )\d+ MiB")
    result, timed = [], False
    for line in lines:
        line = line.rstrip()
        if re.search(r"  (synthesis|took)$", line):
            timed = True
        elif not line:
            timed = False
        # With the blanks before, whose number depends on the longest.
        result.append(re.sub(r"\s+(\S+ (ns|us|ms|s)|synthesis|took)$", "", line) if timed else measured.sub("", line))
    while result and not result[-1]:
        result.pop()
    return result


def matches(wanted, printed):
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(matches(wanted[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and wanted[0] == printed[0] and matches(wanted[1:], printed[1:])


def run_file(path, environment):
    """The faults of one file, and how many command lines were run."""
    faults, steps = [], steps_of(path)
    with tempfile.TemporaryDirectory() as folder:
        for inputs in ("examples", "tests"):
            os.symlink(ROOT / inputs, pathlib.Path(folder) / inputs)
        # One shell, so that what a command sets is there for the next; a marker ends each one's output.
        script, mark = "set -eu\n", "### end of step"
        for command, _ in steps:
            script += f"{command}\necho '{mark}'\n"
        done = subprocess.run(["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=600)
    outputs = done.stdout.split(mark + "\n")
    if done.returncode != 0:
        failed = steps[min(len(outputs), len(steps)) - 1][0]
        faults.append(f"failed in:\n{failed}\n{done.stderr[-2000:]}")
    for (command, wanted), printed in zip(steps, outputs):
        if wanted is None:
            continue
        printed = comparable(printed.splitlines())
        if not matches(comparable(wanted), printed):
            faults.append(f"$ {command}\nprints now:\n" + "\n".join(printed))
    count = sum(1 for command, _ in steps for line in command.splitlines()
                if line.strip() and not line.lstrip().startswith("#"))
    return [f"{path.relative_to(ROOT)}: {fault}" for fault in faults], count


def main():
    environment = dict(os.environ, PATH=f"{ROOT / 'build/release/bin'}:{os.environ['PATH']}")
    failed, ran, compared = [], 0, 0
    for path in FILES:
        steps = steps_of(path)
        if not steps:
            continue
        faults, count = run_file(path, environment)
        failed += faults
        ran += count
        compared += sum(1 for _, wanted in steps if wanted is not None)
    print("\n".join(failed) if failed else
          f"readme and guides: {ran} command lines run, the output of {compared} compared")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
