"""scripts/check_abi: what an older program relies on, changed one thing at a time."""
import pathlib
import shutil
import subprocess
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include/tutti/tutti.h"
COUNT = "TUTTI_DECLARE(tuttiResult_t, tuttiCommCount, (tuttiComm_t comm, int* count));"


@unittest.skipIf(shutil.which("abidiff") is None, "no abidiff (abigail-tools)")
class AbiTest(harness.CliTest):
    def check(self, old=None, new=None):
        text = HEADER.read_text()
        if old is not None:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        path = pathlib.Path(self.path("tutti.h"))
        path.write_text(text)
        library = pathlib.Path(harness.TUTTI).resolve().parent.parent / "lib/libtutti_communicator.a"
        if not library.exists():
            self.skipTest(f"no {library}")
        return subprocess.run([str(ROOT / "scripts/check_abi"), "--header", str(path), "--library", str(library)], capture_output=True,
                              text=True, timeout=300)

    def test_the_header_is_what_older_programs_know(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^[0-9]+ functions as they were")

    def test_a_configuration_may_grow_at_its_end(self):
        done = self.check("} tuttiConfig_t;", "  int more;\n} tuttiConfig_t;")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_change_is_named(self):
        for old, new, says in ((COUNT, COUNT.replace("int* count", "long* count"), "ptuttiCommCount"),
                               ("tuttiAvg = 4", "tuttiAvg = 5", "'tuttiRedOp_t::tuttiAvg' from value '4' to '5'"),
                               (COUNT, "", "[D] 'function tuttiResult_t tuttiCommCount(tuttiComm_t, int*)'"),
                               ("  double timeout_s;", "  int more;\n  double timeout_s;", "'double timeout_s' offset changed"),
                               ("#define TUTTI_UNIQUE_ID_BYTES 128", "#define TUTTI_UNIQUE_ID_BYTES 64", "tuttiUniqueId"),
                               (COUNT, COUNT + COUNT.replace("CommCount", "CommNew"), "the library has no ptuttiCommNew, tuttiCommNew")):
            done = self.check(old, new)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(says, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
