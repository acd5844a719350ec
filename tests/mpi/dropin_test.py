"""The drop-in library in programs that know nothing of it: right answers in C and Fortran, what the
environment asks for, and standing aside wherever it has no business. Run once for each MPI."""
import os
import re
import subprocess
import tempfile
import unittest

MPI = os.environ.get("TUTTI_TEST_MPI", "openmpi")
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}[MPI]
PROGRAMS = os.environ.get("TUTTI_TEST_PROGRAMS", "build/relassert/dropin")
LIBRARIES = os.environ.get("TUTTI_TEST_LIBRARIES", "build/relassert/lib")
NAMES = {"openmpi": "libtutti_mpi.so", "mpich": "libtutti_mpi_mpich.so"}
# MPICH takes tens of milliseconds an exchange once there are more ranks than cores.
RANKS = {"openmpi": 4, "mpich": 2}[MPI]
ALGORITHMS = ["auto", "mpi", "linear", "pairwise", "spread-out", "scattered:b=2",
              "two-phase-bruck", "padded-bruck", "tuna", "tuna:r=2", "tuna:r=64", "coalesced:r=2,b=1",
              "staggered", "multilevel", "shared", "shared-coalesced:b=1"]
if MPI == "mpich":
    ALGORITHMS = ["auto", "mpi", "linear", "tuna:r=2", "padded-bruck", "coalesced:r=2,b=1", "shared"]


COLLECTIVES = ["Allreduce", "Allgather", "Allgatherv", "Reduce_scatter", "Reduce_scatter_block", "Bcast", "Reduce",
               "Gather", "Scatter", "Barrier"]


def library(mpi=MPI):
    return os.path.abspath(os.path.join(LIBRARIES, NAMES[mpi]))


def program(name, mpi=MPI):
    return os.path.abspath(os.path.join(PROGRAMS, mpi, name))


def launch(name, *arguments, ranks=RANKS, mpi=MPI, preload=None, timeout=900, **variables):
    """mpirun of that MPI; the variables reach the ranks and nothing else, as LD_PRELOAD must. The time is for what hangs: MPICH's
    ranks wait spinning, and where others want the cores every exchange takes a turn of the scheduler."""
    variables["LD_PRELOAD"] = library() if preload is None else preload
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")
    command = [f"mpirun.{mpi}", "-np", str(ranks)]
    for key, value in variables.items():
        if value == "":
            continue
        command += ["-x", f"{key}={value}"] if mpi == "openmpi" else ["-genv", key, value]
    return subprocess.run(command + [name if os.path.isabs(name) else program(name, mpi),
                                     *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout, env=environment)


def symbols(path, *options):
    done = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in done.stdout.splitlines()]


def needed(path):
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)


class Dropin(unittest.TestCase):
    def ok(self, *arguments, says="0 faults", **options):
        done = launch(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn(says, done.stdout)
        return done

    def calls(self, report, name):
        """How many calls of MPI_`name` the report says Tutti or the library served, by algorithm."""
        rows = re.findall(rf"^tutti: {name} +\d+ +\d+ \w+  (\S+) +(\d+) ", report, re.M)
        served = {}
        for algorithm, count in rows:
            served[algorithm] = served.get(algorithm, 0) + int(count)
        return served


class Answers(Dropin):
    def test_c_program_with_every_algorithm(self):
        for algorithm in ALGORITHMS:
            with self.subTest(algorithm=algorithm):
                done = self.ok("exchange", TUTTI_ALLTOALLV=algorithm)
                self.assertEqual(done.stderr, "")

    def test_fortran_programs(self):
        for name in ("fortran_mpif", "fortran_use_mpi", "fortran_use_mpi_f08"):
            with self.subTest(program=name):
                done = self.ok(name, TUTTI_ALLTOALLV="spread-out", TUTTI_VERBOSE="1")
                self.assertEqual(self.calls(done.stderr, "MPI_Alltoallv"), {"spread-out": 3})
                self.assertEqual(self.calls(done.stderr, "MPI_Alltoall"), {"spread-out": 1})
                self.assertIn("Ialltoallv               passed on to the MPI library, calls: 1", done.stderr)
                if name == "fortran_mpif":
                    self.assertIn("Alltoallv_init           passed on to the MPI library, calls: 1", done.stderr)

    def test_other_collectives_in_c_and_fortran(self):
        for name in ("collectives", "fortran_collectives"):
            for service in ("shared", "native", "auto"):
                with self.subTest(program=name, service=service):
                    variables = {f"TUTTI_{each.upper()}": service for each in COLLECTIVES}
                    done = self.ok(name, TUTTI_VERBOSE="1", **variables)
                    served = {"shared": "shared"}.get(service, "mpi")
                    for each in COLLECTIVES:
                        self.assertIn(served, self.calls(done.stderr, f"MPI_{each}"), done.stderr)
                    self.assertIn("Iallreduce               passed on to the MPI library, calls: 1", done.stderr)

    def test_other_collectives_on_several_nodes(self):
        """Two nodes, of two ranks and of one: in stages; those that have none are the MPI library's."""
        variables = {f"TUTTI_{each.upper()}": "shared" for each in COLLECTIVES}
        for name in ("collectives", "fortran_collectives"):
            with self.subTest(program=name):
                done = self.ok(name, ranks=3, TUTTI_VERBOSE="1", TUTTI_RANKS_PER_NODE="2", **variables)
                for each in COLLECTIVES:
                    served = self.calls(done.stderr, f"MPI_{each}")
                    if each in ("Allreduce", "Bcast", "Barrier"):
                        self.assertIn("shared", served, each)
                    else:
                        self.assertEqual(set(served), {"mpi"}, each)
        done = self.ok("collectives", ranks=3, TUTTI_VERBOSE="1", TUTTI_RANKS_PER_NODE="1", **variables)
        self.assertEqual(set(self.calls(done.stderr, "MPI_Bcast")), {"mpi"})  # nobody shares memory

    def test_sums_of_doubles_keep_their_order_unless_allowed(self):
        # One all-reduce of doubles in the program; of two ranks there is but one order.
        for reorder, shared in (("0", RANKS == 2), ("1", True)):
            done = self.ok("collectives", "doubles", TUTTI_VERBOSE="1", TUTTI_ALLREDUCE="shared", TUTTI_REORDER=reorder)
            self.assertEqual(self.calls(done.stderr, "MPI_Allreduce"), {"shared" if shared else "mpi": 1})

    def test_an_mpi_that_a_module_brings_for_itself(self):
        done = self.ok("open_locally", program("exchange_module.so"), TUTTI_ALLTOALLV="pairwise",
                       TUTTI_VERBOSE="1", ranks=2)
        self.assertIn("pairwise", self.calls(done.stderr, "MPI_Alltoallv"))

    def test_a_program_that_links_the_library_and_calls_by_name(self):
        done = self.ok("named", preload="", TUTTI_ALLTOALLV="linear", TUTTI_VERBOSE="1")
        self.assertIn("fastest: unknown all-to-all-v algorithm 'fastest'; accepted are auto, mpi", done.stdout)
        self.assertEqual(self.calls(done.stderr, "MPI_Alltoall"), {"linear": 1})  # its own

    def test_threads_that_exchange_at_once(self):
        for algorithm in ("tuna:r=2", "auto", "shared", "coalesced"):
            self.ok("threads", ranks=2, TUTTI_ALLTOALLV=algorithm, TUTTI_VERBOSE="1")

    def test_wrong_arguments_are_the_mpi_librarys_to_report(self):
        without = launch("invalid", preload="", ranks=2)
        self.assertEqual(without.returncode, 0, without.stderr)
        for check in ("0", "1"):
            self.ok("invalid", ranks=2, says=without.stdout, TUTTI_ALLTOALLV="tuna:r=2", TUTTI_CHECK=check)

    def test_rank_0_decides_where_the_environment_differs(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "differs.sh")
            with open(script, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && export '
                           f'TUTTI_ALLTOALLV=pairwise TUTTI_CHECK=1\nexec {program("exchange")}\n')
            os.chmod(script, 0o755)
            self.ok(script, TUTTI_ALLTOALLV="mpi")


@unittest.skipUnless(MPI == "openmpi", "MPICH may wait forever in its own MPI_Finalize on two nodes")
class SeveralNodes(Dropin):
    """Nodes of unequal numbers of ranks, which MPI takes for computers of their own (on_nodes.sh)."""

    def on_nodes(self, nodes, *arguments, **variables):
        variables["LD_PRELOAD"] = library()
        words = [f"{key}={value}" for key, value in variables.items()]
        done = subprocess.run([os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_nodes.sh"), MPI, nodes,
                               "env", *words, program(arguments[0]), *arguments[1:]],
                              capture_output=True, text=True, timeout=600)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        return done

    def served(self, nodes, algorithm, **variables):
        done = self.on_nodes(nodes, "exchange", TUTTI_ALLTOALLV=algorithm, TUTTI_VERBOSE="1", **variables)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn(" 0 faults", done.stdout)
        rows = re.findall(r"^tutti: MPI_Alltoallv +5 .*?  (\S+) +\d+ ", done.stderr, re.M)
        return set(rows)

    def test_every_form_on_nodes_of_unequal_size(self):
        for algorithm in ("auto", "tuna:r=2", "coalesced:r=2,b=1", "staggered", "multilevel", "shared",
                          "shared-coalesced:b=1"):
            with self.subTest(algorithm=algorithm):
                self.assertEqual(self.served("3,2:cyclic", algorithm),
                                 {"mpi" if algorithm == "auto" else algorithm})

    def test_a_rank_that_dies_on_one_node_ends_the_job_on_both(self):
        for algorithm in ("auto", "shared", "shared-coalesced"):
            self.assertNotEqual(self.on_nodes("2,2:cyclic", "die", TUTTI_ALLTOALLV=algorithm).returncode, 0)

    def test_groups_that_span_nodes_share_no_memory(self):
        self.assertEqual(self.served("2,2,1", "shared", TUTTI_RANKS_PER_NODE="3"), {"coalesced"})
        self.assertEqual(self.served("2,2,1", "shared", TUTTI_RANKS_PER_NODE="2"), {"shared"})


class Environment(Dropin):
    def test_report_names_algorithms_sizes_and_calls(self):
        done = self.ok("exchange", TUTTI_ALLTOALLV="spread-out", TUTTI_VERBOSE="1")
        self.assertEqual(done.stderr.count("TUTTI_ALLTOALLV=spread-out"), 1)  # rank 0 alone
        # World, itself, half, reversed, strided, in place; the intercommunicator is not ours.
        self.assertEqual(self.calls(done.stderr, "MPI_Alltoallv"), {"spread-out": 6})
        self.assertEqual(self.calls(done.stderr, "MPI_Alltoall"), {"spread-out": 4})
        self.assertIn("Alltoallv_init           passed on to the MPI library, calls: 1", done.stderr)
        # Seconds, microseconds a call, and those that the MPI library's own is predicted to take.
        self.assertRegex(done.stderr, r"(?m)^tutti: MPI_Alltoallv .* spread-out .* \d+\.\d{6} +\d+\.\d\d +\d+\.\d\d$")

    def test_every_rank_may_report(self):
        done = self.ok("exchange", TUTTI_VERBOSE="2")
        for rank in range(RANKS):
            self.assertIn(f"tutti: rank {rank}, ", done.stderr)

    def test_a_program_without_all_to_all(self):
        done = launch("free_communicators", "0", TUTTI_VERBOSE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tutti: no collective was called", done.stderr)

    def test_silent_by_default(self):
        self.assertEqual(self.ok("exchange").stderr, "")

    def test_rank_0_alone_says_what_is_ignored(self):
        done = self.ok("exchange", TUTTI_ALLTOALLV="fastest")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_nonsense_is_ignored_in_one_line_that_says_what_is_accepted(self):
        cases = [
            ("TUTTI_ALLTOALLV", "fastest", ["unknown all-to-all-v algorithm 'fastest'", "tuna"]),
            ("TUTTI_ALLTOALLV", "tuna:r=1", ["'r' of 'tuna' is '1'", "whole numbers from 2"]),
            ("TUTTI_ALLTOALLV", "tuna:q=3", ["unknown parameter 'q=3'", "accepted: r"]),
            ("TUTTI_ALLTOALLV", "mpi:r=3", ["takes no parameters"]),
            ("TUTTI_ALLTOALLV", "coalesced:r=99999999999", ["whole numbers from 2"]),
            ("TUTTI_ALLTOALLV", "\x1b[2J\n%s%n", ["unknown"]),
            ("TUTTI_ALLTOALLV", "x" * 100000, ["unknown"]),
            ("TUTTI_VERBOSE", "yes", ["0, 1 (rank 0 reports), 2 (every rank)"]),
            ("TUTTI_TEMPORARY_LIMIT", "12cubits", ["accepted are whole numbers of bytes"]),
            ("TUTTI_TEMPORARY_LIMIT", "-5", ["accepted are whole numbers of bytes"]),
            ("TUTTI_HOST_BUFFERS", "2", ["accepted are 0 and 1"]),
            ("TUTTI_RANKS_PER_NODE", "8,3", ["multiple of the one before"]),
            ("TUTTI_CHECK", "-1", ["accepted are 0 and 1"]),
            ("TUTTI_ALLREDUCE", "ring", ["accepted are native, auto, shared"]),
            ("TUTTI_REORDER", "2", ["accepted are 0 and 1 (floating-point"]),
        ]
        for variable, value, words in cases:
            with self.subTest(variable=variable, value=value[:20]):
                done = self.ok("free_communicators", "1", ranks=1, says="1 communicators", **{variable: value})
                lines = done.stderr.splitlines()
                self.assertEqual(len(lines), 1, done.stderr[:2000])
                self.assertTrue(lines[0].startswith(f"tutti: ignored {variable}='"), lines[0])
                self.assertTrue(lines[0].isprintable())
                self.assertLess(len(lines[0]), 500)
                for word in words:
                    self.assertIn(word, lines[0])


class CheckingMode(Dropin):
    MESSAGE = "rank 1 sends 20 bytes to rank 0, which expects 12"

    def test_right_programs_pass(self):
        self.assertEqual(self.ok("exchange", TUTTI_CHECK="1").stderr, "")

    def test_both_ranks_are_named_before_the_job_ends(self):
        done = launch("mismatch", TUTTI_CHECK="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"tutti: MPI_Alltoallv: counts do not match: {self.MESSAGE}", done.stderr)
        self.assertIn(f"MPI_COMM_WORLD of {RANKS} ranks; 1 such pair)", done.stderr)
        self.assertEqual(done.stderr.count("counts do not match"), 1)
        self.assertNotIn("went on", done.stdout)

    def test_ranks_of_a_part_are_named_as_those_of_the_world_too(self):
        done = launch("mismatch", "part", ranks=4, TUTTI_CHECK="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.MESSAGE} (ranks of odd of 2 ranks, 1 and 3 of MPI_COMM_WORLD; 1 such pair)", done.stderr)
        self.assertEqual(done.stderr.count("counts do not match"), 1)

    def test_every_rank_gets_the_error_that_its_handler_returns(self):
        done = launch("mismatch", "return", TUTTI_CHECK="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.MESSAGE, done.stderr)
        for rank in range(RANKS):
            self.assertIn(f"rank {rank} went on with MPI_ERR_TRUNCATE", done.stdout)


class StandingAside(Dropin):
    def test_a_program_of_the_other_mpi(self):
        for name in ("exchange", "fortran_use_mpi_f08"):
            done = self.ok(name, mpi=OTHER, ranks=2, TUTTI_VERBOSE="1")
            said = [line for line in done.stderr.splitlines() if "tutti" in line]
            self.assertEqual(len(said), 1, done.stderr)  # rank 0 alone
            self.assertTrue(said[0].startswith(NAMES[MPI] + ": is for "), said[0])
            self.assertTrue(said[0].endswith("it is disabled: preload " + NAMES[OTHER]), said[0])

    def test_both_libraries_at_once(self):
        both = library("openmpi") + ":" + library("mpich")
        done = self.ok("exchange", preload=both, ranks=2, TUTTI_ALLTOALLV="linear", TUTTI_VERBOSE="1")
        self.assertIn("linear", self.calls(done.stderr, "MPI_Alltoallv"))
        self.assertIn("is disabled", done.stderr)

    def test_processes_without_mpi(self):
        for now in ("", "1"):
            done = subprocess.run(["ls", "/"], env=dict(os.environ, LD_PRELOAD=library(), LD_BIND_NOW=now),
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        shell = subprocess.run(["sh", "-c", "cat /proc/self/maps"], env=dict(os.environ, LD_PRELOAD=library()),
                               capture_output=True, text=True, timeout=120)
        self.assertIn(NAMES[MPI], shell.stdout)
        self.assertNotRegex(shell.stdout, r"libmpi|libstdc\+\+|_engine|hwloc")

    def test_the_library_without_its_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = os.path.join(folder, NAMES[MPI])
            with open(library(), "rb") as source, open(alone, "wb") as copy:
                copy.write(source.read())
            done = self.ok("exchange", preload=alone, ranks=2)
            self.assertIn("cannot load its engine, and is disabled", done.stderr)

    def test_programs_with_an_accelerator(self):
        with tempfile.TemporaryDirectory() as folder:
            runtime = os.path.join(folder, "libcuda.so.1")
            subprocess.run(["gcc", "-shared", "-o", runtime, "-x", "c", "/dev/null"], check=True)
            both = library() + ":" + runtime
            aside = self.ok("exchange", preload=both, ranks=2, TUTTI_ALLTOALLV="linear", TUTTI_VERBOSE="1")
            self.assertEqual(set(self.calls(aside.stderr, "MPI_Alltoallv")), {"mpi"})
            self.assertIn("libcuda.so is loaded and TUTTI_HOST_BUFFERS is not 1", aside.stderr)
            told = self.ok("exchange", preload=both, ranks=2, TUTTI_ALLTOALLV="linear", TUTTI_VERBOSE="1",
                           TUTTI_HOST_BUFFERS="1")
            self.assertEqual(set(self.calls(told.stderr, "MPI_Alltoallv")), {"linear"})

    def test_another_tool_behind_us_sees_what_is_passed_on(self):
        tool = program("profiler")
        ours_first = self.ok("exchange", preload=library() + ":" + tool, TUTTI_ALLTOALLV="mpi")
        self.assertIn("profiler: 7 calls of MPI_Alltoallv", ours_first.stdout)
        ours_served = self.ok("exchange", preload=library() + ":" + tool, TUTTI_ALLTOALLV="linear")
        self.assertIn("profiler: 1 calls of MPI_Alltoallv", ours_served.stdout)  # between halves
        tool_first = self.ok("exchange", preload=tool + ":" + library(), TUTTI_ALLTOALLV="linear")
        self.assertIn("profiler: 7 calls of MPI_Alltoallv", tool_first.stdout)


class Resources(Dropin):
    def test_communicators_are_freed(self):
        # Many on one rank; on two ranks, which wait for each other on busy machines, fewer.
        for ranks, communicators in ((1, 5000), (2, 200)):
            for algorithm in ("spread-out", "auto"):
                done = launch("free_communicators", communicators, ranks=ranks, TUTTI_ALLTOALLV=algorithm)
                self.assertEqual(done.returncode, 0, done.stderr)
                grown = int(re.search(r"grown by (-?\d+) KiB", done.stdout).group(1))
                # A duplicate kept for each of 5000 would be megabytes in either library.
                self.assertLess(grown, 2048, done.stdout)

    def test_what_was_left_of_a_communicator_says_nothing_of_the_next(self):
        # Calls enough for `auto` to serve some of them (1024 a rank), twice as many of sizes that it serves.
        self.ok("rooted", 4, 3200)

    def test_programs_keep_as_many_communicators_as_without(self):
        # MPICH has numbers for 2048.
        done = launch("free_communicators", 1800, "keep", ranks=2, TUTTI_ALLTOALLV="tuna:r=2", TUTTI_VERBOSE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.calls(done.stderr, "MPI_Alltoall"), {"tuna:r=2": 128, "mpi": 1800 - 128})

    def test_memory_above_the_limit_is_not_taken(self):
        ample = self.ok("exchange", TUTTI_ALLTOALLV="tuna:r=2", TUTTI_VERBOSE="1",
                        TUTTI_TEMPORARY_LIMIT="1000000")
        self.assertEqual(set(self.calls(ample.stderr, "MPI_Alltoallv")), {"tuna:r=2"})
        none = self.ok("exchange", TUTTI_ALLTOALLV="tuna:r=2", TUTTI_VERBOSE="1", TUTTI_TEMPORARY_LIMIT="0")
        # All but the calls of rank 0 on itself, of zero bytes: halves of two ranks are one rank.
        alone = {4: 1, 2: 2}[RANKS]
        self.assertEqual(self.calls(none.stderr, "MPI_Alltoallv"), {"tuna:r=2": alone, "mpi": 6 - alone})
        # Direct algorithms need memory for MPI_IN_PLACE and datatypes with holes only.
        direct = self.ok("exchange", TUTTI_ALLTOALLV="linear", TUTTI_VERBOSE="1", TUTTI_TEMPORARY_LIMIT="0")
        self.assertEqual(self.calls(direct.stderr, "MPI_Alltoallv"), {"linear": 4, "mpi": 2})

    def test_memory_that_is_not_there_is_not_asked_for(self):
        limited = ["sh", "-c", f"ulimit -v 100000000; exec {program('tight')}"]
        done = self.ok("/usr/bin/env", *limited, ranks=4, TUTTI_ALLTOALLV="padded-bruck", TUTTI_VERBOSE="1")
        self.assertEqual(self.calls(done.stderr, "MPI_Alltoallv"), {"padded-bruck": 1, "mpi": 1})

    def test_a_rank_that_dies_ends_the_job(self):
        for algorithm in ("spread-out", "auto", "shared", "coalesced:r=2"):
            with self.subTest(algorithm=algorithm):
                done = launch("die", TUTTI_ALLTOALLV=algorithm)
                self.assertNotEqual(done.returncode, 0)

    def test_the_preloaded_half_needs_nothing_but_the_c_library(self):
        self.assertEqual(needed(library()), ["libc.so.6"])
        for name in symbols(library(), "--undefined-only"):
            self.assertRegex(name, r"@GLIBC_|^_ITM_|^__gmon_start__$")

    def test_the_engine_brings_no_mpi_and_no_cpp_library(self):
        engine = library().replace(".so", "_engine.so")
        self.assertLessEqual(set(needed(engine)),
                             {"libc.so.6", "libm.so.6", "libhwloc.so.15", "ld-linux-x86-64.so.2"})
        self.assertEqual(symbols(engine, "--defined-only"), ["TuttiMpiEngine"])
        for name in symbols(engine, "--undefined-only"):
            self.assertRegex(name, r"@GLIBC_|^_|^PMPIX?_|^ompi_|^OMPI_|^hwloc_")

    def test_only_what_is_taken_over_is_exported(self):
        for name in symbols(library(), "--defined-only"):
            self.assertRegex(name, rf"(?i)^(o?mpix?_i?({'|'.join(COLLECTIVES)}|alltoallv?)(_init)?|o?mpi_init(_thread)?)(_|__|_f|_f08)?$|^tutti_")


if __name__ == "__main__":
    unittest.main()
