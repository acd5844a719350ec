"""tutti explain, diff and advise: worked examples, and what they refuse."""
import json
import os

import harness


class Explain(harness.CliTest):
    def test_two_boxes_on_rails_by_hand(self):
        # Two boxes of two GPUs: half of M comes into each box over two NICs of 1 GB/s, once.
        told = self.json("explain", "cluster(boxes=2,gpus=2,nvswitch=4GB/s,nic=1GB/s)", "-a", "forest",
                         "--size", "1GB")
        self.assertEqual([(box["name"], box["ranks"]) for box in told["boxes"]], [("box0", 2), ("box1", 2)])
        shape, limit = told["shape"], told["limit"]
        self.assertEqual((shape["across"]["num"], shape["on_rail"]["num"], shape["inside"]["num"]), (1, 1, 2))
        self.assertEqual((shape["least_crossings"], shape["most_crossings"]), (1, 1))
        self.assertEqual((limit["needed"]["value"], limit["sent"]["value"]), (0.5, 0.5))
        self.assertEqual(limit["capacity_Bps"]["value"], 2e9)
        self.assertIn(sorted(limit["inside_cut"])[0].split(".")[0], ("box0", "box1"))
        row, = told["rows"]
        self.assertAlmostEqual(row["latency_s"] + row["bandwidth_s"] + row["waiting_s"], row["simulated_s"], 9)
        self.assertGreaterEqual(row["time_s"], row["bound_s"])

    def test_a_ring_is_told_as_a_ring(self):
        sched = self.synth("ring(4,bw=1GB/s,alpha=1us)", "all-gather", "ring")
        text = self.ok("explain", sched, "--size", "4GB")
        self.assertIn("2 rings of all ranks, height 3", text)
        self.assertIn("3/8 = 0.375 M", text)
        self.assertIn("8 of 8 links as busy", text)
        self.assertIn("3/8000000000 s a byte exactly", text)
        told = self.json("explain", sched, "--size", "4GB")
        self.assertEqual(told["shape"]["spread"]["rings"], 2)
        self.assertEqual(len(told["rows"][0]["chain"]), 3)
        self.assertAlmostEqual(told["rows"][0]["latency_s"], 3e-6)
        self.assertAlmostEqual(told["rows"][0]["bandwidth_s"], 1.5)
        self.assertAlmostEqual(told["rows"][0]["longest_step"]["time_s"], 0.500001, 12)

    def test_networks_are_made_as_synth_makes_them(self):
        sched = self.synth("torus(3,3)", "all-reduce", "bfb")
        made = self.json("explain", "torus(3,3)", "-c", "all-reduce", "-a", "bfb", "--size", "1MiB")
        self.assertEqual(made, self.json("explain", sched, "--size", "1MiB"))
        self.assertIn("all-to-all", self.ok("explain", "complete(4)", "-c", "all-to-all", "-a", "auto"))

    def test_is_ten_lines_and_the_same_for_any_number_of_threads(self):
        command = ["explain", "dgx_h100(2)", "-c", "all-reduce", "-a", "forest", "--size", "1MiB,1GiB"]
        text = self.ok(*command, "-j", "1")
        self.assertLessEqual(len(text.splitlines()), 13)
        self.assertEqual(text, self.ok(*command, "-j", "4"))
        self.assertIn("2 boxes of 8", text)

    def test_refuses(self):
        sched = self.synth("ring(4)", "all-gather", "ring")
        for arguments, says in [
                (["nowhere.sched"], ["nowhere.sched"]),
                (["ring(4)"], ["ring(4)"]),
                ([sched, "-c", "all-reduce"], ["--collective", "-a"]),
                ([sched, "--seed", "2"], ["--seed", "-a"]),
                ([sched, "--size", "0"], ["0"]),
                ([sched, "--size", "1MiB,"], ["''"]),
                ([sched, "--mode", "never"], ["never"]),
                (["ring(4)", "-a", "nobody"], ["nobody"]),
                (["rong(4)", "-a", "ring"], ["rong"]),
                (["ring(4)", "-a", "ring", "-c", "all-sorts"], ["all-sorts"]),
        ]:
            with self.subTest(arguments):
                self.refused("explain", *arguments, says=says)

    def test_wrong_schedules_are_not_explained(self):
        sched = self.synth("ring(4)", "all-gather", "uniring", "s.sched.json")
        with open(sched) as file:
            text = json.load(file)
        text["transfers"].pop()
        with open(sched, "w") as file:
            json.dump(text, file)
        self.refused("explain", sched, says=["is not correct"], code=1)
        self.refused("diff", sched, sched, says=["is not correct"], code=1)


class Diff(harness.CliTest):
    def test_equal(self):
        a = self.synth("torus(3,3)", "all-reduce", "bfb", "a.sched")
        b = self.synth("torus(3,3)", "all-reduce", "bfb", "b.sched.json")
        self.assertIn("equal", self.ok("diff", a, b))
        self.assertTrue(self.json("diff", a, b)["equal"])

    def test_different_by_hand(self):
        # Both directions: 3/8 M over each of 8 links; one: 3/4 M over 4 of them, twice as long.
        a = self.synth("ring(4,bw=1GB/s,alpha=1us)", "all-gather", "ring", "a.sched")
        b = self.synth("ring(4,bw=1GB/s,alpha=1us)", "all-gather", "uniring", "b.sched")
        told = self.json("diff", a, b, "--size", "4GB", code=1)
        self.assertEqual((told["equal"], told["comparable"], told["links_unlike"]), (False, True, 8))
        self.assertEqual(len(told["unlike"]), 5)
        self.assertEqual((told["a"]["height"], told["b"]["height"]), (3, 3))
        self.assertEqual(told["a"]["busiest_share"]["value"], 0.375)
        self.assertEqual(told["b"]["busiest_share"]["value"], 0.75)
        self.assertAlmostEqual(told["rows"][0]["a"]["time_s"], 1.500003)
        self.assertAlmostEqual(told["rows"][0]["b"]["time_s"], 3.000003)
        self.assertEqual(told["behind"]["who"], "b")
        self.assertEqual([one["algorithm"] for one in told["best_by_size"]][-1], "a")
        done = harness.run("diff", a, b)
        self.assertEqual(done.returncode, 1)
        self.assertIn("b falls behind", done.stdout)
        self.assertRegex(done.stdout, r"on network +ring\(4\S* +the same\n")
        self.assertEqual(done.stderr, "")

    def test_fewer_steps_are_faster_for_small_sizes(self):
        a = self.synth("ring(8)", "all-reduce", "ring", "a.sched")  # 14 steps
        b = self.synth("ring(8)", "all-reduce", "bfb", "b.sched")  # 8
        told = self.json("diff", a, b, "--size", "1KiB", code=1)
        self.assertLess(told["rows"][0]["b"]["time_s"], told["rows"][0]["a"]["time_s"])
        self.assertEqual(told["best_by_size"][0]["algorithm"], "b")

    def test_not_comparable(self):
        a = self.synth("ring(4)", "all-gather", "ring", "a.sched")
        for network, collective, says in [("ring(4)", "all-reduce", "other collectives"),
                                          ("ring(5)", "all-gather", "other numbers of ranks"),
                                          ("ring(4,bw=1GB/s)", "all-gather", "other networks")]:
            b = self.synth(network, collective, "ring", "b.sched")
            done = harness.run("diff", a, b)
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertIn("not comparable: " + says, done.stdout)
            self.assertNotIn("the same", done.stdout)
            told = self.json("diff", a, b, code=1)
            self.assertFalse(told["comparable"])
            self.assertIn(says, told["reasons"][0])

    def test_refuses(self):
        sched = self.synth("ring(4)", "all-gather", "ring")
        self.refused("diff", sched, says=["b"])
        self.refused("diff", sched, "nowhere.sched", says=["nowhere.sched"])
        self.refused("diff", sched, sched, "--size", "x", says=["x"])
        network = self.path("n.json")
        self.ok("topo", "show", "ring(4)", "-o", network)
        self.refused("diff", sched, network, says=["n.json"])


class Advise(harness.CliTest):
    def settings(self, *arguments):
        told = self.json("advise", *arguments)
        return told, {one["variable"]: one["setting"] for one in told["settings"]}

    def test_four_machines_in_a_ring(self):
        told, settings = self.settings("ring(4,bw=25GB/s)", "--size", "1GiB")
        self.assertEqual(told["wiring"]["kind"], "ring")
        self.assertEqual(settings, {"NCCL_IB_HCA": None, "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
                                    "NCCL_CROSS_NIC": "1", "NCCL_ALGO": "Ring"})
        self.assertTrue(any("nccl#1034" in note for note in told["notes"]))
        self.assertEqual(told["other_wirings"], [])
        for row in told["rows"]:
            self.assertLessEqual(row["best"]["busbw"], row["bound_busbw"] * (1 + 1e-9))
            self.assertGreaterEqual(row["best"]["time_s"], row["bound_s"])
        self.assertIn("this is the one", self.ok("advise", "ring(4)", "--size", "1MiB"))

    def test_a_line_is_better_closed(self):
        told, _ = self.settings("mesh(4)", "-c", "all-reduce", "--size", "1GiB")
        self.assertEqual(told["wiring"]["kind"], "line")
        other, = told["other_wirings"]
        self.assertEqual(len(other["cables"].split()), 4)
        self.assertGreater(other["rows"][0]["best"]["busbw"], told["rows"][0]["best"]["busbw"])

    def test_imported_boxes(self):
        network = self.path("n.topo.json")
        self.ok("topo", "import", "node[0-1]=tests/data/import/nvidia-smi/dgx_h100.txt",
                "tests/data/import/ibnetdiscover/rails_two_nodes.txt", "-o", network)
        told, _ = self.settings(network, "-c", "all-reduce", "--size", "1GiB")
        self.assertEqual((told["wiring"]["kind"], told["wiring"]["machines"]), ("switched", 2))
        self.assertTrue(told["rows"][0]["ring_is_estimate"])
        self.assertIn("switches", told["why"])

    def test_three_boxes_from_a_file(self):
        # Boxes of two GPUs behind an NVSwitch, cabled in a triangle without a fabric.
        nodes = [{"name": f"box{b}.gpu{g}", "kind": "rank"} for b in range(3) for g in range(2)]
        nodes += [{"name": f"box{b}.nvswitch", "kind": "switch"} for b in range(3)]
        inside = [{"from": f"box{b}.gpu{g}", "to": f"box{b}.nvswitch", "duplex": True, "bandwidth": "100GB/s"}
                  for b in range(3) for g in range(2)]
        cables = [{"from": f"box{b}.gpu1", "to": f"box{(b + 1) % 3}.gpu0", "duplex": True} for b in range(3)]
        path = self.path("triangle.json")
        with open(path, "w") as file:
            json.dump({"format": "tutti-topology", "version": 1, "nodes": nodes,
                       "link_defaults": {"bandwidth": "25GB/s", "alpha": "1us"}, "links": inside + cables}, file)
        told, settings = self.settings(path, "-c", "all-gather", "--size", "1MiB")
        self.assertEqual((told["wiring"]["kind"], told["wiring"]["machines"]), ("a cable between any two", 3))
        self.assertNotIn("NCCL_ALGO", settings)
        self.assertIsNotNone(told["rows"][0]["best"]["busbw"])

    def test_refuses(self):
        self.refused("advise", "rong(4)", says=["rong"])
        self.refused("advise", os.path.join(self.folder, "none.json"), says=["none.json"])
        self.refused("advise", "ring(4)", "-c", "all-sorts", says=["all-sorts"])
        self.refused("advise", "ring(4)", "-c", "all-to-allv", says=["demands"])
        self.refused("advise", "ring(4)", "--size", "many", says=["many"])


if __name__ == "__main__":
    harness.main()
