"""What the black-box tests of the command share: running it and judging what it printed."""
import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import zlib

TUTTI = os.environ.get("TUTTI", "build/release/bin/tutti")


def run(*arguments, timeout=600, **options):
    return subprocess.run([TUTTI, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, **options)


def until_it_catches(process, number):
    """The process has begun so far that signal `number` no longer ends it untold."""
    while process.poll() is None:
        try:
            caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)
        except OSError:
            return
        if caught and int(caught.group(1), 16) >> (number - 1) & 1:
            return
        time.sleep(0.005)


def established(pid):
    """The TCP connections of a process, as (local address and port, remote address and port) of /proc/net/tcp."""
    mine = set()
    for file in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        try:
            mine.add(os.readlink(file))
        except OSError:
            pass
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [(row[1], row[2]) for row in rows if row[3] == "01" and f"socket:[{row[9]}]" in mine]


def write_clos(path):
    """Two leaves of two ranks under two spines: switches linked to switches. The path."""
    links = [("r0", "leaf0"), ("r1", "leaf0"), ("r2", "leaf1"), ("r3", "leaf1"), ("leaf0", "spine0"),
             ("leaf0", "spine1"), ("leaf1", "spine0"), ("leaf1", "spine1")]
    with open(path, "w") as file:
        json.dump({"format": "tutti-topology", "version": 1,
                   "nodes": [{"name": f"r{i}", "kind": "rank"} for i in range(4)] +
                            [{"name": name, "kind": "switch"} for name in ("leaf0", "leaf1", "spine0", "spine1")],
                   "link_defaults": {"bandwidth": "50GB/s", "alpha": "0.5us"},
                   "links": [{"from": a, "to": b, "duplex": True} for a, b in links]}, file)
    return path


def page_data(path):
    """What a page of --html holds (docs/formats/explorer-data.md)."""
    text = pathlib.Path(path).read_text()
    size, packed = re.search(r'<script type="text/plain" id="tutti-data" data-bytes="(\d+)">([^<]*)</script>', text).groups()
    unpacked = zlib.decompress(base64.b64decode(packed))
    assert len(unpacked) == int(size)
    return json.loads(unpacked)


class CliTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}{done.stdout}")
        return done.stdout

    def json(self, *arguments, code=0):
        done = run(*arguments, "--json")
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        return json.loads(done.stdout)  # one object and nothing else

    def refused(self, *arguments, says=(), code=2, **options):
        """Bad input: the exit code, one clear error that says `says`, no output, no stack trace."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}{done.stdout}")
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("tutti: error: "), done.stderr)
        self.assertNotRegex(done.stderr, re.compile(r"terminate|what\(\)|internal error|\.cc:\d+"))
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, done.stderr)
        return done.stderr

    def synth(self, topology, collective, algorithm, name="s.sched", *more):
        path = self.path(name)
        self.ok("synth", topology, "-c", collective, "-a", algorithm, "-o", path, *more)
        return path


main = unittest.main
