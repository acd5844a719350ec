"""LAMMPS, a program that calls MPI_Alltoallv and most other collectives for real, prints the same digits with and without the
drop-in library. Fails where no call was intercepted. Needs Debian's lammps (Open MPI)."""
import os
import re
import subprocess
import sys

LIBRARY = os.path.abspath(os.path.join(os.environ.get("TUTTI_TEST_LIBRARIES", "build/release/lib"),
                                       "libtutti_mpi.so"))
INPUT = "examples/lammps/in.salt"
RANKS = 4
ALGORITHMS = ["auto", "tuna:r=2", "coalesced:r=2,b=1", "shared"]
OTHERS = ["ALLREDUCE", "ALLGATHER", "ALLGATHERV", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BCAST", "REDUCE", "GATHER",
          "SCATTER", "BARRIER"]


def run(*variables):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                       OMP_NUM_THREADS="1")
    command = ["mpirun.openmpi", "-np", str(RANKS)]
    for variable in variables:
        command += ["-x", variable]
    done = subprocess.run([*command, "lmp", "-in", INPUT, "-log", "none"], capture_output=True,
                          text=True, timeout=300, env=environment)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return done.stdout, done.stderr


def thermodynamics(output):
    """The table of the run: the head and a row every few steps."""
    rows = re.findall(r"^ *(?:Step|\d+) +\S.*$", output, re.M)
    rows = [row for row in rows if row.lstrip().startswith("Step") or row.count(".") >= 7]
    if len(rows) < 5:
        sys.exit(f"no table of a run in what lmp printed:\n{output}")
    return rows


def check_digits(what, output, expected):
    found = thermodynamics(output)
    for mine, its in zip(found, expected):
        if mine != its:
            sys.exit(f"{what}: other digits:\n  without {its}\n  with    {mine}")
    if len(found) != len(expected):
        sys.exit(f"{what}: {len(found)} rows, without {len(expected)}")
    return len(found) - 1


def main():
    expected = thermodynamics(run()[0])
    for algorithm in ALGORITHMS:
        output, report = run(f"LD_PRELOAD={LIBRARY}", f"TUTTI_ALLTOALLV={algorithm}", "TUTTI_VERBOSE=1")
        calls = sum(int(count) for count in
                    re.findall(r"^tutti: MPI_Alltoallv? +\d+ +\d+ \w+  \S+ +(\d+) ", report, re.M))
        if calls == 0:
            sys.exit(f"{algorithm}: no all-to-all was intercepted:\n{report}")
        rows = check_digits(algorithm, output, expected)
        print(f"lammps: {algorithm}: {calls} calls of rank 0 intercepted, {rows} rows of the same digits")
    output, report = run(f"LD_PRELOAD={LIBRARY}", "TUTTI_VERBOSE=1", *[f"TUTTI_{each}=shared" for each in OTHERS])
    served = {}
    for name, count in re.findall(r"^tutti: (MPI_\w+) +\d+ +\d+ \w+  shared +(\d+) ", report, re.M):
        served[name] = served.get(name, 0) + int(count)
    if "MPI_Allreduce" not in served or "MPI_Bcast" not in served:
        sys.exit(f"no collective was served through memory:\n{report}")
    rows = check_digits("shared", output, expected)
    print(f"lammps: served through memory: {served}, {rows} rows of the same digits")


if __name__ == "__main__":
    main()
