"""Routers: synth -a ROUTER, compare, routing files and what is refused."""
import unittest
from fractions import Fraction

import harness


def exact(value):
    return Fraction(int(value["num"]), int(value["den"]))


class Routing(harness.CliTest):
    def test_rate_and_limit(self):
        out = self.json("synth", "torus(3,3,3)", "-c", "all-to-all", "-a", "mcf-extp", "--size", "1GB")
        self.assertEqual((exact(out["f"]), exact(out["f_upper"]), out["gap"]),
                         (Fraction(1, 9), Fraction(1, 9), 0))
        # Each pair has 1/27 GB and a ninth of 50 GB/s.
        self.assertAlmostEqual(out["time_s"], 1 / 27 / (50 / 9), delta=1e-9)
        for key in ("topology", "algorithm", "seed", "paths", "longest_path", "chunks", "bound_s",
                    "synthesis_s", "peak_rss_bytes"):
            self.assertIn(key, out)
        self.assertTrue(out["verified"])

    def test_every_router_stays_below_the_limit(self):
        for router in ("mcf", "mcf-extp", "pmcf", "ewsp", "sssp", "dor", "native", "fptas",
                       "ilp-disjoint", "ilp-shortest"):
            out = self.json("synth", "torus(3,3)", "-c", "all-to-all", "-a", router, "--time-limit", 20,
                            "-o", self.path("r.routes"))
            self.assertLessEqual(exact(out["f"]), exact(out["f_upper"]), router)
            self.assertTrue(out["verified"])
        self.assertNotIn("f_upper", self.json("synth", "torus(3,3)", "-c", "all-to-all", "-a", "sssp",
                                              "--no-bound"))

    def test_files_are_proven(self):
        for name in ("r.routes", "r.routes.json"):
            path = self.path(name)
            self.ok("synth", "genkautz(4,20)", "-c", "all-to-all", "-a", "pmcf", "-o", path)
            out = self.json("verify", path)
            self.assertTrue(out["verified"])
            self.assertEqual(exact(out["f"]), Fraction(7, 61))
            self.assertIn("proven correct", self.ok("verify", path, "--topology", "genkautz(4,20)"))
            self.refused("verify", path, "--topology", "ring(20)", says=("was made for",))
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace('"to": 1, "weight": 7', '"to": 1, "weight": 6', 1))
        out = self.json("verify", path, code=1)
        self.assertEqual(out["violations"][0]["kind"], "split")
        self.assertIn("from rank 0 to rank 1", out["violations"][0]["message"])

    def test_damaged_file(self):
        path = self.path("r.routes")
        self.ok("synth", "ring(5)", "-c", "all-to-all", "-a", "sssp", "-o", path)
        with open(path, "r+b") as file:
            file.seek(-60, 2)
            file.write(b"X")
        self.refused("verify", path, says=("damaged",))
        self.refused("sim", path, "--size", "1MB", says=("damaged",))

    def test_lowered_to_text(self):
        path, text = self.path("r.routes"), self.path("r.txt")
        self.ok("synth", "ring(4)", "-c", "all-to-all", "-a", "ewsp", "-o", path)
        self.ok("lower", path, "--to", "routes-per-rank", "-o", text)
        with open(text) as file:
            self.assertIn("2 1 2 0 ports 1 1\n", file.read())
        self.ok("lower", path, "--to", "route-tables", "-o", text)
        with open(text) as file:
            self.assertIn(" here 0\n", file.read())
        self.refused("lower", path, "--to", "plan", "-o", text, says=("routes-per-rank",))
        schedule = self.synth("ring(4)", "all-gather", "ring")
        self.refused("lower", schedule, "--to", "route-tables", "-o", text, says=("for routings",))

    def test_chunks_and_paths_are_limited_and_the_loss_is_said(self):
        out = self.json("synth", "genkautz(4,30)", "-c", "all-to-all", "-a", "mcf-extp", "--max-chunks", 6,
                        "--max-paths", 2)
        self.assertLessEqual(out["chunks"], 6)
        self.assertLessEqual(out["paths"], 2 * 30 * 29)
        self.assertLess(out["loss"]["value"], 0.1)

    def test_layers_keep_the_limits(self):
        at = ("synth", "genkautz(4,50)", "-c", "all-to-all", "-a", "mcf-extp", "--layers", 4)
        out = self.json(*at, "--max-chunks", 32, "--max-paths", 3, "-o", self.path("r"))
        self.assertLessEqual(out["layers"], 4)
        self.assertGreater(out["layers_of_router"], 4)
        self.assertLessEqual(out["chunks"], 32)
        self.assertLessEqual(out["paths"], 3 * 50 * 49)
        self.assertEqual(self.json("verify", self.path("r"))["chunks"], out["chunks"])
        self.assertEqual(exact(out["loss"]), 1 - exact(out["f"]) / exact(out["f_unlimited"]))

    def test_chunks_are_few_unless_told_otherwise(self):
        at = ("synth", "genkautz(4,30)", "-c", "all-to-all", "-a", "mcf-extp")
        whole = self.json(*at, "--max-chunks", "none")
        few = self.json(*at)
        self.assertGreater(whole["chunks"], 1024)
        self.assertEqual(whole["loss"]["value"], 0)
        self.assertLessEqual(few["chunks"], 1024)
        self.assertEqual(few["f_unlimited"], whole["f"])
        self.assertLess(few["loss"]["value"], 0.01)
        self.assertIn("without limits on chunks, paths and layers", self.ok(*at))
        self.refused(*at, "--max-chunks", "few", says=("auto or none",))

    def test_host_limits(self):
        network = "torus(3,3,3,bw=25Gbit/s,host_bw=20Gbit/s)"
        for router in ("mcf-extp", "dor", "sssp"):
            path = self.path("h.json")
            out = self.json("synth", network, "-c", "all-to-all", "-a", router, "--size", "1GiB", "-o", path)
            # 26 blocks of 1/27 GiB out of a host of 2.5 GB/s.
            self.assertAlmostEqual(out["time_s"], 26 / 27 * 2**30 / 2.5e9, delta=1e-9)
            self.assertEqual((exact(out["f"]), exact(out["f_upper"])), (Fraction(2, 65), Fraction(2, 65)))
            for command in ("cost", "sim"):
                told = self.json(command, path, "--size", "1GiB")
                self.assertAlmostEqual(told["bound_s"], out["time_s"], delta=1e-9)
                self.assertAlmostEqual(told["time_s"], out["time_s"], delta=2e-6)
            self.assertEqual(exact(self.json("verify", path)["f"]), Fraction(2, 65))
        # The file keeps the limits: without them it is of another network.
        with open(path) as file:
            text = file.read()
        self.assertIn("host_bandwidth", text)
        host = self.json("sim", path, "--size", "1GiB", "--forwarding", "host")
        self.assertGreater(host["time_s"], out["time_s"] * 1.5)
        rows = self.json("compare", network, "-c", "all-to-all", "-a", "direct,tsmcf,mcf-extp", "--size", "1MiB")["rows"]
        self.assertEqual([row.get("error") for row in rows], [None] * 3)

    def test_simulated(self):
        path = self.path("r")
        self.ok("synth", "torus(3,3,alpha=1us)", "-c", "all-to-all", "-a", "dor", "-o", path)
        out = self.json("sim", path, "--size", "9KB,9GB", "--links", 2)
        small, large = out["rows"]
        # Three blocks of 1 KB over each link at once, and two alphas; then bytes alone count.
        self.assertAlmostEqual(small["time_s"], 3e3 / 50e9 + 2e-6, delta=1e-12)
        self.assertAlmostEqual(large["time_s"], 3e9 / 50e9, delta=3e-6)
        self.assertEqual(len(large["busiest_links"]), 2)
        text = self.ok("sim", path, "--size", "9KB")
        for words in ("by dor, all chunks at once", "efficiency", "busy"):
            self.assertIn(words, text)
        for flag in (("--mode", "barrier"), ("--trace", self.path("t")), ("--bins", 3), ("--link-model", "held")):
            self.refused("sim", path, "--size", "1MB", *flag, says=("holds a routing", flag[0]))

    def test_demand(self):
        path = self.path("demand.csv")
        with open(path, "w") as file:
            file.write("0,3000,1000\n2000,0,0\n0,500,0\n")
        out = self.json("synth", "ring(3)", "-c", "all-to-allv", "--demand", path, "-a", "mcf",
                        "--size", "4000", "-o", self.path("v.routes"))
        self.assertEqual(out["collective"], "all-to-allv")
        # 4000 B leave rank 0 over two links.
        self.assertAlmostEqual(out["time_s"], 2000 / 50e9, delta=1e-11)
        with open(path, "w") as file:
            file.write("0,3,1\n2,0,0\n")
        self.refused("synth", "ring(3)", "-c", "all-to-allv", "--demand", path, "-a", "mcf-extp",
                     says=("6 entries, 3 ranks need 3 x 3",))

    def test_time_limit_gives_the_best_so_far(self):
        out = self.json("synth", "genkautz(4,100)", "-c", "all-to-all", "-a", "mcf", "--gap", "0",
                        "--time-limit", "0.05", "-o", self.path("r.routes"))
        self.assertGreater(out["gap"], 0)
        self.assertTrue(out["verified"])
        for router in ("ilp-shortest", "ilp-disjoint", "pmcf"):
            text = self.ok("synth", "genkautz(4,60)", "-c", "all-to-all", "-a", router, "--time-limit", "0.000001")
            self.assertIn("the time limit was hit", text)
            self.assertIn("verified", text)
            out = self.json("synth", "genkautz(4,60)", "-c", "all-to-all", "-a", router, "--time-limit", "0.000001")
            self.assertTrue(out["time_limit_hit"])
            self.assertTrue(0 <= out["gap"] < 1, out["gap"])

    def test_few_layers_by_default(self):
        base = ("synth", "genkautz(4,50)", "-c", "all-to-all", "-a", "mcf-extp", "--layering", "lash-sequential")
        few = self.json(*base)
        self.assertLessEqual(few["layers"], 4)
        self.assertGreater(few["layers_of_router"], 4)
        self.assertGreater(few["efficiency"], 0.99)
        own = self.json(*base, "--layers", "0")
        self.assertEqual(own["layers"], few["layers_of_router"])
        # Nothing is lost where few layers have no place.
        self.assertIn("layers", self.ok("synth", "uniring(1,5)", "-c", "all-to-all", "-a", "native",
                                        "--layering", "lash"))

    def test_compare(self):
        out = self.json("compare", "genkautz(4,20)", "-c", "all-to-all", "-a", "direct,ewsp,mcf-extp,dor",
                        "--size", "1MB,1GB")
        rows = {row["algorithm"]: row for row in out["rows"]}
        self.assertEqual(list(rows), ["direct", "ewsp", "mcf-extp", "dor"])
        self.assertIn("tori and meshes", rows["dor"]["error"])
        self.assertLess(exact(rows["ewsp"]["f"]), exact(rows["mcf-extp"]["f"]))
        text = self.ok("compare", "torus(3,3)", "-c", "all-to-all", "-a", "sssp,dor")
        self.assertIn("every one verified", text)

    def test_bad_input(self):
        self.refused("synth", "ring(4)", "-a", "sssp", says=("all-to-all", "not of all-gather"))
        self.refused("synth", "ring(4)", "-c", "all-to-all", "-a", "nobody", says=("sssp", "direct"))
        self.refused("synth", "genkautz(4,9)", "-c", "all-to-all", "-a", "dor", code=1,
                     says=("tori and meshes",))
        self.refused("synth", "ring(4)", "-c", "all-to-all", "-a", "pmcf", "--paths", "bounded:-1",
                     says=("disjoint, shortest and bounded:K",))
        for flag in ("--max-chunks", "--max-paths", "--time-limit", "--gap"):
            done = harness.run("synth", "ring(4)", "-c", "all-to-all", "-a", "sssp", flag, "-1")
            self.assertEqual(done.returncode, 2, flag)


if __name__ == "__main__":
    harness.main()
