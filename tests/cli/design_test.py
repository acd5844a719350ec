"""tutti design: frontiers, workloads, files, the database, bad input."""
import os
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
        shown = self.json("design", "-n", 1024, "-d", 4)
        rows = shown["frontier"]
        self.assertEqual((shown["tl_bound"], shown["tb_bound"]["num"], shown["tb_bound"]["den"]), (5, 1023, 1024))
        self.assertEqual(rows[0]["tl"], 5)
        self.assertTrue(rows[0]["moore_optimal"])
        self.assertTrue(rows[-1]["bandwidth_optimal"])
        for one, next_one in zip(rows, rows[1:]):
            self.assertLess(one["tl"], next_one["tl"])
            self.assertGreater(one["tb"]["value"], next_one["tb"]["value"])
        text = self.ok("design", "-n", 1024, "-d", 4)
        for row in rows:
            self.assertIn(row["recipe"], text)
            self.assertTrue(row["reasons"])
        self.assertIn("bound", text)

    def test_recipes_are_networks_and_schedules(self):
        for row in self.frontier("-n", 24, "-d", 4) + self.frontier("-n", 24, "-d", 4, "--bidirectional"):
            made = self.json("synth", row["recipe"], "-a", row["algorithm"])
            self.assertEqual((made["ranks"], made["degree"], made["diameter"]), (24, 4, row["diameter"]))
            self.assertEqual((made["tl"], made["tb"]), (row["tl"], row["tb"]))

    def test_bidirectional(self):
        rows = self.frontier("-n", 21, "-d", 4, "--bidirectional")
        self.assertTrue(all(row["bidirectional"] for row in rows))

    def test_best_for_a_workload(self):
        small = self.json("design", "-n", 1024, "-d", 4, *COST, "--size", "1KiB")
        large = self.json("design", "-n", 1024, "-d", 4, *COST, "--size", "10GiB")
        self.assertEqual(small["best"], 0)
        self.assertEqual(large["best"], len(large["frontier"]) - 1)
        row = large["frontier"][0]
        seconds = 2 * (row["tl"] * 10e-6 + row["tb"]["value"] * 10 * 2**30 / 12.5e9)
        self.assertAlmostEqual(row["time_s"], seconds, places=9)
        for row in large["frontier"]:
            self.assertGreaterEqual(row["time_s"], large["bound_s"])
        both = self.json("design", "-n", 1024, "-d", 4, *COST, "--size", "1KiB:0.5,10GiB:0.5")
        self.assertAlmostEqual(both["frontier"][0]["time_s"],
                               (small["frontier"][0]["time_s"] + large["frontier"][0]["time_s"]) / 2, places=9)
        half = self.json("design", "-n", 1024, "-d", 4, *COST, "--size", "1KiB", "-c", "all-gather")
        self.assertAlmostEqual(half["frontier"][0]["time_s"], small["frontier"][0]["time_s"] / 2, places=12)

    def test_flow_values(self):
        shown = self.json("design", "-n", 32, "-d", 4, "--flow")
        row = shown["frontier"][0]
        self.assertLessEqual(row["f"]["value"], row["f_upper"]["value"])
        self.assertLessEqual(row["gap"], 1e-3)
        self.assertEqual(shown["f_bound"]["num"] * 69, shown["f_bound"]["den"] * 4)  # Table 7: 5.80e-2
        self.assertNotIn("f", self.frontier("-n", 32, "-d", 4)[0])
        timed = self.json("design", "-n", 32, "-d", 4, *COST, "--size", "1MiB", "-c", "all-to-all")
        for row in timed["frontier"]:
            self.assertAlmostEqual(row["time_s"], 2**20 / 32 / (row["f"]["value"] * 12.5e9 / 4), places=9)

    def test_files(self):
        prefix = self.path("cluster")
        shown = self.json("design", "-n", 48, "-d", 4, *COST, "--size", "100MiB", "-o", prefix)
        best = shown["frontier"][shown["best"]]
        self.assertEqual(len(shown["files"]), 4)
        network = self.json("topo", "show", prefix + ".topo.json")
        self.assertEqual((network["ranks"], network["degree"]), (48, 4))
        for name, times in (("all-gather", 1), ("reduce-scatter", 1), ("all-reduce", 2)):
            path = f"{prefix}.{name}.sched"
            self.assertTrue(self.json("verify", path)["verified"])
            cost = self.json("cost", path)
            self.assertEqual(cost["tl"], times * best["tl"])
            self.assertAlmostEqual(cost["tb"]["value"], times * best["tb"]["value"], places=12)
        self.ok("design", "-n", 48, "-d", 4, "--pick", 1, "-o", prefix)

    def test_own_bases(self):
        self.ok("topo", "show", "distreg(pg23)", "-o", self.path("own.topo.json"))
        rows = self.frontier("-n", 104, "-d", 4, "--base", self.path("own.topo.json"))
        self.assertTrue(rows)
        for row in rows:
            self.json("synth", row["recipe"], "-a", row["algorithm"])

    def test_database(self):
        path = self.path("d/designs.sqlite")
        made = self.json("design", "--all-up-to", 60, "--degrees", "2,4", "--database", path)
        self.assertEqual((made["max_ranks"], made["degrees"]), (60, [2, 4]))
        for question in (("-n", 60, "-d", 4), ("-n", 17, "-d", 2), ("-n", 48, "-d", 4, "--bidirectional")):
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
        self.refused("design", "-n", 9, "-d", 3, "--bidirectional", "--database", path, says=["8 or 10 ranks"])

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
            for more in ((), ("--bidirectional",)):
                done = harness.run("design", "-n", ranks, "-d", 2, "--database", path, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                if "warning" in done.stderr:
                    damaged.append(ranks)
                    self.assertIn("damaged database", done.stderr)
        self.assertEqual(len(damaged), 1)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), good)

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
        self.refused("design", "-n", 7, "-d", 3, "--bidirectional", says=["6 or 8 ranks", "degree 4"])
        self.refused("design", "-n", 8, "-d", 2, "--size", "1MiB:x", says=["1MiB:x"])
        self.refused("design", "-n", 8, "-d", 2, "--size", "1MiB", "--alpha", "fast", says=["fast"])
        self.refused("design", "-n", 8, "-d", 2, "-c", "broadcast", "--size", "1MiB", says=["broadcast"])
        self.refused("design", "-n", 64, "-d", 4, "-o", self.path("x"), says=["--size", "--pick"])
        self.refused("design", "-n", 64, "-d", 4, "--pick", 99, says=["--pick 99"])
        self.refused("design", "-n", 64, "-d", 4, "--database", self.folder, says=[self.folder])
        self.refused("design", "-n", 64, "-d", 4, "--database", self.path("none"), says=["no such file"])
        self.refused("design", "--all-up-to", 40, "--degrees", "0", says=["degree 0"])
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
