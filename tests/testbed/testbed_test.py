#!/usr/bin/python3
"""scripts/testbed: routes by port and by hash, virtual NICs, exit codes, and nothing left behind. No test times
anything. Exit code 77 where the kernel refuses namespaces or a tool is missing."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

TESTBED = pathlib.Path(__file__).resolve().parents[2] / "scripts/testbed"
MARK = "86399.25"  # seconds that nobody else sleeps

# Sends 200 kB from an address and port of a host to H3 and prints by which interfaces and classes of a switch they left.
SEND = r"""
import json, re, socket, subprocess, sys
source, port, switch, target = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
receiver = subprocess.Popen(["on", target, sys.executable, "-c", '''
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 7000)); s.listen(); print("ready", flush=True)
c, who = s.accept(); n = 0
while True:
    data = c.recv(65536)
    if not data: break
    n += len(data)
print(n, who[0], who[1], flush=True)
'''], stdout=subprocess.PIPE, text=True)
receiver.stdout.readline()
def counters():
    shown = json.loads(subprocess.run(["ip", "-n", switch, "-s", "-j", "link"], stdout=subprocess.PIPE, text=True).stdout)
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in shown}
before = counters()
subprocess.run(["on", sys.argv[5], sys.executable, "-c", f'''
import socket
s = socket.socket(); s.bind(("{source}", {port})); s.connect(("10.1.{target[1]}.1", 7000)); s.sendall(bytes(200000)); s.close()
'''], check=True)
print(receiver.communicate()[0].strip())
after = counters()
names = sorted(name for name in after if after[name] - before.get(name, 0) > 150000)
print(" ".join(names))
# The classes that do not share any further.
shown = subprocess.run(["tc", "-n", switch, "-s", "class", "show", "dev", names[0]], stdout=subprocess.PIPE, text=True).stdout
print(" ".join(name for name, sent in re.findall(r"class htb (\S+) parent \S+ leaf .*\n Sent (\d+) bytes", shown) if int(sent) > 150000))
"""


def testbed(*arguments, **options):
    return subprocess.run([TESTBED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def sent(setup, source, port, switch, target="H3", flags=(), sender="H0"):
    done = testbed(*flags, setup, "--", sys.executable, "-c", SEND, source, str(port), switch, target, sender)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def marked():
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and MARK.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Testbed(unittest.TestCase):
    def test_pinned_ports_choose_the_spine(self):
        for port, spine in ((50000, "S0"), (50999, "S0"), (51000, "S1"), (51500, "S1")):
            received, links = sent("spine-leaf", "10.1.0.1", port, "L0")[:2]
            self.assertEqual(received, f"200000 10.1.0.1 {port}")
            self.assertEqual(links, spine)

    def test_the_second_virtual_nic_and_one_rack(self):
        received, links = sent("spine-leaf", "10.1.0.2", 50003, "L0", "H1")[:2]
        self.assertEqual(received, "200000 10.1.0.2 50003")
        self.assertEqual(links, "H1")

    def test_pinned_flows_share_with_nobody(self):
        """The same port of other addresses, and the port of the other range, are other flows."""
        flows = [("H0", "10.1.0.1", 50003), ("H0", "10.1.0.2", 50003), ("H1", "10.1.1.1", 50003), ("H0", "10.1.0.1", 50004)]
        classes = [sent("spine-leaf", source, port, "L0", sender=host)[2] for host, source, port in flows]
        self.assertEqual(len(set(classes)), len(flows), classes)
        for one in classes:
            self.assertRegex(one, "^1:[0-9a-f]+$")
        # Towards a host: both ranges meet there.
        classes = [sent("spine-leaf", "10.1.0.1", port, "L1")[2] for port in (50003, 51003)]
        self.assertEqual(len(set(classes)), 2, classes)

    def test_other_ports_go_by_a_seeded_hash(self):
        chosen = {seed: sent("spine-leaf", "10.1.0.1", 40001, "L0", flags=("--seed", str(seed)))[1] for seed in range(6)}
        self.assertEqual(set(chosen.values()), {"S0", "S1"})
        self.assertEqual(chosen[3], sent("spine-leaf", "10.1.0.1", 40001, "L0", flags=("--seed", "3"))[1])

    def test_both_ways_round_the_ring(self):
        self.assertEqual(sent("ring", "10.1.0.1", 50001, "L0", "H1")[1], "L1")
        self.assertEqual(sent("ring", "10.1.0.1", 51001, "L0", "H1")[1], "L3")

    def test_exit_codes(self):
        self.assertEqual(testbed("ring", "--", "sh", "-c", "exit 7").returncode, 7)
        for arguments, says in ((("circle", "--", "true"), "circle"), (("--scale", "0", "ring", "--", "true"), "--scale 0.0: wanted 0.1 to 100"),
                                (("--seed", "-1", "ring", "--", "true"), "--seed -1: wanted 0 to 2^31"), (("ring",), "COMMAND")):
            done = testbed(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)

    def test_nothing_is_left_behind_by_a_kill(self):
        process = subprocess.Popen([TESTBED, "spine-leaf", "--", "on", "H0", "sh", "-c", f"echo up; sleep {MARK}"],
                                   stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "up\n")
        self.assertTrue(marked())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for _ in range(1000):
            if not marked():
                return
            time.sleep(0.05)
        self.fail(f"left behind: {marked()}")


if __name__ == "__main__":
    probe = testbed("ring", "--", "true")
    if probe.returncode == 77:
        print(probe.stderr.strip())
        sys.exit(77)
    unittest.main()
