"""tutti flow: the rate of all-to-all from both sides, its file, and what it refuses."""
import json
import unittest
from fractions import Fraction

import harness


def exact(value):
    return Fraction(int(value["num"]), int(value["den"]))


class Flow(harness.CliTest):
    def test_torus_is_exact(self):
        out = self.json("flow", "torus(3,3,3)")
        self.assertEqual(exact(out["f"]), Fraction(1, 9))
        self.assertEqual(exact(out["f_upper"]), Fraction(1, 9))
        self.assertEqual(out["gap"], 0)
        self.assertAlmostEqual(out["f_bytes_per_s"], 50e9 / 9, delta=1)
        for key in ("topology", "ranks", "passes", "synthesis_s", "peak_rss_bytes", "verified"):
            self.assertIn(key, out)
        text = self.ok("flow", "torus(3,3,3)")
        self.assertIn("1/9", text)

    def test_host_limits(self):
        # 3x3x3 torus of 25 Gbit/s links: 1/9 of a link; 2/27 where 100 of a rank's 150 Gbit/s pass its host, which is
        # 6.01 GB/s a rank.
        free = self.json("flow", "torus(3,3,3,bw=25Gbit/s)")
        self.assertEqual((exact(free["f"]), exact(free["f_upper"])), (Fraction(1, 9),) * 2)
        limited = "torus(3,3,3,bw=25Gbit/s,host_bw=100Gbit/s)"
        out = self.json("flow", limited, "--exact")
        self.assertEqual((exact(out["f"]), exact(out["f_upper"])), (Fraction(2, 27),) * 2)
        self.assertAlmostEqual(out["rank_bytes_per_s"], 26 * 2 / 27 * 3.125e9, delta=1)
        self.assertIn("6.019 GB/s to all others together, host limits kept", self.ok("flow", limited))
        # A NIC that forwards by itself leaves the host its own 26 f <= 4: no limit here.
        nic = self.json("flow", f"nic_forwarding({limited})")
        self.assertEqual(exact(nic["f"]), Fraction(1, 9))
        # A limit below the smallest link does not change the unit of f.
        slow = self.json("flow", "ring(3,bw=10GB/s,host_bw=4GB/s)", "--exact")
        self.assertEqual((exact(slow["f"]), exact(slow["f_upper"])), (Fraction(1, 5),) * 2)
        row = self.json("topo", "show", limited)["bounds"]["all-to-all"]
        self.assertEqual((exact(row["f"]), exact(row["f_upper"]), row["gap"]), (Fraction(2, 27),) * 2 + (0,))
        self.assertIn("27 of 27 ranks limited to 12500MB/s each way", self.ok("topo", "show", limited))

    def test_gap_is_kept(self):
        out = self.json("flow", "genkautz(4,50)", "--gap", "1e-3")
        self.assertLessEqual(out["gap"], 1e-3)
        self.assertLessEqual(exact(out["f"]), Fraction(47, 1524))
        self.assertGreaterEqual(exact(out["f_upper"]), Fraction(47, 1524))

    def test_a_limit_that_is_hit_gives_the_best_so_far(self):
        out = self.json("flow", "genkautz(4,50)", "--gap", "0", "--passes", "3")
        self.assertEqual(out["passes"], 3)
        self.assertGreater(out["gap"], 0)
        self.assertIn("limit was hit", self.ok("flow", "genkautz(4,50)", "--gap", "0", "--passes", "3"))

    def test_exact(self):
        for topology, f in (("genkautz(4,50)", "47/1524"), ("without(torus(3,3,3),links=3)", "8/81"),
                            ("genkautz(4,48)", "16/595")):
            out = self.json("flow", topology, "--exact")
            self.assertTrue(out["proven"])
            self.assertEqual((exact(out["f"]), exact(out["f_upper"])), (Fraction(f), Fraction(f)))
            self.assertEqual(out["gap"], 0)
            self.assertIn(f, self.ok("flow", topology, "--exact"))
        # The proof does not rest on how far the flow came.
        self.assertTrue(self.json("flow", "genkautz(4,50)", "--exact", "--passes", "2")["proven"])

    def test_exact_in_numbers_of_any_size(self):
        path = self.path("exact.flow")
        network = "random_regular(4,60)"
        out = self.json("flow", network, "--exact", "-o", path)
        self.assertEqual(exact(out["f"]), exact(out["f_upper"]))
        self.assertEqual(out["gap"], 0)
        self.assertIn("the optimum is proven", self.ok("flow", network, "--exact"))
        with open(path) as file:
            flow = json.load(file)
        proof = flow["exact"]
        unit = Fraction(proof["units_per_demand"])
        load = [Fraction(0)] * len(flow["bundles"])
        for source, parts in enumerate(proof["flow_from"]):
            kept = [Fraction(0)] * 60
            for bundle, units in parts:
                tail, head, _ = flow["bundles"][bundle]
                kept[tail] -= Fraction(units)
                kept[head] += Fraction(units)
                load[bundle] += Fraction(units)
            self.assertEqual(kept, [-59 * unit if v == source else unit for v in range(60)])
        strain = max(l / b[2] for l, b in zip(load, flow["bundles"]))
        self.assertEqual(exact(flow["f"]), unit / strain / 50_000_000_000)
        self.ok("flow", network, "--warm-start", path)

    def test_exact_says_what_it_needs(self):
        network = "random_regular(40,110)"
        out = self.json("flow", network, "--exact", "--passes", "0", code=1)
        self.assertLess(exact(out["f"]), exact(out["f_upper"]))
        self.assertFalse(out["proven"])
        self.assertIn("at least 4400 rows", out["no_proof"])
        done = harness.run("flow", network, "--exact", "--passes", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("at least 4400 rows", done.stdout)

    def test_file_is_a_flow_that_conserves(self):
        path = self.path("flow.json")
        self.ok("flow", "genkautz(2,6)", "-o", path)
        with open(path) as file:
            flow = json.load(file)
        self.assertEqual((flow["format"], flow["version"]), ("tutti-flow", 1))
        load = [0] * len(flow["bundles"])
        for source, parts in enumerate(flow["flow_from"]):
            kept = [0] * 6
            for bundle, units in parts:
                tail, head, _ = flow["bundles"][bundle]
                kept[tail] -= units
                kept[head] += units
                load[bundle] += units
            unit = flow["units_per_demand"]
            self.assertEqual(kept, [-5 * unit if v == source else unit for v in range(6)])
        strain = max(Fraction(l, b[2]) for l, b in zip(load, flow["bundles"]))
        self.assertEqual(exact(flow["f"]), flow["units_per_demand"] / strain / 50_000_000_000)

    def test_warm_start_after_a_loss(self):
        path = self.path("old.flow")
        self.ok("flow", "genkautz(4,100)", "--gap", "1e-3", "-o", path)
        lost = "without(genkautz(4,100),links=1,seed=3)"
        warm = self.json("flow", lost, "--gap", "1e-2", "--warm-start", path)
        cold = self.json("flow", lost, "--gap", "1e-4")
        self.assertLessEqual(warm["gap"], 1e-2)
        self.assertLessEqual(exact(warm["f"]), exact(cold["f_upper"]))
        self.assertGreaterEqual(exact(warm["f_upper"]), exact(cold["f"]))
        self.refused("flow", lost, "--warm-start", self.path("missing"), says=["missing"])
        with open(path, "w") as file:
            file.write('{"format":"tutti-flow","version":2}')
        self.refused("flow", lost, "--warm-start", path, says=["old.flow", "version: wanted 1"])
        self.refused("flow", lost, "ring(4)", "--warm-start", path, says=["one topology, got 2"])
        self.refused("flow", lost, "ring(4)", "-o", path, says=["one topology, got 2"])

    def test_several_networks_make_a_table(self):
        rows = self.json("flow", "ring(4)", "xpander(3,4)", "mesh(3)")["rows"]
        self.assertEqual([row["ranks"] for row in rows], [4, 16, 3])
        self.assertEqual(exact(rows[0]["f"]), Fraction(1, 2))
        self.assertEqual(exact(rows[0]["moore_f"]), Fraction(2, 4))
        self.assertLessEqual(exact(rows[1]["f_upper"]), exact(rows[1]["moore_f"]))
        self.assertNotIn("moore_f", rows[2])
        text = self.ok("flow", "ring(4)", "xpander(3,4)", "mesh(3)")
        self.assertEqual(len(text.splitlines()), 4)
        self.assertIn("100.0 %", text)
        self.refused("flow", "ring(4)", "torus(1)", says=["torus(1)", "two ranks"])

    def test_time_limit_gives_the_best_so_far(self):
        out = self.json("flow", "genkautz(4,200)", "--gap", "0", "--time-limit", "0.01")
        self.assertLess(exact(out["f"]), exact(out["f_upper"]))
        self.assertGreater(out["gap"], 0)

    def test_theorem_1(self):
        # 1 / f of at least 72 for 100 ranks of degree 4.
        out = self.json("flow", "genkautz(4,100)")
        self.assertEqual(exact(out["moore_f"]), Fraction(1, 72))
        self.assertEqual(exact(self.json("topo", "show", "genkautz(4,100)")["moore_f"]), Fraction(1, 72))
        self.assertIn("f at most 1/72", self.ok("topo", "show", "genkautz(4,100)"))

    def test_bad_networks(self):
        path = self.path("net.json")
        with open(path, "w") as file:
            json.dump({"format": "tutti-topology", "version": 1, "ranks": 3,
                       "link_defaults": {"bandwidth": "1GB/s", "alpha": "0"},
                       "links": [{"from": a, "to": b} for a, b in ((0, 1), (1, 0), (1, 2))]}, file)
        self.refused("flow", path, says=["disconnected", "from '2' to '0'"])
        self.refused("flow", "ring(4,bw=0GB/s)", says=["bw"])
        self.refused("flow", "complete(2)", "--demand", self.demand("0,-1\n1,0\n"), says=["-1"])

    def demand(self, text):
        path = self.path("demand.csv")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_demand(self):
        path = self.path("demand.csv")
        with open(path, "w") as file:
            file.write("0,3,0\n0,0,0\n0,0,0\n")
        # One of six pairs over the one link between them, alone: mean 1 is demand 6.
        out = self.json("flow", "uniring(1,3)", "--demand", path)
        self.assertEqual(exact(out["f"]), Fraction(1, 6))
        self.assertGreaterEqual(exact(out["f_upper"]), Fraction(1, 6))
        self.assertLessEqual(out["gap"], 1e-4)

    def test_topo_show_tells_both_sides(self):
        row = self.json("topo", "show", "hypercube(4)")["bounds"]["all-to-all"]
        self.assertEqual((exact(row["f"]), exact(row["f_upper"]), row["gap"]), (Fraction(1, 8),) * 2 + (0,))

    def test_bad_input(self):
        self.refused("flow", "torus(4,4)", "--gap", "-1", says=["--gap", "'-1'", "wanted 0 .. "])
        self.refused("flow", "torus(4,4)", "--passes", "-2", says=["passes"])
        self.refused("flow", "nothing(4)", says=["unknown family"])
        self.refused("flow", "torus(1)", says=["two ranks"])
        path = self.path("demand.csv")
        with open(path, "w") as file:
            file.write("0,1\n1,0\n")
        self.refused("flow", "ring(3)", "--demand", path, says=["9 entries, got 4"])
        open(path, "w").close()
        self.refused("flow", "ring(3)", "--demand", path, says=["no demand"])
        self.refused("flow", "ring(3)", "--demand", self.path("missing"), says=["missing"])


if __name__ == "__main__":
    unittest.main()
