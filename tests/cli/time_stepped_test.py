"""tutti synth -a tsmcf and -a mcf: from a flow's limit to bytes that ranks exchange."""
import csv
import unittest
from fractions import Fraction

import harness


def exact(value):
    return Fraction(int(value["num"]), int(value["den"]))


class TimeStepped(harness.CliTest):
    def test_from_synth_to_every_byte(self):
        path, xml = self.path("s.sched"), self.path("s.xml")
        for algorithm in ("tsmcf", "mcf"):
            for network in ("bipartite(4)", "hypercube(3)", "twisted_hypercube(3)", "without(torus(3,3),links=2)"):
                made = self.json("synth", network, "-c", "all-to-all", "-a", algorithm, "--max-chunks", 4, "-o", path)
                self.assertTrue(made["verified"])
                self.assertEqual(made["algorithm"], algorithm)
                self.assertGreaterEqual(exact(made["tb"]), exact(made["tb_bound"]))
                self.assertEqual(exact(made["tb_loss"]), exact(made["tb"]) - exact(made["tb_bound"]))
                self.assertTrue(self.json("verify", path)["verified"])
                self.ok("lower", path, "--to", "msccl-xml", "-o", xml)
                self.assertTrue(self.json("verify", xml)["verified"])
                self.assertEqual(self.json("run", path, "--size", "100KB", "-n", 2)["rows"][0]["wrong"], 0)

    def test_figures_of_the_paper(self):
        for network, tb in (("bipartite(4)", Fraction(5, 4)), ("hypercube(3)", Fraction(3, 2)),
                            ("torus(3,3,3,bw=25Gbit/s)", 2),
                            ("torus(3,3,3,bw=25Gbit/s,host_bw=100Gbit/s)", 3)):
            made = self.json("synth", network, "-c", "all-to-all", "-a", "tsmcf")
            self.assertEqual((exact(made["tb"]), exact(made["tb_bound"]), exact(made["tb_loss"])), (tb, tb, 0))
        # 26 of 27 blocks of 6.02 GB/s: what is sent to others at best.
        self.assertAlmostEqual(made["busbw"], 26 * 2 / 27 * 3.125e9, delta=1e7)
        self.assertIn("loss         0 M/B",
                      self.ok("synth", "hypercube(3)", "-c", "all-to-all", "-a", "tsmcf"))

    def test_no_worse_than_the_other_all_to_alls(self):
        for network in ("genkautz(4,20)", "without(torus(4,4),links=3)"):
            direct, steps = (exact(self.json("synth", network, "-c", "all-to-all", "-a", a)["tb"])
                             for a in ("direct", "tsmcf"))
            self.assertLessEqual(steps, direct)

    def test_demand(self):
        matrix, path = self.path("demand.csv"), self.path("v.sched")
        with open(matrix, "w", newline="") as file:
            csv.writer(file).writerows([[(3 * s + 5 * d) % 7 * 1000 for d in range(8)] for s in range(8)])
        for algorithm in ("tsmcf", "mcf"):
            made = self.json("synth", "bipartite(4)", "-c", "all-to-allv", "--demand", matrix, "-a", algorithm,
                             "-o", path)
            self.assertTrue(made["verified"])
            self.assertGreaterEqual(exact(made["tb_loss"]), 0)
            self.assertEqual(self.json("run", path, "--size", "70KB", "-n", 1)["rows"][0]["wrong"], 0)

    def test_steps_and_chunks(self):
        made = self.json("synth", "genkautz(2,7)", "-c", "all-to-all", "-a", "tsmcf", "--steps", 4, "--chunks", 3)
        self.assertLessEqual(made["steps"], 4)
        self.assertEqual(made["chunks"], 3)
        made = self.json("synth", "genkautz(2,7)", "-c", "all-to-all", "-a", "tsmcf", "--max-chunks", 2)
        self.assertLessEqual(made["chunks"], 2)

    def test_switches_pass_on(self):
        for network in ("switch2d(2,3)", "switch(4)", "host_forwarding(ring(3,host_bw=20GB/s))"):
            path, plan = self.path("s.sched"), self.path("plan")
            made = self.json("synth", network, "-c", "all-to-all", "-a", "tsmcf", "-o", path)
            self.assertTrue(made["verified"])
            self.ok("lower", path, "--to", "plan", "-o", plan)
            self.ok("lower", path, "--to", "msccl-xml", "-o", self.path("x.xml"))
            self.assertIn("proven correct", self.ok("verify", self.path("x.xml")))
            self.assertEqual(self.json("run", path, "--size", "64KiB", "-n", 1, "-w", 0)["wrong"], 0)

    def test_bad_input(self):
        at = ("synth", "torus(3,3)", "-c", "all-to-all", "-a")
        self.refused(*at, "tsmcf", "--steps", 1, says=["1 steps are too few", "2 have to be gone"])
        self.refused(*at, "mcf", "--steps", 1, says=["1 steps are too few"])
        self.refused(*at, "tsmcf", "--chunks", 5, "--max-chunks", 4, says=["5 chunks per block", "4 allowed"])
        self.refused(*at, "direct", "--steps", 4, says=["'direct' cannot be given a number of steps; tsmcf, mcf, step-lp can"])
        self.refused("synth", "torus(3,3)", "-c", "all-gather", "-a", "tsmcf", code=1, says=["makes no all-gather"])


if __name__ == "__main__":
    unittest.main()
