"""--ecmp, --routes and --network of `sim` and `compare`: schedules between ranks over the switches that join them."""
import harness

# Two leaves of two hosts, two spines, links of 1 GB/s and 1 us.
CLOS = "spine_leaf(2,2,2,bw=1GB/s,alpha=1us)"


class Switched(harness.CliTest):
    def test_two_flows_on_one_spine_by_hand(self):
        # Ranks 0, 1 exchange 1 MB shards with 2, 3 in steps of direct sends on bipartite(2): 0 -> 2 and 1 -> 3 leave
        # leaf0 at once. By a spine each a step takes 1 ms + 4 us, by one spine 2 ms + 4 us.
        path = self.synth("bipartite(2,bw=1GB/s,alpha=1us)", "all-to-all", "direct")
        args = ("sim", path, "--size", "4MB", "--network", CLOS)
        pinned = self.json(*args, "--routes", "ffa")["pinned"]
        drawn = self.json(*args, "--ecmp", "1-40")["ecmp"]
        self.assertEqual(drawn["seeds"], list(range(1, 41)))
        self.assertEqual(len(drawn["times_s"]), 40)
        self.assertAlmostEqual(drawn["mean_s"], sum(drawn["times_s"]) / 40, places=12)
        self.assertEqual(max(drawn["times_s"]), drawn["worst_s"])
        self.assertEqual(drawn["times_s"][drawn["worst_seed"] - 1], drawn["worst_s"])
        self.assertGreater(drawn["half_width_s"], 0)
        # No draw is faster than pinned, some is, and some collides.
        self.assertAlmostEqual(min(drawn["times_s"]), pinned["time_s"], delta=1e-9)
        self.assertGreater(drawn["worst_s"], 1.2 * pinned["time_s"])

    def test_a_ring_of_ranks_pinned_and_by_chance(self):
        # Each leaf is left by one flow: no two meet. 1 MB a step and link at 1 GB/s, 3 steps of 1 ms and 4 alphas.
        path = self.synth("ring(4,bw=1GB/s,alpha=1us)", "all-gather", "uniring")
        out = self.json("sim", path, "--size", "4MB", "--network", CLOS, "--ecmp", "3,5-7", "--routes", "ffa")
        self.assertEqual(out["network"], CLOS)
        self.assertEqual(out["ecmp"]["seeds"], [3, 5, 6, 7])
        for time_s in (*out["ecmp"]["times_s"], out["pinned"]["time_s"]):
            self.assertAlmostEqual(time_s, 3 * (1e-3 + 4e-6), places=9)
        self.assertEqual(out["pinned"]["most_flows_on_a_link"], 1)
        self.assertAlmostEqual(out["pinned"]["busbw"], 3e6 / out["pinned"]["time_s"], delta=1)
        # Two rings, which give to both neighbours, share the hosts' links: twice as long.
        text = self.ok("sim", path, "--size", "4MB,8MB", "--network", CLOS, "--ecmp", "3", "--routes", "ffa")
        for words in ("over " + CLOS, "ECMP of 1 seed", "ECMP mean", "ffa", "3.012 ms", "6.012 ms"):
            self.assertIn(words, text)

    def test_compare_ranks_by_what_the_switches_give(self):
        args = ("compare", "torus(2,4,bw=[50,25]GB/s)", "-c", "all-gather", "-a", "bfb,ring,direct,ten", "--size", "64MiB", "--network",
                "spine_leaf(4,2,2,oversubscription=2)")
        plain = self.json(*args[:-2])
        out = self.json(*args, "--ecmp", "1-10", "--routes", "ffa")
        self.assertEqual(out["network"], "spine_leaf(4,2,2,oversubscription=2)")
        rows = {row["algorithm"]: row for row in out["rows"]}
        self.assertIn("wanted one of steps", rows["ten"]["error"])
        times = [row["pinned"]["time_s"] for row in out["rows"] if "pinned" in row]
        self.assertEqual(times, sorted(times))
        self.assertTrue(out["rows"][0]["best"])
        self.assertNotIn("best_by_size", out)
        self.assertIn("best_by_size", plain)
        for row in plain["rows"]:
            # What is simulated on the schedules' own network stays.
            if row["algorithm"] != "ten":
                self.assertEqual(row["time_s"], rows[row["algorithm"]]["time_s"])
                self.assertEqual(len(rows[row["algorithm"]]["ecmp"]["times_s"]), 10)
        self.assertEqual(harness.run(*args, "--ecmp", "1-10", "-j", "1", "--json").returncode, 0)

    def test_same_draws_whatever_the_threads(self):
        path = self.synth("complete(8)", "all-to-all", "direct")
        args = ("sim", path, "--size", "1MiB", "--network", "fat_tree(4,oversubscription=2)", "--ecmp", "1-20")
        self.refused(*args, says=("the schedule is of 8 ranks, fat_tree(4,oversubscription=2) has 16",))
        args = (*args[:5], "spine_leaf(4,4,2)", *args[6:])
        self.assertEqual(self.ok(*args, "-j", "1", "--json"), self.ok(*args, "-j", "4", "--json"))

    def test_faults(self):
        ring = self.synth("ring(4)", "all-gather", "uniring")
        through = self.synth(CLOS, "all-gather", "ring", "through.sched")
        timed = self.synth("mesh(2,2,bw=[50,25]GB/s)", "all-gather", "ten", "timed.sched")
        routing = self.path("t.routes")
        self.ok("synth", "ring(4)", "-c", "all-to-all", "-a", "ewsp", "-o", routing)
        sim = ("--size", "1MiB", "--network", CLOS)
        for arguments, says in (
                ((ring, "--size", "1MiB", "--ecmp", "1"), "need --network"),
                ((ring, *sim), "--network goes with --ecmp or --routes"),
                ((ring, *sim, "--ecmp", "1-"), "--ecmp: '1-', wanted seeds such as 7 or 1,2,5 or 1-10"),
                ((ring, *sim, "--ecmp", "5-1"), "'5-1'"),
                ((ring, *sim, "--ecmp", "1,,2"), "''"),
                ((ring, *sim, "--ecmp", "-1"), "'-1'"),
                ((ring, *sim, "--ecmp", "99999999999999999999"), "'99999999999999999999'"),
                ((ring, *sim, "--ecmp", "1-1001"), "more than 1000 seeds"),
                ((ring, *sim, "--ecmp", "0-18446744073709551615"), "more than 1000 seeds"),
                ((ring, *sim, "--routes", "pfa"), "--routes"),
                ((ring, *sim[:3], "ring(4)", "--ecmp", "1"), "has no switches"),
                ((ring, *sim[:3], "spine_leaf(2,2,", "--ecmp", "1"), "column"),
                ((ring, *sim[:3], "rail(2,2)", "--ecmp", "1"), "no path through switches from box0.gpu1 to box1.gpu0"),
                ((ring, *sim[:3], "spine_leaf(2,2,4)", "--ecmp", "1"), "is of 4 ranks"),
                ((through, *sim, "--ecmp", "1"), "names its paths through the switches"),
                ((timed, *sim, "--ecmp", "1"), "wanted one of steps"),
                ((routing, *sim, "--ecmp", "1"), "is for schedules")):
            with self.subTest(arguments=arguments):
                self.refused("sim", *arguments, says=(says,))
        self.refused("compare", "ring(4)", "--network", CLOS, says=("--network goes with",))
        self.refused("compare", "ring(4)", "--network", CLOS, "--ecmp", "1", "--html", self.path("p.html"),
                     says=("--html shows no times of --ecmp",))


if __name__ == "__main__":
    harness.main()
