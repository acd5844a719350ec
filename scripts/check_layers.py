#!/usr/bin/python3
"""Fails on an #include that the rooms' dependencies do not allow, and on headers of libraries that belong to the
.cc files of a few rooms. The dependencies are those of CMakeLists.txt, which the linker obeys; the table of
docs/architecture.md has to say the same."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Rooms that are no tutti_room(): compiled once for each MPI, and the commands.
OUTSIDE = {
    "mpi": ["tune"],
    "mpi_preload": ["mpi"],
    "mpi_run": ["runtime"],
    "cli": ["import", "design", "verify", "page", "advise", "training", "calibrate", "controller", "rpc", "launch", "tune", "experiments"],
}
# The executor runs a loaded plan: these rooms it may reach only through programs.
RUNTIME_HEADERS = {"tutti/lower/plan.h", "tutti/lower/block_program.h", "tutti/coll/collective.h"}
# Private headers that another room sees: of the program that is its face, and of the library that is built on it.
MAY_SEE_PRIVATE = {"experiments": {"cli"}, "service": {"controller"}, "rpc": {"cli"}, "mpi": {"mpi_preload"}, "runtime": {"communicator", "service", "mpi_run"}, "communicator": {"service"}}
# Public headers that stand above the rooms, and whose they are.
FACES = {"communicator.h": "communicator", "tutti.h": "communicator"}
# Third-party headers -> rooms whose .cc files may include them.
THIRD_PARTY = {
    "gmp.h": {"base", "lp"},
    "tbb/": {"base"},
    "nlohmann/": {"advise", "import", "topo", "store", "flow", "sim", "page", "lower", "runtime", "service", "controller", "rpc", "experiments", "cli"},
    "pugixml": {"import", "lower"},
    "yaml.h": {"import"},
    "coin/": {"lp"},
    "ClpSimplex": {"lp"},
    "Cbc": {"lp"},
    "Cgl": {"lp"},
    "OsiClp": {"lp"},
    "zstd.h": {"store"},
    "sqlite3.h": {"design"},
    "zlib.h": {"page"},
    "openssl/": {"service"},
    "fftw3.h": {"experiments"},
    "mpi.h": {"mpi", "mpi_preload", "mpi_run"},
    "hwloc": {"mpi"},
    "smpi/": {"mpi"},
    "grpcpp/": {"rpc"},
    "google/protobuf": {"rpc"},
    "CLI/": {"cli"},
    "spdlog/": {"cli"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
ROOM = re.compile(r"^\s*tutti_room\((\w+)(.*?)\)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (\w+) \| [^|]* \| ([^|]*) \|$", re.MULTILINE)


def rooms_of_cmake():
    """room -> rooms it may include (what those may include comes with them)"""
    rooms = dict(OUTSIDE)
    for name, rest in ROOM.findall((ROOT / "CMakeLists.txt").read_text()):
        words = rest.replace("\n", " ").split()
        depends = words[words.index("DEPENDS") + 1:] if "DEPENDS" in words else []
        rooms[name] = depends[:depends.index("LIBRARIES")] if "LIBRARIES" in depends else depends
    return rooms


def faults_of_table():
    """What docs/architecture.md says of the rooms and CMake does not."""
    path = ROOT / "docs/architecture.md"
    table = {name: set(re.findall(r"\w+", below)) - {"nothing"} for name, below in ROW.findall(path.read_text()) if name != "room"}
    for name in sorted(set(table) | set(DIRECT)):
        if table.get(name) != set(DIRECT.get(name, ["no such room"])):
            yield f"docs/architecture.md: room '{name}' may include {sorted(table.get(name, []))}, but it depends on {sorted(DIRECT.get(name, []))}"


DIRECT = rooms_of_cmake()


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
    return parts[1] if parts[0] == "src" else FACES.get(parts[2], parts[2])


def owner_of(path, header):
    """The room whose private header it is, or the includer's own where it is of no room."""
    room = room_of(path)
    own = (path.parent / header, ROOT / "src" / room / header)
    if any(place.exists() for place in own):
        return room
    if (ROOT / "src" / header).exists():
        return header.split("/")[0]
    return next((other for other in DIRECT if (ROOT / "src" / other / header).exists()), room)


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
            other = FACES.get(header.split("/")[1], header.split("/")[1])
            if other not in allowed:
                yield number, f"room '{room}' may not include '{header}'"
        else:
            other = owner_of(path, header)
            if other != room and room not in MAY_SEE_PRIVATE.get(other, ()):
                yield number, f"'{header}' is private to room '{other}'"
        for prefix, rooms in THIRD_PARTY.items():
            if not header.startswith(prefix):
                continue
            if is_header and path.is_relative_to(ROOT / "include") and room != "mpi":
                yield number, f"public headers do not include '{header}'"
            if room not in rooms:
                yield number, f"'{header}' belongs to {', '.join(sorted(rooms))}, not to '{room}'"


def main():
    files = sorted(p for top in ("src", "include") for p in (ROOT / top).rglob("*") if p.suffix in (".h", ".cc"))
    faults = [f"{p.relative_to(ROOT)}:{n}: {what}" for p in files for n, what in faults_of(p)] + list(faults_of_table())
    print("\n".join(faults) if faults else f"layers: {len(files)} files, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
