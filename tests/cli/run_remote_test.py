"""tutti run with ranks that share no memory: processes of --hosts, of mpirun, of hosts in network namespaces, and
what happens when one of them, or all, are hurt."""
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


def ranks_below(pid):
    """rank -> process, of those that `tutti run` with that process has started"""
    found = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            words = (status.parent / "cmdline").read_bytes().decode().split("\0")
        except (OSError, ValueError):
            continue
        if "run-ranks" not in words:
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
        deadline = time.monotonic() + 30
        ranks = {}
        while len(ranks) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
            port = self.port_of(running)
            ranks = {} if port is None else {
                rank: child for rank, several in ranks_below(running.pid).items()
                for child, _, words in several if words[words.index("--root") + 1] == port}
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        time.sleep(0.3)
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

    def assert_gone(self, ranks, within_s):
        deadline = time.monotonic() + within_s
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
        self.refused(*tcp, "--hosts", "localhost:4", "--trace", self.path("t.json"), says=["--trace"])
        self.refused(*tcp, "--hosts", "localhost:4", "--root", "localhost:x", says=["--root 'localhost:x'"])
        self.refused("run", self.schedule, "--size", "1K", "--hosts", "localhost:4", says=["--hosts needs --transport tcp"])
        self.refused(*tcp, "--hosts", "127.0.0.1:4", "--launch", "/no/such/program", says=["/no/such/program"])
        done = harness.run(*tcp, "--hosts", "127.0.0.1:4", "--launch", "sh -c 'exit 7' {host}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tutti: error: host 127.0.0.1: 'sh' ended with status", done.stderr)
        done = harness.run(*tcp, "--hosts", "127.0.0.1:4", "--launch", "sleep 100 #", "--timeout", "0.5")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "these ranks are not there: 0, 1, 2, 3|'sleep' ended")

    def test_a_rank_that_is_killed_is_named_and_nobody_is_left(self):
        draw = random.Random(1)
        for _ in range(5):
            running, ranks = self.start()
            victim = draw.randrange(4)
            time.sleep(draw.uniform(0, 0.3))
            began = time.monotonic()
            os.kill(ranks[victim], signal.SIGKILL)
            out, err = running.communicate(timeout=30)
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(running.returncode, 1, err)
            self.assertRegex(err, rf"tutti: error: rank {victim} \(127\.0\.0\.1\) ended: ")
            self.assert_gone(ranks, 5)

    def test_a_rank_that_stands_still_is_named(self):
        running, ranks = self.start()
        os.kill(ranks[2], signal.SIGSTOP)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, err)
        self.assertRegex(err, r"tutti: error: rank 2 \(127\.0\.0\.1\) has said nothing for \d\.\d s")
        self.assert_gone(ranks, 10)

    def test_ranks_end_with_the_run_that_started_them(self):
        for how, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            running, ranks = self.start()
            running.send_signal(how)
            running.communicate(timeout=30)
            self.assertEqual(running.returncode, code)
            self.assert_gone(ranks, 10)

    def test_garbage_at_the_port_disturbs_nobody(self):
        running, ranks = self.start()
        host, port = self.port_of(running).split(":")
        draw = random.Random(2)
        strangers = []
        for _ in range(50):
            stranger = socket.create_connection((host, int(port)), timeout=5)
            stranger.sendall(draw.randbytes(draw.randrange(1, 200)))
            strangers.append(stranger)
        time.sleep(0.5)
        self.assertIsNone(running.poll())
        for stranger in strangers:
            stranger.close()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=30)

    def test_ranks_of_mpirun(self):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_rmaps_base_oversubscribe="1")
        started = 0
        for launcher, name in (("mpirun.openmpi", "Open MPI"), ("mpirun.mpich", "Hydra")):
            if shutil.which(launcher) is None:
                continue
            started += 1
            done = subprocess.run([launcher, "-np", "4", harness.TUTTI, "run", self.schedule, "--size", "64K", "-n", "2",
                                   "--transport", "tcp"], capture_output=True, text=True, env=environment, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(f"4 ranks of {name},"), 1)
            self.assertEqual(done.stdout.count("# Out of bounds values : 0 OK"), 1)
            done = subprocess.run([launcher, "-np", "3", harness.TUTTI, "run", self.schedule, "--size", "64K",
                                   "--transport", "tcp"], capture_output=True, text=True, env=environment, timeout=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"the plan is for 4 ranks, {name} started 3", done.stderr)
        if started == 0:
            self.skipTest("no MPI")

    def test_ranks_of_torchrun(self):
        """What it sets, without it."""
        ranks = []
        for rank in range(4):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", LOCAL_WORLD_SIZE="4", MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(os.getpid()), TUTTI_SECRET="0123456789abcdef" * 2)
            ranks.append(subprocess.Popen([harness.TUTTI, "run", self.schedule, "--size", "64K", "-n", "2", "--transport",
                                           "tcp", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          env=environment))
        outputs = [rank.communicate(timeout=60) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0, 0, 0], outputs)
        self.assertIn('"wrong": 0', outputs[0][0])
        self.assertEqual([out for out, _ in outputs[1:]], ["", "", ""])

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
