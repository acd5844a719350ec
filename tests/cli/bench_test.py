"""tutti bench: the papers' tables and figures."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

import harness


PROGRAMS = os.path.dirname(os.path.realpath(harness.TUTTI))
SWEEP = os.path.join(PROGRAMS, "tutti-mpi-sweep-smpi")
MESSAGES = os.path.join(PROGRAMS, "tutti-simgrid-messages.so")
MESSAGE_TIMES = os.path.join(PROGRAMS, "message_times-smpi")
PLATFORMS = pathlib.Path(__file__).resolve().parents[2] / "data" / "platforms"


def can_simulate():
    """Whether the figures of [tuna] run here: smpirun loads no program built with sanitizers."""
    if shutil.which("smpirun") is None or not os.path.exists(SWEEP):
        return False
    with open(SWEEP, "rb") as file:
        return b"__asan_init" not in file.read()


class Bench(harness.CliTest):
    def test_lists_what_there_is(self):
        listed = self.json("bench")["experiments"]
        names = [experiment["name"] for experiment in listed]
        self.assertIn("direct-table5", names)
        text = self.ok("bench")
        for experiment in listed:
            self.assertEqual(set(experiment), {"name", "source", "summary"})
            self.assertIn(experiment["name"], text)

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_figures_of_all_to_all_v_are_simulated(self):
        result = self.json("bench", "tuna-fig8", "--max-ranks", 8)
        self.assertEqual(len(result["tables"]), 2)
        for table in result["tables"]:
            self.assertEqual([row["label"] for row in table["rows"]], [f"{size}, {ranks}" for size in (16, 128, 512, 2048) for ranks in (2, 4, 8)])
            for row in table["rows"][2::3]:
                cells = {name: cell["ours"]["value"] for name, cell in row["cells"].items() if cell["ours"]}
                self.assertGreater(cells["TuNA, best radix"], 0)
                self.assertIn(row["cells"]["best radix"]["text"], ["2", "3", "4", "8"])
                # Seven messages one after another take longer than together, which take at least their overheads.
                self.assertLess(cells["all at once"], cells["one at a time"])
                self.assertGreater(cells["all at once"], cells["floor, direct"] * 0.75)
                self.assertLess(cells["floor, network"], min(cells["all at once"], cells["TuNA, best radix"]))
                # TuNA with r = P is all at once.
                self.assertLess(cells["TuNA, best radix"], cells["all at once"] * 1.05)

    def sweep(self, platform, ranks_of_nodes, points, options=()):
        """What the sweep prints on a platform, with so many ranks on each of its first nodes."""
        hosts = self.path("hosts")
        pathlib.Path(hosts).write_text("".join(f"node{node}\n" * ranks for node, ranks in enumerate(ranks_of_nodes)))
        return subprocess.run(["smpirun", "-np", str(sum(ranks_of_nodes)), "-platform", PLATFORMS / f"{platform}.xml", "-hostfile", hosts,
                               "--log=root.thres:error", *options, SWEEP, *points], capture_output=True, text=True, check=True).stdout

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_the_networks_floor_is_the_busiest_links_time(self):
        # Each of four ranks has 512 bytes for all but the last, 128 for that: into the first node go three times 512.
        points = ["fft2/1/network-floor"]
        line = self.sweep("polaris", [1, 1, 1, 1], points).splitlines()[1].split(",")
        self.assertEqual(line[:3], ["fft2", "1", '"network-floor"'])
        self.assertAlmostEqual(float(line[4]) / (3 * 512 / 47e9), 1, places=6)
        # What stays inside a node needs no network.
        line = self.sweep("polaris", [3, 1], points).splitlines()[1].split(",")
        self.assertAlmostEqual(float(line[4]) / (3 * 512 / 47e9), 1, places=6)
        self.assertEqual(self.sweep("polaris", [4], points).splitlines()[1].split(",")[4], "0")
        # A torus with two nodes in its first dimension, which routes take first: from 1 to 0 goes what 1 has for 0 and 2.
        line = self.sweep("fugaku", [1, 1, 1, 1], points).splitlines()[1].split(",")
        self.assertAlmostEqual(float(line[4]) / (1024 / 6.3e9), 1, places=6)

    def message_seconds(self, platform, nodes, size, preloaded=True):
        """What a message of so many bytes from one of two ranks to the other takes; nodes says where they are."""
        hosts = self.path("hosts")
        pathlib.Path(hosts).write_text("".join(f"node{node}\n" for node in nodes))
        options = ["-wrapper", f"env LD_PRELOAD={MESSAGES}"] if preloaded else []
        done = subprocess.run(["smpirun", "-np", "2", "-platform", platform, "-hostfile", hosts, "--log=root.thres:error", *options,
                               MESSAGE_TIMES, str(size)], capture_output=True, text=True)
        if done.returncode != 0:
            return done
        bytes_sent, seconds = done.stdout.split()
        self.assertEqual(int(bytes_sent), size)
        return float(seconds)

    @unittest.skipUnless(can_simulate() and os.path.exists(MESSAGE_TIMES), "no simulator, or no program for it")
    def test_messages_inside_a_node_cost_less_than_between_nodes(self):
        # Overheads of both ends, the gap of a byte (between nodes) or a copy on each side (inside one), and the way; SMPI's envelope
        # has 16 bytes.
        def between(overhead, gap, way, bandwidth):
            return lambda size: overhead + size * gap + way + (size + 16) / bandwidth + overhead

        def inside(overhead, copy, way):
            return lambda size: overhead + size * copy + way + (size + 16) / 100e9 + overhead + size * copy

        expected = {"polaris": (between(0.3e-6, 0.68e-9, 2 * 0.45e-6, 47e9), inside(0.1e-6, 0.167e-9, 0.107e-6)),
                    "fugaku": (between(0.5e-6, 0.84e-9, 0.1e-6, 6.3e9), inside(0.2e-6, 0.125e-9, 0.15e-6))}
        for name, (remote, local) in expected.items():
            platform = PLATFORMS / f"{name}.xml"
            for size in (0, 8, 512, 8192):
                with self.subTest(name, size=size):
                    self.assertAlmostEqual(self.message_seconds(platform, [0, 1], size) / remote(size), 1, places=5)
                    self.assertAlmostEqual(self.message_seconds(platform, [0, 0], size) / local(size), 1, places=5)
            # SMPI by itself charges both alike.
            self.assertAlmostEqual(self.message_seconds(platform, [0, 1], 512, preloaded=False) / remote(512), 1, places=5)
            self.assertGreater(self.message_seconds(platform, [0, 0], 512, preloaded=False), 1.5 * local(512))

    @unittest.skipUnless(can_simulate() and os.path.exists(MESSAGE_TIMES), "no simulator, or no program for it")
    def test_platforms_whose_message_costs_make_no_sense_are_refused_by_name(self):
        text = (PLATFORMS / "polaris.xml").read_text()
        for old, new, says in (('"0.167e-9"', '"fast"', "tutti_local_byte_seconds is 'fast', wanted seconds"),
                               ('"0.1e-6"', '"-1"', "tutti_local_seconds is '-1', wanted seconds"),
                               ('"0:0.3e-6:0"', '"0:0.3e-6:0;1024:1e-6:0"', "smpi/or is '0:0.3e-6:0;1024:1e-6:0', wanted 0:SECONDS:SECONDS_A_BYTE")):
            with self.subTest(says):
                self.assertEqual(text.count(old), 1)
                bad = self.path("bad.xml")
                pathlib.Path(bad).write_text(text.replace(old, new))
                done = self.message_seconds(bad, [0, 0], 8)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"tutti: error: the platform's {says}", done.stderr)
        # A platform that says nothing of messages inside a node charges all alike.
        silent = self.path("silent.xml")
        pathlib.Path(silent).write_text("".join(line for line in text.splitlines(True) if "<prop id=\"tutti_local" not in line))
        self.assertAlmostEqual(self.message_seconds(silent, [0, 0], 8), self.message_seconds(silent, [0, 0], 8, preloaded=False))

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_what_local_messages_cost_decides_between_flat_and_shared(self):
        result = self.json("bench", "tuna-local", "--max-ranks", 32)
        for table in result["tables"]:
            rows = {row["label"]: {name: cell["ours"]["value"] for name, cell in row["cells"].items() if cell["ours"]} for row in table["rows"]}
            for size in (16, 128, 512):
                dear, charged, cheap = (rows[f"{size}, 32, {price}"] for price in ("as between nodes", "as charged", "50 ns, 0.1 ns a byte"))
                # The paper's own hierarchical form sends most of its messages inside nodes.
                self.assertGreater(dear["coalesced"], charged["coalesced"])
                self.assertGreater(charged["coalesced"], cheap["coalesced"])
                # The shared forms send nothing inside a node.
                self.assertAlmostEqual(dear["shared"] / cheap["shared"], 1, delta=0.1)
                self.assertGreater(dear["best flat / best shared"], cheap["best flat / best shared"])

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_figures_of_a_rank_a_node_have_no_messages_inside(self):
        # Four nodes of one rank: the forms that send inside a node are left out, not read.
        for name, label in (("tuna-fig13", "16, 4"), ("tuna-local", "16, 4, as charged")):
            row = next(row for row in self.json("bench", name, "--max-ranks", 4)["tables"][0]["rows"] if row["label"] == label)
            self.assertIsNone(row["cells"]["coalesced"]["ours"])
            self.assertIsNone(row["cells"]["best flat / coalesced"]["ours"])
            self.assertGreater(row["cells"]["shared"]["ours"]["value"], 0)

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_what_simulations_preload_for_speed_changes_no_time(self):
        points = ["uniform/512/" + name for name in ("spread-out", "scattered:b=4", "tuna:r=4", "coalesced:r=2,b=3", "shared:b=3")]
        plain = self.sweep("fugaku", [8, 8, 8, 8], points)
        preloaded = self.sweep("fugaku", [8, 8, 8, 8], points, ["-wrapper", f"env LD_PRELOAD={PROGRAMS}/tutti-simgrid-nodes.so"])
        self.assertEqual(preloaded, plain)
        self.assertEqual(len(plain.splitlines()), 1 + len(points))

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_simulated_points_are_kept(self):
        folder = self.path("points")
        first = self.json("bench", "tuna-fig7", "--max-ranks", 4, "--simulated", folder)
        files = sorted(os.listdir(folder))
        self.assertEqual([name.split("-")[:2] for name in files], [[name, ranks] for name in ("fugaku", "polaris") for ranks in ("2", "4")])
        kept = [pathlib.Path(folder, name).read_text() for name in files]
        again = self.json("bench", "tuna-fig7", "--max-ranks", 4, "--simulated", folder)
        self.assertEqual(again["tables"], first["tables"])
        self.assertEqual([pathlib.Path(folder, name).read_text() for name in files], kept)
        # A line that is no point is passed over, and its point simulated again.
        for name in files:
            pathlib.Path(folder, name).write_text("uniform/16/tuna:r=2 uniform,16,nonsense\n")
        again = self.json("bench", "tuna-fig7", "--max-ranks", 4, "--simulated", folder)
        self.assertEqual(again["tables"], first["tables"])

    # Tells each of its runs in a file beside it; every collective takes 20 ms.
    TESTBED = """#!/usr/bin/python3
import json, pathlib, sys
spec = json.load(sys.stdin)
with open(pathlib.Path(sys.argv[0]).with_name("runs"), "a") as runs:
    runs.write(" ".join(sys.argv[1:4]) + "\\n")
steps, now = [], 0
for step in spec["steps"]:
    now += step["after"]
    steps.append({"begin_s": now, "end_s": now + 0.01, "error": ""})
iterations = [[at / 50, at / 50 + 0.02] for at in range(int(50 * now))]
print(json.dumps({"steps": steps, "tenants": {tenant["name"]: {"iterations": iterations} for tenant in spec["tenants"]}}))
"""

    def test_runs_of_the_testbed_are_kept(self):
        programs, folder = pathlib.Path(self.path("bin")), self.path("runs")
        programs.mkdir()
        tutti = shutil.copy(harness.TUTTI, programs)
        shutil.copy(os.path.join(PROGRAMS, "tutti-experiments"), programs)
        for name in ("tutti-testbed-cluster", "tuttid", "tutti-controller"):
            (programs / name).write_text("")
        testbed = programs / "tutti-testbed"

        def figure():
            (programs / "runs").write_text("")
            done = subprocess.run([tutti, "bench", "mccs-fig7", "--simulated", folder, "--json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            return len((programs / "runs").read_text().splitlines()), result["tables"], [n for n in result["notes"] if "pieces" in n]

        testbed.write_text(self.TESTBED)
        testbed.chmod(0o755)
        made, tables, notes = figure()
        self.assertEqual((made, notes), (20, []))
        again, kept, notes = figure()
        self.assertEqual((again, kept), (0, tables))
        self.assertIn("20 of 20 runs by earlier calls", notes[0])
        # What is no run, or was broken off, is run again.
        files = sorted(pathlib.Path(folder).iterdir())
        self.assertEqual(len(files), 20)
        files[0].write_text("")
        files[1].write_text(files[1].read_text()[:-9])
        files[2].write_text('{"tenants": {}, "steps": []}')
        files[3].unlink()
        again, kept, notes = figure()
        self.assertEqual((again, kept), (4, tables))
        self.assertIn("16 of 20 runs by earlier calls", notes[0])
        # Other programs: all again.
        (programs / "tuttid").write_text("another")
        self.assertEqual(figure()[0], 20)

    @unittest.skipUnless(can_simulate(), "no simulator, or no program for it")
    def test_applications_run_in_simulation(self):
        result = self.json("bench", "tuna-fig15", "--max-ranks", 8)
        rows = {row["label"]: row["cells"] for row in result["tables"][0]["rows"]}
        self.assertIn("spread-out", rows)
        for cells in rows.values():
            self.assertGreater(cells["transitive closure"]["ours"]["value"], 0)
        self.assertTrue(any("19928 pairs" in note for note in result["notes"]), result["notes"])

    def test_json_has_the_same_form_for_every_experiment(self):
        for experiment in self.json("bench")["experiments"]:
            if experiment["name"].startswith("tuna-"):
                continue  # below
            if experiment["name"] in ("mccs-fig6", "mccs-fig7", "mccs-fig8", "mccs-fig9", "mccs-fig10", "mccs-by-size", "mccs-lost-link"):
                continue  # minutes each, in namespaces: tests/testbed/service_test.py has that in short
            result = self.json("bench", experiment["name"], "--max-ranks", 8, "--step", 5)
            self.assertGreater(len(result["notes"]), 0, experiment["name"])
            self.assertLessEqual({"experiment", "source", "summary", "tables", "charts", "notes", "compared", "same",
                                  "elapsed_s", "threads", "peak_rss_bytes"}, set(result))
            self.assertGreater(len(result["tables"]), 0)
            for table in result["tables"]:
                columns = [column["name"] for column in table["columns"]]
                self.assertEqual(len(columns), len(set(columns)))
                for row in table["rows"]:
                    self.assertEqual(list(row["cells"]), columns)
                    for cell in row["cells"].values():
                        self.assertLessEqual(set(cell), {"ours", "limit", "text", "paper", "agrees", "difference"})
                        if cell["ours"] is not None:
                            self.assertEqual(set(cell["ours"]), {"num", "den", "value"})
            for chart in result["charts"]:
                for series in chart["series"]:
                    self.assertGreater(len(series["points"]), 0, series["name"])
                if "cells" in chart:
                    self.assertEqual(len(chart["cells"]) % chart["columns"], 0)

    def test_ours_beside_the_papers(self):
        result = self.json("bench", "direct-table5")
        self.assertEqual((result["compared"], result["same"]), (16, 16))
        row = result["tables"][0]["rows"][0]
        self.assertEqual(row["label"], "complete(5)")
        self.assertEqual([row["cells"]["TB"]["ours"][key] for key in ("num", "den")], [8, 5])
        self.assertEqual(row["cells"]["TB"]["paper"], "8/5")
        self.assertIs(row["cells"]["TB"]["agrees"], True)
        text = self.ok("bench", "direct-table5")
        self.assertRegex(text, r"circulant\(7,2,3\) +7 +C\(7,\{2,3\}\) +4 +4 +=")
        self.assertIn("16 of 16", text)

    def test_markdown(self):
        lines = self.ok("bench", "direct-table5", "--markdown").splitlines()
        self.assertIn("| topology | N | paper's name | TL (steps) | paper | diff | TB (M/B) | paper | diff |", lines)
        self.assertIn("| complete(5) | 5 | K5 | 2 | 2 | = | 8/5 | 8/5 | = |", lines)

    def test_a_schedule_beside_what_the_paper_draws(self):
        result = self.json("bench", "tacos-fig14")
        steps = result["tables"][1]["rows"]
        self.assertEqual([row["cells"]["links used"]["ours"]["value"] for row in steps][0], 24)
        chart = result["charts"][0]
        self.assertEqual((chart["columns"], len(chart["cells"])), (len(steps), 24 * len(steps)))
        self.assertIsNone(chart["cells"][chart["cells"].index(None)])

    def test_what_was_measured_is_not_the_papers_by_rounding(self):
        # The paper's exponent is 2; whatever two times on this machine give, it is not exactly that.
        table = self.json("bench", "tacos-fig19", "--max-ranks", 4096)["tables"][1]
        self.assertEqual([row["label"] for row in table["rows"]], ["2D Mesh", "3D HC"])
        for row in table["rows"]:
            seconds, transfers = row["cells"]["exponent of N, seconds"], row["cells"]["exponent of N, transfers"]
            self.assertEqual(seconds["paper"], "2")
            self.assertIs(seconds["agrees"], seconds["ours"]["value"] == 2)
            self.assertAlmostEqual(seconds["difference"], seconds["ours"]["value"] / 2 - 1)
            # N (N - 1) of them, whatever the machine.
            self.assertAlmostEqual(transfers["ours"]["value"], 2, delta=0.002)

    def test_large_instances_are_on_request(self):
        self.assertIn("--large", self.ok("bench", "tacos-fig19", "--max-ranks", 16))
        labels = [row["label"] for row in self.json("bench", "tacos-fig19", "--max-ranks", 9, "--large")["tables"][2]["rows"]]
        self.assertEqual(labels, ["mesh(2,2)", "mesh(3,3)"])

    def test_tables_are_printed_where_there_is_nothing_to_draw(self):
        path = self.path("t.svg")
        done = harness.run("bench", "direct-table5", "-o", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("complete(5)", done.stdout)
        self.assertEqual(done.stderr, f"tutti: error: -o {path}: direct-table5 has no chart to draw, so no file was written\n")
        self.assertFalse(os.path.exists(path))

    def test_heat_maps_as_svg(self):
        path = self.path("f.svg")
        self.ok("bench", "tacos-fig1", "-o", path)
        root = xml.etree.ElementTree.parse(path).getroot()
        text = "".join(root.itertext())
        for words in ("Direct on FC", "TACOS (-a ten) on 3D HC", "from", "to"):
            self.assertIn(words, text)

    def test_svg(self):
        path = self.path("f.svg")
        self.ok("bench", "direct-fig18", "--max-ranks", 40, "-o", path)
        text = "".join(xml.etree.ElementTree.parse(path).getroot().itertext())
        for words in ("ranks N", "TB / TB*", "d = 16"):
            self.assertIn(words, text)
        self.refused("bench", "direct-fig18", "--max-ranks", 20, "-o", "/nonexistent/f.svg", says=["/nonexistent"])

    def test_figures_are_drawn_again_from_what_they_carry(self):
        path, again = self.path("f.svg"), self.path("g.svg")
        self.ok("bench", "direct-fig18", "--max-ranks", 20, "-o", path)
        before = pathlib.Path(path).read_bytes()
        self.assertEqual(self.json("bench", "--redraw", path), {"drawn": path, "charts": 1, "changed": False})
        self.assertEqual(pathlib.Path(path).read_bytes(), before)
        # In another style: the picture of it is put right.
        pathlib.Path(again).write_bytes(before.replace(b"#0072b2", b"#000000"))
        self.assertTrue(self.json("bench", "--redraw", again)["changed"])
        self.assertEqual(pathlib.Path(again).read_bytes(), before)
        pathlib.Path(again).write_bytes(before[: before.index(b"</metadata>")])  # cut off within its data
        for file, says in ((again, [again]), (self.path("none.svg"), ["none.svg"])):
            self.refused("bench", "--redraw", file, says=says)
        self.refused("bench", "direct-fig18", "--redraw", path, says=["--redraw", "left over"])

    def test_what_was_measured_is_named(self):
        """So that pages need not be made again for what is the same on every machine."""
        for name, measured in (("direct-table5", []), ("direct-table6", ["BFB"])):
            command = ["bench", name, "--max-ranks", 20]
            text = self.ok(*command, "--markdown")
            self.assertEqual(re.findall(r"Took .* on \d+ threads of .+?\.(?: Measured on this machine: (.*)\.)?$", text,
                                        re.MULTILINE), [", ".join(measured)])
            columns = [column for table in self.json(*command)["tables"] for column in table["columns"]]
            self.assertEqual([column["name"] for column in columns if column["measured"]], measured)

    def test_bad_input(self):
        self.refused("bench", "direct-tabel5", says=["unknown experiment 'direct-tabel5'", "nearest: direct-table5"])
        self.refused("bench", "nonsense", says=["accepted are direct-"])
        self.refused("bench", "direct-table5", "--max-ranks", 1, says=["2 and more"])
        self.refused("bench", "direct-fig18", "--step", -3, says=["--step", "-3 not in range"])

    def test_ctrl_c(self):
        process = subprocess.Popen([harness.TUTTI, "bench", "direct-fig18"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        harness.until_it_catches(process, signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("interrupted", err)


if __name__ == "__main__":
    harness.main()
