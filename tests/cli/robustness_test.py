"""Every command under signals, closed and full outputs, damaged names and nonsense numbers.

The commands are those that the program itself lists, so that a new one cannot be forgotten."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from typing import NamedTuple

import harness

LATIN_1 = b"caf\xe9"  # no UTF-8


class Command(NamedTuple):
    """How to call one command. {NAME} stands for a file that setUpClass makes, {out} for a new one."""
    quick: list  # what ends soon and prints something
    reads: str = None  # the file argument of `quick` that it reads, or None
    writes: list = []  # arguments, each with {out}, that write a file
    long: list = []  # works of minutes: arguments
    prints: bool = True


COMMANDS = {
    "topo show": Command(["ring(4)"], writes=[["ring(4)", "-o", "{out}"]],
                         long=[["line(" * 10 + "mesh(1000)" + ")" * 10], ["torus(200,200)", "-o", "{out}"]]),
    "topo import": Command(["{matrix}"], reads="{matrix}", writes=[["{matrix}", "-o", "{out}"]]),
    "topo detect": Command(["--host", "here"], writes=[["--host", "here", "-o", "{out}"]]),
    "topo list": Command([]),
    "synth": Command(["ring(4)", "-a", "bfb"],
                     writes=[["ring(4)", "-a", "bfb", "-o", "{out}"],
                             ["ring(4)", "-c", "all-to-all", "-a", "ewsp", "-o", "{out}.routes"]],
                     long=[["torus(80,80)", "-a", "bfb", "-o", "{out}"],
                           ["mesh(100,100)", "-a", "ten", "--stream", "-o", "{out}"],
                           ["genkautz(4,60)", "-c", "all-to-all", "-a", "tsmcf", "-o", "{out}"],
                           ["torus(20,20)", "-a", "auto", "-c", "all-to-all"]]),
    "verify": Command(["{sched}"], reads="{sched}"),
    "cost": Command(["{sched}", "--size", "1MiB"], reads="{sched}"),
    "sim": Command(["{sched}", "--size", "1MiB"], reads="{sched}",
                   writes=[["{sched}", "--size", "1MiB", "--trace", "{out}"]]),
    "compare": Command(["ring(4)", "-a", "bfb,ring", "--size", "1MiB"],
                       long=[["mesh(60,60)", "-a", "ten,bfb", "--size", "1MiB,1GiB"]]),
    "explain": Command(["{sched}", "--size", "1MiB"], reads="{sched}",
                       long=[["torus(80,80)", "-a", "bfb", "--size", "1MiB"]]),
    "diff": Command(["{sched}", "{sched}", "--size", "1MiB"], reads="{sched}"),
    "explore": Command(["{sched}", "--size", "1MiB", "-o", "{out}"], reads="{sched}",
                       writes=[["{sched}", "--size", "1MiB", "-o", "{out}"]]),
    "advise": Command(["ring(4)", "--size", "1MiB"], long=[["torus(40,40)", "--size", "1MiB,1GiB"]]),
    "flow": Command(["ring(4)"], writes=[["ring(4)", "-o", "{out}"]],
                    long=[["genkautz(4,4000)", "-o", "{out}"]]),
    "lower": Command(["{sched}", "--to", "plan", "-o", "{out}"], reads="{sched}",
                     writes=[["{sched}", "--to", "plan", "-o", "{out}"],
                             ["{sched}", "--to", "msccl-xml", "-o", "{out}"]],
                     long=[["{large}", "--to", "msccl-xml", "-o", "{out}"],
                           ["{large}", "--to", "mscclpp", "-o", "{out}"]]),
    "rules": Command(["ring(4)", "--to", "nccl-tuner", "-o", "{out}"],
                     writes=[["ring(4)", "--to", "nccl-tuner", "-o", "{out}"]]),
    "run": Command(["{sched}", "--size", "4KiB", "-n", "1"], reads="{sched}",
                   writes=[["{sched}", "--size", "4KiB", "-n", "1", "--trace", "{out}"]],
                   long=[["{sched}", "--size", "64MiB", "--iters", "100000", "--trace", "{out}"]]),
    "run-ranks": Command([], prints=False),
    # Large enough to take longer than a single byte, and often enough for a median, whatever else runs.
    "calibrate": Command(["--hosts", "localhost:2", "-n", "5", "--size", "8M", "-o", "{out}"],
                         writes=[["--hosts", "localhost:2", "-n", "5", "--size", "8M", "-o", "{out}"]],
                         long=[["--hosts", "localhost:4", "-n", "10000", "-o", "{out}"]]),
    "design": Command(["-n", "8", "-d", "2"],
                      writes=[["-n", "8", "-d", "2", "-o", "{out}"], ["-n", "8", "-d", "2", "--cables", "{out}"]],
                      long=[["--all-up-to", "2000", "--degrees", "4", "--flow", "--database", "{out}"]]),
    "train": Command(["resnet-50", "ring(4)", "-a", "ring"],
                     long=[["resnet-50", "mesh(60,60)", "-a", "ten"]]),
    "mpi calibrate": Command([]),
    "mpi tune": Command([]),
    "mpi show": Command(["--file", "{none}"]),
    "mpi predict": Command(["--ranks", "4", "--size", "64", "--file", "{none}"]),
    "bench": Command([], writes=[["direct-fig7", "--max-ranks", "16", "-o", "{out}"]],
                     long=[["tacos-fig19"]]),
    "docs man": Command(["-o", "{out}"], writes=[["-o", "{out}"]], prints=False),
    "docs reference": Command([]),
    "docs completion": Command([]),
    "service status": Command([]),
    "service tenants": Command([]),
    "service comms": Command([]),
    "service pending": Command([]),
    "service trace": Command(["c-0"], writes=[["c-0", "-o", "{out}"]]),
    "service top": Command([]),
    "service bench": Command([]),
    "service load": Command([], writes=[["--iterations", "1", "-o", "{out}"]]),
    "service policy show": Command([]),
    "service policy list": Command([]),
    "service policy apply": Command([]),
    "service policy simulate": Command([]),
    "service policy explain": Command(["c-0"]),
    "service policy install": Command(["c-0", "--routes", "{none}"], reads="{none}"),
    "service policy windows": Command(["c-0"]),
    "service reconfigure": Command(["c-0"]),
    "service quota": Command(["blue"]),
}
# The first two start mpirun, which not every machine has: mpi_test.py; the third is nothing alone: run_remote_test.py. Those
# of the service need a daemon: service_test.py.
TESTED_ELSEWHERE = {"mpi calibrate", "mpi tune", "run-ranks", *(name for name in COMMANDS if name.startswith("service "))}
QUICK = sorted(set(COMMANDS) - TESTED_ELSEWHERE)


def spawn(arguments, **options):
    return subprocess.Popen([harness.TUTTI, *arguments], stdin=subprocess.DEVNULL, **options)


class Robustness(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.files = {name: os.path.join(made.name, name) for name in ("sched", "large", "none")}
        done = harness.run("synth", "ring(4)", "-c", "all-reduce", "-a", "ring", "-o", cls.files["sched"])
        assert done.returncode == 0, done.stderr
        done = harness.run("synth", "torus(20,20)", "-c", "all-reduce", "-a", "bfb", "-o", cls.files["large"])
        assert done.returncode == 0, done.stderr
        cls.files["matrix"] = os.path.abspath("tests/data/import/nvidia-smi/hgx_4_direct.txt")
        cls.help = {name: harness.run(*name.split(), "--help").stdout for name in COMMANDS}

    def call(self, name, arguments, **files):
        files = {**self.files, "out": self.path("out"), **files}
        return [*name.split(), *(argument.format(**files) for argument in arguments)]

    def clear(self):
        for name in os.listdir(self.folder):
            path = self.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def is_one_line(self, error, says=()):
        self.assertRegex(error, r"\Atutti: error: [^\n]+\n\Z")
        self.assertNotRegex(error, r"terminate|what\(\)|internal error|\.cc:\d+")
        for words in says:
            self.assertIn(words, error)

    # --- The table --------------------------------------------------------------------------------

    def test_every_command_is_here(self):
        listed = re.findall(r"^## tutti (.*)$", self.ok("docs", "reference"), re.MULTILINE)
        self.assertEqual(sorted(COMMANDS), sorted(listed))
        for name in COMMANDS:
            # Whatever writes a file is written to below.
            for flag in re.findall(r"(-o,--output|--trace|--database|--cables)", self.help[name]):
                uses = sum([*COMMANDS[name].writes, *COMMANDS[name].long], [])
                self.assertTrue(set(flag.split(",")) & set(uses), (name, flag))
        for name in QUICK:
            with self.subTest(name):
                self.clear()
                self.assertEqual(bool(self.ok(*self.call(name, COMMANDS[name].quick))), COMMANDS[name].prints)

    def test_every_variable_is_in_the_reference(self):
        sources = pathlib.Path(__file__).resolve().parent.parent.parent / "src"
        read = set()
        for source in sources.rglob("*.cc"):
            if source.name != "docs.cc":
                read.update(re.findall(r'"(TUTTI_[A-Z_]+)"', source.read_text()))
        listed = set(re.findall(r"`(TUTTI_[A-Z_]+)`", self.ok("docs", "reference")))
        self.assertEqual(read, listed)

    # --- Signals ----------------------------------------------------------------------------------

    def ends_on(self, arguments, number, before):
        """The signal ends the work with 128 + its number; nothing is printed or left behind."""
        with open(self.path("out"), "w") as file:
            file.write("what was here before")
        kept = sorted(os.listdir(self.folder))
        process = spawn(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.until_it_catches(process, number)
        time.sleep(before)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (128 + number, "tutti: error: interrupted\n"))
        self.assertEqual(sorted(os.listdir(self.folder)), kept)
        with open(self.path("out")) as file:
            self.assertEqual(file.read(), "what was here before")
        return out

    def test_long_work_ends_on_signals(self):
        for name, command in COMMANDS.items():
            for work in command.long:
                for number, before in ((signal.SIGINT, 0.4), (signal.SIGTERM, 0.1)):
                    with self.subTest(f"{name} {work} {number}"):
                        self.clear()
                        if "--database" in work:
                            work = [self.path("database") if argument == "{out}" else argument
                                    for argument in work]
                            self.ok("design", "--all-up-to", "3", "--degrees", "2", "--database",
                                    self.path("database"))
                        out = self.ends_on(self.call(name, work), number, before)
                        # What nccl-tests prints row by row is there to be read meanwhile.
                        self.assertEqual([line for line in out.splitlines() if not line.startswith("#")], [])

    def test_waiting_for_input_ends_on_signals(self):
        fifo = self.path("fifo.sched")
        for name, command in COMMANDS.items():
            if command.reads is None:
                continue
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(f"{name} {number}"):
                    self.clear()
                    os.mkfifo(fifo)
                    arguments = [fifo if argument == command.reads else argument for argument in command.quick]
                    self.assertEqual(self.ends_on(self.call(name, arguments), number, before=0.1), "")

    def test_a_second_signal_ends_at_once(self):
        process = spawn(["topo", "show", *COMMANDS["topo show"].long[0]], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
        harness.until_it_catches(process, signal.SIGINT)
        time.sleep(0.7)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        self.assertEqual(process.communicate(timeout=60), ("", "tutti: error: interrupted\n"))
        self.assertEqual(process.returncode, 130)

    def test_interrupted_stands_on_a_line_of_its_own(self):
        """On a terminal, behind the ^C that it shows and the progress."""
        for work in (["synth", "mesh(100,100)", "-a", "ten"], ["topo", "show", "torus(400,400)"]):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            process = spawn(work, stdout=subprocess.DEVNULL, stderr=theirs,
                            env={**os.environ, "NO_COLOR": "1", "TERM": "xterm"})
            os.close(theirs)
            shown = b""
            while True:
                try:
                    more = os.read(ours, 4096)
                except OSError:  # it has ended
                    break
                if not more:
                    break
                if b"%" in more and b"%" not in shown:  # there is progress
                    process.send_signal(signal.SIGINT)
                shown += more
            os.close(ours)
            process.wait(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertIn(b"\ntutti: error: interrupted\r\n", shown)

    def test_interrupted_is_all_that_is_said(self):
        """Wherever the signal comes: while a file is read, worked on or written."""
        for before in (0.3, 0.4, 0.5, 0.6):
            with self.subTest(before):
                self.clear()
                self.ends_on(self.call("lower", COMMANDS["lower"].long[0]), signal.SIGINT, before=before)

    def test_many_unlike_ranks_need_no_search_each(self):
        """Each rank is a walk of 6 links, and the farthest two are 999 links of the mesh and a walk apart."""
        shown = self.json("topo", "show", "line(" * 6 + "mesh(1000)" + ")" * 6)
        self.assertEqual((shown["ranks"], shown["diameter"]), (63804, 1005))
        self.assertEqual(shown["bounds"]["all-gather"]["tl_bound"], 1005)
        self.assertNotIn("diameter_range", shown)

    # --- Outputs ----------------------------------------------------------------------------------

    def printing_calls(self):
        yield ["--help"]
        yield ["--version"]
        for name in COMMANDS:
            yield [*name.split(), "--help"]
        for name in QUICK:
            if not COMMANDS[name].prints:
                continue
            yield self.call(name, COMMANDS[name].quick)
            if "--json" in self.help[name] and not name.startswith("docs"):
                yield [*self.call(name, COMMANDS[name].quick), "--json"]

    def test_a_reader_that_has_gone_is_no_error(self):
        for arguments in self.printing_calls():
            with self.subTest(arguments):
                self.clear()
                reading, writing = os.pipe()
                os.close(reading)
                done = subprocess.run([harness.TUTTI, *arguments], stdout=writing, stderr=subprocess.PIPE,
                                      text=True)
                os.close(writing)
                self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_a_full_disk_is_an_error(self):
        for arguments in self.printing_calls():
            with self.subTest(arguments), open("/dev/full", "w") as full:
                self.clear()
                done = subprocess.run([harness.TUTTI, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr, "tutti: error: cannot write to standard output: No space left on "
                                 "device\n")

    def test_a_closed_output_is_an_error(self):
        for arguments in self.printing_calls():
            with self.subTest(arguments):
                self.clear()
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", harness.TUTTI, *arguments],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.is_one_line(done.stderr, ["cannot write to standard output"])

    def test_files_get_nothing_that_is_meant_for_closed_streams(self):
        command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", harness.TUTTI]
        for name, command_of in COMMANDS.items():
            for arguments in [] if name in TESTED_ELSEWHERE else command_of.writes:
                with self.subTest(f"{name} {arguments}"):
                    self.clear()
                    arguments = self.call(name, arguments)
                    self.assertIn(harness.run(*arguments).returncode, (0,), arguments)
                    expected = self.contents()
                    self.clear()
                    subprocess.run([*command, *arguments], check=False)
                    if name not in ("run", "calibrate"):  # whose files have times
                        self.assertEqual(self.contents(), expected)

    def contents(self):
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.relpath(os.path.join(folder, name), self.folder)] = file.read()
        return found

    def test_what_cannot_be_written_is_named_and_nothing_made(self):
        for name in QUICK:
            command = COMMANDS[name]
            for arguments in command.writes:
                with self.subTest(f"{name} {arguments}"):
                    self.clear()
                    nowhere = self.path("none/a/b")
                    done = harness.run(*self.call(name, arguments, out=nowhere))
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.is_one_line(done.stderr, [nowhere, "No such file or directory"])
                    self.assertEqual(os.listdir(self.folder), [])
                    if name in ("design", "docs man"):  # several files, from one name
                        continue
                    done = harness.run(*self.call(name, arguments, out="/dev/full"))
                    if arguments[-1] != "{out}":
                        continue
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.is_one_line(done.stderr, ["/dev/full", "No space left"])

    def test_outputs_are_tried_before_long_work(self):
        for name, command in COMMANDS.items():
            for work in command.long:
                if "{out}" in work and "--database" not in work:
                    with self.subTest(f"{name} {work}"):
                        done = harness.run(*self.call(name, work, out=self.path("none/x")), timeout=60)
                        self.assertEqual(done.returncode, 2)
                        self.is_one_line(done.stderr, [self.path("none/x"), "No such file or directory"])

    # --- Names ------------------------------------------------------------------------------------

    def test_names_that_are_no_utf_8(self):
        network = os.path.join(os.fsencode(self.folder), LATIN_1 + b".json")
        self.ok("topo", "show", "ring(4)", "-o", network.decode("utf-8", "surrogateescape"), errors="surrogateescape")
        self.assertTrue(os.path.exists(network))
        sched = os.path.join(os.fsencode(self.folder), LATIN_1)
        for expression in network, b'transpose("%s")' % network:
            for command in [[b"topo", b"show", expression], [b"synth", expression, b"-a", b"bfb", b"-o", sched],
                            [b"verify", sched], [b"cost", sched, b"--size", b"1MiB"],
                            [b"compare", expression, b"-a", b"bfb", b"--size", b"1MiB"],
                            [b"flow", expression],
                            [b"synth", expression, b"-a", b"bfb", b"-o", sched + b".sched.json"],
                            [b"verify", sched + b".sched.json"]]:
                with self.subTest(command):
                    done = subprocess.run([os.fsencode(harness.TUTTI), *command, b"--json"], capture_output=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    json.loads(done.stdout.decode("utf-8"))  # strictly

    def test_bytes_that_are_no_utf_8_inside_files(self):
        path = self.path("bad.json")
        for command in (["topo", "show"], ["verify"], ["cost", "--size", "1MiB"]):
            for text in (b'{"format": "tutti-topology", "name": "%s"}' % LATIN_1, LATIN_1 * 100):
                with open(path, "wb") as file:
                    file.write(text)
                with self.subTest(command):
                    done = harness.run(command[0], *command[1:2 if command[0] == "topo" else 1], path,
                                       *command[1 if command[0] != "topo" else 2:], "--json")
                    self.assertEqual(done.returncode, 2)
                    self.assertEqual(done.stdout, "")
                    self.is_one_line(done.stderr, ["bad.json"])

    # --- Numbers and flags ------------------------------------------------------------------------

    def test_numbers_out_of_range(self):
        """Every option that takes a number, with what is none that it could want: all of it where an option is met first, and
        what is wrong with its value and with its form for each command that has it."""
        tried, met = 0, set()
        for name, command in COMMANDS.items():
            # The first of several spellings is the one that errors name.
            for flag in re.findall(r"(--[a-z-]+)(?:,--[a-z-]+)* (?:INT|UINT|FLOAT)\b", self.help[name]):
                if flag == "--seed":
                    continue
                values = ("-5", "4x") if flag in met else ("-5", "4x", "1e400", "nan", "inf", "99999999999999999999", "9" * 400)
                met.add(flag)
                for value in values:
                    with self.subTest(f"{name} {flag}={value}"):
                        self.clear()
                        done = harness.run(*self.call(name, command.quick), f"{flag}={value}")
                        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                        self.is_one_line(done.stderr, [flag])
                        self.assertNotRegex(done.stderr.replace(value, ""), r"\d{25}")
                        tried += 1
        self.assertGreater(tried, 100)

    def test_faults_of_flags_are_one_line(self):
        for name in COMMANDS:
            for arguments in (["--no-such-flag"], ["--json=maybe"], ["-j", "many"], ["--color", "pink"],
                              ["a", "b", "c", "d"]):
                if name in TESTED_ELSEWHERE | {"flow", "topo import"} and arguments[0] == "a":
                    continue  # arguments of mpirun, networks, files
                with self.subTest(f"{name} {arguments}"):
                    done = harness.run(*name.split(), *arguments)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.is_one_line(done.stderr, [f"see 'tutti {name} --help'"])
        self.is_one_line(harness.run().stderr, ["see 'tutti --help'"])
        self.is_one_line(harness.run("docs").stderr, ["see 'tutti docs --help'"])

    def test_networks_of_one_rank(self):
        sched = self.path("one.sched")
        self.ok("synth", "complete(1)", "-c", "all-gather", "-a", "bfb", "-o", sched)
        for command in (["topo", "show", "complete(1)"], ["synth", "complete(1)", "-a", "bfb"],
                        ["synth", "complete(1)", "-c", "all-reduce", "-a", "auto"],
                        ["synth", "complete(1)", "-c", "all-to-all", "-a", "direct"],
                        ["compare", "complete(1)", "--size", "1MiB"], ["flow", "complete(1)"],
                        ["verify", sched], ["cost", sched, "--size", "1MiB"],
                        ["sim", sched, "--size", "1MiB"], ["run", sched, "--size", "1KiB", "-n", "2"],
                        ["lower", sched, "--to", "plan", "-o", self.path("one.plan")],
                        ["design", "-n", "1", "-d", "2"],
                        ["train", "resnet-50", "complete(1)", "-a", "ring"]):
            with self.subTest(command):
                done = harness.run(*command)
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                if done.returncode != 0:
                    self.assertTrue(done.stderr.startswith("tutti: error: "), done.stderr)
                self.assertNotRegex(done.stdout + done.stderr, r"\b(inf|nan)\b")

    # --- Units and names as people write them -----------------------------------------------------

    def test_units_and_names_of_other_tools(self):
        plain = self.ok("synth", "ring(4,bw=50GB/s,alpha=0.5us)", "-c", "all-reduce", "-a", "ring", "--size", "1MiB")
        for topology in ("ring(4,bw=50 GB/s,alpha=0.5 us)", "ring(4,bw=400Gbps)", "ring(4,bw=400Gb/s)",
                         'ring(4,bw="50 GB/s",alpha="0.5 us")'):
            for collective in ("allreduce", "all_reduce", "AllReduce"):
                for size in ("1M", "1m", "1 MiB", "1024k"):
                    text = self.ok("synth", topology, "-c", collective, "-a", "ring", "--size", size)
                    self.assertEqual(text.splitlines()[1:], plain.splitlines()[1:])
        self.refused("synth", "ring(4)", "-a", "ring", "--size", "64mb", says=["64mb", "write MB", "MiB"])
        self.refused("topo", "show", "ring(4,bw=50gb/s)", says=["50gb/s", "Gbit/s or GB/s"])
        text = self.ok("topo", "show", "unwind(switch(4,bw=100GB/s),degree=3)")
        self.assertIn("33.333 GB/s", text)
        self.assertNotRegex(text, r"\d{8}B/s")

    # --- run --------------------------------------------------------------------------------------

    def sizes_of(self, *arguments):
        text = self.ok("run", self.files["sched"], "-n", "1", "--type", "int32", *arguments)
        return [int(line.split()[0]) for line in text.splitlines() if line and not line.startswith("#")]

    def test_run_sweeps_sizes_as_nccl_tests(self):
        self.assertEqual(self.sizes_of("-b", "1K", "-e", "16K", "-f", "2"), [1024, 2048, 4096, 8192, 16384])
        self.assertEqual(self.sizes_of("-b", "1k", "-e", "10K", "-f", "3"), [1024, 3072, 9216])
        self.assertEqual(self.sizes_of("-b", "1K", "-e", "4K", "-i", "1K"), [1024, 2048, 3072, 4096])
        self.assertEqual(self.sizes_of("-b", "1M", "-e", "2M"), [1 << 20, 2 << 20])  # by 1M, as there
        self.assertEqual(self.sizes_of("-b", "4K"), [4096])
        self.assertIn("# minBytes 1024 maxBytes 4096 step: 2(factor)\n",
                      self.ok("run", self.files["sched"], "-b", "1K", "-e", "4K", "-f", "2", "-n", "1"))
        sched = self.files["sched"]
        for arguments, says in [(["-b", "4K", "-e", "1K"], ["-e 1K is less than -b 4K"]),
                                ([], ["--size", "-b"]), (["-b", "1K", "--size", "1K"], ["exclude"]),
                                (["-b", "1", "-e", "1G", "-i", "1"], ["10000 sizes", "-f 2"]),
                                (["-b", "0"], ["-b is 0"]), (["-b", "1K", "-e", "4K", "-i", "0"], ["-i is 0"]),
                                (["-b", "1K", "-f", "1"], ["--stepfactor"]), (["-e", "1K"], ["--minbytes"]),
                                (["-b", "1Kb"], ["-b", "bits or bytes"])]:
            with self.subTest(arguments):
                self.refused("run", sched, *arguments, says=says)

    def test_run_checks_before_it_prints(self):
        for size in ("1000TiB", "4KiB,1000TiB"):
            self.refused("run", self.files["sched"], "--size", size, says=["--size 1000TiB"])

    def test_run_says_what_it_runs(self):
        text = self.ok("run", self.files["sched"], "--size", "3", "-n", "1", "--type", "float")
        self.assertIn("# size 3 is run as 16: ", text)
        row = self.json("run", self.files["sched"], "--size", "3", "-n", "1", "--type", "float")["rows"][0]
        self.assertEqual((row["asked_size"], row["size"]), (3, 16))
        self.assertNotIn("is run as", self.ok("run", self.files["sched"], "--size", "64", "-n", "1"))

    # --- Colours ----------------------------------------------------------------------------------

    def on_a_terminal(self, *arguments, **environment):
        ours, theirs = pty.openpty()
        process = spawn(arguments, stdout=theirs, stderr=theirs,
                        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment})
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            if not more:
                break
            shown += more
        process.wait(timeout=60)
        os.close(ours)
        return shown.decode()

    def test_colours_are_for_terminals(self):
        table = ["compare", "ring(4)", "-a", "bfb,ring", "--size", "1MiB"]
        bad = ["topo", "show", "ring("]
        self.assertIn("\x1b[1malgorithm", self.on_a_terminal(*table))
        self.assertIn("\x1b[1;31mtutti: error:\x1b[0m ", self.on_a_terminal(*bad))
        for shown in (self.on_a_terminal(*table, NO_COLOR="1"), self.on_a_terminal(*table, TERM="dumb"),
                      self.on_a_terminal(*table, "--color", "never"), self.on_a_terminal(*table, "--json"),
                      self.ok(*table), harness.run(*bad).stderr, self.ok(*table, "--color=always", "--json")):
            self.assertNotRegex(shown, "\x1b\\[[0-9;]*m")
        self.assertIn("\x1b[1malgorithm", self.ok(*table, "--color=always"))
        # Colours change nothing but colours.
        self.assertEqual(len(re.sub("\x1b\\[[0-9;]*m", "", self.ok("topo", "show", "ring(4)", "--color=always"))),
                         len(self.ok("topo", "show", "ring(4)")))


if __name__ == "__main__":
    harness.main()
