"""Collectives of groups of ranks, from flags to executed bytes; placement."""
import unittest

import harness


class Groups(harness.CliTest):
    def test_a_group_is_made_judged_priced_simulated_lowered_and_run(self):
        for collective, algorithm in [("all-gather", "ten"), ("all-reduce", "direct"), ("reduce-scatter", "forest"),
                                      ("broadcast", "ring"), ("gather", "direct"), ("all-to-all", "tsmcf")]:
            sched = self.path("group.sched")
            made = self.json("synth", "torus(3,3)", "-c", collective, "-a", algorithm, "--group", "0-2,7", "--size",
                             "1MiB", "-o", sched)
            self.assertEqual(made["groups"], [[0, 1, 2, 7]])
            self.assertEqual(made["others"], "forward")
            self.assertTrue(made["verified"])
            self.assertLessEqual(made["bound_s"], made["time_s"] * (1 + 1e-12))
            self.assertTrue(self.json("verify", sched)["verified"])
            self.json("cost", sched, "--size", "1MiB")
            self.json("sim", sched, "--size", "1MiB")
            self.assertTrue(self.ok("explain", sched).startswith(f"{collective} of 4 ranks on torus(3,3) by "))
            self.ok("lower", sched, "--to", "plan", "-o", self.path("group.plan"))
            run = self.json("run", sched, "--size", "64KiB", "-n", "1")
            self.assertEqual(run["wrong"], 0, (collective, algorithm))

    def test_several_groups_at_once(self):
        sched = self.path("rows.sched")
        made = self.json("synth", "torus(3,3)", "-c", "all-reduce", "-a", "direct", "--groups", "axis=0;axis=1", "-o",
                         sched)
        self.assertEqual(len(made["groups"]), 6)
        self.assertEqual(self.json("run", sched, "--size", "64KiB", "-n", "1")["wrong"], 0)
        rows = self.json("compare", "torus(3,3)", "-c", "all-gather", "--groups", "0-2;3-8", "-a", "direct,ten,bfb",
                         "--size", "1MiB")["rows"]
        self.assertTrue(all(row["verified"] for row in rows if "time_s" in row))
        chosen = self.json("synth", "torus(3,3)", "-c", "all-gather", "--groups", "every=3", "-a", "auto", "--size", "1MiB")
        self.assertTrue(chosen["verified"])

    def test_routings_of_groups(self):
        routes = self.path("g.routes")
        made = self.json("synth", "torus(4,4)", "-c", "all-to-all", "--groups", "blocks=4", "-a", "mcf-extp", "-o", routes)
        self.assertEqual(len(made["groups"]), 4)
        self.assertLessEqual(made["f"]["value"], made["f_upper"]["value"])
        judged = self.json("verify", routes)
        self.assertTrue(judged["verified"])
        self.assertEqual(judged["collective"], "all-to-all")
        self.assertEqual(judged["f"], made["f"])
        self.json("cost", routes, "--size", "1MiB")
        self.json("sim", routes, "--size", "1MiB")

    def test_groups_from_a_file_and_placement(self):
        groups, placed = self.path("groups.txt"), self.path("placed.txt")
        with open(groups, "w") as file:
            file.write("0,1 # two\n2-3\n")
        with open(placed, "w") as file:
            file.write("8\n4\n0\n1\n")
        made = self.json("synth", "torus(3,3)", "-a", "direct", "--groups", groups, "--placement", placed)
        self.assertEqual(made["groups"], [[8, 4], [0, 1]])
        near = self.json("synth", "torus(3,3)", "-a", "direct", "--placement", "near")
        self.assertEqual(sorted(near["groups"][0]), list(range(9)))

    def test_the_best_placement(self):
        # Pairs three hops apart: beside each other one hop is enough, and no placement is better.
        pairs = ["synth", "ring(6,bw=1GB/s,alpha=1us)", "-c", "all-gather", "-a", "direct", "--groups", "0,3;1,4;2,5", "--size", "1MB"]
        listed, best = self.json(*pairs), self.json(*pairs, "--placement", "best")
        placement = best["placement"]
        self.assertTrue(placement["is_least"])
        self.assertEqual(placement["tries"], 1 + 720)
        self.assertEqual(placement["listed_s"], listed["time_s"])
        self.assertEqual(placement["time_s"], best["time_s"])
        self.assertAlmostEqual(best["time_s"], 1e-6 + 0.5e6 / 1e9, 12)
        self.assertGreater(listed["time_s"], 1.4 * best["time_s"])
        ranks = placement["ranks"]
        self.assertEqual(best["groups"], [[ranks[0], ranks[3]], [ranks[1], ranks[4]], [ranks[2], ranks[5]]])
        for a, b in best["groups"]:
            self.assertIn((a - b) % 6, (1, 5))
        self.assertIn("the least of all placements: job ranks lie on", self.ok(*pairs, "--placement", "best"))
        # One group of few ranks on many, those of the job that are in none beside them; for the schedule of the algorithm.
        few = self.json("synth", "torus(4,4)", "-c", "all-reduce", "-a", "ring", "--group", "0,5,10", "--placement", "best")
        self.assertEqual(few["placement"]["tries"], 1 + 16 * 15 * 14)
        self.assertEqual(sorted(few["placement"]["ranks"]), list(range(16)))
        # Too many to try all: the same seed finds the same.
        many = ["synth", "torus(4,4)", "-c", "all-gather", "-a", "direct", "--groups", "every=4", "--size", "1MB", "--placement", "best"]
        once = self.json(*many)
        self.assertFalse(once["placement"]["is_least"])
        self.assertLessEqual(once["time_s"], once["placement"]["listed_s"])
        self.assertEqual(self.json(*many)["placement"], once["placement"])
        sched = self.path("placed.sched")
        self.ok(*many, "-o", sched)
        self.assertEqual(self.json("run", sched, "--size", "64KiB", "-n", "1")["wrong"], 0)
        self.assertTrue(all("time_s" in row for row in self.json("compare", "ring(6)", "-c", "all-gather", "-a", "direct,ten", "--groups",
                                                                 "0,3;1,4", "--placement", "best", "--size", "1MiB")["rows"]))

    def test_the_best_placement_among_idle_ranks(self):
        # Ranks 0 and 3 have no link of their own, and nobody passes on what they send: most places are impossible.
        alone = ["ring(6,bw=1GB/s,alpha=1us)", "-c", "all-gather", "--group", "0,3", "--others", "idle"]
        self.refused("synth", *alone, "-a", "direct", code=1)
        best = self.json("synth", *alone, "-a", "direct", "--size", "1MB", "--placement", "best")
        self.assertIsNone(best["placement"]["listed_s"])
        self.assertTrue(best["placement"]["is_least"])
        self.assertIn((best["groups"][0][0] - best["groups"][0][1]) % 6, (1, 5))
        self.assertIn("placement    impossible as listed, ", self.ok("synth", *alone, "-a", "direct", "--placement", "best"))
        sched = self.path("alone.sched")
        self.ok("synth", *alone, "-a", "direct", "--placement", "best", "-o", sched)
        self.assertEqual(self.json("run", sched, "--size", "64KiB", "-n", "1")["wrong"], 0)
        # One way round, no two ranks hear from each other without the others.
        self.refused("synth", "uniring(1,6)", "-c", "all-gather", "-a", "direct", "--group", "0,3", "--others", "idle", "--placement", "best",
                     code=1)

    def test_bad_input(self):
        synth = ["synth", "torus(3,3)", "-a", "direct"]
        for flags, says in [(["--group", "0"], "at least 2"), (["--group", "0-9"], "--group: '0-9' is no rank"),
                            (["--group", "0,0"], "twice"), (["--groups", "0-1;axis=7"], "group 1"),
                            (["--groups", "every=2"], "divides the 9 ranks"),
                            (["--groups", self.path("none")], "none"),
                            (["--group", "0-1", "--groups", "every=3"], "one of them"),
                            (["--others", "idle"], "--group"), (["--placement", self.path("none")], "none"),
                            (["-c", "broadcast", "--group", "0-2", "--root", "3"], "no position")]:
            self.refused(*synth, *flags, says=[says])
        # The answer is no.
        self.refused(*synth, "--group", "0,4", "--others", "idle", says=["does not reach"], code=1)
        self.refused("synth", "torus(3,3)", "-a", "torus-dims", "--group", "0-2", says=["direct"], code=1)
        sched = self.path("g.sched")
        self.ok(*synth, "--group", "0-2", "-o", sched)
        self.refused("lower", sched, "--to", "msccl-xml", "-o", self.path("g.xml"), says=["--to plan"])


if __name__ == "__main__":
    unittest.main()
