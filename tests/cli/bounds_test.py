"""One question (network, collective, size, link model) has one bound, whichever command answers."""
import os
import unittest

import harness

SIZES = (1024, 1 << 20, 1 << 30)


class Bounds(harness.CliTest):
    def shown(self, network, collective, size):
        row = self.json("topo", "show", network)["bounds"][collective]
        behind_alpha = row["least_alpha_s"] + size * row["seconds_per_byte"]["value"]
        return max(row["latency_s"], behind_alpha)

    def check(self, network, collective, algorithm):
        file = self.synth(network, collective, algorithm, "bound.sched", "--size", "1MiB")
        for size in SIZES:
            question = (network, collective, size)
            bound = self.shown(network, collective, size)
            answers = {"cost": self.json("cost", file, "--size", size),
                       "synth": self.json("synth", network, "-c", collective, "-a", algorithm, "--size", size)}
            for model in ("held", "pipelined"):
                for mode in ("barrier", "eager"):
                    flags = ["--size", size, "--link-model", model, "--mode", mode]
                    answers["sim", model, mode] = self.json("sim", file, *flags)
                    answers["compare", model, mode] = self.json(
                        "compare", network, "-c", collective, "-a", algorithm, *flags)["rows"][0]
            for command, answer in answers.items():
                self.assertAlmostEqual(answer["bound_s"], bound, delta=1e-12 * bound, msg=(command, question))
                self.assertAlmostEqual(answer["efficiency"], bound / answer["time_s"], places=9, msg=question)
                self.assertLessEqual(answer["efficiency"], 1 + 1e-9, (command, question))

    def test_networks_too_large_for_all_to_all_are_shown(self):
        shown = self.json("topo", "show", "torus(250,200)")
        self.assertEqual(len(shown["bounds"]), 7)
        self.assertNotIn("all-to-all", shown["bounds"])
        self.assertEqual(shown["diameter"], 225)
        self.assertIn("at most 46340 ranks", self.ok("topo", "show", "torus(250,200)"))

    def test_all_commands_give_the_same_bound(self):
        for network, collective, algorithm in (
                ("dgx1", "all-reduce", "bfb"), ("torus(3,3)", "all-gather", "bfb"),
                ("mesh(2,3,bw=[20,50]GB/s,alpha=[1,2]us)", "reduce-scatter", "ten"),
                ("genkautz(2,7)", "all-to-all", "direct"), ("ring(4,host_bw=60GB/s)", "all-gather", "bfb"),
                ("unwind(switch2d(2,3,bw=[70,20]GB/s),degree=1)", "all-reduce", "ten"),
                ("unwind(switch(5),degree=2)", "all-to-all", "direct")):
            self.check(network, collective, algorithm)

    def test_unwound_networks_keep_the_real_bound(self):
        original = "rfs(2,4,8,bw=[200,100,50]GB/s)"
        question = ["-c", "all-to-all", "-a", "direct", "--size", "1GiB"]
        real = self.json("synth", original, *question)["bound_s"]
        self.assertAlmostEqual(real, 18.8e-3, delta=0.1e-3)
        network = f"unwind({original},degree=2)"
        file, again = self.path("unwound.topo.json"), self.path("again.topo.json")
        self.ok("topo", "show", network, "-o", file)
        self.ok("topo", "show", original, "-o", again)
        self.ok("topo", "show", f"unwind({again},degree=2)", "-o", self.path("from file.topo.json"))
        os.remove(again)
        schedule = self.path("unwound.sched")
        for name in (network, file, self.path("from file.topo.json")):
            made = self.json("synth", name, *question, "-o", schedule)
            self.assertAlmostEqual(made["bound_s"], real, delta=1e-6, msg=name)
            self.assertLess(made["efficiency"], 0.3)
            self.assertAlmostEqual(self.json("cost", schedule)["bound_s"], real, delta=1e-6, msg=name)

    def test_routings_of_unwound_networks_keep_the_real_bound(self):
        original = "rfs(2,4,8,bw=[200,100,50]GB/s)"
        network = f"unwind({original},degree=2)"
        question = ["-c", "all-to-all", "--size", "1GiB", "--gap", "0.05"]
        real = self.json("synth", original, *question, "-a", "direct")["bound_s"]
        routing, groups = self.path("unwound.routes"), ["--groups", "0-15;16-31"]
        of_groups = self.json("synth", original, *question, "-a", "direct", *groups)["bound_s"]
        for router in ("mcf-extp", "fptas"):
            made = self.json("synth", network, "-a", router, *question, "-o", routing)
            self.assertAlmostEqual(made["bound_s"], real, delta=0.06 * real, msg=router)
            self.assertLess(made["efficiency"], 0.5)
            self.assertLess(made["f"]["value"], made["f_upper_of_paths"]["value"])
            for command in ("cost", "sim"):
                told = self.json(command, routing, "--size", "1GiB")
                self.assertAlmostEqual(told["bound_s"], real, delta=0.06 * real, msg=(router, command))
            made = self.json("synth", network, "-a", router, *question, *groups)
            self.assertAlmostEqual(made["bound_s"], of_groups, delta=0.06 * of_groups, msg=router)
        for row in self.json("compare", network, *question, "-a", "mcf-extp,fptas")["rows"]:
            self.assertAlmostEqual(row["bound_s"], real, delta=0.06 * real, msg=row["algorithm"])

    def test_a_table_of_unwindings_has_one_bound(self):
        rows = self.json("compare", "switch2d(2,4,bw=[300,25]GB/s)", "-c", "all-reduce", "-a", "ten,bfb,direct",
                         "--size", "1MiB", "--unwind", "auto")["rows"]
        self.assertEqual(len({row["bound_s"] for row in rows}), 1)
        times = [row["time_s"] for row in rows]
        self.assertEqual(times, sorted(times))
        efficiencies = [row["efficiency"] for row in rows]
        self.assertEqual(efficiencies, sorted(efficiencies, reverse=True))


if __name__ == "__main__":
    unittest.main()
