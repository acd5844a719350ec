"""tutti run with ranks that share no memory: processes of --hosts, of mpirun, of hosts in network namespaces, and
what happens when one of them, or all, are hurt."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness

TESTBED = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/testbed"
SKIPPED = 77
# How many ranks are killed, at random moments each: 200 by hand.
KILLS = int(os.environ.get("TUTTI_TEST_KILLS", "5"))
# Under the address sanitizer: what the MPI libraries leave behind at their end is theirs.
MPI_ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", ASAN_OPTIONS="detect_leaks=0")


def ranks_below(pid):
    """rank -> process, of those that `tutti run` with that process has started"""
    found = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            words = (status.parent / "cmdline").read_bytes().decode().split("\0")
        except (OSError, ValueError):
            continue
        if not {"run-ranks", "--root", "--first", "--count"} <= set(words):  # others may be of a test of its flags
            continue
        child = int(status.parent.name)
        if words[words.index("--count") + 1] == "1":
            found.setdefault(int(words[words.index("--first") + 1]), []).append((child, parent, words))
    return found


class RemoteTest(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.schedule = self.synth("torus(2,2)", "all-reduce", "bfb")

    def start(self, *more):
        """A run that takes long, and its ranks' processes."""
        running = subprocess.Popen([harness.TUTTI, "run", self.schedule, "--transport", "tcp", "--hosts", "localhost:4",
                                    "--size", "4M", "-n", "1000000", *more], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        deadline = time.monotonic() + 120
        ranks = {}
        while len(ranks) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
            port = self.port_of(running)
            ranks = {} if port is None else {
                rank: child for rank, several in ranks_below(running.pid).items()
                for child, _, words in several if words[words.index("--root") + 1] == port}
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        # It runs: each has its connection to the first process, and to and from both its neighbours.
        while running.poll() is None and any(len(harness.established(rank)) < 5 for rank in ranks.values()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(0.1)
        self.assertIsNone(running.poll())
        return running, ranks

    def port_of(self, running):
        for several in ranks_below(running.pid).values():
            for child, parent, words in several:
                ancestor = parent
                while ancestor > 1:
                    if ancestor == running.pid:
                        return words[words.index("--root") + 1]
                    try:
                        stat = pathlib.Path(f"/proc/{ancestor}/stat").read_text()
                    except OSError:
                        break
                    ancestor = int(stat.rsplit(")", 1)[1].split()[1])
        return None

    def assert_gone(self, ranks):
        deadline = time.monotonic() + 120
        left = list(ranks.values())
        while left and time.monotonic() < deadline:
            left = [pid for pid in left if pathlib.Path(f"/proc/{pid}/cmdline").exists()
                    and b"run-ranks" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
            time.sleep(0.02)
        self.assertEqual(left, [])

    def test_the_same_results_as_on_local_ranks(self):
        for type_, op in (("float", "sum"), ("half", "avg"), ("int64", "max")):
            out = self.json("run", self.schedule, "--transport", "tcp", "--hosts", "localhost:3,localhost", "--size",
                            "1K,1M", "-n", "2", "--type", type_, "--op", op)
            local = self.json("run", self.schedule, "--size", "1K,1M", "-n", "2", "--type", type_, "--op", op)
            self.assertEqual(out["wrong"], 0)
            for a, b in zip(out["rows"], local["rows"]):
                for key in ("size", "count", "type", "redop", "root", "wrong"):
                    self.assertEqual(a[key], b[key])

    def test_a_fixed_order_has_one_digest(self):
        ring = self.synth("ring(4)", "all-reduce", "bfb")
        digests = set()
        for where in ([], ["--transport", "tcp"], ["--transport", "tcp", "--hosts", "localhost:1,localhost:3"]):
            out = self.json("run", ring, "--size", "3M", "-n", "1", "--fixed-order", *where)
            self.assertEqual(out["wrong"], 0)
            for way in ("out_of_place", "in_place"):
                digests.add(out["rows"][0][way]["digest"])
        self.assertEqual(len(digests), 1, digests)
        digest = digests.pop()
        self.assertRegex(digest, r"^[0-9a-f]{16}$")
        text = self.ok("run", ring, "--size", "3M", "-n", "1", "--fixed-order")
        self.assertIn("# fixed order: the plan's, so the same bits", text)
        self.assertIn(f" {digest}\n", text)
        # Other numbers, and none without a check or an order.
        self.assertNotEqual(self.json("run", ring, "--size", "2M", "-n", "1", "--fixed-order")["rows"][0]["in_place"]["digest"], digest)
        unchecked = self.json("run", ring, "--size", "1M", "-n", "1", "--fixed-order", "--no-check")
        self.assertIsNone(unchecked["rows"][0]["in_place"]["digest"])
        self.assertNotIn("digest", self.json("run", ring, "--size", "1M", "-n", "1")["rows"][0]["in_place"])

    def test_a_trace_of_ranks_elsewhere_is_on_one_clock(self):
        trace = self.path("t.json")
        out = self.ok("run", self.schedule, "--size", "4M", "-n", "2", "--transport", "tcp", "--hosts", "localhost:4", "--trace", trace)
        self.assertRegex(out, r"# Timeline             : .*t\.json \(clocks of ranks within [0-9.]+ [um]?s\)")
        events = [e for e in json.loads(pathlib.Path(trace).read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["pid"] for e in events}, {0, 1, 2, 3})
        # The first start of all ranks is 0, and all are of one iteration: they overlap.
        self.assertEqual(min(e["ts"] for e in events), 0)
        last_start = max(min(e["ts"] for e in events if e["pid"] == rank) for rank in range(4))
        first_end = min(max(e["ts"] + e["dur"] for e in events if e["pid"] == rank) for rank in range(4))
        self.assertLess(last_start, first_end)

    def test_a_plan_file_is_proven_and_run(self):
        plan = self.path("t.tplan")
        self.ok("lower", self.schedule, "--to", "plan-file", "-o", plan)
        self.assertEqual(self.ok("verify", plan), f"{plan} (plan: all-reduce over 4 ranks by bfb): proven correct\n")
        self.assertEqual(self.json("verify", plan), {"format": "plan-file", "collective": "all-reduce", "ranks": 4,
                                                     "algorithm": "bfb", "verified": True})
        self.assertIn(f"all-reduce on {plan} by bfb: 4 local ranks", self.ok("run", plan, "--size", "64K", "-n", "1"))
        self.assertEqual(self.json("run", plan, "--size", "64K", "-n", "1", "--transport", "tcp", "--hosts",
                                   "localhost:4")["wrong"], 0)
        content = bytearray(pathlib.Path(plan).read_bytes())
        content[len(content) // 2] ^= 1
        pathlib.Path(plan).write_bytes(content)
        for command in (["verify", plan], ["run", plan, "--size", "64K"]):
            self.refused(*command, says=[plan])

    def test_refuses_what_cannot_be_started(self):
        tcp = ["run", self.schedule, "--size", "1K", "--transport", "tcp"]
        self.refused(*tcp, "--hosts", "localhost:3", says=["4 ranks, but the hosts have room for 3"])
        self.refused(*tcp, "--hosts", "localhost:four", says=["'four' is no number of ranks"])
        self.refused(*tcp, "--hosts", "localhost:4", "--root", "localhost:x", says=["--root 'localhost:x'"])
        self.refused("run", self.schedule, "--size", "1K", "--hosts", "localhost:4", says=["--hosts needs --transport tcp"])
        self.refused("run", self.schedule, "--size", "1K", "--transport", "mpi", says=["--transport mpi is for ranks that mpirun starts"])
        self.refused("run", self.schedule, "--size", "1K", "--transport", "smoke", says=["accepted are shared (or shm), tcp and mpi"])
        self.refused(*tcp, "--hosts", "127.0.0.1:4", "--launch", "/no/such/program", says=["/no/such/program"])
        done = harness.run(*tcp, "--hosts", "127.0.0.1:4", "--launch", "sh -c 'exit 7' {host}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tutti: error: host 127.0.0.1: 'sh' ended with status", done.stderr)
        done = harness.run(*tcp, "--hosts", "127.0.0.1:4", "--launch", "sleep 100 #", "--timeout", "0.5")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "these ranks are not there: 0, 1, 2, 3|'sleep' ended")

    def test_a_rank_that_is_killed_is_named_and_nobody_is_left(self):
        draw = random.Random(1)
        for _ in range(KILLS):
            running, ranks = self.start()
            victim = draw.randrange(4)
            time.sleep(draw.uniform(0, 0.3))
            os.kill(ranks[victim], signal.SIGKILL)
            out, err = running.communicate(timeout=60)
            self.assertEqual(running.returncode, 1, err)
            self.assertRegex(err, rf"tutti: error: rank {victim} \(127\.0\.0\.1\) ended: ")
            self.assert_gone(ranks)

    def start_over_mpi(self, launcher, flavour):
        """A run of two ranks under way (MPICH's ranks wait spinning: each has a core), and its ranks' processes by rank."""
        ring = self.synth("ring(2)", "all-reduce", "ring")
        running = subprocess.Popen([launcher, "-np", "2", harness.TUTTI, "run", ring, "--transport", "mpi", "--size", "1M", "-n", "1000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=MPI_ENVIRONMENT)
        self.addCleanup(running.kill)
        deadline = time.monotonic() + 60
        ranks = {}
        while len(ranks) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            ranks = {rank: child for rank, several in ranks_below(running.pid).items() for child, _, words in several
                     if f"tutti-mpi-rank-{flavour}" in words[0]}
        self.assertEqual(sorted(ranks), [0, 1])
        return running, ranks

    def each_mpi(self):
        """Launcher and flavour of each MPI library that a program of ranks was built for."""
        found = [(launcher, flavour) for launcher, flavour in (("mpirun.openmpi", "openmpi"), ("mpirun.mpich", "mpich"))
                 if shutil.which(launcher) and pathlib.Path(harness.TUTTI).with_name(f"tutti-mpi-rank-{flavour}").exists()]
        if not found:
            self.skipTest("no MPI")
        return found

    def test_a_rank_over_mpi_that_is_killed_is_named_and_nobody_is_left(self):
        draw = random.Random(3)
        for launcher, flavour in self.each_mpi():
            for k in range(max(4, KILLS // 5)):
                running, ranks = self.start_over_mpi(launcher, flavour)
                # With MPICH also before all have come to MPI. Open MPI's launcher may wait for ever where a rank that is killed
                # in MPI_Init() holds a lock of PMIx.
                before_all_are_there = k % 2 == 0 and flavour == "mpich"
                time.sleep(0 if before_all_are_there else draw.uniform(0.3, 1))
                victim = k // 2 % 2
                os.kill(ranks[victim], signal.SIGKILL)
                # Less than the 30 s that are waited for a rank that does not come.
                _, err = running.communicate(timeout=25)
                self.assertNotEqual(running.returncode, 0)
                named = rf"rank {victim} \(127\.0\.0\.1\) ended|host rank {victim}: .* signal 9"
                # MPI_Init() of the other rank may fail as it looks for the victim's memory: then MPICH aborts the job with
                # MPI_ERR_OTHER, and its launcher kills at once everybody who could say more.
                if not (before_all_are_there and running.returncode == 15):
                    self.assertRegex(err, named)
                self.assert_gone(ranks)

    def test_a_rank_over_mpi_that_stands_still_is_named(self):
        for launcher, flavour in self.each_mpi():
            running, ranks = self.start_over_mpi(launcher, flavour)
            time.sleep(1)  # until its iterations are under way
            os.kill(ranks[1], signal.SIGSTOP)
            out, err = running.communicate(timeout=60)
            self.assertNotEqual(running.returncode, 0)
            self.assertRegex(err, r"tutti: error: rank 1 \(127\.0\.0\.1\) has said nothing for [\d.]+ s")
            self.assert_gone(ranks)

    def test_a_rank_that_stands_still_is_named(self):
        running, ranks = self.start()
        os.kill(ranks[2], signal.SIGSTOP)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, err)
        self.assertRegex(err, r"tutti: error: rank 2 \(127\.0\.0\.1\) has said nothing for [\d.]+ s")
        self.assert_gone(ranks)

    def test_ranks_end_with_the_run_that_started_them(self):
        for how, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            running, ranks = self.start()
            running.send_signal(how)
            running.communicate(timeout=60)
            self.assertEqual(running.returncode, code)
            self.assert_gone(ranks)

    def test_what_hosts_say_when_an_interrupt_ends_them_is_not_heard(self):
        launch = self.path("launch.sh")
        with open(launch, "w") as file:
            file.write("trap 'echo late >&2; exit 1' TERM\necho up >&2\nsleep 60 &\nwait\n")
        running = subprocess.Popen([harness.TUTTI, "run", self.schedule, "--size", "1K", "--transport", "tcp", "--hosts", "127.0.0.1:4",
                                    "--launch", f"sh {launch} {{host}}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        self.assertEqual(running.stderr.readline(), "127.0.0.1: up\n")
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.communicate(timeout=60)[1], "tutti: error: interrupted\n")
        self.assertEqual(running.returncode, 130)

    def test_garbage_at_the_port_disturbs_nobody(self):
        running, ranks = self.start()
        host, port = self.port_of(running).split(":")
        draw = random.Random(2)
        strangers = []
        for _ in range(50):
            stranger = socket.create_connection((host, int(port)), timeout=60)
            stranger.sendall(draw.randbytes(draw.randrange(1, 200)))
            strangers.append(stranger)
        time.sleep(0.5)
        self.assertIsNone(running.poll())
        for stranger in strangers:
            stranger.close()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)

    def test_ranks_of_mpirun(self):
        started = 0
        for launcher, name in (("mpirun.openmpi", "Open MPI"), ("mpirun.mpich", "Hydra")):
            if shutil.which(launcher) is None:
                continue
            started += 1
            done = subprocess.run([launcher, "-np", "4", harness.TUTTI, "run", self.schedule, "--size", "64K", "-n", "2",
                                   "--transport", "tcp"], capture_output=True, text=True, env=MPI_ENVIRONMENT, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(f"4 ranks of {name},"), 1)
            self.assertEqual(done.stdout.count("# Out of bounds values : 0 OK"), 1)
            done = subprocess.run([launcher, "-np", "3", harness.TUTTI, "run", self.schedule, "--size", "64K",
                                   "--transport", "tcp"], capture_output=True, text=True, env=MPI_ENVIRONMENT, timeout=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"the plan is for 4 ranks, {name} started 3", done.stderr)
            # The others are told, and say nothing.
            self.assertEqual(done.stderr.count("tutti: error"), 1, done.stderr)
            for shared in ([], ["--transport", "shm"]):
                done = subprocess.run([launcher, "-np", "4", harness.TUTTI, "run", self.schedule, "--size", "64K", "-n", "2", *shared],
                                      capture_output=True, text=True, env=MPI_ENVIRONMENT, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("4 local ranks,"), 1)
                self.assertEqual(done.stdout.count("# Out of bounds values : 0 OK"), 1)
        if started == 0:
            self.skipTest("no MPI")

    def test_messages_by_mpi(self):
        """The same bits as over shared memory, by each MPI library that the programs of ranks were built for."""
        ring = self.synth("ring(4)", "all-reduce", "bfb")
        run = ["run", ring, "--size", "100,1M", "-n", "2", "--fixed-order", "--json"]
        local = self.json(*run)
        for launcher, _ in self.each_mpi():
            done = subprocess.run([launcher, "-np", "4", harness.TUTTI, *run, "--transport", "mpi"], capture_output=True, text=True,
                                  env=MPI_ENVIRONMENT, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            out = json.loads(done.stdout)
            self.assertEqual(out["wrong"], 0)
            for here, there in zip(local["rows"], out["rows"]):
                self.assertEqual(there["in_place"]["digest"], here["in_place"]["digest"])

    def test_ranks_of_mpi_end_where_the_first_cannot_begin(self):
        for launcher, _ in self.each_mpi():
            # Open MPI's launcher did not always end.
            for transport in ("tcp", "shm", "mpi", "mpi", "mpi", "mpi"):
                done = subprocess.run([launcher, "-np", "3", harness.TUTTI, "run", self.path("none.sched"), "--size", "64K",
                                       "--transport", transport], capture_output=True, text=True, env=MPI_ENVIRONMENT, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("tutti: error"), 1, done.stderr)
                self.assertIn("none.sched: cannot open", done.stderr)

    def test_of_the_ranks_that_a_launcher_ends_the_first_says_so(self):
        for rank in (0, 1):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", LOCAL_WORLD_SIZE="4", MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(1024 + os.getpid() % 60000), TUTTI_SECRET="0123456789abcdef" * 2)
            waiting = subprocess.Popen([harness.TUTTI, "run", self.schedule, "--size", "64K", "--transport", "tcp"],
                                       stderr=subprocess.PIPE, text=True, env=environment)
            time.sleep(0.5)
            waiting.terminate()
            _, err = waiting.communicate(timeout=60)
            self.assertEqual(waiting.returncode, 128 + signal.SIGTERM, err)
            self.assertEqual(err, "tutti: error: interrupted\n" if rank == 0 else "")

    def test_ranks_of_torchrun(self):
        """What it sets, without it."""
        ranks = []
        for rank in range(4):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", LOCAL_WORLD_SIZE="4", MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(1024 + os.getpid() % 60000), TUTTI_SECRET="0123456789abcdef" * 2)
            ranks.append(subprocess.Popen([harness.TUTTI, "run", self.schedule, "--size", "64K", "-n", "2", "--transport",
                                           "tcp", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          env=environment))
        outputs = [rank.communicate(timeout=120) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0, 0, 0], outputs)
        self.assertIn('"wrong": 0', outputs[0][0])
        self.assertEqual([out for out, _ in outputs[1:]], ["", "", ""])

    def test_addresses_of_ip_version_6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as why:
            self.skipTest(f"no IP version 6 here: {why}")
        # `env` ignores the host's name and starts the ranks here.
        for hosts, more in (("[::1]:4", []), ("[::1]:2,127.0.0.1:2", []), ("localhost:4", ["--root", "[::1]"]),
                            ("localhost:2,[::1]:2", ["--root", "[::1]"])):
            with self.subTest(hosts, more=more):
                out = self.json("run", self.schedule, "--transport", "tcp", "--hosts", hosts, "--launch", "env TO={host}",
                                "--size", "64K", "-n", "2", *more)
                self.assertEqual(out["wrong"], 0)
        self.refused("run", self.schedule, "--size", "1K", "--transport", "tcp", "--hosts", "::1:4",
                     says=["host '::1:4': an address of IP version 6 stands in brackets"])
        self.refused("run", self.schedule, "--size", "1K", "--transport", "tcp", "--hosts", "localhost:4", "--root", "::1",
                     says=["--root '::1', wanted HOST or HOST:PORT, an address of IP version 6 in brackets"])

    def test_hosts_with_networks_of_their_own(self):
        """Four network namespaces behind leaves and spines, links of 200 and 100 Mbit/s."""
        tutti = os.path.abspath(harness.TUTTI)
        done = subprocess.run([str(TESTBED), "spine-leaf", "--", "on", "H0", tutti, "run", self.schedule, "--transport", "tcp",
                               "--hosts", "H0,H1,H2,H3", "--launch", "on {host}", "--root", "10.1.0.1", "--size", "1M", "-n", "3",
                               "--json"], capture_output=True, text=True, timeout=120)
        if done.returncode == SKIPPED:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"wrong": 0', done.stdout)
        # 1 MiB and more leave H0 by its link of 200 Mbit/s: never in less than 1.5 * 1 MiB / 200 Mbit/s.
        time_us = float(re.search(r'"time_us": ([0-9.]+)', done.stdout).group(1))
        self.assertGreater(time_us, 1.5 * 1048576 * 8 / 200)

    def test_run_ranks_needs_its_secret(self):
        command = ["run-ranks", "--root", "127.0.0.1:1", "--ranks", "2", "--first", "0"]
        self.refused(*command, input="", says=["standard input: the secret of a job is 32 hexadecimal digits"])
        self.refused(*command, "--count", "3", input="0" * 32, says=["--first 0 --count 3: there are 2 ranks"])


if __name__ == "__main__":
    unittest.main()
