"""The commands as their user runs them, over the same schedule from synth to run."""
import csv
import json
import os
import unittest
import xml.etree.ElementTree

import harness

KEYS = {"topology", "nodes", "ranks", "links", "degree", "diameter"}


class Commands(harness.CliTest):
    def test_topo_show(self):
        shown = self.json("topo", "show", "torus(4,4)")
        self.assertLessEqual(KEYS, shown.keys())
        self.assertEqual((shown["ranks"], shown["links"], shown["degree"], shown["diameter"]), (16, 64, 4, 4))
        self.assertEqual(shown["bounds"]["all-gather"]["tb_bound"], {"num": 15, "den": 16, "value": 0.9375})
        self.assertEqual(shown["bounds"]["all-gather"]["tl_bound"], 4)
        text = self.ok("topo", "show", "torus(4,4)")
        self.assertIn("vertex-transitive", text)
        for collective in shown["bounds"]:
            self.assertIn(collective, text)

    def test_topo_show_knows_distance_regular_networks(self):
        shown = self.json("topo", "show", "distreg(line_heawood)")
        self.assertEqual(shown["intersection_array"], {"b": [4, 2, 2], "c": [1, 1, 2]})
        self.assertEqual((shown["moore_steps"], shown["moore_steps_bidirectional"]), (2, 3))
        text = self.ok("topo", "show", "distreg(line_heawood)")
        for part in ("distance-regular, {4,2,2;1,1,2}", "2 (TL*), 3 with each link both ways (TL**)"):
            self.assertIn(part, text)
        for other in ("torus(3,4)", "genkautz(2,8)", "switch(4)", "uniring(1,1)", "biring(4,5)"):
            self.assertNotIn("intersection_array", self.json("topo", "show", other))
        self.assertNotIn("moore_steps_bidirectional", self.json("topo", "show", "genkautz(2,8)"))
        self.assertNotIn("moore_steps", self.json("topo", "show", "mesh(3,3)"))

    def test_topo_list_names_the_members_of_families(self):
        text = self.ok("topo", "list")
        families = {family["name"]: family for family in self.json("topo", "list")["families"]}
        members = [member["name"] for member in families["distreg"]["members"]]
        self.assertEqual(len(members), 15)
        for member in members:
            self.assertIn(f"distreg({member})", text)
        self.assertNotIn("members", families["torus"])

    def test_expression_and_file_are_the_same_network(self):
        path = self.path("t.json")
        self.ok("topo", "show", "without(torus(3,3,3),links=3,seed=7)", "-o", path)
        by_file, by_expression = (self.json("synth", t, "-a", "bfb") for t in
                                  (path, "without(torus(3,3,3),links=3,seed=7)"))
        self.assertEqual(by_file["tb"], by_expression["tb"])

    def test_symmetric_schedules_go_through_every_command(self):
        path = self.path("s.sched")
        for collective in ("all-gather", "reduce-scatter", "all-reduce"):
            made = self.json("synth", "torus(3,4)", "-c", collective, "-a", "bfb", "--symmetric", "-o", path)
            whole = self.json("synth", "torus(3,4)", "-c", collective, "-a", "bfb")
            for key in ("tl", "tl_bound", "tb", "tb_bound", "chunks", "time_s", "bound_s", "diameter"):
                self.assertEqual(made[key], whole[key], key)
            self.assertEqual((made["symmetric"], made["verified"]), (True, True))
            self.assertEqual(made["transfers"], 12 * made["transfers_of_one_rank"])
            judged = self.json("verify", path, "--topology", "torus(3,4)")
            self.assertEqual((judged["verified"], judged["deliveries"], judged["diameter"]),
                             (True, made["transfers"], 3))
            cost = self.json("cost", path)
            self.assertEqual((cost["tb"], cost["tl"]), (made["tb"], made["tl"]))
            self.assertEqual(len(self.json("cost", path, "--size", "1KB,1MB")["rows"]), 2)
            self.assertEqual(self.json("run", path, "--size", "64KiB", "--iters", "1")["wrong"], 0)
            self.assertGreater(self.json("sim", path, "--size", "1MiB")["time_s"], 0)
        self.assertIn("proven correct", self.ok("verify", path))
        self.assertIn("symmetric", self.ok("cost", path))

    def test_symmetric_by_itself_where_the_whole_does_not_fit(self):
        path = self.path("large.sched")
        text = self.ok("synth", "torus(50,50,50)", "-a", "bfb", "-o", path)
        self.assertIn("symmetric form, since all", text)
        self.assertIn("124999/125000", text)
        self.assertIn("proven correct", self.ok("verify", path))
        for command in (["sim", path, "--size", "1MiB"], ["run", path, "--size", "1MiB"],
                        ["lower", path, "--to", "plan", "-o", self.path("p")]):
            self.refused(*command, says=["large.sched", "at most 67108864"])

    def test_synth_reports_what_it_made(self):
        made = self.json("synth", "hypercube(4)", "-c", "all-reduce", "-a", "bfb", "--size", "1GiB")
        for key in KEYS | {"collective", "algorithm", "seed", "chunks", "steps", "transfers", "tl",
                           "tl_bound", "tb", "tb_bound", "time_s", "bound_s", "efficiency", "algbw", "busbw",
                           "synthesis_s", "peak_rss_bytes", "verified"}:
            self.assertIn(key, made)
        self.assertEqual(made["tl"], 8)
        self.assertEqual((made["tb"]["num"], made["tb"]["den"]), (15, 8))
        self.assertIs(made["verified"], True)
        self.assertLessEqual(made["efficiency"], 1)

    def test_same_seed_same_bytes_on_any_thread_count(self):
        one = self.synth("genkautz(4,60)", "all-reduce", "bfb", "one.sched", "-j", "1")
        two = self.synth("genkautz(4,60)", "all-reduce", "bfb", "two.sched", "-j", "2")
        with open(one, "rb") as a, open(two, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_a_streamed_file_is_the_one_made_in_memory(self):
        whole = self.synth("mesh(9,7)", "all-gather", "ten", "whole.sched")
        streamed = self.synth("mesh(9,7)", "all-gather", "ten", "streamed.sched", "--stream")
        with open(whole, "rb") as a, open(streamed, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual(self.json("verify", streamed, "--stream"), self.json("verify", streamed))
        made = self.json("synth", "mesh(9,7)", "-a", "ten")
        counted = self.json("synth", "mesh(9,7)", "-a", "ten", "--cost-only")
        for key in ("steps", "transfers", "tl", "tb", "time_s", "efficiency"):
            self.assertEqual(counted[key], made[key], key)
        self.assertEqual((counted["streamed"], counted["verified"]), (True, None))

    def test_policies_and_the_final_pass(self):
        network = "unwind(rfs(2,4,2,bw=[200,100,50]GB/s),degree=1)"
        times = {}
        for policy in ("arrival", "rarest", "farthest", "random"):
            for more in ([], ["--no-final-pass"], ["--wait", "never"]):
                made = self.json("synth", network, "-a", "ten", "--policy", policy, "--chunks", "2",
                                 "--tries", "1", *more)
                self.assertTrue(made["verified"])
                times[policy, *more] = made["time_s"]
            self.assertLessEqual(times[policy,], times[policy, "--no-final-pass"])
        best = self.json("synth", network, "-a", "ten", "--chunks", "2")["time_s"]
        self.assertLess(best, times["random", "--no-final-pass"])
        self.assertIn("arrival (the chunk that came first)", " ".join(self.ok("synth", "--help").split()))

    def test_the_number_of_chunks_by_predicted_time(self):
        for size in ("1KiB", "1GiB"):
            arguments = ["synth", "mesh(3,4)", "-c", "broadcast", "-a", "ten", "--size", size]
            best = self.json(*arguments, "--chunks", "auto")
            for chunks in (1, 2, 3):
                self.assertLessEqual(best["time_s"], self.json(*arguments, "--chunks", chunks)["time_s"])
        self.assertGreater(best["chunks"], 3)

    def test_unwinding_switches(self):
        path = self.path("unwound.sched")
        few = self.json("synth", "switch(6)", "-a", "ten", "--unwind", "auto", "--size", "1KiB")
        self.assertEqual([row["degree"] for row in few["unwind"]["tried"]], [1, 2, 4, 5])
        times = [row["time_s"] for row in few["unwind"]["tried"]]
        self.assertEqual(few["time_s"], min(times))
        self.assertEqual(few["unwind"]["degree"], 5)  # one alpha
        made = self.json("synth", "switch(6)", "-a", "ten", "--unwind", "2", "-o", path)
        self.assertEqual(made["topology"], "unwind(switch(6),degree=2)")
        self.assertEqual(made["unwind"], {"degree": 2, "tried": []})
        # The file holds the network that it is for.
        self.assertTrue(self.json("verify", path, "--topology", "unwind(switch(6),degree=2)")["verified"])
        self.assertGreater(self.json("sim", path, "--size", "1MiB")["time_s"], 0)
        self.ok("lower", path, "--to", "plan", "-o", self.path("plan"))
        text = self.ok("synth", "switch(6)", "-c", "all-reduce", "-a", "bfb", "--unwind", "auto", "-o", path)
        self.assertIn("unwound with degree", text)
        self.assertIn("times are of links between ranks", text)
        self.assertIn("unwind(switch(6),degree=", text)
        # A file of a network with switches, and a network without any.
        network = self.path("two switches.topo.json")
        self.ok("topo", "show", "switch2d(2,3)", "-o", network)
        made = self.json("synth", network, "-a", "ten", "--unwind", "auto")
        self.assertIn(made["unwind"]["degree"], (1, 2))
        self.assertEqual(self.json("synth", "ring(4)", "-a", "ten", "--unwind", "auto")["unwind"]["degree"], 0)

    def test_json_and_binary_hold_the_same_schedule(self):
        for name in ("s.sched", "s.sched.json"):
            path = self.synth("torus(3,3)", "reduce-scatter", "bfb", name)
            cost = self.json("cost", path)
            self.assertEqual((cost["tb"]["num"], cost["tb"]["den"]), (8, 9))
            self.assertTrue(self.json("verify", path)["verified"])

    def test_a_wrong_schedule_is_not_proven(self):
        path = self.synth("ring(5)", "all-gather", "bfb", "s.sched.json")
        with open(path) as file:
            schedule = json.load(file)
        del schedule["transfers"][3]
        with open(path, "w") as file:
            json.dump(schedule, file)
        answer = self.json("verify", path, code=1)
        self.assertIs(answer["verified"], False)
        self.assertGreater(len(answer["violations"]), 0)
        done = harness.run("verify", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("NOT correct", done.stdout)

    def test_sim_agrees_with_cost_and_eager_is_not_later(self):
        path = self.synth("torus(4,4)", "all-reduce", "bfb")
        analytic = self.json("cost", path, "--size", "64MiB")["time_s"]
        times = {}
        for model in ("held", "pipelined"):
            for mode in ("barrier", "eager"):
                sim = self.json("sim", path, "--size", "64MiB", "--link-model", model, "--mode", mode)
                times[model, mode] = sim["time_s"]
                self.assertLessEqual(sim["efficiency"], 1 + 1e-12)
            self.assertAlmostEqual(times[model, "barrier"] / analytic, 1, delta=1e-9)
            self.assertLessEqual(times[model, "eager"], times[model, "barrier"])

    def test_sim_shows_use_over_time(self):
        path = self.synth("uniring(1,4)", "all-gather", "uniring")
        sim = self.json("sim", path, "--size", "4MiB", "--bins", "3")
        self.assertEqual(len(sim["over_time"]), 3)
        for part in sim["over_time"]:  # all four links carry one shard a step, all the time
            self.assertAlmostEqual(part["links_busy"], 1, delta=1e-9)
            self.assertAlmostEqual(part["in_flight"], 4, delta=1e-6)
        self.assertIn("in flight", self.ok("sim", path, "--size", "4MiB", "--bins", "3"))

    def test_traces_are_json(self):
        path = self.synth("ring(4)", "all-reduce", "ring")
        for command in ("sim", "run"):
            trace = self.path(command + ".json")
            self.ok(command, path, "--size", "64KiB", "--trace", trace)
            with open(trace) as file:
                events = json.load(file)["traceEvents"]
            self.assertTrue(any(event["ph"] == "X" for event in events))

    def test_compare_has_a_row_an_algorithm(self):
        answer = self.json("compare", "dgx1", "-c", "all-reduce", "--size", "1MiB,1GiB")
        rows = [row for row in answer["rows"] if "error" not in row]
        self.assertGreaterEqual(len({row["algorithm"] for row in rows}), 5)
        for row in rows:
            self.assertTrue(row["verified"])
            self.assertLessEqual(row["efficiency"], 1 + 1e-12)
            self.assertGreater(row["time_s"], 0)
        # torus-dims needs a grid, and says so.
        self.assertTrue(any("error" in row and row["algorithm"] == "torus-dims" for row in answer["rows"]))

    def test_compare_unwinds_switches_for_each_algorithm(self):
        network = "switch2d(2,3)"
        answer = self.json("compare", network, "-c", "all-reduce", "-a", "ten,ring", "--size", "1KiB,1MiB",
                           "--unwind", "auto")
        self.assertEqual(answer["topology"], network)
        self.assertEqual(len(answer["rows"]), 4)
        for row in answer["rows"]:
            self.assertTrue(row["verified"])
            self.assertEqual(row["unwind"]["degree"],
                             min(row["unwind"]["tried"], key=lambda one: one["time_s"])["degree"])
            self.assertEqual(row["analytic_s"], min(one["time_s"] for one in row["unwind"]["tried"]))
            self.assertLessEqual(row["bound_s"], row["time_s"])
        self.assertTrue(answer["best_by_size"])
        # What synth makes of the same.
        made = self.json("synth", network, "-c", "all-reduce", "-a", "ten", "--size", "1KiB", "--unwind", "auto")
        self.assertEqual(answer["rows"][0]["analytic_s"], made["time_s"])
        self.assertIn("degree\n", self.ok("compare", network, "-a", "ten", "--unwind", "auto"))
        # A degree for all; routers and auto work on that network, too.
        answer = self.json("compare", "switch(4)", "-c", "all-to-all", "-a", "ten,auto,ewsp", "--unwind", "3")
        self.assertEqual(answer["topology"], "unwind(switch(4),degree=3)")
        self.assertEqual([row["algorithm"] for row in answer["rows"]], ["ten", "auto", "ewsp"])
        self.assertNotIn("unwind", answer["rows"][0])
        # Without being asked, where an algorithm needs links between ranks.
        answer = self.json("compare", network, "-c", "all-reduce", "-a", "forest,ring,torus-dims", "--size", "1MiB")
        forest, ring, grid = answer["rows"]
        self.assertNotIn("unwind", forest)
        self.assertGreaterEqual(ring["unwind"]["degree"], 1)
        self.assertTrue(ring["verified"])
        self.assertLessEqual(ring["bound_s"], ring["time_s"])
        self.assertIn("'torus-dims' needs a grid", grid["error"])
        # Without switches there is nothing to unwind.
        self.assertNotIn("unwind", self.json("compare", "ring(4)", "-a", "ten", "--unwind", "auto")["rows"][0])

    def test_compare_chooses_numbers_of_chunks(self):
        arguments = ["compare", "mesh(3,4)", "-c", "broadcast", "-a", "ten,bfb", "--size", "1GiB"]

        def rows_of(*more):
            return {row["algorithm"]: row for row in self.json(*arguments, *more)["rows"]}

        rows = rows_of("--chunks", "auto")
        self.assertGreater(rows["ten"]["chunks"], 3)
        self.assertLess(rows["ten"]["time_s"], rows_of("--chunks", "3")["ten"]["time_s"])
        self.assertEqual(rows["bfb"]["chunks"], rows_of()["bfb"]["chunks"])  # takes what it needs
        made = self.json("synth", "mesh(3,4)", "-c", "broadcast", "-a", "ten", "--size", "1GiB", "--chunks", "auto")
        self.assertEqual((rows["ten"]["chunks"], rows["ten"]["analytic_s"]), (made["chunks"], made["time_s"]))

    def test_schedules_are_made_for_the_link_model(self):
        arguments = ["mesh(3,3)", "-c", "all-gather", "-a", "ten", "--chunks", "16", "--size", "64KiB",
                     "--link-model"]
        held, pipelined = (self.json("synth", *arguments, model)["time_s"] for model in ("held", "pipelined"))
        self.assertLess(pipelined, held)
        row = self.json("compare", *arguments, "pipelined")["rows"][0]
        self.assertEqual(row["analytic_s"], pipelined)
        self.assertAlmostEqual(row["time_s"], pipelined, delta=1e-10)  # whole picoseconds a transfer

    def test_compare_says_where_the_best_changes(self):
        for sizes, mode in (("1KiB,1MiB,1GiB", "barrier"), ("64KiB,256MiB", "eager")):
            answer = self.json("compare", "mesh(3,3)", "-c", "all-reduce", "--size", sizes, "--mode", mode)
            for key, column in (("best_by_size", "time_s"), ("best_by_size_analytic", "analytic_s")):
                ranges = answer[key]
                self.assertGreater(len(ranges), 1)
                self.assertEqual((ranges[0]["from_bytes"], ranges[-1]["to_bytes"]), (1, None))
                for one, next_one in zip(ranges, ranges[1:]):
                    self.assertEqual(one["to_bytes"] + 1, next_one["from_bytes"])
                    self.assertNotEqual(one["algorithm"], next_one["algorithm"])
                for size in {row["size_bytes"] for row in answer["rows"]}:
                    rows = {row["algorithm"]: row[column] for row in answer["rows"]
                            if row["size_bytes"] == size and "error" not in row}
                    best = next(one["algorithm"] for one in ranges
                                if one["to_bytes"] is None or size <= one["to_bytes"])
                    self.assertLessEqual(rows[best], min(rows.values()) * (1 + 1e-6), (size, key))
        self.assertRegex(self.ok("compare", "mesh(3,3)", "-c", "all-reduce"), r"best.*: .*bfb up to .*iB, ")
        self.assertIn("best: bfb at every size", self.ok("compare", "ring(8)", "-c", "all-reduce", "-a", "bfb,bruck"))

    def test_auto_takes_the_best(self):
        path = self.path("auto.sched")
        for network, collective in (("mesh(2,3)", "all-reduce"), ("torus(2,4,bw=[20,50]GB/s)", "all-gather"),
                                    ("ring(5)", "all-to-all")):
            for size in ("1KiB", "16MiB"):
                made = self.json("synth", network, "-c", collective, "-a", "auto", "--size", size, "-o", path)
                self.assertEqual(made["algorithm"], made["chosen"])
                self.assertIs(made["verified"], True)
                self.assertEqual(self.json("cost", path)["algorithm"], made["chosen"])
                candidates = {one["algorithm"]: one for one in made["candidates"]}
                self.assertEqual(candidates[made["chosen"]]["time_s"], made["time_s"])
                rows = self.json("compare", network, "-c", collective, "--size", size)["rows"]
                for row in rows:
                    self.assertIn(row["algorithm"], candidates)
                    if "error" not in row:
                        self.assertLessEqual(made["time_s"], row["analytic_s"], row["algorithm"])
                row = self.json("compare", network, "-c", collective, "-a", "auto", "--size", size)["rows"][0]
                self.assertEqual((row["algorithm"], row["chosen"]), ("auto", made["chosen"]))
        text = self.ok("synth", "torus(4,4)", "-c", "all-gather", "-a", "auto")
        self.assertIn("chosen: bfb; no schedule in steps is faster: it meets their bound", text)
        self.assertIn("ring: takes at least", text)
        large = self.json("synth", "torus(50,50,50)", "-a", "auto")
        self.assertEqual((large["chosen"], large["symmetric"]), ("bfb", True))

    def test_auto_is_one_of_the_names(self):
        for command in ("synth", "compare"):
            self.refused(command, "ring(4)", "-a", "nope", says=["unknown algorithm 'nope'; accepted are bfb", ", auto"])

    def test_auto_says_why_nothing_fits(self):
        error = self.refused("synth", "fat_tree(16)", "-c", "all-reduce", "-a", "auto", code=1,
                             says=["no algorithm makes this", "bfb: ", "is linked to switch", "forest: ", "ten: ",
                                   "taccl-like: runs on request"])
        self.assertGreater(len(error.splitlines()), 5)

    def test_searches_say_what_they_have_proven(self):
        made = self.json("synth", "mesh(2,3)", "-a", "taccl-like", "--time-limit", "50")
        self.assertEqual(made["gap"], 0)
        self.assertIn("proven: no schedule takes fewer than", made["remark"])
        self.refused("synth", "mesh(3,3)", "-a", "taccl-like", "--time-limit", "0.000001", code=1, says=["no answer in"])

    def test_the_least_bandwidth_of_so_many_steps_is_proven(self):
        made = self.json("synth", "mesh(2,3)", "-c", "all-gather", "-a", "step-lp")
        self.assertIn("no all-gather of", made["remark"])
        for one, next_one in zip(made["frontier"], made["frontier"][1:]):
            self.assertLess(one["tl"], next_one["tl"])
            self.assertGreater(one["tb"]["value"], next_one["tb"]["value"])
        self.assertIn("least TB", self.ok("synth", "mesh(2,3)", "-c", "all-gather", "-a", "step-lp"))
        self.refused("synth", "ring(6)", "-a", "step-lp", "--steps", 2, code=1, says=["2 steps are too few"])

    def test_switches_that_reduce(self):
        plain = self.json("synth", "switch(8)", "-c", "all-reduce", "-a", "forest")
        path = self.path("sums.sched")
        sums = self.json("synth", "switch(8,reduces=true)", "-c", "all-reduce", "-a", "forest", "-o", path)
        self.assertLess(sums["time_s"], 0.6 * plain["time_s"])
        self.ok("verify", path)
        self.ok("sim", path, "--size", "1GiB")
        self.refused("lower", path, "--to", "mscclpp", "-o", self.path("p.json"), says=["without reduces="])

    def test_lower_writes_xml_that_passes_its_checker(self):
        path = self.synth("dgx1", "all-reduce", "bfb")
        for dialect in ("msccl", "executor-nccl", "rccl"):
            xml_path = self.path(dialect + ".xml")
            self.ok("lower", path, "--to", "msccl-xml", "--dialect", dialect, "-o", xml_path)
            root = xml.etree.ElementTree.parse(xml_path).getroot()
            self.assertEqual((root.tag, root.get("ngpus"), root.get("coll")), ("algo", "8", "allreduce"))
            self.assertTrue(self.json("verify", xml_path, "--dialect", dialect)["verified"])
            step = root.find(".//step[@type='r']")
            step.set("srcoff" if step.get("dstoff") is None else "dstoff", "0" if step.get("dstoff") != "0" else "1")
            with open(xml_path, "wb") as file:
                file.write(xml.etree.ElementTree.tostring(root))
            self.json("verify", xml_path, "--dialect", dialect, code=1)

    def test_run_checks_every_byte(self):
        for collective, algorithm in [("all-reduce", "ring"), ("all-reduce", "bfb"), ("all-gather", "bfb"),
                                      ("reduce-scatter", "bfb"), ("broadcast", "direct"),
                                      ("all-to-all", "direct"), ("reduce", "dbt")]:
            path = self.synth("hypercube(3)", collective, algorithm)
            for dtype, op in [("float", "sum"), ("half", "max"), ("int32", "prod"), ("bfloat16", "avg")]:
                answer = self.json("run", path, "--size", "100KB", "--type", dtype, "--op", op, "-n", "2")
                self.assertEqual(answer["rows"][0]["wrong"], 0, (collective, dtype, op))

    def test_run_prints_the_columns_of_nccl_tests(self):
        path = self.synth("ring(4)", "all-reduce", "ring")
        text = self.ok("run", path, "--size", "1MiB,4MiB", "-n", "2")
        rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        self.assertEqual([row[0] for row in rows], ["1048576", "4194304"])
        self.assertEqual(rows[0][1:5], ["262144", "float", "sum", "-1"])
        self.assertEqual(len(rows[0]), 13)
        self.assertIn("Out of bounds values : 0 OK", text)

    def test_all_to_allv_takes_the_matrix_file(self):
        matrix = self.path("demand.csv")
        with open(matrix, "w", newline="") as file:
            csv.writer(file).writerows([[(3 * s + d) * 1000 for d in range(4)] for s in range(4)])
        path = self.synth("ring(4)", "all-to-allv", "direct", "v.sched", "--demand", matrix)
        self.assertTrue(self.json("verify", path)["verified"])

    def test_every_command_has_help_with_an_example(self):
        for command in (["topo", "show"], ["topo", "list"], ["synth"], ["verify"], ["cost"], ["sim"],
                        ["compare"], ["lower"], ["run"], ["docs", "man"]):
            text = self.ok(*command, "--help")
            self.assertIn("Example:", text)
        self.assertRegex(self.ok("--version"), r"tutti \d+\.\d+\.\d+")

    def test_docs_come_from_the_flags(self):
        self.ok("docs", "man", "-o", self.path("man1"))
        self.assertIn("tutti-synth.1", os.listdir(self.path("man1")))
        completion = self.path("tutti.bash")
        with open(completion, "w") as file:
            file.write(self.ok("docs", "completion"))
        script = (f"source {completion}; COMP_WORDS=(tutti synth --ch); COMP_CWORD=2; _tutti; "
                  "echo ${COMPREPLY[@]}")
        done = harness.subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "--chunks")


if __name__ == "__main__":
    unittest.main()
