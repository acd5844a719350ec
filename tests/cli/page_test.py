"""--html: the data of pages is what --json says, whole or not at all, and the committed page is that of its sources."""
import base64
import hashlib
import json
import os
import pathlib
import random
import re
import unittest
import xml.etree.ElementTree

import harness
from harness import CliTest

WEB = pathlib.Path(__file__).resolve().parent.parent.parent / "web"


class Pages(CliTest):
    def page(self, *arguments):
        path = self.path("page.html")
        answer = self.json(*arguments, "--html", path)
        return harness.page_data(path), answer, path

    def test_synth_shows_what_it_printed(self):
        data, answer, path = self.page("synth", "dgx1", "-c", "all-reduce", "-a", "bfb", "--size", "1MiB")
        schedule = data["schedules"][0]
        self.assertEqual(schedule["transfers_total"], answer["transfers"])
        self.assertEqual(len(schedule["transfers"]["link"]), answer["transfers"])
        self.assertAlmostEqual(schedule["simulation"]["time_ps"] / 1e12, answer["time_s"], delta=1e-12)
        self.assertAlmostEqual(schedule["bound_ps"] / 1e12, answer["bound_s"], delta=1e-12)
        self.assertTrue(schedule["verified"])
        self.assertEqual(data["networks"][0]["links_total"], answer["links"])
        self.assertLess(os.path.getsize(path), 400_000)

    def test_the_same_bytes_twice(self):
        pages = []
        for threads in (1, 2):
            path = self.path(f"{threads}.html")
            self.ok("synth", "torus(3,3)", "-c", "all-gather", "-a", "bfb", "-j", threads, "--html", path)
            pages.append(pathlib.Path(path).read_bytes())
        self.assertEqual(pages[0], pages[1])

    def test_sim_shows_every_size(self):
        schedule = self.synth("torus(3,3)", "all-gather", "bfb")
        data, answer, _ = self.page("sim", schedule, "--size", "1MiB,1GiB")
        self.assertEqual([s["size_bytes"] for s in data["schedules"]], [1 << 20, 1 << 30])
        for shown, row in zip(data["schedules"], answer["rows"]):
            self.assertAlmostEqual(shown["simulation"]["time_ps"] / 1e12, row["time_s"], delta=1e-12)
            self.assertEqual(len(shown["messages"]["link"]), row["messages"])
            self.assertIsNone(shown["verified"])

    def test_verify_shows_what_is_wrong(self):
        whole = self.synth("ring(4)", "all-gather", "bfb", "s.json")
        data, _, _ = self.page("verify", whole)
        self.assertTrue(data["schedules"][0]["verified"])
        file = json.loads(pathlib.Path(whole).read_text())
        file["transfers"].pop()
        broken = self.path("broken.json")
        pathlib.Path(broken).write_text(json.dumps(file))
        page = self.path("broken.html")
        answer = self.json("verify", broken, "--html", page, code=1)
        shown = harness.page_data(page)["schedules"][0]
        self.assertFalse(shown["verified"])
        self.assertEqual(shown["faults_total"], answer["violation_count"])
        self.assertEqual(shown["faults"][0]["message"], answer["violations"][0]["message"])

    def test_topo_show_holds_every_limit_with_its_cut(self):
        data, answer, _ = self.page("topo", "show", "mesh(2,3)")
        self.assertEqual({limit["collective"] for limit in data["limits"]}, set(answer["bounds"]))
        for limit in data["limits"]:
            self.assertEqual(limit["bounds"]["reason"], answer["bounds"][limit["collective"]]["reason"])
            self.assertEqual(limit["bounds"]["steps"], answer["bounds"][limit["collective"]]["tl_bound"])
        self.assertEqual(data["networks"][0]["grid"], {"dims": [2, 3], "wraps": False})

    def test_large_networks_are_groups(self):
        data, _, path = self.page("topo", "show", "torus(80,80)")
        self.assertEqual(sum(data["networks"][0]["groups"]["nodes"]), 6400)
        self.assertLess(os.path.getsize(path), 400_000)

    def test_names_of_files_stay_text(self):
        hostile = "</script><img src=x onerror=alert(1)>"
        file = {"format": "tutti-topology", "version": 1,
                "nodes": [{"name": hostile, "kind": "rank"}, {"name": "b", "kind": "rank"}],
                "links": [{"from": hostile, "to": "b", "duplex": True, "bandwidth": "1GB/s", "alpha": "1us"}]}
        pathlib.Path(self.path("net.json")).write_text(json.dumps(file))
        data, _, path = self.page("topo", "show", self.path("net.json"))
        self.assertEqual(data["networks"][0]["names"][0], hostile)
        self.assertNotIn("onerror=alert", pathlib.Path(path).read_text())

    def test_compare_draws_what_it_printed(self):
        data, answer, _ = self.page("compare", "torus(3,3)", "-c", "all-reduce", "-a", "ring,bfb,rhd", "--size", "3KiB,1MiB")
        shown = data["comparison"]
        rows = [row for row in answer["rows"] if "error" not in row]
        self.assertEqual([row["algorithm"] for row in shown["rows"]], [row["algorithm"] for row in rows])
        for drawn, row in zip(shown["rows"], rows):
            self.assertAlmostEqual(drawn["time_ps"] / 1e12, row["time_s"], delta=1e-12)
            curve = next(curve for curve in shown["curves"] if curve["name"] == row["algorithm"])
            self.assertLessEqual(curve["time_ps"][curve["size_bytes"].index(row["size_bytes"])], drawn["time_ps"])
        self.assertEqual([best["from_bytes"] for best in shown["best"]], [best["from_bytes"] for best in answer["best_by_size"]])
        self.assertEqual({one["algorithm"] for one in shown["missing"]}, {row["algorithm"] for row in answer["rows"] if "error" in row})

    def test_compare_without_any_schedule_says_so(self):
        page = self.path("page.html")
        self.json("compare", "torus(3,3)", "-c", "all-reduce", "-a", "tto", "--size", "1KiB", "--html", page, code=1)
        self.assertEqual(harness.page_data(page)["comparison"]["curves"], [])

    def test_design_draws_the_frontier_with_its_networks(self):
        data, answer, _ = self.page("design", "-n", 24, "-d", 2, "--one-way", "-c", "all-gather", "--no-database", "--size", "1MiB")
        shown = data["designs"]
        self.assertEqual([row["recipe"] for row in shown["rows"]], [row["recipe"] for row in answer["frontier"]])
        self.assertEqual(shown["best"], answer["best"])
        self.assertEqual((shown["tl_bound"], shown["tb_bound"]["value"]), (answer["tl_bound"], round(answer["tb_bound"]["value"], 9)))
        for drawn, row in zip(shown["rows"], answer["frontier"]):
            self.assertEqual((drawn["tl"], drawn["diameter"], drawn["reasons"]), (row["tl"], row["diameter"], row["reasons"]))
            self.assertAlmostEqual(drawn["time_ps"] / 1e12, row["time_s"], delta=1e-12)
            self.assertEqual(data["networks"][drawn["network"]]["links_total"], 48)
        page, cables = self.path("x.html"), self.path("x.csv")
        self.refused("design", "-n", 24, "-d", 2, "--one-way", "--pick", 1, "--cables", page, "--html", page, says=["--html", "--cables"])
        self.refused("design", "--all-up-to", 20, "--html", page, says=["-n and -d"])
        self.assertFalse(os.path.exists(page) or os.path.exists(cables))

    def test_flow_draws_what_each_link_carries(self):
        data, answer, _ = self.page("flow", "mesh(2,3)", "--exact")
        flow, links = data["flows"][0], data["networks"][0]["links"]
        self.assertAlmostEqual(flow["f"]["value"], answer["f"]["value"])
        self.assertEqual(flow["proven"], 1)
        shares = [load / bandwidth for load, bandwidth in zip(flow["load"], links["bandwidth"])]
        self.assertAlmostEqual(max(shares), 1)
        # What rank 0 sends and receives is what it exchanges with all others, and what it passes on.
        pair = answer["f_bytes_per_s"]
        out = sum(load for load, tail in zip(flow["load"], links["tail"]) if tail == 0)
        self.assertGreaterEqual(out, 5 * pair * 0.999)
        limited = self.path("limited.json")
        pathlib.Path(limited).write_text(json.dumps({
            "format": "tutti-topology", "version": 2, "nodes": [{"name": name, "kind": "rank", "host_bandwidth": "1GB/s"} for name in "abc"],
            "links": [{"from": a, "to": b, "duplex": True, "bandwidth": "1GB/s", "alpha": "1us"} for a, b in ("ab", "bc", "ca")]}))
        data, answer, _ = self.page("flow", limited)
        self.assertGreater(data["networks"][0]["nodes"], 3)
        several, page = self.json("flow", "ring(4)", "ring(5)", "--html", self.path("x.html")), harness.page_data(self.path("x.html"))
        self.assertEqual(len(page["flows"]), len(several["rows"]))
        self.refused("flow", "ring(4)", "-o", self.path("y"), "--html", self.path("y"), says=["--html"])

    def test_run_draws_predicted_beside_executed(self):
        schedule, page = self.synth("ring(4)", "all-reduce", "bfb"), self.path("page.html")
        answer = self.json("run", schedule, "--size", "4KiB,64KiB", "-n", 2, "--predict", "--html", page)
        shown = harness.page_data(page)["schedules"]
        self.assertEqual([s["simulation"]["mode"] for s in shown], ["barrier", "executed"] * 2)
        for predicted, executed, row in zip(shown[::2], shown[1::2], answer["rows"]):
            self.assertAlmostEqual(predicted["simulation"]["time_ps"] / 1e6, row["predicted_us"], delta=1e-6)
            self.assertEqual(executed["size_bytes"], row["size"])
            self.assertIn("mean", executed["note"])
            self.assertEqual(executed["simulation"]["messages"], predicted["simulation"]["messages"])
        self.assertNotIn("predicted_us", self.json("run", schedule, "--size", "4KiB", "-n", 1, "--html", page)["rows"][0])
        os.remove(page)
        self.ok("lower", schedule, "--to", "plan-file", "-o", self.path("plan"))
        self.refused("run", self.path("plan"), "--size", "4KiB", "--html", page, says=["--html is for schedules"])
        self.refused("run", schedule, "-b", "1K", "-e", "1M", "-f", 2, "--html", page, says=["at most 8 sizes, got 11"])
        self.refused("run", schedule, "--size", "1K", "--trace", page, "--html", page, says=["--html", "--trace"])
        self.assertFalse(os.path.exists(page))

    def test_topo_show_draws_a_picture(self):
        picture = self.path("net.svg")
        for expression in ["torus(4,4)", "dgx_h100(2)", "genkautz(3,24)", "mesh(1)", "fat_tree(8)"]:
            self.assertIn(f"written to {picture}", self.ok("topo", "show", expression, "-o", picture))
            root = xml.etree.ElementTree.parse(picture).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            tags = {element.tag.split("}")[1] for element in root.iter()}
            self.assertLessEqual(tags, {"svg", "title", "rect", "text", "defs", "marker", "path", "g", "circle"})
            width, height = (float(root.get(side)) for side in ("width", "height"))
            for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
                self.assertTrue(0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height, expression)
        pdf = self.path("net.pdf")
        self.refused("topo", "show", "torus(4,4)", "-o", pdf, says=["net.pdf: pictures are written as .svg, not .pdf"])
        self.assertFalse(os.path.exists(pdf))
        hostile = self.path("net.json")
        pathlib.Path(hostile).write_text(json.dumps({
            "format": "tutti-topology", "version": 1, "nodes": [{"name": "<script>alert(1)</script>", "kind": "rank"}, {"name": "b&\"", "kind": "rank"}],
            "links": [{"from": "<script>alert(1)</script>", "to": "b&\"", "duplex": True, "bandwidth": "1GB/s", "alpha": "1us"}]}))
        self.ok("topo", "show", hostile, "-o", picture)
        titles = [element.text for element in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(titles[1:], ["<script>alert(1)</script>", "b&\""])
        self.assertNotIn("<script", pathlib.Path(picture).read_text())

    def test_train_draws_iterations_event_by_event(self):
        data, answer, _ = self.page("train", "resnet-50", "torus(2,2)", "-a", "ring,tto,bfb")
        rows = data["training"]["rows"]
        self.assertEqual([row["algorithm"] for row in rows], ["ring", "bfb", "bound"])
        for shown, row in zip(rows, [row for row in answer["rows"] if "error" not in row] + [answer["bound"]]):
            self.assertAlmostEqual(shown["iteration_ps"] / 1e12, row["iteration_s"], delta=1e-12)
            events = shown["events"]
            self.assertEqual(max(events["end_ps"]), shown["iteration_ps"])
            busy = sum(end - start for kind, start, end in zip(events["activity"], events["start_ps"], events["end_ps"]) if kind == 0)
            self.assertEqual(busy, shown["forward_ps"] + shown["backward_ps"])
        workload = self.path("w.csv")
        pathlib.Path(workload).write_text("x")
        self.refused("train", workload, "ring(4)", "-a", "ring", "--html", workload, says=["would be overwritten"])

    def traced(self, schedule, name="t.trace.json", size="1MiB"):
        path = self.path(name)
        self.ok("run", schedule, "--size", size, "-n", 1, "--trace", path)
        return path

    def test_explore_joins_schedules_and_executions(self):
        ring, bfb = (self.synth("torus(3,3)", "all-reduce", name, f"{name}.sched") for name in ("ring", "bfb"))
        page = self.path("page.html")
        answer = self.json("explore", ring, bfb, self.traced(bfb, size="9KiB"), "-o", page)
        data = harness.page_data(page)
        self.assertEqual(answer["size_bytes"], 9 << 10)
        self.assertEqual([row["executed"] for row in answer["rows"]], [False, False, True])
        self.assertEqual([s["label"] for s in data["schedules"]], ["ring", "bfb, simulated", "bfb, executed"])
        self.assertEqual(len(data["networks"]), 1)
        for shown, row in zip(data["schedules"], answer["rows"]):
            self.assertAlmostEqual(shown["simulation"]["time_ps"] / 1e12, row["time_s"], delta=1e-12)
        simulated, executed = data["schedules"][1:]
        for a, b in zip(simulated["simulation"]["use"]["bytes"], executed["simulation"]["use"]["bytes"]):
            self.assertAlmostEqual(a, b, delta=a * 1e-3)
        twice = self.path("twice.html")
        self.ok("explore", bfb, bfb, "--size", "1KiB", "-o", twice)
        self.assertEqual([s["label"] for s in harness.page_data(twice)["schedules"]], ["bfb (bfb.sched)"] * 2)

    def test_explore_shows_executions_through_switches_by_pairs(self):
        boxes = self.synth("switch(4)", "all-gather", "forest")
        page = self.path("page.html")
        self.ok("explore", boxes, self.traced(boxes), "-o", page)
        data = harness.page_data(page)
        self.assertEqual(data["networks"][1]["nodes"], data["networks"][0]["ranks"])
        self.assertEqual(sum(data["schedules"][1]["messages"]["bytes"]) > 0, True)

    def test_explore_refuses_what_does_not_belong_together(self):
        ring, bfb = (self.synth("ring(4)", "all-reduce", name, f"{name}.sched") for name in ("ring", "bfb"))
        trace, page, damaged = self.traced(bfb), self.path("page.html"), self.path("damaged.json")
        simulated = self.path("sim.json")
        self.ok("sim", bfb, "--size", "1MiB", "--trace", simulated)
        text = pathlib.Path(trace).read_text()
        for says, *arguments in [
                (["name the schedule"], trace),
                (["trace of another schedule"], ring, trace),
                (["no trace of an execution"], bfb, simulated),
                (["1048576 bytes", "2048"], bfb, trace, "--size", "2KiB"),
                (["at most 8"], *[bfb] * 9),
                (["one size"], bfb, "--size", "1KiB,2KiB"),
                (["none.sched"], self.path("none.sched"))]:
            self.refused("explore", *arguments, "-o", page, says=says)
        for spoiled, says in [(text[:-20], "cut off or damaged"), (text.replace('"pid":1', '"pid":99'), "of no instruction"),
                              (text.replace('"ts":', '"ts":-'), "of no instruction"), (text.replace('"size_bytes":', '"size_bytes":-'), "size_bytes")]:
            pathlib.Path(damaged).write_text(spoiled)
            self.refused("explore", bfb, damaged, "-o", page, says=["damaged.json", says])
        self.refused("explore", bfb, "-o", bfb, says=["would be overwritten"])
        self.assertFalse(os.path.exists(page))

    def test_explore_survives_damaged_traces(self):
        """Bytes of a trace are replaced, left out and doubled: it is refused in one line, or still a trace."""
        schedule = self.synth("ring(3)", "all-reduce", "ring")
        text = pathlib.Path(self.traced(schedule, size="9KiB")).read_bytes()
        damaged, page, draw = self.path("damaged.json"), self.path("page.html"), random.Random(7)
        for _ in range(120):
            spoiled = bytearray(text)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(20, len(spoiled))
                spoiled[at:at + draw.randint(0, 3)] = bytes(draw.choice(b'0-9e.{}[]",:null\xff') for _ in range(draw.randint(0, 3)))
            pathlib.Path(damaged).write_bytes(spoiled)
            done = harness.run("explore", schedule, damaged, "-o", page)
            self.assertIn(done.returncode, (0, 2), spoiled)
            if done.returncode == 2:
                self.assertRegex(done.stderr, r"\Atutti: error: [^\n]+\n\Z")
                self.assertNotRegex(done.stderr, r"terminate|what\(\)|internal error")

    def test_explore_joins_networks_and_wrong_schedules(self):
        ring, torus = self.synth("ring(4)", "all-gather", "bfb", "a.json"), self.synth("torus(3,3)", "all-reduce", "bfb", "b.sched")
        file = json.loads(pathlib.Path(ring).read_text())
        file["transfers"].pop()
        pathlib.Path(ring).write_text(json.dumps(file))
        page = self.path("page.html")
        answer = self.json("explore", ring, torus, "--size", "1MiB", "-o", page)
        self.assertEqual([row["verified"] for row in answer["rows"]], [False, True])
        self.assertEqual(len(harness.page_data(page)["networks"]), 2)
        self.assertEqual(len(harness.page_data(page)["schedules"][0]["faults"]), 1)

    def test_refusals_leave_no_page(self):
        page = self.path("page.html")
        schedule = self.synth("ring(4)", "all-gather", "bfb")
        self.refused("sim", schedule, "--size", "1MiB", "--html", schedule, says=["would be overwritten"])
        self.refused("synth", "ring(4)", "-c", "all-to-all", "-a", "sssp", "--html", page, says=["--html"])
        self.refused("synth", "ring(4)", "-a", "bfb", "-o", page, "--html", page, says=["--html", "-o"])
        self.refused("synth", "ring(4)", "-a", "bfb", "--html", self.path("none/x.html"), says=["none/x.html"])
        self.refused("synth", "torus(4,4)", "-a", "ten", "--cost-only", "--html", page, says=["--html", "streamed"])
        self.assertFalse(os.path.exists(page))


class Artefact(unittest.TestCase):
    def test_is_built_from_these_sources(self):
        """As hashOfSources() of web/build.mjs computes it."""
        names = ["build.mjs", "index.html", "package-lock.json", "package.json", "tsconfig.json"]
        names += [f"src/{path.name}" for path in (WEB / "src").iterdir()]
        digest = hashlib.sha256()
        for name in sorted(names):
            digest.update(name.encode() + b"\0" + (WEB / name).read_bytes() + b"\0")
        text = (WEB / "dist/explorer.html").read_text()
        built = re.search(r'name="tutti-sources" content="(\w+)"', text).group(1)
        self.assertEqual(built, digest.hexdigest(), "web/dist/explorer.html is stale: run scripts/build_page")

    def test_asks_for_nothing_from_anywhere(self):
        text = (WEB / "dist/explorer.html").read_text()
        self.assertIn("default-src 'none'", text)
        # Names of XML's languages are no requests.
        for address in re.findall(r"https?://[^\s\"'`)]+", text):
            self.assertTrue(address.startswith("http://www.w3.org/"), address)
        code = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", text)
        self.assertLess(len(text), 2_000_000)

    def test_the_lock_file_names_no_address(self):
        lock = json.loads((WEB / "package-lock.json").read_text())
        for name, package in lock["packages"].items():
            self.assertNotIn("resolved", package, name)
            if name:
                self.assertIn("integrity", package, name)


if __name__ == "__main__":
    unittest.main()
