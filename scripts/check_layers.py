#!/usr/bin/env python3
"""Fails on an #include that the table of rooms does not allow, and on headers of libraries that
belong to the .cc files of a few rooms. The table is docs/architecture.md's "Rooms"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# room -> rooms it may include (what those may include comes with them)
DIRECT = {
    "base": [],
    "graph": ["base"],
    "lp": ["base"],
    "topo": ["graph"],
    "coll": ["topo", "lp"],
    "sched": ["coll"],
    "verify": ["sched"],
    "synth": ["sched", "lp"],
    "design": ["synth"],
    "sim": ["sched"],
    "reproduce": ["design", "verify", "sim", "alltoallv"],
    "lower": ["sched"],
    "runtime": ["lower"],
    "alltoallv": ["base"],
    "mpi": ["alltoallv"],
    "cli": ["reproduce", "lower", "runtime", "alltoallv"],
}
# The executor runs a loaded plan: these rooms it may reach only through lower/plan.h.
RUNTIME_HEADERS = {"tutti/lower/plan.h", "tutti/coll/collective.h"}
# Third-party headers -> rooms whose .cc files may include them.
THIRD_PARTY = {
    "gmp.h": {"base"},
    "tbb/": {"base"},
    "nlohmann/": {"topo", "sched", "synth", "sim", "runtime", "cli"},
    "pugixml": {"lower"},
    "coin/": {"lp"},
    "ClpSimplex": {"lp"},
    "Cbc": {"lp"},
    "Cgl": {"lp"},
    "OsiClp": {"lp"},
    "zstd.h": {"sched"},
    "sqlite3.h": {"design"},
    "fftw3.h": {"reproduce"},
    "mpi.h": {"mpi"},
    "hwloc": {"mpi"},
    "smpi/": {"mpi"},
    "CLI/": {"cli"},
    "spdlog/": {"cli"},
    "fmt/": set(DIRECT),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def closure(room):
    seen, todo = set(), [room]
    while todo:
        for below in DIRECT[todo.pop()]:
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen | {room}


def room_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[2]


def faults_of(path):
    room, is_header = room_of(path), path.suffix == ".h"
    if room not in DIRECT:
        yield 0, f"room '{room}' is not in the table"
        return
    allowed = closure(room)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        if header.startswith("tutti/"):
            other = header.split("/")[1]
            if other not in allowed:
                yield number, f"room '{room}' may not include '{header}'"
            if room == "runtime" and other not in ("base", "runtime") and header not in RUNTIME_HEADERS:
                yield number, f"the executor sees only loaded plans, not '{header}'"
        for prefix, rooms in THIRD_PARTY.items():
            if not header.startswith(prefix):
                continue
            if is_header and path.is_relative_to(ROOT / "include") and room != "mpi":
                yield number, f"public headers do not include '{header}'"
            if room not in rooms:
                yield number, f"'{header}' belongs to {', '.join(sorted(rooms))}, not to '{room}'"


def main():
    files = sorted(p for top in ("src", "include") for p in (ROOT / top).rglob("*") if p.suffix in (".h", ".cc"))
    faults = [f"{p.relative_to(ROOT)}:{n}: {what}" for p in files for n, what in faults_of(p)]
    print("\n".join(faults) if faults else f"layers: {len(files)} files, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
