"""What `compare` and `-a auto` choose: best of all rows, chunks that exist, switches, one rank, unnamed networks."""
import json
import re
import unittest

import harness


class Compare(harness.CliTest):
    def test_the_best_is_of_all_rows_with_auto(self):
        question = ["compare", "ring(4)", "-c", "all-reduce", "-a", "uniring,auto", "--size", "1MiB"]
        answer = self.json(*question)
        self.assertEqual([row["algorithm"] for row in answer["rows"]], ["auto", "uniring"])
        self.assertEqual([row["best"] for row in answer["rows"]], [True, False])
        self.assertEqual({one["algorithm"] for one in answer["best_by_size"]}, {"auto"})
        text = self.ok(*question)
        self.assertIn("best: auto at every size", text)
        self.assertRegex(text, r"(?m)^\* auto: bfb +1MiB")
        self.assertRegex(text, r"(?m)^  uniring +1MiB")

    def test_rows_are_sorted_within_each_size_and_keep_their_order_where_equal(self):
        answer = self.json("compare", "torus(3,3)", "-c", "all-reduce", "-a", "direct,ring,bfb,bfb,ten", "--size",
                           "1GiB,1KiB")
        self.assertEqual([row["size_bytes"] for row in answer["rows"]], [1 << 30] * 5 + [1 << 10] * 5)
        for rows in (answer["rows"][:5], answer["rows"][5:]):
            times = [row["time_s"] for row in rows]
            self.assertEqual(times, sorted(times))
            self.assertEqual([row["best"] for row in rows], [True] + [False] * 4)

    def test_progress_is_for_terminals(self):
        self.assertEqual(harness.run("compare", "torus(4,4)", "-c", "all-reduce").stderr, "")


class Chunks(harness.CliTest):
    SWITCHED = "unwind(switch2d(4,8,bw=[50,450]GB/s),degree=3)"

    def test_auto_and_bfb_make_chunks_that_exist_and_are_worth_their_messages(self):
        for algorithm in ("auto", "bfb"):
            made = self.json("synth", self.SWITCHED, "-c", "all-reduce", "-a", algorithm, "--size", "64KiB")
            self.assertLessEqual(made["chunks"] * 4, 64 * 1024 // 32)
        made = self.json("synth", self.SWITCHED, "-c", "all-gather", "-a", "bfb", "--size", "64KiB")
        # A sixteenth of 0.5 us on the slowest link, 50/3 GB/s, is 520 bytes of a shard of 2 KiB.
        self.assertLessEqual(made["chunks"], 3)
        self.assertIn("would take", made["remark"])
        self.assertGreater(made["chunk_loss"], 0)
        best = min(self.json("synth", self.SWITCHED, "-c", "all-gather", "-a", "bfb", "--size", "64KiB",
                             "--chunks", chunks)["time_s"] for chunks in (1, 2, 3))
        self.assertEqual(made["time_s"], best)

    def test_chunks_below_one_element_are_refused(self):
        for command in (["synth", "ring(4)", "-c", "all-gather", "-a", "ten"],
                        ["compare", "ring(4)", "-c", "all-gather", "-a", "ten,bfb"]):
            for size, dtype, fits in (("1KiB", "float", 64), ("1KiB", "double", 32), ("1KiB", "uint8", 256)):
                self.ok(*command, "--size", size, "--type", dtype, "--chunks", fits)
                self.refused(*command, "--size", size, "--type", dtype, "--chunks", fits + 1,
                             says=[f"--chunks {fits + 1}", "less than an element", f"at most {fits}"])
        self.refused("synth", "ring(4)", "-a", "ten", "--type", "int3", says=["int3"])

    def test_one_chunk_is_never_too_small(self):
        self.assertEqual(self.json("synth", "ring(4)", "-a", "bfb", "--size", "1")["chunks"], 1)


class Switches(harness.CliTest):
    def test_auto_unwinds_by_itself(self):
        for network, collective in (("switch(8)", "all-reduce"), ("switch2d(2,4,bw=[300,25]GB/s)", "all-gather"),
                                    ("switch(4)", "reduce-scatter")):
            made = self.json("synth", network, "-c", collective, "-a", "auto", "--size", "16MiB")
            self.assertIs(made["verified"], True)
            self.assertGreater(made["unwind"]["degree"], 0)
            self.assertGreater(made["efficiency"], 0.6)
            named = self.json("synth", network, "-c", collective, "-a", "auto", "--size", "16MiB", "--unwind", "auto")
            self.assertEqual(named["time_s"], made["time_s"])
            row = self.json("compare", network, "-c", collective, "-a", "auto", "--size", "16MiB")["rows"][0]
            self.assertEqual((row["unwind"]["degree"], row["analytic_s"]), (made["unwind"]["degree"], made["time_s"]))

    def made_of(self, network):
        """The rows of those that make an all-reduce."""
        return [row for row in self.json("compare", network, "-c", "all-reduce")["rows"] if "efficiency" in row]

    def test_what_does_not_reduce_is_refused_once_with_a_command_that_works(self):
        error = self.refused("compare", "switch(65)", "-c", "all-reduce", "-a", "bfb,multitree", code=1,
                             says=["ranks reduce, switches only forward", "--unwind auto"])
        self.assertEqual(len(error.splitlines()), 1)
        rows = self.made_of("switch(4)")
        whole = [row for row in rows if "unwind" not in row]
        self.assertEqual({row["algorithm"] for row in whole}, {"forest", "ten"})
        self.assertGreater(min(row["efficiency"] for row in whole), 0.95)
        self.assertLessEqual({"bfb", "ring", "dbt", "expand"}, {row["algorithm"] for row in rows})
        network = re.search(r"unwind\(\S+degree=\d+\)", error).group()
        self.ok("compare", network, "-c", "all-reduce", "-a", "bfb,multitree")
        error = self.refused("synth", "rfs(2,2,3)", "-c", "all-reduce", "-a", "bfb", code=1)
        network = re.search(r"unwind\(\S+degree=\d+\)", error).group()
        self.ok("synth", network, "-c", "all-reduce", "-a", "bfb")

    def test_switches_that_cannot_be_unwound_say_why(self):
        clos = harness.write_clos(self.path("clos.topo.json"))
        for arguments in (["topo", "show", f'unwind("{clos}",degree=1)'],
                          ["synth", clos, "-c", "all-reduce", "-a", "bfb", "--unwind", "2"]):
            self.refused(*arguments, says=["is linked to switch", "only switches between ranks can be unwound", "direct"])
        self.refused("compare", clos, "-c", "all-reduce", "-a", "bfb,multitree", code=1, says=["is linked to switch"])
        self.assertEqual({row["algorithm"] for row in self.made_of(clos)}, {"forest", "ten"})
        file = self.path("one way.topo.json")
        with open(file, "w") as out:
            json.dump({"format": "tutti-topology", "version": 1, "ranks": 3, "switches": 1,
                       "link_defaults": {"bandwidth": "1GB/s", "alpha": "1us"},
                       "links": [{"from": 0, "to": 3}, {"from": 1, "to": 3}, {"from": 3, "to": 2},
                                 {"from": 2, "to": 0}, {"from": 0, "to": 1}, {"from": 1, "to": 0}]}, out)
        self.refused("topo", "show", f'unwind("{file}",degree=1)', says=["has a link from rank '0' and none back"])
        self.refused("topo", "show", "unwind(switch(4))", says=["degree= is missing, wanted 1 .. 3"])

    def test_degrees_are_searched_to_the_last(self):
        made = self.json("synth", "switch(24)", "-c", "all-gather", "-a", "direct", "--unwind", "auto", "--size", "64KiB")
        tried = {row["degree"]: row["time_s"] for row in made["unwind"]["tried"]}
        best = made["unwind"]["degree"]
        self.assertEqual(tried[best], min(tried.values()))
        for degree in (best - 1, best + 1):
            if 1 <= degree <= 23:
                self.assertIn(degree, tried)


class Edges(harness.CliTest):
    def unnamed(self, ranks):
        file = self.path(f"unnamed{ranks}.topo.json")
        with open(file, "w") as out:
            json.dump({"format": "tutti-topology", "version": 1, "ranks": ranks, "links": [
                {"from": rank, "to": (rank + 1) % ranks, "bandwidth": "1GB/s", "alpha": "1us"}
                for rank in range(ranks if ranks > 1 else 0)]}, out)
        return file

    def test_one_rank_has_no_infinities(self):
        file = self.path("one.sched")
        for collective in ("all-reduce", "all-gather"):
            for command in (["synth", "uniring(1,1)", "-c", collective, "-a", "bfb", "-o", file], ["cost", file],
                            ["sim", file, "--size", "1MiB"], ["verify", file],
                            ["compare", "uniring(1,1)", "-c", collective, "-a", "bfb,ring,auto"],
                            ["synth", "uniring(1,1)", "-c", collective, "-a", "auto"], ["topo", "show", "uniring(1,1)"]):
                text = self.ok(*command)
                self.assertNotRegex(text, r"\b(inf|nan)\b", command)
                printed = harness.run(*command, "--json").stdout
                self.assertNotRegex(printed, r"(?i)\b(inf|infinity|nan)\b")
                for key in ("algbw", "busbw", "efficiency"):
                    self.assertNotIn(f'"{key}": null', printed, command)
                json.loads(printed)

    def test_networks_without_a_name_are_called_so(self):
        network, file = self.unnamed(3), self.path("unnamed.sched")
        for command in (["synth", network, "-c", "all-gather", "-a", "direct", "-o", file], ["cost", file],
                        ["sim", file, "--size", "1MiB"], ["verify", file], ["topo", "show", network],
                        ["compare", network, "-c", "all-gather", "-a", "direct"]):
            text = self.ok(*command)
            self.assertIn("an unnamed network", text, command)
            self.assertNotIn(" on  by", text)

    def test_a_search_without_an_answer_is_no_bad_input(self):
        self.refused("synth", "mesh(3,3)", "-a", "taccl-like", "--time-limit", "0.000001", code=1, says=["no answer in"])


if __name__ == "__main__":
    unittest.main()
