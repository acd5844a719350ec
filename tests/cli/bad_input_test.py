"""Every bad input of the command line: what, where and what would be accepted; exit code 2."""
import json
import os
import signal
import subprocess
import time

import harness


class BadInput(harness.CliTest):
    def test_topology_expressions(self):
        for expression, says in [
            ("tours(4,4)", ["tours", "torus"]),
            ("torus(", ["column"]),
            ("torus(4,4", ["column"]),
            ("torus(4,x)", ["column", "x"]),
            ("torus()", ["torus"]),
            ("torus(0,4)", ["0"]),
            ("torus(-1,4)", ["-1"]),
            ("torus(99999999999999999999)", ["99999999999999999999"]),
            ("torus(100000,100000)", ["100000"]),
            ("hypercube(60)", ["60"]),
            ("ring(8,9,10)", ["ring"]),
            ("complete(4,4,4)", ["complete"]),
            ("torus(4,4,bw=nan)", ["nan"]),
            ("torus(4,4,bw=nanGB/s)", ["nan"]),
            ("torus(4,4,bw=-5GB/s)", ["-5"]),
            ("torus(4,4,bw=0)", ["bw", "0"]),
            ("torus(4,4,speed=5)", ["speed"]),
            ("torus(4,4,bw=[1,2,3]GB/s)", ["3", "2"]),
            ("torus(4,4,bw=1GB/s,bw=2GB/s)", ["bw"]),
            ("without(ring(4),links=3)", ["disconnect"]),
            ("without(ring(4),links=99)", ["99"]),
            ("", ["column"]),
            ("torus(4,4))", ["column"]),
            ("torus(4,4) torus(4,4)", ["column"]),
        ]:
            with self.subTest(expression):
                self.refused("topo", "show", expression, says=says)

    def test_symmetric(self):
        self.refused("synth", "torus(3,3)", "-a", "ring", "--symmetric", says=["'ring' has no symmetric form"])
        self.refused("synth", "torus(3,3)", "-c", "broadcast", "-a", "bfb", "--symmetric",
                     says=["no symmetric form of broadcast", "all-gather"])
        self.refused("synth", "torus(3,3)", "-a", "bfb", "--symmetric", "-o", self.path("x.json"),
                     says=["x.json", "no JSON form"])
        for network in ("mesh(3,3)", "without(torus(3,3),links=1,seed=1)", "genkautz(2,7)"):
            self.refused("synth", network, "-a", "bfb", "--symmetric", code=1,
                         says=["no group of translations", network])
        path = self.path("t.sched")
        self.ok("synth", "torus(3,4)", "-a", "bfb", "--symmetric", "-o", path)
        self.refused("verify", path, "--topology", "torus(4,3)", says=["was made for 'torus(3,4)'"])
        with open(path, "rb") as file:
            good = file.read()
        for at in (9, 20, 60, len(good) // 2, len(good) - 3):
            with open(path, "wb") as file:
                file.write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            for command in ("verify", "cost"):
                self.refused(command, path, says=["t.sched"])

    def test_topology_files(self):
        self.refused("topo", "show", self.path("none.json"), says=["none.json", "No such file"])
        source = self.path("ring.topo.json")
        self.ok("topo", "show", "ring(4)", "-o", source)
        with open(source) as file:
            good = json.load(file)

        def write(change):
            text = json.loads(json.dumps(good))
            change(text)
            path = self.path("bad.topo.json")
            with open(path, "w") as file:
                json.dump(text, file)
            return path

        def duplicate_name(text):
            del text["ranks"]
            text.pop("switches", None)
            text["nodes"] = [{"name": name, "kind": "rank"} for name in "abca"]

        def no_links(text):
            text["links"] = text["links"][:1]

        def unknown_version(text):
            text["version"] = 999

        for change, says in [(duplicate_name, ["name"]), (no_links, ["disconnected"]),
                             (unknown_version, ["999"])]:
            with self.subTest(change.__name__):
                self.refused("topo", "show", write(change), says=says + ["bad.topo.json"])
        with open(self.path("cut.json"), "w") as file:
            file.write(json.dumps(good)[:100])
        self.refused("topo", "show", self.path("cut.json"), says=["cut.json"])

    def test_names_and_numbers(self):
        self.refused("synth", "ring(4)", "-a", "magic", says=["magic", "bfb", "ring"])
        self.refused("synth", "ring(4)", "-c", "all-sing", "-a", "bfb", says=["all-sing", "all-gather"])
        self.refused("synth", "ring(4)", "-c", "broadcast", "--root", "4", "-a", "direct", says=["root 4"])
        self.refused("synth", "ring(4)", "-a", "bfb", "--size", "12parsecs", says=["12parsecs"])
        self.refused("synth", "ring(4)", "-a", "bfb", "--size", "0", says=["size"])
        self.refused("synth", "ring(4)", "-a", "bfb", "--chunks", "-1", says=["chunks"])
        self.refused("synth", "ring(4)", says=["algorithm"])
        self.refused("sing", "ring(4)", says=["sing"])
        self.refused(says=["subcommand"])

    def test_arguments_that_no_command_has(self):
        self.refused("synth", "ring(4)", "-c", "all-gather", "--algorihm", "ring",
                     says="unknown option '--algorihm'; nearest: --algorithm; see 'tutti synth --help'")
        self.refused("synth", "ring(4)", "-c", "all-gather", "-a", "ring", "--sise=1KiB",
                     says="unknown option '--sise'; nearest: --size")
        self.refused("service", "bench", "-b", "8", "-e", "9", says="unknown option '-b'; see 'tutti service bench --help'")
        self.refused("topo", "show", "ring(4)", "ring(5)", "ring(6)", says="unexpected argument 'ring(5)'")

    def test_policies_chunks_and_degrees(self):
        ring = ["synth", "ring(4)", "-a"]
        self.refused(*ring, "ten", "--policy", "nearest",
                     says=["'nearest'", "arrival, rarest, farthest, random"])
        self.refused(*ring, "bfb", "--policy", "random", says=["'bfb' has no policies", "ten"])
        self.refused(*ring, "bfb", "--wait", "never", says=["'bfb' has no links that wait", "ten"])
        self.refused(*ring, "ten", "--wait", "sometimes", says=["sometimes", "always", "never"])
        self.refused(*ring, "ten", "-c", "all-to-all", "--policy", "rarest", says=["farthest first", "'rarest'"])
        self.refused(*ring, "bfb", "--chunks", "auto", says=["'bfb' cannot choose the number of chunks", "ten"])
        for chunks in ("many", "4x", "-1", "", "1073741825"):
            self.refused(*ring, "ten", "--chunks", chunks, says=["--chunks", f"'{chunks}'", "auto"])
        self.refused(*ring, "ten", "--chunks", "auto", "--stream", "-o", self.path("x"), code=1,
                     says=["several numbers of chunks"])
        for degree in ("0", "-1", "two", "2.5"):
            self.refused("synth", "switch(4)", "-a", "ten", f"--unwind={degree}", says=[f"'{degree}'", "auto"])
        self.refused("synth", "switch(4)", "-a", "ten", "--unwind", "4", says=["degree=4", "at most 3"])
        self.refused("synth", "switch(4)", "-a", "bfb", code=1, says=["unwind(switch(4),degree=2)"])
        self.refused("synth", "switch(4)", "-a", "ten", "-c", "all-reduce", "--multicast", says=["multicast serves"])
        self.refused("synth", "switch(4)", "-a", "forest", "--multicast", says=["'forest' has no use for multicast"])
        self.refused(*ring, "ewsp", "-c", "all-to-all", "--multicast", says=["--multicast", "'ewsp' makes a routing"])
        for degree in ("0", "two"):
            self.refused("compare", "switch(4)", "-a", "ten", f"--unwind={degree}", says=[f"'{degree}'", "auto"])
        self.refused("compare", "switch(4)", "-a", "ten", "--unwind", "4", says=["degree=4", "at most 3"])
        self.refused("compare", "switch(4)", "-c", "all-to-all", "-a", "ten,ewsp", "--unwind", "auto",
                     says=["'ewsp' makes a routing"])
        for chunks in ("many", "-1", "1.5"):
            self.refused("compare", "ring(4)", "-a", "ten", f"--chunks={chunks}", says=[f"'{chunks}'", "auto"])

    def test_networks_that_ten_cannot_work_on(self):
        path = self.path("one-way.topo.json")
        self.ok("topo", "show", "ring(4)", "-o", path)
        with open(path) as file:
            network = json.load(file)

        def write(change):
            text = json.loads(json.dumps(network))
            change(text)
            with open(path, "w") as file:
                json.dump(text, file)

        # 3 can be reached, and reaches nobody.
        write(lambda text: text.update(links=[dict(link, duplex=3 not in link.values())
                                              for link in text["links"]]))
        self.refused("synth", path, "-a", "ten", says=["no way leads from '3' to '0'", path])
        write(lambda text: text["links"][0].update(bandwidth="0GB/s"))
        self.refused("synth", path, "-a", "ten", says=["bandwidth", "0", path])

    def test_more_chunks_or_memory_than_there_is(self):
        self.refused("synth", "ring(8)", "-a", "ten", "--chunks", "1000000000", "--size", "1TiB",
                     says=["8 shards of 1000000000 chunks", "2^31 - 1"])
        for collective, chunks in (("all-gather", 1000000), ("all-reduce", 1000000), ("broadcast", 100000000)):
            self.refused("synth", "mesh(40,40)", "-a", "ten", "-c", collective, "--chunks", chunks, "--size", "1TiB",
                         says=["GiB of memory, ", "GiB are available"])
        self.refused("synth", "mesh(200,200)", "-a", "bfb", says=["GiB of memory, ", "GiB are available"])

    def test_demand_matrices(self):
        path = self.path("demand.csv")
        for text, says in [("1,2\n3\n", ["3 entries", "4 x 4"]), ("1,x\n", ["demand.csv:1", "x"]),
                           ("0,-1\n", ["-1"])]:
            with open(path, "w") as file:
                file.write(text)
            with self.subTest(text):
                self.refused("synth", "ring(4)", "-c", "all-to-allv", "--demand", path, "-a", "direct", says=says)
        self.refused("synth", "ring(4)", "-c", "all-to-allv", "-a", "direct", says=["--demand"])

    def test_schedule_files(self):
        self.refused("verify", self.path("none.sched"), says=["none.sched"])
        for name in ("s.sched", "s.sched.json"):
            good = self.synth("torus(3,3)", "all-gather", "bfb", name)
            with open(good, "rb") as file:
                data = file.read()
            for length in (0, 1, 10, len(data) // 2, len(data) - 3):
                with open(self.path("cut-" + name), "wb") as file:
                    file.write(data[:length])
                with self.subTest(f"{name} cut to {length}"):
                    for command in (["verify"], ["cost"], ["sim", "--size", "1MiB"], ["run", "--size", "1MiB"]):
                        self.refused(command[0], self.path("cut-" + name), *command[1:], says=["cut-" + name])
        with open(self.path("s.sched"), "rb") as file:
            data = bytearray(file.read())
        data[len(data) // 2] ^= 0x10
        with open(self.path("flip.sched"), "wb") as file:
            file.write(data)
        self.refused("verify", self.path("flip.sched"), says=["flip.sched"])
        self.refused("verify", self.path("s.sched"), "--topology", "torus(4,4)", says=["torus(3,3)", "torus(4,4)"])

    def test_paths_that_cannot_be_written(self):
        good = self.synth("ring(4)", "all-gather", "bfb")
        nowhere = self.path("no/such/folder/x")
        for command in (["topo", "show", "ring(4)", "-o", nowhere],
                        ["synth", "ring(4)", "-a", "bfb", "-o", nowhere],
                        ["synth", "ring(4)", "-a", "bfb", "-o", nowhere + ".json"],
                        ["sim", good, "--size", "1MiB", "--trace", nowhere],
                        ["lower", good, "--to", "msccl-xml", "-o", nowhere]):
            with self.subTest(" ".join(command)):
                self.refused(*command, says=["x"])

    def test_full_disk(self):
        good = self.synth("ring(4)", "all-gather", "bfb")
        for command in (["topo", "show", "ring(4)", "-o", "/dev/full"],
                        ["synth", "ring(4)", "-a", "bfb", "-o", "/dev/full"],
                        ["lower", good, "--to", "msccl-xml", "-o", "/dev/full"]):
            with self.subTest(" ".join(command)):
                self.refused(*command, says=["/dev/full", "No space left"])
        # Less and more than fits into a buffer.
        for command in (["topo", "show", "ring(4)"], ["topo", "list"], ["topo", "list", "--json"]):
            with self.subTest(" ".join(command)), open("/dev/full", "w") as full:
                done = subprocess.run([harness.TUTTI, *command], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("tutti: error: cannot write to standard output", done.stderr)

    def test_interrupt_leaves_no_half_file(self):
        path = self.path("big.sched")
        with open(path, "w") as file:
            file.write("what was here before")
        # Both far longer than the second that the test waits.
        for job in [["torus(80,80)", "-a", "bfb"], ["mesh(100,100)", "-a", "ten", "--stream"]]:
            with self.subTest(job):
                process = subprocess.Popen([harness.TUTTI, "synth", *job, "-o", path],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                harness.until_it_catches(process, signal.SIGINT)
                time.sleep(1)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130, err)
                self.assertEqual(out, "")
                self.assertIn("interrupted", err)
                self.assertEqual(os.listdir(self.folder), ["big.sched"])
                with open(path) as file:
                    self.assertEqual(file.read(), "what was here before")

    def test_streams(self):
        out = ["-o", self.path("x.sched")]
        for job, says in [
            (["-a", "ten", "--stream"], ["-o FILE", "--cost-only"]),
            (["-a", "ten", "--stream", "-o", self.path("x.json")], ["x.json", "do not stream"]),
            (["-a", "bfb", "--stream", *out], ["ten", "bfb"]),
        ]:
            with self.subTest(job):
                self.refused("synth", "mesh(3,3)", *job, says=says)
        self.refused("synth", "mesh(3,3)", "-c", "reduce-scatter", "-a", "ten", "--stream", *out,
                     says=["reduce-scatter", "reversed", "all-gather"], code=1)
        reduces = self.synth("mesh(3,3)", "all-reduce", "ten", "reduces.sched")
        self.refused("verify", reduces, "--stream", says=["it reduces"], code=1)
        self.assertEqual(os.listdir(self.folder), ["reduces.sched"])

    def test_interrupt_of_a_run(self):
        good = self.synth("ring(4)", "all-reduce", "ring")
        before = self.shared_memory()
        process = subprocess.Popen([harness.TUTTI, "run", good, "--size", "64MiB", "--iters", "100000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.until_it_catches(process, signal.SIGINT)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.shared_memory() - before, set())

    @staticmethod
    def shared_memory():
        """Names in /dev/shm that say whose they are: what else lies there is of programs that run beside this one, as is the
        memory of CUDA devices that tests play."""
        names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
        return {name for name in names if "tutti" in name and "fake-cuda" not in name}


if __name__ == "__main__":
    harness.main()
