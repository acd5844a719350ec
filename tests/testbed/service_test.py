#!/usr/bin/python3
"""scripts/testbed_cluster: tenants, daemons and a controller on the testbed, in the four ways of sharing it and with a ring
that is reversed while others take its links. Every result is checked by the ranks themselves; no test times anything.
Exit code 77 where the kernel refuses namespaces or a tool is missing."""
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORK = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)"
CIRCLE = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(4,2))"


def run(switches, spec, seed=1, timeout=600):
    return subprocess.run([ROOT / "scripts/testbed", "--seed", str(seed), switches, "--", ROOT / "scripts/testbed_cluster", "-"],
                          input=json.dumps(spec), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)


def both(*hosts):
    return [[host, device] for host in hosts for device in (0, 1)]


def one(device, *hosts):
    return [[host, device] for host in hosts]


ACROSS = ("H0", "H2", "H1", "H3")
SET_UPS = [
    {"A": both("H0", "H2"), "B": both("H1", "H3")},
    {"A": one(0, *ACROSS), "B": one(1, "H0", "H2"), "C": one(1, "H1", "H3")},
    {"A": both("H0", "H2"), "B": one(0, "H1", "H3"), "C": one(1, "H1", "H3")},
    {"A": one(0, *ACROSS), "B": one(1, *ACROSS)},
]


class ServiceOnTestbed(unittest.TestCase):
    def outcome(self, switches, spec, **how):
        done = run(switches, spec, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def in_every_phase(self, outcome, tenants):
        """Collectives began in each phase between two steps."""
        steps = outcome["steps"]
        for before, after in zip(steps, steps[1:]):
            for name in tenants:
                began = [begin for begin, _ in outcome["tenants"][name]["iterations"] if before["end_s"] <= begin <= after["begin_s"]]
                self.assertTrue(began, (name, before))

    def test_four_ways_of_sharing(self):
        for tenants in SET_UPS:
            spec = {"topology": NETWORK,
                    "tenants": [{"name": name, "ranks": ranks, "size": 100000} for name, ranks in tenants.items()],
                    "steps": [{"apply": {"policy": "named-ring"}}, {"collectives": 5, "apply": {"policy": "ffa"}}, {"collectives": 5, "stop": True}]}
            outcome = self.outcome("spine-leaf", spec)
            self.in_every_phase(outcome, tenants)
            by_ranks, fair = (step["answer"] for step in outcome["steps"][:2])
            for strategy in by_ranks["strategies"]:
                self.assertEqual(set(strategy["routes"]), {"ecmp"})
            for strategy in fair["strategies"]:
                # As many flows on one route as on the other.
                self.assertEqual(strategy["routes"].count(0), strategy["routes"].count(1), strategy)
            self.assertEqual(len(fair["applied"]), len(tenants))

    def routes(self, comms):
        """The routes that pinned flows in force take, by their first port; how many ways were left; which are lost."""
        every = [one for of_host in comms["answer"].values() for one in of_host]
        ports = {flow["ports"][0] for one in every for flow in one["flows"] or [] if "ports" in flow}
        return ports, sum(one["paths_lost"] for one in every), [path for one in every for path in one["lost_paths"]]

    def test_random_cuts(self):
        """Links drop everything for a while, one after the other, at any moment; ranks check every byte. TUTTI_CUTS: how many."""
        draw = random.Random(17)
        steps = [{"apply": {"policy": "ffa"}}]
        for _ in range(int(os.environ.get("TUTTI_CUTS", "5"))):
            link = [f"L{draw.randrange(2)}", f"S{draw.randrange(2)}"]
            if draw.random() < 0.5:
                draw.shuffle(link)
                link = {"from": link[0], "to": link[1]}
            steps += [{"after": draw.uniform(4, 5), "cut": link}, {"after": draw.uniform(0.2, 1), "mend": True}]
        spec = {"topology": NETWORK, "follow": 1, "tenants": [{"name": "A", "ranks": both("H0", "H2"), "size": 100000}],
                "steps": [*steps, {"after": 1, "comms": True}, {"stop": True}]}
        outcome = self.outcome("spine-leaf", spec, timeout=600 + 6 * len(steps))
        lost = self.routes(outcome["steps"][-2])[1]
        self.assertGreater(lost, 0)
        iterations = outcome["tenants"]["A"]["iterations"]
        gaps = sorted(end - begin for begin, end in iterations)
        print(f"{len(steps) // 2} cuts, {lost} ways left, {len(iterations)} collectives, median {1e3 * gaps[len(gaps) // 2]:.1f} ms, "
              f"longest {[round(1e3 * gap) for gap in gaps[-(len(steps) // 2):]]} ms", file=sys.stderr)

    def test_ring_reversed_beside_others(self):
        spec = {"topology": CIRCLE, "tenants": [{"name": "A", "ranks": one(0, "H0", "H1", "H2", "H3"), "size": 100000}],
                "steps": [{"install": {"tenant": "A", "rings": [[0, 1, 2, 3]], "route": 0}},
                          {"collectives": 5, "background": {"from": "H0", "to": "H1", "flows": 3, "port": 50900}},
                          {"collectives": 5, "install": {"tenant": "A", "rings": [[3, 2, 1, 0]], "route": 1}},
                          {"collectives": 5, "background": {}}, {"collectives": 5, "stop": True}]}
        outcome = self.outcome("ring", spec)
        self.in_every_phase(outcome, ["A"])

    def test_priorities_and_windows(self):
        tenants = SET_UPS[2]
        spec = {"topology": NETWORK,
                "tenants": [{"name": name, "ranks": ranks, "size": 50000, "compute": 20, "class": int(name == "A")}
                            for name, ranks in tenants.items()],
                "steps": [{"apply": {"policy": "pfa", "reserved_routes": 1, "reserved_from": 1}},
                          {"after": 1, "windows": {"preferred": "B", "victims": ["C"]}},
                          {"after": 1, "windows": {"victims": ["B", "C"]}},
                          {"after": 0.5, "windows": {"preferred": "B", "victims": ["C"], "follow": True}},
                          {"collectives": 5, "windows": {"victims": ["B", "C"]}}, {"after": 0.5, "stop": True}]}
        outcome = self.outcome("spine-leaf", spec)
        followed = outcome["steps"][3]
        self.assertEqual((followed["error"], followed["answer"]["period_ns"], followed["answer"]["patience_ns"]), ("", 0, 10**9))
        from_s, to_s = followed["end_s"], outcome["steps"][4]["begin_s"]
        for tenant in "BC":
            self.assertTrue(any(from_s < begin and end < to_s for begin, end in outcome["tenants"][tenant]["iterations"]), tenant)
        for strategy in outcome["steps"][0]["answer"]["strategies"]:
            self.assertNotIn(0 if strategy["tenant"] != "A" else "ecmp", strategy["routes"])
        self.assertEqual(outcome["steps"][2]["answer"], {"period_ns": 0})

    def test_wrong_input(self):
        done = run("spine-leaf", {"topology": "torus(", "tenants": [], "steps": []})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("testbed_cluster: ", done.stderr)
        done = run("spine-leaf", {"topology": NETWORK, "tenants": [{"name": "A", "ranks": one(0, "H0", "H1"), "size": 1000}],
                                  "steps": [{"apply": {"policy": "fairest"}}]})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unknown policy 'fairest'", done.stderr)


if __name__ == "__main__":
    probe = subprocess.run([ROOT / "scripts/testbed", "spine-leaf", "--", "true"], stderr=subprocess.PIPE, text=True)
    if probe.returncode == 77:
        print(probe.stderr.strip())
        sys.exit(77)
    unittest.main()
