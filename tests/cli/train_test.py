"""tutti train: iterations on built-in and own workloads, what adds up, and what is refused."""
import subprocess
import unittest

import harness

TWO = """tutti-workload,1
name,two
batch,4
tensor,2
bytes_per_number,4
layer,forward_flops,backward_flops,parameters,activations,tensor,forward_all_reduce,backward_all_reduce
in,1000000,1000000,1000,10,whole,0,0
out,2000000,4000000,2000,10,split,500,500
"""


class Train(harness.CliTest):
    def write(self, text, name="two.csv"):
        path = self.path(name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_an_iteration_adds_up_and_stays_above_the_bound(self):
        out = self.json("train", "resnet-50", "torus(4,4)", "-a", "ring,ten,dbt")
        self.assertEqual((out["parameters"], out["replicas"], out["tensor"], out["batch"]), (25557032, 16, 1, 32))
        self.assertEqual([row["algorithm"] for row in out["rows"]], ["ring", "ten", "dbt"])
        for row in [*out["rows"], out["bound"], out["ideal"]]:
            parts = ("forward_s", "backward_s", "forward_tensor_s", "backward_tensor_s", "exposed_gradients_s")
            self.assertAlmostEqual(sum(row[part] for part in parts), row["iteration_s"], delta=1e-11)
            self.assertLessEqual(row["exposed_gradients_s"], row["gradients_s"] + 1e-12)
            self.assertGreaterEqual(row["iteration_s"], out["bound"]["iteration_s"] - 1e-12)

    def test_by_hand(self):
        # 1e9 operations a second. in: 4 ms; out on two ranks: 4 ms. Backward: 8 ms and 4 ms.
        # On a ring of 4, pairs 0-1 and 2-3 share 8000 bytes at 1 GB/s: 8 us; partners 0-2 have no link.
        path = self.write(TWO)
        accelerator = ("--peak", "1e9", "--efficiency", "1", "--memory", "1000GB/s")
        # Two dimensions of two ranks: replicas are the rows.
        out = self.json("train", path, "torus(2,2,bw=1GB/s,alpha=0)", "-a", "ring", "--no-overlap", *accelerator)
        row = out["rows"][0]
        self.assertAlmostEqual(row["forward_s"], 8e-3)
        self.assertAlmostEqual(row["backward_s"], 12e-3)
        self.assertAlmostEqual(row["forward_tensor_s"], 8e-6)
        self.assertAlmostEqual(row["backward_tensor_s"], 8e-6)
        self.assertAlmostEqual(row["exposed_gradients_s"], 8e-6)  # (1000 + 1000) x 4 bytes
        # In buckets of one byte the gradients of out travel while in computes; 4000 bytes are left.
        out = self.json("train", path, "torus(2,2,bw=1GB/s,alpha=0)", "-a", "ring", "--bucket", "1B", *accelerator)
        self.assertAlmostEqual(out["rows"][0]["exposed_gradients_s"], 4e-6)
        self.assertAlmostEqual(out["rows"][0]["gradients_s"], 8e-6)

    def test_hybrid_on_a_torus(self):
        out = self.json("train", "msft-1t", "torus(4,2,4)", "--tensor", 8, "--batch", 1, "-a", "ring,auto")
        self.assertEqual((out["tensor"], out["replicas"], out["batch"]), (8, 4, 1))
        for row in out["rows"]:
            self.assertGreater(row["forward_tensor_s"], 0)
            self.assertGreater(row["gradients_s"], 0)
        text = self.ok("train", "msft-1t", "torus(4,2,4)", "--tensor", 8, "--batch", 1, "-a", "ring")
        for words in ("4 replicas of 8 ranks, 1 sample each (a sequence of 2048 tokens)", "(bound)", "(ideal)"):
            self.assertIn(words, text)

    def test_what_does_not_fit_a_network_is_no_row(self):
        out = self.json("train", "gnmt", "ring(6)", "-a", "ring,c-cube")
        self.assertIn("error", out["rows"][1])
        self.json("train", "gnmt", "switch(4)", "-a", "bfb", code=1)

    def test_bad_input(self):
        ring = ("ring(4)", "-a", "ring")
        for arguments, says in [
            (("resnet50", *ring), ["resnet50", "nearest: resnet-50", "turing-nlg"]),
            ((self.path("none.csv"), *ring), ["none.csv", "No such file"]),
            ((self.write("", "empty.csv"), *ring), ["empty.csv", "the file is empty"]),
            ((self.write(TWO.replace("in,1000000", "in,x"), "x.csv"), *ring), ["x.csv: line 7: forward_flops: found 'x'"]),
            (("gnmt", "tours(4)", "-a", "ring"), ["tours"]),
            (("gnmt", "ring(4)", "-a", "ring,"), ["unknown algorithm ''"]),
            (("gnmt", "ring(4)", "-a", "rung"), ["unknown algorithm 'rung'"]),
            (("gnmt", *ring, "--tensor", 4), ["'gnmt' has no layer that could be split over the 4 ranks"]),
            (("msft-1t", *ring), ["--tensor", "128 ranks a replica; accepted are the divisors", "4 ranks"]),
            (("gnmt", *ring, "--bucket", "0"), ["--bucket is 0"]),
            (("gnmt", *ring, "--bucket", "many"), ["--bucket", "many"]),
            (("gnmt", *ring, "--peak", "fast"), ["--peak is 'fast'", "312e12"]),
            (("gnmt", *ring, "--efficiency", "1.5"), ["--efficiency is '1.5'"]),
            (("gnmt", *ring, "--peak", "1", "--efficiency", "0.5"), ["leaves one operation a second"]),
            (("gnmt", *ring, "--memory", "0"), ["--memory"]),
            (("gnmt", *ring, "--launch", "5"), ["--launch", "5"]),
            (("gnmt", *ring, "--batch", -1), ["--batch"]),
            (("gnmt", *ring, "--peak", "2"), ["more than 2^61"]),
        ]:
            with self.subTest(arguments):
                self.refused("train", *arguments, says=says)
        self.refused("train", "msft-1t", "ring(6)", "--tensor", 3, "-a", "ring", code=1,
                     says=["--tensor", "the data-parallel group of ranks 0, 3 has no network of its own"])

    def test_built_in_files_are_what_the_script_derives(self):
        done = subprocess.run(["scripts/workloads", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    harness.main()
