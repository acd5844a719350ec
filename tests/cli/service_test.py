"""tuttid and tutti service: as operators and tenants meet them, and what is left when one of them is killed."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

import harness

TUTTID = os.environ.get("TUTTID", "build/release/bin/tuttid")
BENCH = "service bench".split()  # no experiment of `tutti bench`: needs nothing that is not always built
PROGRAM = os.path.join(os.path.dirname(TUTTID), "communicator_test")


class ServiceTest(harness.CliTest):
    def daemon(self, name="one", *more, config=None):
        """A running daemon; its sockets are self.socket(name) and self.admin(name)."""
        arguments = ["--socket", self.socket(name), "--admin", self.admin(name), "--listen", "127.0.0.1", "--host", name]
        if config is not None:
            with open(self.path(f"{name}.json"), "w") as file:
                json.dump(config, file)
            arguments += ["--config", self.path(f"{name}.json")]
        running = subprocess.Popen([TUTTID, *arguments, *more], stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        line = running.stderr.readline()
        self.assertIn(f"tenants at {self.socket(name)}", line)
        return running

    def socket(self, name="one"):
        return self.path(f"{name}.sock")

    def admin(self, name="one"):
        return self.path(f"{name}.admin")

    def ask(self, command, *more, name="one"):
        return self.json("service", command, *more, "--admin", self.admin(name))

    def tenant(self, *arguments, name="one", **options):
        """Ranks that go on until they are stopped, unless told otherwise."""
        command = [harness.TUTTI, *BENCH, "--alone", "--socket", self.socket(name), *arguments]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        for stream in (running.stdout, running.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def until(self, what, seconds=120):
        deadline = time.monotonic() + seconds
        while True:
            value = what()
            if value or time.monotonic() > deadline:
                self.assertTrue(value)
                return value
            time.sleep(0.02)

    def all_is_given_back(self, name="one"):
        """Of its only tenant: memory goes when the daemon has seen that the process has ended."""
        return [(one["ranks"], one["memory_bytes"]) for one in self.ask("tenants", name=name)["tenants"]] == [(0, 0)]

    def busy_communicator(self, name="one"):
        """The label of the communicator that has completed something."""
        def look():
            for one in self.ask("comms", name=name)["communicators"]:
                if any(rank["completed"] > 0 for rank in one["local_ranks"]):
                    return one["communicator"]
            return None
        return self.until(look)

    def ended(self, running, says):
        """Ends by itself, before any time-out passes, with one line that says why."""
        out, error = running.communicate(timeout=120)
        self.assertEqual((running.returncode, out), (1, ""), error)
        self.assertRegex(error, r"\Atutti: error: [^\n]+\n\Z")
        for words in says if isinstance(says, (list, tuple)) else [says]:
            self.assertIn(words, error)
        return error

    def test_an_operator_and_a_tenant(self):
        daemon = self.daemon()
        out = self.ok(*BENCH, "--socket", self.socket(), "--ranks", "3", "--size", "8,64KiB", "--batches", "3")
        self.assertRegex(out, r"size \(B\) +time +algbw +in process +added\n8 +[0-9.]+ [mu]s")
        rows = self.json(*BENCH, "--socket", self.socket(), "--ranks", "2", "--size", "1KiB", "--batches", "3")
        self.assertEqual(rows["sizes"][0]["bytes"], 1024)
        self.assertGreater(rows["sizes"][0]["in_process_s"], 0)
        self.until(lambda: self.ask("status")["communicators"] == 0)
        self.until(self.all_is_given_back)
        tenants = self.ask("tenants")["tenants"]
        self.assertEqual([tenant["tenant"] for tenant in tenants], [f"user-{os.getuid()}"])
        self.assertGreater(tenants[0]["operations"], 0)
        text = self.ok("service", "tenants", "--admin", self.admin())
        self.assertIn(f"user-{os.getuid()}", text)
        self.assertEqual(self.ok("service", "comms", "--admin", self.admin()), "no communicators\n")
        self.assertEqual(self.ok("service", "pending", "--admin", self.admin()), "nothing waits\n")
        self.refused("service", "quota", "green", "--weight", "2", "--admin", self.admin(), says=["no tenant 'green'"])
        changed = self.ask("quota", f"user-{os.getuid()}", "--weight", "5", "--memory", "1GiB")["tenants"][0]
        self.assertEqual((changed["weight"], changed["memory_bytes_quota"]), (5, 1 << 30))
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(60), 0)
        self.assertFalse(os.path.exists(self.socket()) or os.path.exists(self.admin()))
        self.refused("service", "status", "--admin", self.admin(), says=["no service at", self.admin()])
        self.refused(*BENCH, "--socket", self.socket(), says=["no service at", self.socket()])

    @unittest.skipUnless(os.path.exists(PROGRAM), "the tests of the library are not built")
    def test_a_program_runs_unchanged(self):
        """The tests of the C interface, and of processes, as they are."""
        self.daemon()
        same = "CApi*:CommunicatorTest.EveryCollective*:CommunicatorTest.AllToAllV*:CommunicatorTest.Messages*:" \
               "CommunicatorTest.Split*:CommunicatorTest.EveryType*:CommunicatorProcessTest.EveryCollective*:RegroupProcessTest.AnyRank*:" \
               "RegroupProcessTest.Several*"
        done = subprocess.run([PROGRAM, "--gtest_brief=1", f"--gtest_filter={same}"], capture_output=True, text=True,
                              timeout=900, env={**os.environ, "TUTTI_SERVICE": self.socket()})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertGreater(self.ask("tenants")["tenants"][0]["operations"], 0)

    def test_bench_and_load_take_the_same_collectives(self):
        for command in (BENCH, ["service", "load"]):
            self.refused(*command, "--collective", "broadcast", says=["--collective: got 'broadcast', wanted all-reduce or all-gather"])
            self.refused(*command, "--collective", "all-redcue", says=["--collective: ", "all-redcue"])

    def test_schedules_change_while_collectives_run_on_two_hosts(self):
        self.daemon("a")
        self.daemon("b")
        ring = self.synth("ring(4)", "all-reduce", "ring", "ring.sched")
        wrong = self.synth("ring(3)", "all-reduce", "ring", "wrong.sched")
        meet = ["--ranks", "4", "--size", "64KiB", "--batches", "100000", "--id", self.path("id")]
        first = self.tenant("--first", "0", "--here", "2", *meet, name="a")
        second = self.tenant("--first", "2", "--here", "2", *meet, name="b")
        label = self.busy_communicator("a")
        comm = self.ask("comms", name="a")["communicators"][0]
        self.assertEqual((comm["epoch"], comm["strategy"], comm["ranks"]), (0, "built-in", 4))
        self.assertGreater(comm["connections"], 0)
        out = self.ok("service", "reconfigure", label, ring, "--admin", self.admin("a"))
        self.assertIn(f"{label} runs the new schedules; launches were held for", out)
        for name in ("a", "b"):
            comm = self.ask("comms", name=name)["communicators"][0]
            self.assertEqual((comm["epoch"], comm["strategy"], comm["state"]), (1, "ring.sched", "active"))
        self.refused("service", "reconfigure", label, wrong, "--admin", self.admin("a"),
                     says=["wrong.sched: is for 3 ranks, wanted 4"])
        self.refused("service", "reconfigure", label, "--admin", self.admin("b"), says=["ask there"])
        self.refused("service", "reconfigure", "c-none", "--admin", self.admin("b"), says=["no communicator 'c-none'"])
        self.assertGreaterEqual(self.ask("reconfigure", label, name="a")["hold_s"], 0)
        done = [rank["completed"] for rank in self.ask("comms", name="a")["communicators"][0]["local_ranks"]]
        self.until(lambda: [rank["completed"] for rank in self.ask("comms", name="a")["communicators"][0]["local_ranks"]] > done)
        written = self.json("service", "trace", label, "-o", self.path("trace.json"), "--admin", self.admin("a"))
        with open(self.path("trace.json")) as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual(len(events), written["events"])
        self.assertTrue(any(event["name"].startswith("all-reduce of 16384 float") for event in events))
        # The same as a page.
        self.ok("service", "trace", label, "--html", self.path("trace.html"), "--admin", self.admin("a"))
        shown = harness.page_data(self.path("trace.html"))["operations"]
        self.assertEqual(shown["title"], f"communicator {label}")
        self.assertEqual(shown["lanes"], sorted(shown["lanes"]))
        self.assertTrue(any(name.startswith("all-reduce of 16384 float") for name in shown["events"]["name"]))
        self.assertTrue(all(end >= start >= 0 for start, end in zip(shown["events"]["start_ps"], shown["events"]["end_ps"])))
        self.refused("service", "trace", label, "--admin", self.admin("a"), says=["neither -o nor --html"])
        # For a while, chunk by chunk; on a busy machine the ranks may rest that long.
        chunks = []

        def traced():
            self.ok("service", "trace", label, "--chunks", "200", "-o", self.path("chunks.json"), "--html", self.path("chunks.html"),
                    "--admin", self.admin("a"))
            with open(self.path("chunks.json")) as file:
                chunks[:] = [event for event in json.load(file)["traceEvents"] if event["cat"] == "chunk"]
            return chunks
        self.until(traced)
        self.assertLessEqual({event["name"].split(" ")[0] for event in chunks}, {"send", "receive", "reduce", "copy"})
        self.assertLessEqual({event["pid"][-7:] for event in chunks}, {" rank 0", " rank 1"})
        self.refused("service", "trace", label, "--chunks", "0", "-o", self.path("chunks.json"), "--admin", self.admin("a"),
                     says=["--chunks"])
        self.assertIn("operations/s", self.ok("service", "top", "--admin", self.admin("a")))
        # One host's ranks die: the others hear whose they were.
        second.kill()
        self.ended(first, ["rank ", "its process has ended"])
        self.until(lambda: self.ask("status", name="b")["communicators"] == 0)

    def started(self, *arguments):
        running = subprocess.Popen([harness.TUTTI, "service", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for stream in (running.stdout, running.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def load(self, name, *arguments):
        return self.started("load", "--socket", self.socket(name), "--size", "64KiB", *arguments)

    def test_a_change_waits_for_who_is_behind(self):
        """What docs/guide/operate.md says of `reconfigure`."""
        self.daemon("a")
        self.daemon("b")
        ring = self.synth("ring(2)", "all-reduce", "ring", "ring.sched")
        meet = ["--ranks", "2", "--id", self.path("id"), "--until", self.path("stop")]
        first = self.load("a", "--here", "0", *meet)
        second = self.load("b", "--here", "1", "--compute", "6000", *meet)  # and the first waits for it
        label = self.busy_communicator("a")
        change = ["reconfigure", label, ring, "--admin", self.admin("a")]

        def comm(name):
            return self.ask("comms", name=name)["communicators"][0]

        def waits_for_rank_1():
            pending = self.ask("pending", name="a")["pending"]
            return [missing["rank"] for one in pending for missing in one["missing"]] == [1]
        self.until(waits_for_rank_1)
        asked = self.started(*change)
        self.until(lambda: comm("b")["state"] == "switching")
        self.assertIsNone(asked.poll())
        self.assertEqual(comm("b")["epoch"], 0)
        self.refused("service", *change, says=["busy: a reconfiguration is under way"])
        out, error = asked.communicate(timeout=120)
        self.assertEqual((asked.returncode, error), (0, ""))
        self.assertIn(f"{label} runs the new schedules", out)
        self.assertEqual([(one["epoch"], one["strategy"]) for one in (comm("a"), comm("b"))], [(1, "ring.sched")] * 2)
        # Who asked need not stay.
        self.until(waits_for_rank_1)
        asked = self.started(*change)
        self.until(lambda: comm("b")["state"] == "switching")
        asked.kill()
        self.until(lambda: [comm(name)["epoch"] for name in "ab"] == [2, 2])
        # Nor is it waited for a rank that has ended.
        self.until(waits_for_rank_1)
        asked = self.started(*change)
        self.until(lambda: comm("b")["state"] == "switching")
        second.kill()
        self.assertIn("all its ranks have left", asked.communicate(timeout=120)[1])
        self.assertEqual(asked.returncode, 2)
        self.ended(first, ["rank 1 completed", "its process has ended"])

    def test_an_upgrade_with_jobs_ends_those_of_the_host_alone(self):
        """What docs/guide/operate.md says of daemons that are replaced while jobs run."""
        daemon = self.daemon("a")
        self.daemon("b")
        meet = ["--ranks", "2", "--id", self.path("id"), "--until", self.path("stop")]
        first, second = self.load("a", "--here", "0", *meet), self.load("b", "--here", "1", *meet)
        self.busy_communicator("a")
        alone = self.load("b", "--ranks", "2", "--until", self.path("stop"))
        self.until(lambda: len(self.ask("comms", name="b")["communicators"]) == 2)
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(60), 0)
        self.ended(first, "the service has gone")
        self.ended(second, "the root daemon has gone: 127.0.0.1:")
        self.daemon("a")
        again = ["--ranks", "2", "--id", self.path("again"), "--iterations", "10"]
        jobs = [self.load("a", "--here", "0", *again), self.load("b", "--here", "1", *again)]
        for job in jobs:
            out, error = job.communicate(timeout=120)
            self.assertEqual((job.returncode, error), (0, ""))
            self.assertIn("by 2 ranks", out)
        with open(self.path("stop"), "w"):
            pass
        self.assertIn("by 2 ranks", alone.communicate(timeout=120)[0])
        self.assertEqual(alone.returncode, 0)

    def test_who_does_not_come_is_named(self):
        self.daemon()
        meet = ["--ranks", "3", "--size", "8", "--batches", "1", "--id", self.path("id")]
        self.tenant("--first", "0", "--here", "2", *meet)
        # Of the two that are here the second may join later.
        self.until(lambda: [one["missing"] for one in self.ask("pending")["pending"]] ==
                   [[{"rank": 2, "host": "", "why": "has not joined"}]])
        self.assertIn("rank 2 has not joined", self.ok("service", "pending", "--admin", self.admin()))

    def test_a_daemon_that_is_killed_is_named_and_can_be_replaced(self):
        daemon = self.daemon("a")
        other = self.daemon("b")
        meet = ["--ranks", "2", "--size", "64KiB", "--batches", "100000", "--id", self.path("id")]
        first = self.tenant("--first", "0", "--here", "1", *meet, name="a")
        second = self.tenant("--first", "1", "--here", "1", *meet, name="b")
        self.busy_communicator("b")
        other.kill()
        self.ended(second, "the service has gone")
        self.ended(first, ["rank 1 (b) has gone"])
        other.wait()
        self.daemon("b")  # its sockets are still there, and nobody serves them
        self.ok(*BENCH, "--socket", self.socket("b"), "--size", "8", "--batches", "1", "--alone")
        daemon.send_signal(signal.SIGINT)
        self.assertEqual(daemon.wait(60), 0)

    def test_ranks_and_daemons_killed_at_any_moment(self):
        """kill -9 of a process of ranks or of a daemon: whoever is left ends and names the culprit, and nothing stays. TUTTI_DRAWS: how
        often."""
        draw = random.Random(5)
        for turn in range(int(os.environ.get("TUTTI_DRAWS", "6"))):
            names = [f"{end}{turn}" for end in "ab"]
            daemons = [self.daemon(name) for name in names]
            meet = ["--ranks", "4", "--size", draw.choice(["8", "64KiB", "1MiB"]), "--batches", "100000", "--id", self.path(f"id{turn}")]
            ranks = [self.tenant("--first", str(2 * i), "--here", "2", *meet, name=name) for i, name in enumerate(names)]
            self.busy_communicator(names[1])
            time.sleep(draw.uniform(0, 0.05))
            end, is_daemon = draw.randrange(2), draw.random() < 0.5
            (daemons if is_daemon else ranks)[end].kill()
            if is_daemon:
                self.ended(ranks[end], "the service has gone")
            error = self.ended(ranks[1 - end], "has gone" if is_daemon else "has ended")
            if not is_daemon:  # both ranks of the process, or the first that has not completed what others call
                self.assertRegex(error, f"rank {2 * end}(, {2 * end + 1}:| completed|, {2 * end + 1} completed)")
            ranks[end].wait()
            for name, daemon in zip(names, daemons):
                if daemon.poll() is None:  # the other tenants' daemon has nothing left of them
                    self.until(lambda name=name: self.ask("status", name=name)["communicators"] == 0)
                    self.until(lambda name=name: self.all_is_given_back(name))
                    daemon.kill()
                daemon.wait()

    @unittest.skipUnless(os.path.exists(PROGRAM), "the tests of the library are not built")
    def test_a_daemon_and_a_rank_of_another_killed_at_once(self):
        """The ranks that are left go on; none of them waits for a time-out. TUTTI_DRAWS: how often."""
        draw = random.Random(7)
        names = ["x", "y", "z"]
        daemons = [self.daemon(name) for name in names]
        for turn in range(int(os.environ.get("TUTTI_DRAWS", "4"))):
            killed = draw.randrange(3)
            told = f"{' '.join(map(self.socket, names))} {killed} {daemons[killed].pid} {turn}"
            done = subprocess.run([PROGRAM, "--gtest_brief=1", "--gtest_filter=RegroupProcessTest.ADaemonAndARank*"], capture_output=True,
                                  text=True, timeout=300, env={**os.environ, "TUTTI_TEST_DAEMONS": told})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(daemons[killed].wait(60), -signal.SIGKILL)
            for name in (name for i, name in enumerate(names) if i != killed):
                self.until(lambda name=name: self.ask("status", name=name)["communicators"] == 0)
                self.until(lambda name=name: self.all_is_given_back(name))
            daemons[killed] = self.daemon(names[killed])

    def test_tenants_have_tokens_and_quotas(self):
        self.daemon(config={"anybody": False, "tenants": [{"name": "blue", "token": "sesame", "memory_bytes": 1 << 20}]})
        few = [*BENCH, "--socket", self.socket(), "--batches", "1", "--alone", "--size"]
        self.refused(*few, "8", says=["is no tenant of this service", "TUTTI_SERVICE_TOKEN"])
        self.refused(*few, "8", env={**os.environ, "TUTTI_SERVICE_TOKEN": "guess"}, says=["with this token"])
        blue = {**os.environ, "TUTTI_SERVICE_TOKEN": "sesame"}
        self.ok(*few, "8", env=blue)
        self.refused(*few, "4MiB", env=blue, says=["4194304 bytes: tenant blue has", "of its quota of 1048576 bytes left"])
        self.assertEqual(self.ask("tenants")["tenants"][0]["tenant"], "blue")

    def test_a_tenant_without_descriptors_says_so(self):
        """With each number of descriptors too small, down to those that it has from the start."""
        self.daemon()
        failures = 0
        for limit in range(80, 3, -1):
            command = ["prlimit", f"--nofile={limit}", harness.TUTTI, *BENCH, "--alone", "--socket", self.socket(), "--ranks", "2",
                       "--size", "8", "--batches", "1"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if "error while loading shared libraries" in done.stderr or failures == 20:
                break
            # UBSan asks by a pipe whether an object is of its type; without descriptors it says that none is.
            if done.returncode != 0 and "does not point to an object of type" not in done.stderr:
                failures += 1
                self.assertRegex(done.stderr, r"\Atutti: error: [^\n]*([Tt]oo many open files|no descriptors left)[^\n]*\n\Z", limit)
        self.assertGreater(failures, 0)
        self.until(self.all_is_given_back)

    def test_what_a_daemon_refuses(self):
        def refused(*arguments, says):
            done = subprocess.run([TUTTID, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Atuttid: error: [^\n]+\n\Z")
            self.assertIn(says, done.stderr)
        self.daemon()
        refused("--socket", self.socket(), "--admin", self.admin(), says="another daemon serves it")
        self.ask("status")  # and it still does
        refused("--listen", "somewhere", says="listen: got 'somewhere', wanted an IPv4 address")
        refused("--listen", "127.0.0.1:http", says="--listen: got '127.0.0.1:http'")
        refused("--config", self.path("none"), says="none")
        with open(self.path("file"), "w") as file:
            file.write("mine")
        refused("--socket", self.path("file"), "--admin", self.path("x"), says="is there and no socket")
        with open(self.path("file")) as file:
            self.assertEqual(file.read(), "mine")
        with open(self.path("config"), "w") as file:
            file.write('{"tenants": [{"name": "blue"}]}')
        refused("--config", self.path("config"), says="tenants[0].needs a token, users, or both")
        refused("--socket", self.path("s" * 200), says="a path has 1 to 107 bytes")
        refused("--no-such-flag", says="see 'tuttid --help'")


if __name__ == "__main__":
    unittest.main()
