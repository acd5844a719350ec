"""tutti mpi: calibrate, tune, show and predict."""
import os
import re
import shutil
import signal
import subprocess
import unittest

import harness

ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
PROGRAMS = os.path.dirname(os.path.abspath(harness.TUTTI))
MODEL = ("tutti-mpi 1\nmodel mpich inside=1e-06,1e-10,1e-11 between=1e-05,1e-10,1e-11 send=1e-06 "
         "receive=1e-06 copy=0,0 eager=0,0\n")


def has(program):
    return os.path.exists(os.path.join(PROGRAMS, program))


class MpiTest(harness.CliTest):
    def file(self, text=None):
        path = self.path("mpi")
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def test_predict_by_a_model_of_our_own(self):
        path = self.file(MODEL)
        out = self.json("mpi", "predict", "--mpi", "mpich", "--file", path, "--ranks", 1024,
                        "--ranks-per-node", 32, "--size", "16,1MiB")
        self.assertTrue(out["calibrated"])
        self.assertEqual((out["ranks"], out["ranks_per_node"]), (1024, 32))
        for size in 16, 1 << 20:
            rows = [row for row in out["rows"] if row["size"] == size]
            times = [row["predicted_s"] for row in rows]
            self.assertEqual(times, sorted(times))
            methods = [row["algorithm"].split(":")[0] for row in rows]
            self.assertEqual(len(methods), len(set(methods)))
            self.assertLessEqual({"mpi", "tuna", "coalesced", "staggered", "spread-out"},
                                 set(methods))
        # A thousand messages per rank cost more than sending short blocks on, not long ones.
        self.assertIn(out["rows"][0]["algorithm"].split(":")[0], ("shared", "shared-coalesced", "coalesced", "tuna"))
        own = [row["predicted_s"] for row in out["rows"] if row["algorithm"] == "mpi"]
        self.assertGreater(own[0], 2 * out["rows"][0]["predicted_s"])

    def test_predict_without_a_file_says_so(self):
        done = self.ok("mpi", "predict", "--file", self.file(), "--ranks", 8, "--size", "1KiB")
        self.assertIn("inside a node assumed, of a cluster nobody measured", done)
        self.assertIn("pairwise", done)

    def test_predict_says_which_part_was_measured(self):
        part = MODEL.replace("between=1e-05,1e-10,1e-11", "between=1e-05,1e-10,1e-11,assumed")
        path = self.file(part)
        arguments = ["mpi", "predict", "--mpi", "mpich", "--file", path, "--size", "512", "--ranks"]
        text = self.ok(*arguments, 1024, "--ranks-per-node", 32)
        self.assertIn("inside a node calibrated; between nodes assumed", text)
        out = self.json(*arguments, 1024, "--ranks-per-node", 32)
        self.assertFalse(out["calibrated"])
        self.assertEqual(out["model"], {"inside": "measured", "between": "assumed"})
        # One node needs nothing else.
        self.assertTrue(self.json(*arguments, 8)["calibrated"])
        self.assertNotIn("assumed", self.ok(*arguments, 8))
        self.assertIn("between nodes, assumed", self.ok("mpi", "show", "--file", path))
        crowded = self.file(MODEL.replace("1e-11 between", "1e-11,crowded between"))
        self.assertIn("inside a node calibrated with more ranks than cores",
                      self.ok(*arguments[:5], crowded, *arguments[6:], 8))

    def test_show_prints_models_and_measurements(self):
        path = self.file(MODEL + "best openmpi ranks=16 per-node=8 block=64 algorithm=tuna:r=4 "
                         "seconds=1.2e-05 own=2.4e-05\n")
        out = self.json("mpi", "show", "--file", path)
        self.assertEqual(out["models"][0]["between"]["latency_s"], 1e-05)
        self.assertEqual(out["rows"], [{"mpi": "openmpi", "ranks": 16, "ranks_per_node": 8,
                                        "mean_block_bytes": 64, "best": "tuna:r=4",
                                        "time_s": 1.2e-05, "own_s": 2.4e-05}])
        text = self.ok("mpi", "show", "--file", path)
        self.assertIn("tuna:r=4", text)
        self.assertIn("between nodes", text)
        self.assertIn("nothing is remembered yet", self.ok("mpi", "show", "--file", path + "2"))

    def test_the_file_is_that_of_the_environment(self):
        path = self.file(MODEL)
        done = harness.run("mpi", "show", env={**os.environ, "TUTTI_MPI_FILE": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(path))
        environment = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": self.folder}
        done = harness.run("mpi", "show", env=environment)
        self.assertTrue(done.stdout.startswith(self.folder + "/tutti/mpi"))
        done = harness.run("mpi", "show", env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 2)
        self.assertIn("give --file", done.stderr)

    def test_bad_input(self):
        damaged = self.file("tutti-mpi 1\nbest of all\n")
        for command in ["show"], ["predict", "--ranks", 4], ["calibrate"], ["tune"]:
            self.refused("mpi", *command, "--file", damaged, says=["line 2", damaged])
        good = self.path("none")
        self.refused("mpi", "predict", "--ranks", 4, "--mpi", "lam", "--file", good,
                     says=["'lam'", "openmpi, mpich, smpi"])
        self.refused("mpi", "predict", "--ranks", 4, "--size", "12x", "--file", good, says=["12x"])
        self.refused("mpi", "predict", "--file", good, says=["--ranks"])
        self.refused("mpi", "predict", "--ranks", 0, "--file", good, says=["0"])
        self.refused("mpi", "tune", "--size", "1GiB", "--file", good, says=["at most 64MiB"])
        self.refused("mpi", "tune", "--turns", 1, "--file", good, says=["1"])
        self.refused("mpi", says=["subcommand"])
        self.refused("mpi", "calibrate", "--ranks", 1, "--file", good, says=["--ranks 1", "2 or more"])
        # Before anything is measured: there is no launcher here.
        for command in "calibrate", "tune":
            self.refused("mpi", command, "--file", damaged + "/below/mpi", says=[damaged + " is no folder"],
                         env={"PATH": self.folder})

    def test_a_missing_launcher_or_program_is_named(self):
        self.refused("mpi", "calibrate", "--file", self.path("none"), says=["mpirun", "PATH"],
                     env={"PATH": self.folder})
        copy = self.path("tutti")
        shutil.copy(harness.TUTTI, copy)
        launcher = self.path("smpirun")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 3\n")
        os.chmod(launcher, 0o755)
        done = subprocess.run([copy, "mpi", "calibrate", "--mpi", "smpi", "--file",
                               self.path("none")], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": self.folder})
        self.assertEqual(done.returncode, 2)
        self.assertIn("no program 'tutti-mpi-probe-smpi'", done.stderr)

    @unittest.skipUnless(has("tutti-mpi-probe-openmpi"), "built without MPI")
    def test_calibrate_writes_the_model(self):
        path = self.path("new/mpi")
        done = harness.run("mpi", "calibrate", "--ranks", 2, "--file", path, "--json",
                           env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.json("mpi", "show", "--file", path)
        self.assertEqual(shown["models"][0]["mpi"], "openmpi")
        # On a busy machine the fit may leave any one term at nothing, not all.
        model = shown["models"][0]
        self.assertGreater(sum(value for value in model["inside"].values() if not isinstance(value, str)) + model["send_s"] + model["receive_s"], 0)

    @unittest.skipUnless(has("tutti-mpi-probe-openmpi"), "built without MPI")
    def test_one_node_says_nothing_of_two_and_too_many_ranks_little_of_one(self):
        path = self.path("mpi")
        cores = os.sysconf("SC_NPROCESSORS_ONLN")
        done = harness.run("mpi", "calibrate", "--ranks", 2, "--file", path, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual("share" in done.stderr, cores < 2)
        between = self.json("mpi", "show", "--file", path)["models"][0]["between"]
        self.assertEqual(between["origin"], "assumed")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        # What an earlier run measured between nodes stays.
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"between=\S+", "between=7e-06,1e-10,1e-10", text))
        done = harness.run("mpi", "calibrate", "--ranks", cores + 1, "--file", path, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"tutti: warning: {cores + 1} ranks share {cores} cores", done.stderr)
        model = self.json("mpi", "show", "--file", path)["models"][0]
        self.assertEqual(model["inside"]["origin"], "crowded")
        self.assertEqual((model["between"]["origin"], model["between"]["latency_s"]), ("measured", 7e-06))

    @unittest.skipUnless(has("tutti-mpi-tune-openmpi"), "built without MPI")
    def test_tune_remembers_the_best_of_each_size(self):
        path = self.path("mpi")
        done = harness.run("mpi", "tune", "--ranks", 2, "--size", "64,4KiB", "--turns", 2,
                           "--candidates", 3, "--file", path, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("speed-up", done.stdout)
        rows = self.json("mpi", "show", "--file", path)["rows"]
        self.assertEqual([row["mean_block_bytes"] for row in rows], [32, 2048])
        for row in rows:
            self.assertLessEqual(row["time_s"], row["own_s"])

    @unittest.skipUnless(has("tutti-mpi-probe-openmpi"), "built without MPI")
    def test_a_launcher_that_fails_is_told_apart(self):
        done = harness.run("mpi", "calibrate", "--file", self.path("mpi"), "--",
                           "--no-such-option", env=ENVIRONMENT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with status", done.stderr)
        self.assertFalse(os.path.exists(self.path("mpi")))

    @unittest.skipUnless(has("tutti-mpi-tune-openmpi"), "built without MPI")
    def test_ctrl_c_ends_it_and_writes_nothing(self):
        with subprocess.Popen([harness.TUTTI, "mpi", "tune", "--ranks", "2", "--turns", "10000",
                               "--file", self.path("mpi")], env=ENVIRONMENT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            harness.until_it_catches(process, signal.SIGINT)
            try:
                process.wait(timeout=2)
                self.fail("ended by itself")
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
        self.assertFalse(os.path.exists(self.path("mpi")))

    @unittest.skipUnless(has("tutti-mpi-tune-openmpi"), "built without MPI")
    def test_a_launcher_that_does_not_end_is_killed(self):
        launcher = self.path("mpirun.openmpi")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ntrap '' TERM INT\nwhile :; do sleep 1; done\n")
        os.chmod(launcher, 0o755)
        with subprocess.Popen([harness.TUTTI, "mpi", "calibrate", "--file", self.path("mpi")],
                              env={**ENVIRONMENT, "PATH": self.folder + ":" + os.environ["PATH"]},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            harness.until_it_catches(process, signal.SIGTERM)
            try:
                process.wait(timeout=1)
                self.fail("ended by itself")
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 143)
        self.assertFalse(os.path.exists(self.path("mpi")))


if __name__ == "__main__":
    harness.main()
