"""tutti calibrate: a network is measured, written, and says what a schedule on it will take."""
import json
import os
import pathlib
import subprocess

import harness

TESTBED = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/testbed"
SKIPPED = 77
FAST = ["-n", "15", "--size", "4M"]


class CalibrateTest(harness.CliTest):
    def test_writes_what_it_prints(self):
        path = self.path("net.topo.json")
        out = self.json("calibrate", "--hosts", "localhost:3", *FAST, "-o", path)
        self.assertEqual((out["ranks"], out["bytes"], out["repeats"], out["written"]), (3, 1 << 22, 15, path))
        self.assertEqual([(link["from"], link["to"]) for link in out["links"]],
                         [(a, b) for a in range(3) for b in range(3) if a != b])
        self.assertEqual(len(out["with_all_others"]), 3)
        for link in out["links"]:
            for figure in (link["alpha_s"], link["bandwidth"]):
                self.assertTrue(0 < figure["low"] <= figure["median"] <= (figure["high"] or float("inf")))
        shown = self.json("topo", "show", path)
        self.assertEqual((shown["ranks"], shown["links"]), (3, 6))
        with open(path) as file:
            topology = json.load(file)
        self.assertIn("measured by tutti calibrate between ranks on 1 host: medians of 15 repetitions of 4194304 bytes",
                      topology["source"])
        self.assertIn("; 2>1: alpha us ", topology["source"])
        text = self.ok("calibrate", "--hosts", "localhost:2", *FAST, "-o", path)
        for words in ("2 ranks on 1 host, messages of 4MiB", "alpha of a pair", "bandwidth of a pair", "slowest: from rank"):
            self.assertIn(words, text)

    def test_refuses(self):
        path = self.path("net.topo.json")
        self.refused("calibrate", "-o", path, says=["between which ranks: give --hosts h0,h1"])
        self.refused("calibrate", "--hosts", "localhost:1", "-o", path, says=["1 ranks: a calibration has 2 to 512"])
        self.refused("calibrate", "--hosts", "localhost:2", "--size", "big", "-o", path, says=["--size"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_prediction_beside_the_run(self):
        schedule = self.synth("complete(2)", "all-gather", "direct")
        out = self.json("run", schedule, "--size", "1M", "-n", "2", "--predict")
        row = out["rows"][0]
        # One shard of half a MiB at 50 GB/s behind 0.5 us.
        self.assertAlmostEqual(row["predicted_us"], 0.5 + 524288 / 50e3, places=3)
        self.assertAlmostEqual(row["of_bound"], row["predicted_us"] / row["out_of_place"]["time_us"], places=6)
        text = self.ok("run", schedule, "--size", "1M", "-n", "2", "--predict")
        self.assertIn("predicted of bound", text)
        self.assertNotIn("predicted", self.ok("run", schedule, "--size", "1M", "-n", "2"))
        plan = self.path("t.tplan")
        self.ok("lower", schedule, "--to", "plan-file", "-o", plan)
        self.refused("run", plan, "--size", "1M", "--predict", says=["--predict is for schedules"])

    def test_finds_the_speeds_of_a_testbed(self):
        """Hosts whose NICs carry 100 Mbit/s, and a schedule that was made for what was measured."""
        tutti, path, schedule = os.path.abspath(harness.TUTTI), self.path("net.topo.json"), self.path("s.sched")
        hosts = f"--hosts H0,H1,H2,H3 --launch 'on {{host}}' --root 10.1.0.1"
        script = (f"on H0 {tutti} calibrate {hosts} -n 5 --size 1M -o {path} --json &&"
                  f" {tutti} synth {path} -c all-gather -a bfb -o {schedule} >/dev/null &&"
                  f" on H0 {tutti} run {schedule} --transport tcp {hosts} --size 2M -n 3 --predict --json")
        done = subprocess.run([str(TESTBED), "spine-leaf", "--", "sh", "-c", script], capture_output=True, text=True, timeout=600)
        if done.returncode == SKIPPED:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        calibration, end = json.JSONDecoder().raw_decode(done.stdout)
        run = json.loads(done.stdout[end:])
        for link in calibration["links"]:
            # Two pairs of a round share a spine or not; Ethernet, IP and TCP take 5 %, a queue may burst ahead a little. Medians are
            # wrong where the machine is busy, as a byte may take as long as a message: the interval says so, and holds the truth.
            low, high = link["bandwidth"]["low"], link["bandwidth"]["high"] or float("inf")
            self.assertTrue(low * 8 / 100e6 < 1.3 and high * 8 / 100e6 > 0.2, link)
        self.assertEqual(run["wrong"], 0)
        self.assertGreater(run["rows"][0]["predicted_us"], 0)


if __name__ == "__main__":
    harness.main()
