"""The completion script, sourced by bash as a user's shell does, knows commands, options and values."""
import os
import subprocess
import unittest

import harness


class Completion(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.script = self.path("tutti.bash")
        with open(self.script, "w") as file:
            file.write(self.ok("docs", "completion"))

    def offered(self, *words):
        """What is offered in place of the last word."""
        program = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tutti; '
                   'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", program, "bash", self.script, os.path.abspath(harness.TUTTI), *words], capture_output=True,
                              text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return [line for line in done.stdout.splitlines() if line]

    def test_commands_and_options(self):
        self.assertEqual(self.offered("synt"), ["synth"])
        self.assertEqual(self.offered("topo", ""), ["show", "import", "detect", "list"])
        self.assertEqual(self.offered("synth", "ring(4)", "--chu"), ["--chunks"])
        self.assertIn("--size", self.offered("synth", "-"))
        self.assertEqual(self.offered("topo", "show", "--jso"), ["--json"])

    def test_values_come_from_the_registries(self):
        algorithms = self.offered("synth", "-a", "")
        for name in ["auto", "bfb", "ten", "mcf-extp", "ilp-shortest"]:
            self.assertIn(name, algorithms)
        families = self.offered("topo", "show", "")
        listed = self.json("topo", "list")["families"]
        self.assertEqual(sorted(families), sorted(family["name"] for family in listed))
        experiments = self.offered("bench", "")
        self.assertIn("direct-table5", experiments)
        self.assertEqual(self.offered("synth", "torus(3,3)", "-c", "all-g"), ["all-gather"])
        self.assertEqual(self.offered("synth", "--policy", "ra"), ["rarest", "random"])
        self.assertEqual(self.offered("lower", "x.sched", "--to", "route"), ["routes-per-rank", "route-tables"])
        self.assertEqual(self.offered("sim", "--mode", ""), ["barrier", "eager"])
        self.assertEqual(self.offered("run", "--op", "m"), ["min", "max"])
        self.assertEqual(self.offered("train", "resn"), ["resnet-50"])
        self.assertNotIn("mcf-extp", self.offered("train", "-a", ""))

    def test_what_is_offered_is_accepted(self):
        for option, arguments in (("--dialect", ["verify", "x.xml", "--dialect"]),
                                  ("--type", ["run", "x.sched", "--size", "1MiB", "--type"]),
                                  ("--op", ["run", "x.sched", "--size", "1MiB", "--op"])):
            path = self.synth("ring(3)", "all-reduce", "ring")
            self.ok("lower", path, "--to", "msccl-xml", "-o", self.path("x.xml"))
            known = [path if word == "x.sched" else self.path(word) if word == "x.xml" else word
                     for word in arguments]
            for value in self.offered(*arguments, ""):
                done = harness.run(*known, value, *(["--iters", "1"] if arguments[0] == "run" else []))
                self.assertNotIn(f"'{value}'", done.stderr, f"{option} {value}")

    def test_lists_and_equals_signs(self):
        self.assertEqual(self.offered("compare", "dgx1", "-a", "bfb,ri"), ["bfb,ring"])
        self.assertEqual(self.offered("compare", "dgx1", "-a", "bfb,ring,unir"), ["bfb,ring,uniring"])
        self.assertEqual(self.offered("sim", "--mode", "=", "ea"), ["eager"])
        self.assertEqual(self.offered("sim", "--mode", "="), ["barrier", "eager"])

    def test_files_where_files_are_meant(self):
        open(self.path("box.topo.json"), "w").close()
        self.assertEqual(self.offered("topo", "show", "box"), ["box.topo.json"])
        self.assertEqual(self.offered("synth", "ring(4)", "-o", ""), [])  # -o default: bash offers files
        self.assertEqual(self.offered("verify", "box"), ["box.topo.json"])


if __name__ == "__main__":
    unittest.main()
