"""tutti design: frontiers, workloads, files, the database, bad input."""
import os
import sqlite3
import subprocess
import threading
import unittest

import harness

COST = ("--alpha", "10us", "--bandwidth", "100Gbit/s")


class Design(harness.CliTest):
    def setUp(self):
        super().setUp()
        # No test reads or writes the user's own database.
        self.before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = self.folder
        self.addCleanup(self.restore)

    def restore(self):
        if self.before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = self.before

    def frontier(self, *arguments):
        return self.json("design", *arguments)["frontier"]

    def test_frontier(self):
        shown = self.json("design", "-n", 1024, "-d", 4, "-c", "all-gather", "--one-way")
        rows = shown["frontier"]
        self.assertEqual((shown["tl_bound"], shown["tb_bound"]["num"], shown["tb_bound"]["den"]), (5, 1023, 1024))
        self.assertEqual(rows[0]["tl"], 5)
        self.assertTrue(rows[0]["moore_optimal"])
        self.assertTrue(rows[-1]["bandwidth_optimal"])
        for one, next_one in zip(rows, rows[1:]):
            self.assertLess(one["tl"], next_one["tl"])
            self.assertGreater(one["tb"]["value"], next_one["tb"]["value"])
        text = self.ok("design", "-n", 1024, "-d", 4, "-c", "all-gather", "--one-way")
        for row in rows:
            self.assertIn(row["recipe"], text)
            self.assertTrue(row["reasons"])
        self.assertIn("bound", text)

    def test_recipes_are_networks_and_schedules(self):
        for row in self.frontier("-n", 24, "-d", 4, "--one-way") + self.frontier("-n", 24, "-d", 4):
            made = self.json("synth", row["recipe"], "-a", row["algorithm"], "-c", "all-reduce")
            self.assertEqual((made["ranks"], made["degree"], made["diameter"]), (24, 4, row["diameter"]))
            self.assertEqual((made["tl"], made["tb"]), (row["tl"], row["tb"]))

    def test_two_way_cables_unless_one_way_fibres_are_asked_for(self):
        for ranks in range(4, 25, 2):
            for degree in (3, 4):
                for row in self.frontier("-n", ranks, "-d", degree):
                    self.assertTrue(row["bidirectional"], row["recipe"])
        rows = self.frontier("-n", 47, "-d", 4, "--one-way")
        self.assertFalse(all(row["bidirectional"] for row in rows))
        self.refused("design", "-n", 7, "-d", 9, says=["7 ranks times 9 ports is odd", "--one-way"])

    def test_every_collective_has_its_frontier(self):
        question = ("-n", 50, "-d", 4, "--one-way")
        gather = self.frontier(*question, "-c", "all-gather")
        reduce = self.frontier(*question)
        for row in gather + reduce:
            self.assertEqual(row["all_gather"]["tl"], row["reduce_scatter"]["tl"])
        for row in gather:
            self.assertEqual(row["tb"], row["all_gather"]["tb"])
        for row in reduce:
            self.assertEqual(row["tl"], row["all_gather"]["tl"] + row["reduce_scatter"]["tl"])
            self.assertAlmostEqual(row["tb"]["value"],
                                   row["all_gather"]["tb"]["value"] + row["reduce_scatter"]["tb"]["value"], places=12)
        self.assertTrue(any(row["all_gather"]["tb"] != row["reduce_scatter"]["tb"] for row in gather + reduce))

    def test_best_for_a_workload(self):
        question = ("-n", 1024, "-d", 4, "--one-way", *COST)
        small = self.json("design", *question, "--size", "1KiB")
        large = self.json("design", *question, "--size", "10GiB")
        self.assertEqual(small["best"], 0)
        self.assertEqual(large["best"], len(large["frontier"]) - 1)
        row = large["frontier"][0]
        seconds = row["tl"] * 10e-6 + row["tb"]["value"] * 10 * 2**30 / 12.5e9
        self.assertAlmostEqual(row["time_s"], seconds, places=9)
        for row in large["frontier"]:
            self.assertGreaterEqual(row["time_s"], large["bound_s"])
        both = self.json("design", *question, "--size", "1KiB:0.5,10GiB:0.5")
        self.assertAlmostEqual(both["frontier"][0]["time_s"],
                               (small["frontier"][0]["time_s"] + large["frontier"][0]["time_s"]) / 2, places=9)
        half = self.json("design", *question, "--size", "1KiB", "-c", "all-gather")
        self.assertAlmostEqual(half["frontier"][0]["time_s"], small["frontier"][0]["time_s"] / 2, places=12)

    def test_flow_values(self):
        shown = self.json("design", "-n", 32, "-d", 4, "--one-way", "--flow")
        row = shown["frontier"][0]
        self.assertLessEqual(row["f"]["value"], row["f_upper"]["value"])
        self.assertLessEqual(row["gap"], 1e-3)
        self.assertEqual(shown["f_bound"]["num"] * 69, shown["f_bound"]["den"] * 4)  # Table 7: 5.80e-2
        self.assertNotIn("f", self.frontier("-n", 32, "-d", 4)[0])
        timed = self.json("design", "-n", 32, "-d", 4, *COST, "--size", "1MiB", "-c", "all-to-all")
        for row in timed["frontier"]:
            self.assertAlmostEqual(row["time_s"], 2**20 / 32 / (row["f"]["value"] * 12.5e9 / 4), places=9)

    def test_by_flow(self):
        shown = self.json("design", "-n", 16, "-d", 4, "--by-flow")
        self.assertEqual(shown["dimensions"], ["tl", "tb", "f"])
        self.assertLessEqual(shown["flows_solved"], shown["networks"])
        for row in shown["frontier"]:
            for other in shown["frontier"]:
                if other is not row and other["tl"] <= row["tl"] and other["tb"]["value"] <= row["tb"]["value"]:
                    self.assertLess(other["f_upper"]["value"], row["f"]["value"])
        self.assertEqual(self.json("design", "-n", 16, "-d", 4)["dimensions"], ["tl", "tb"])
        self.assertIn("frontier in TL, TB and f, of", self.ok("design", "-n", 16, "-d", 4, "--by-flow"))

    def test_files_cost_what_was_printed(self):
        # The schedule's file, priced by `tutti cost`, takes what the row says, with or without links of one's own.
        prefix = self.path("cluster")
        for links in (), COST, ("--alpha", "1234567ps", "--bandwidth", "7000001B/s"):
            for size in ("1KiB", "300KiB", "100MiB"):
                for ranks, degree, fibres in ((48, 4, ()), (47, 4, ("--one-way",)), (50, 4, ("--one-way",)),
                                              (8, 2, ("--one-way",)), (7, 6, ())):
                    for name in ("all-gather", "reduce-scatter", "all-reduce"):
                        shown = self.json("design", "-n", ranks, "-d", degree, *fibres, *links, "-c", name,
                                          "--size", size, "-o", prefix)
                        best = shown["frontier"][shown["best"]]
                        path = f"{prefix}.{name}.sched"
                        self.assertEqual(shown["files"], [prefix + ".topo.json", path])
                        cost = self.json("cost", path, "--size", size)
                        self.assertEqual((cost["tl"], cost["tb"]), (best["tl"], best["tb"]), shown)
                        self.assertEqual(cost["time_s"], best["time_s"], shown)
                        os.remove(path)
        self.assertTrue(self.json("topo", "show", prefix + ".topo.json"))

    def test_only_what_was_asked_for_is_written(self):
        prefix = self.path("cluster")
        shown = self.json("design", "-n", 48, "-d", 4, *COST, "--size", "100MiB", "-o", prefix)
        self.assertEqual(sorted(os.listdir(self.folder)), ["cluster.all-reduce.sched", "cluster.topo.json"])
        self.assertTrue(self.json("verify", prefix + ".all-reduce.sched")["verified"])
        network = self.json("topo", "show", prefix + ".topo.json")
        self.assertEqual((network["ranks"], network["degree"]), (48, 4))
        text = self.ok("design", "-n", 48, "-d", 4, *COST, "--size", "100MiB", "-c", "reduce-scatter", "-o", prefix)
        self.assertIn("links of 10us and 3125MB/s each way, 12.500 GB/s a rank", text)
        self.assertIn(f"written to {prefix}.reduce-scatter.sched: reduce-scatter, verified", text)
        self.ok("design", "-n", 48, "-d", 4, "--pick", 1, "-o", prefix)

    def test_all_to_all_is_written(self):
        prefix = self.path("d60")
        shown = self.json("design", "-n", 30, "-d", 4, "--size", "1MiB", "-c", "all-to-all", "-o", prefix)
        best = shown["frontier"][shown["best"]]
        self.assertEqual(sorted(os.listdir(self.folder)), ["d60.all-to-all.routes", "d60.topo.json"])
        judged = self.json("verify", prefix + ".all-to-all.routes")
        self.assertTrue(judged["verified"])
        self.assertEqual(judged["f"], best["f"])
        self.assertAlmostEqual(best["time_s"], 2**20 / 30 / (judged["f"]["value"] * 50e9), places=12)

    def test_cabling_list(self):
        path = self.path("cables.csv")
        self.ok("design", "-n", 12, "-d", 4, "--pick", 1, "--cables", path)
        with open(path) as file:
            lines = [line.strip().split(",") for line in file]
        self.assertEqual(lines[0], ["cable", "rank_a", "port_a", "rank_b", "port_b"])
        self.assertEqual([int(line[0]) for line in lines[1:]], list(range(1, 25)))
        ports = [(int(rank), int(port)) for line in lines[1:] for rank, port in (line[1:3], line[3:5])]
        self.assertEqual(sorted(ports), [(rank, port) for rank in range(12) for port in range(4)])
        self.ok("design", "-n", 13, "-d", 3, "--one-way", "--pick", 1, "--cables", path)
        with open(path) as file:
            self.assertEqual(file.readline(), "fibre,from_rank,from_port,to_rank,to_port\n")
        self.refused("design", "-n", 64, "-d", 4, "--one-way", "--cables", path, says=["--cables", "--pick"])

    def test_own_bases(self):
        self.ok("topo", "show", "distreg(pg23)", "-o", self.path("own.topo.json"))
        rows = self.frontier("-n", 104, "-d", 4, "--base", self.path("own.topo.json"), "--one-way")
        self.assertTrue(rows)
        for row in rows:
            self.assertIn("own.topo.json", row["recipe"])
            self.json("synth", row["recipe"], "-a", row["algorithm"])

    def test_own_base_of_a_known_network_is_used(self):
        # The example of the guide: a box of 9 ranks that is a known network too.
        box = self.path("box.topo.json")
        self.ok("topo", "show", "hamming(2,3)", "-o", box)
        rows = self.frontier("-n", 36, "-d", 8, "--base", box)
        self.assertTrue(rows)
        for row in rows:
            self.assertIn(box, row["recipe"])
        self.assertIn(box, self.frontier("-n", 9, "-d", 4, "--base", box)[0]["recipe"])
        prefix = self.path("own")
        shown = self.json("design", "-n", 9, "-d", 4, "--base", box, *COST, "--size", "1MiB", "-o", prefix)
        cost = self.json("cost", prefix + ".all-reduce.sched", "--size", "1MiB")
        self.assertEqual(cost["time_s"], shown["frontier"][0]["time_s"])
        self.refused("design", "-n", 35, "-d", 4, "--base", box, says=["35 ranks", "made of", "box.topo.json"])

    def test_database(self):
        path = self.path("d/designs.sqlite")
        made = self.json("design", "--all-up-to", 60, "--degrees", "2,4", "--database", path)
        self.assertEqual((made["max_ranks"], made["degrees"]), (60, [2, 4]))
        for question in (("-n", 60, "-d", 4), ("-n", 17, "-d", 2, "--one-way"),
                         ("-n", 47, "-d", 4, "--one-way"), ("-n", 47, "-d", 4, "--one-way", "-c", "all-gather"),
                         ("-n", 47, "-d", 4, "--one-way", "-c", "reduce-scatter")):
            stored = self.json("design", *question, "--database", path)
            searched = self.json("design", *question, "--no-database")
            self.assertTrue(stored["from_database"])
            self.assertFalse(searched["from_database"])
            self.assertEqual(stored["frontier"], searched["frontier"])
        self.assertFalse(self.json("design", "-n", 61, "-d", 4, "--database", path)["from_database"])
        # The default one is used where it is.
        self.assertFalse(self.json("design", "-n", 12, "-d", 2)["from_database"])
        self.ok("design", "--all-up-to", 12, "--degrees", "2")
        self.assertTrue(self.json("design", "-n", 12, "-d", 2)["from_database"])
        self.refused("design", "-n", 9, "-d", 3, "--database", path, says=["8 or 10 ranks"])

    def test_damaged_database_is_made_anew(self):
        path = self.path("designs.sqlite")
        self.ok("design", "--all-up-to", 40, "--degrees", "2", "--database", path)
        with open(path, "rb") as file:
            good = file.read()
        place = good.index(b"base ([direct-connect]")
        with open(path, "wb") as file:
            file.write(good[:place] + b"BASE" + good[place + 4:])
        damaged = []
        for ranks in range(2, 41):
            for more in ((), *(("--one-way", "-c", name) for name in ("all-gather", "reduce-scatter", "all-reduce"))):
                done = harness.run("design", "-n", ranks, "-d", 2, "--database", path, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                if "warning" in done.stderr:
                    damaged.append(ranks)
                    self.assertIn("damaged database", done.stderr)
        self.assertEqual(len(damaged), 1)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), good)

    def test_files_of_others_are_refused_and_left_alone(self):
        schedule = self.path("ok.sched")
        self.ok("synth", "ring(4)", "-c", "all-reduce", "-a", "bfb", "-o", schedule)
        thesis = self.path("thesis.txt")
        with open(thesis, "w") as file:
            file.write("Chapter 1\n")
        other = self.path("bookmarks.sqlite")
        connection = sqlite3.connect(other)
        connection.execute("CREATE TABLE places (url TEXT)")
        connection.commit()
        connection.close()
        for path in (schedule, thesis, other):
            with open(path, "rb") as file:
                before = file.read()
            for arguments in (("--all-up-to", 10, "--degrees", 2), ("-n", 8, "-d", 2)):
                self.refused("design", *arguments, "--database", path, says=[path, "stays as it is"])
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), before)
        # The one in the cache folder was not asked for: it is passed over, and left alone too.
        os.mkdir(self.path("tutti"))
        os.rename(thesis, self.path("tutti/designs.sqlite"))
        done = harness.run("design", "-n", 8, "-d", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("stays as it is", done.stderr)

    def test_several_at_once(self):
        path = self.path("designs.sqlite")
        codes = []

        def make():
            codes.append(harness.run("design", "--all-up-to", 50, "--degrees", "2,4", "--database", path).returncode)

        threads = [threading.Thread(target=make) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(codes, [0, 0, 0])
        self.assertTrue(self.json("design", "-n", 50, "-d", 4, "--database", path)["from_database"])
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])

    def test_same_answer_on_any_number_of_threads(self):
        first, second = self.path("1"), self.path("2")
        self.ok("design", "--all-up-to", 60, "--database", first, "-j", 1)
        self.ok("design", "--all-up-to", 60, "--database", second, "-j", 2)
        with open(first, "rb") as one, open(second, "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_bad_input(self):
        self.refused("design", "-n", 8, "-d", 0, says=["degree 0", "1 <= degree <= 64"])
        self.refused("design", "-n", 1, "-d", 2, says=["at least 2"])
        self.refused("design", "-n", 10**10, "-d", 4, says=["GiB", "at most 1048576"])
        self.refused("design", "-n", 8, says=["-n RANKS and -d DEGREE"])
        self.refused("design", "-n", 7, "-d", 3, says=["6 or 8 ranks", "degree 4"])
        self.refused("design", "-n", 8, "-d", 2, "--size", "1MiB:x", says=["1MiB:x"])
        self.refused("design", "-n", 8, "-d", 2, "--size", "1MiB", "--alpha", "fast", says=["fast"])
        self.refused("design", "-n", 8, "-d", 2, "-c", "broadcast", "--size", "1MiB", says=["broadcast"])
        self.refused("design", "-n", 8, "-d", 4, "--size", "1MiB", "--bandwidth", "3", says=["--bandwidth 3", "4 ports"])
        self.refused("design", "-n", 64, "-d", 4, "--one-way", "-o", self.path("x"), says=["--size", "--pick"])
        self.refused("design", "-n", 64, "-d", 4, "--pick", 99, says=["--pick 99"])
        self.refused("design", "-n", 64, "-d", 4, "--database", self.folder, says=[self.folder])
        self.refused("design", "-n", 64, "-d", 4, "--database", self.path("none"), says=["no such file"])
        self.refused("design", "--all-up-to", 40, "--degrees", "0", says=["--degrees", "0 not in range 1 to "])
        self.refused("design", "--all-up-to", 40, "--database", "/proc/none/d.sqlite", says=["/proc/none"])
        self.ok("topo", "show", "mesh(3,3)", "-o", self.path("mesh.topo.json"))
        self.refused("design", "-n", 36, "-d", 4, "--base", self.path("mesh.topo.json"),
                     says=["mesh.topo.json", "not regular"])
        self.refused("design", "-n", 36, "-d", 4, "--base", self.path("none.topo.json"), says=["none.topo.json"])

    def test_interrupted_leaves_no_half_database(self):
        path = self.path("designs.sqlite")
        process = subprocess.Popen([harness.TUTTI, "design", "--all-up-to", "2000", "--database", path],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            process.send_signal(2)
            process.communicate(timeout=60)
        if process.returncode != 0:
            self.assertFalse(os.path.exists(path))
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])


if __name__ == "__main__":
    unittest.main()
