"""Lowering by the registry of formats, and plans that others wrote."""
import glob
import json
import os
import unittest

import harness

SAMPLES = sorted(glob.glob("tests/data/mscclpp/*.json"))


class Lower(harness.CliTest):
    def test_mscclpp_plans_are_proven(self):
        for collective, algorithm in [("all-reduce", "bfb"), ("all-gather", "bfb"), ("reduce-scatter", "bfb"),
                                      ("broadcast", "direct"), ("all-to-all", "direct")]:
            schedule = self.synth("hypercube(3)", collective, algorithm)
            plan = self.path("plan.json")
            out = self.json("lower", schedule, "--format", "mscclpp", "--box-ranks", "4", "-o", plan)
            self.assertEqual((out["format"], out["verified"]), ("mscclpp", True))
            verdict = self.json("verify", plan)
            self.assertTrue(verdict["verified"])
            self.assertEqual((verdict["format"], verdict["ranks"]), ("mscclpp", 8))
            with open(plan) as file:
                types = {channel["channel_type"] for gpu in json.load(file)["gpus"] for channel in gpu["channels"]}
            self.assertEqual(types, {"memory", "port"})
        self.assertIn("checked as MSCCL++ would run it", self.ok("lower", schedule, "--to", "mscclpp", "-o", plan))
        self.assertIn("proven correct", self.ok("verify", plan))

    def test_plans_of_any_origin_run(self):
        for sample in [*SAMPLES, "tests/data/msccl_ring_allgather_4.xml"]:
            out = self.json("run", sample, "--size", "64KiB", "-n", "2", "-w", "1", "--type", "int32")
            self.assertEqual(out["wrong"], 0, sample)
            ways = [out["rows"][0][way] is not None for way in ("out_of_place", "in_place")]
            self.assertEqual(ways.count(True), 1, sample)
        xml = self.path("algo.xml")
        self.ok("lower", self.synth("ring(4)", "all-reduce", "ring"), "--to", "msccl-xml", "--in-place", "-o", xml)
        out = self.ok("run", xml, "-b", "1K", "-e", "4K", "-f", "2", "-n", "1", "--op", "avg")
        self.assertIn(f"# all-reduce from {xml}: 4 local ranks", out)
        self.assertIn("# Out of bounds values : 0 OK", out)
        self.assertIn("is run as 32:", self.ok("run", xml, "--size", "1"))
        self.refused("run", xml, "--size", "1K", "--trace", self.path("t"), says=["--trace is for schedules"])
        self.refused("run", xml, "--size", "1K", "--dialect", "x", says=["unknown dialect 'x'"])
        with open(xml) as file:
            spoilt = file.read().replace('type="rrc"', 'type="r"', 1)
        with open(xml, "w") as file:
            file.write(spoilt)
        self.refused("run", xml, "--size", "1K", code=1, says=["is not run, since it is not correct: "])

    def test_samples_are_correct_and_spoilt_ones_are_not(self):
        self.assertEqual(len(SAMPLES), 8)
        for sample in SAMPLES:
            self.assertTrue(self.json("verify", sample)["verified"], sample)
            with open(sample) as file:
                plan = json.load(file)
            plan["gpus"][0]["threadblocks"][0]["ops"].pop(0)
            spoilt = self.path("spoilt.json")
            with open(spoilt, "w") as file:
                json.dump(plan, file)
            verdict = self.json("verify", spoilt, code=1)
            self.assertGreater(len(verdict["violations"]), 0)

    def test_bad_plans(self):
        path = self.path("bad.json")
        for text, says in [('{"name": "a", "gpus": [', "no JSON"),
                           ('{"name": "a", "gpus": []}', "has no key 'collective'"),
                           ('{"gpus": [' + "[" * 50, "nested deeper")]:
            with open(path, "w") as file:
                file.write(text)
            self.refused("verify", path, says=[path, says])

    def test_ten_million_operations(self):
        path = self.path("large.json")
        with open(path, "w") as file:
            file.write('{"name":"a","collective":"allreduce","protocol":"Simple","inplace":true,"gpus":[{"id":0,'
                       '"threadblocks":[{"id":0,"ops":[')
            for _ in range(100):
                file.write('{"name":"nop"},' * 100000)
            file.write('{"name":"nop"}]}]}]}')
        self.refused("verify", path, says=[path, "too large to judge"])
        os.truncate(path, 1 << 30)
        self.refused("verify", path, says=[path, "too large to judge"])

    def test_what_cannot_be_written(self):
        schedule = self.synth("ring(3)", "all-gather", "ring")
        out = self.path("out.json")
        self.refused("lower", schedule, "--to", "mscclpp", "--thread-blocks", "0", "-o", out,
                     says=["--thread-blocks is '0'; accepted are whole numbers from 1 to 256"])
        self.refused("lower", schedule, "--to", "mscclpp", "--box-ranks", "two", "-o", out, says=["--box-ranks is 'two'"])
        self.refused("lower", schedule, "--to", "mscclpp", "--min-size", "2MB", "--max-size", "1MB", "-o", out,
                     says=["are no range"])
        gather = self.synth("ring(3)", "gather", "direct", "g.sched") if self.has("gather", "direct") else None
        if gather:
            self.refused("lower", gather, "--to", "mscclpp", "-o", out, code=1, says=["cannot express gather"])
        self.assertFalse(os.path.exists(out))

    def test_plan_files_begin_as_such_and_repeat(self):
        schedule = self.synth("ring(3)", "all-reduce", "ring")
        written = []
        for name in ("one", "two"):
            self.ok("lower", schedule, "--to", "plan-file", "-o", self.path(name))
            with open(self.path(name), "rb") as file:
                written.append(file.read())
        self.assertEqual(written[0], written[1])
        self.assertEqual(written[0][:16], b"\x89TTP\r\n\x1a\n" + (1).to_bytes(8, "little"))
        self.assertEqual(int.from_bytes(written[0][16:24], "little"), len(written[0]) - 32)

    def has(self, collective, algorithm):
        return harness.run("synth", "ring(3)", "-c", collective, "-a", algorithm).returncode == 0

    def test_help_and_errors_name_every_format(self):
        text = self.ok("lower", "--help")
        for name in ("msccl-xml", "mscclpp", "plan", "plan-file", "routes-per-rank", "route-tables"):
            self.assertIn(name, text)
        schedule = self.synth("ring(3)", "all-gather", "ring")
        self.refused("lower", schedule, "--to", "nccl", "-o", self.path("x"), says=["nccl"])


if __name__ == "__main__":
    unittest.main()
