"""Files: what they are is decided by their contents, and no command writes over what it reads."""
import json
import os
import shutil
import unittest

import harness


class Files(harness.CliTest):
    def setUp(self):
        super().setUp()
        make = {
            "topology": lambda to: self.ok("topo", "show", "ring(4)", "-o", to),
            "schedule": lambda to: self.ok("synth", "ring(4)", "-c", "all-gather", "-a", "ring", "-o", to),
            "schedule JSON": lambda to: self.ok("synth", "ring(4)", "-c", "all-gather", "-a", "ring", "-o", to + ".json"),
            "symmetric schedule": lambda to: self.ok("synth", "torus(3,3)", "-c", "all-gather", "-a", "bfb",
                                                     "--symmetric", "-o", to),
            "routing": lambda to: self.ok("synth", "ring(4)", "-c", "all-to-all", "-a", "sssp", "-o", to),
            "routing JSON": lambda to: self.ok("synth", "ring(4)", "-c", "all-to-all", "-a", "sssp", "-o", to + ".json"),
            "flow": lambda to: self.ok("flow", "ring(4)", "-o", to),
            "MSCCL XML": lambda to: self.ok("lower", self.files["schedule"], "--to", "msccl-xml", "-o", to),
            "an MSCCL++ plan": lambda to: self.ok("lower", self.files["schedule"], "--to", "mscclpp", "-o", to),
            "the text of a plan": lambda to: self.ok("lower", self.files["schedule"], "--to", "plan", "-o", to),
            "the text of routes": lambda to: self.ok("lower", self.files["routing"], "--to", "route-tables", "-o", to),
        }
        self.files = {}
        for i, (kind, write) in enumerate(make.items()):
            written = self.path(f"written{i}")
            write(written)
            # The name says nothing, or something else.
            self.files[kind] = self.path(f"a{i}.xml" if i % 2 else f"a{i}.routes")
            shutil.move(written + (".json" if kind.endswith("JSON") else ""), self.files[kind])

    # Command -> kinds that it takes.
    SCHEDULES = ("schedule", "schedule JSON", "symmetric schedule")
    ROUTINGS = ("routing", "routing JSON")
    TAKES = {
        ("verify",): (*SCHEDULES, *ROUTINGS, "MSCCL XML", "an MSCCL++ plan"),
        ("cost",): (*SCHEDULES, *ROUTINGS),
        ("sim", "--size", "1MB"): (*SCHEDULES, *ROUTINGS),
        ("run", "--size", "64KiB", "-n", "1", "-w", "0"): (*SCHEDULES, "MSCCL XML", "an MSCCL++ plan"),
        ("lower", "--to", "plan", "-o", "/dev/stdout"): SCHEDULES,
        ("lower", "--to", "route-tables", "-o", "/dev/stdout"): ROUTINGS,
        ("flow", "ring(4)", "--warm-start"): ("flow",),
    }

    def test_every_kind_with_every_command(self):
        for (command, *options), kinds in self.TAKES.items():
            for kind, path in self.files.items():
                if command == "flow":
                    done = harness.run(command, *options, path)
                else:
                    done = harness.run(command, path, *options)
                if kind in kinds:
                    self.assertEqual(done.returncode, 0, f"{command} of {kind}: {done.stderr}")
                    self.assertEqual(done.stderr, "")
                    continue
                self.assertEqual(done.returncode, 2, f"{command} of {kind}")
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, r"^tutti: error: \S+ holds ")
                self.assertIn(kind.removesuffix(" JSON").removeprefix("symmetric "), done.stderr)
                if not kind.startswith("the text"):
                    self.assertRegex(done.stderr, "it is for|--to ")

    def test_a_topology_is_wanted(self):
        for kind, path in self.files.items():
            named = self.path("t.json")  # expressions take files by this ending
            shutil.copy(path, named)
            if kind == "topology":
                self.assertIn("4 ranks", self.ok("topo", "show", named))
            elif kind not in ("MSCCL XML", "an MSCCL++ plan", "the text of a plan", "the text of routes"):
                self.refused("topo", "show", f"without({named},links=1)",
                             says=(f"holds a {kind.removesuffix(' JSON')}, not a topology; it is for",))
            else:
                self.refused("topo", "show", named, says=("holds",))

    def test_what_is_no_file_of_ours(self):
        for text in ("", "hello", "{}", '{"format": "other"}', "\x00\x01"):
            path = self.path("x.routes")
            with open(path, "w") as file:
                file.write(text)
            for command in (("verify",), ("cost",), ("sim", "--size", "1"), ("run", "--size", "1"),
                            ("lower", "--to", "plan", "-o", self.path("out"))):
                self.refused(command[0], path, *command[1:], says=("x.routes",))
        self.refused("verify", self.path("missing"), says=("No such file",))
        self.refused("verify", self.folder, says=("directory",))

    def test_inputs_are_kept(self):
        link, hard = self.path("link"), self.path("hard")
        topology = self.path("t.json")
        self.ok("topo", "show", "ring(4)", "-o", topology)
        demand = self.path("d.csv")
        with open(demand, "w") as file:
            file.write("0,1,1,1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n")
        schedule, routing, flow = (self.files[kind] for kind in ("schedule", "routing", "flow"))
        rows = [
            (schedule, ("lower", schedule, "--to", "plan", "-o")),
            (routing, ("lower", routing, "--to", "route-tables", "-o")),
            (schedule, ("sim", schedule, "--size", "1MB", "--trace")),
            (schedule, ("run", schedule, "--size", "64KiB", "--trace")),
            (topology, ("topo", "show", topology, "-o")),
            (topology, ("synth", topology, "-c", "all-gather", "-a", "ring", "-o")),
            (topology, ("synth", f"transpose({topology})", "-c", "all-to-all", "-a", "sssp", "-o")),
            (demand, ("synth", "ring(4)", "-c", "all-to-allv", "-a", "direct", "--demand", demand, "-o")),
            (topology, ("flow", topology, "-o")),
            (flow, ("flow", "ring(4)", "--warm-start", flow, "-o")),
            (demand, ("flow", "ring(4)", "--demand", demand, "-o")),
        ]
        for path, command in rows:
            with open(path, "rb") as file:
                before = file.read()
            for other in (link, hard):
                if os.path.lexists(other):
                    os.remove(other)
            os.symlink(path, link)
            os.link(path, hard)
            around = os.path.join(self.folder, "..", os.path.basename(self.folder), os.path.basename(path))
            for output in (path, link, hard, around, os.path.relpath(path)):
                self.refused(*command, output, says=("would be overwritten",))
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)
            self.assertTrue(os.path.islink(link))
        base = self.path("box.topo.json")
        shutil.copy(topology, base)
        self.refused("design", "-n", "8", "-d", "2", "--base", base, "-o", self.path("box"),
                     says=("would be overwritten",))

    def test_json_stays_json(self):
        for kind in self.ROUTINGS:
            for command in (("verify",), ("cost", "--size", "1MB,1GB"), ("sim", "--size", "1MB,1GB")):
                out = self.json(command[0], self.files[kind], *command[1:])
                self.assertEqual(out["collective"], "all-to-all")
                json.dumps(out)


if __name__ == "__main__":
    harness.main()
