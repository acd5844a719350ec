"""What other systems read: `tutti rules`, NCCL graph XML, Chakra traces."""
import glob
import heapq
import itertools
import json
import os
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import harness

# Sums of integers of several sizes by MPI_Allreduce, compared.
MPI_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
static int in[65536], out[65536];
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 65536; ++i) in[i] = rank + i;
  for (int n = 1; n <= 65536; n *= 16) {
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; ++i) wrong += out[i] != ranks * i + ranks * (ranks - 1) / 2;
  }
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
"""


def read_table(path):
    """The rows of a table for NCCL, as lists of words."""
    with open(path) as file:
        lines = file.read().splitlines()
    assert lines[0] == "tutti-nccl-table 1" and lines[-1] == "end", lines
    return [line.split() for line in lines[1:-1] if not line.startswith("#")]


class Rules(harness.CliTest):
    def test_ranges_are_those_of_compare(self):
        out = self.path("nccl.txt")
        answer = self.json("rules", "ring(8)", "--to", "nccl-tuner", "-c", "all-reduce", "--by", "cost", "-o", out)
        (row,) = answer["rows"]
        self.assertEqual((row["collective"], row["ranks"], row["nodes"]), ("all-reduce", 8, None))
        self.assertEqual({one["algorithm"] for one in row["rules"]} - {"tree", "ring"}, set())
        rows = read_table(out)
        self.assertEqual(len(rows), len(row["rules"]))
        begin = 0
        for words, rule in zip(rows, row["rules"]):
            self.assertEqual(words[:3] + words[5:], ["allreduce", "8", "*", rule["algorithm"], "*", "*"])
            self.assertEqual(int(words[3]), begin)
            begin = None if words[4] == "*" else int(words[4]) + 1
        self.assertIsNone(begin)  # no gap, and up to the end
        # At sizes that schedules are made for it is what compare says.
        for size in ("32KiB", "32MiB"):
            best = self.json("compare", "ring(8)", "-c", "all-reduce", "-a", "ring,dbt", "--size", size)["rows"]
            by_cost = min(best, key=lambda one: one["analytic_s"])["algorithm"]
            value = {"32KiB": 1 << 15, "32MiB": 1 << 25}[size]
            said = [one for one in row["best_by_size"] if one["from_bytes"] <= value][-1]
            self.assertEqual(said["algorithm"], by_cost)

    def test_several_networks_and_boxes(self):
        out = self.path("nccl.txt")
        text = self.ok("rules", "dgx_h100(1)", "ring(4)", "--to", "nccl-tuner", "-c", "all-gather", "-o", out)
        self.assertIn("all-gather, 8 ranks", text)
        keys = {(words[0], words[1], words[2]) for words in read_table(out)}
        self.assertEqual(keys, {("allgather", "8", "1"), ("allgather", "4", "*")})

    def test_open_mpi_takes_the_rules(self):
        if not shutil.which("mpirun.openmpi") or not shutil.which("mpicc.openmpi"):
            self.skipTest("no Open MPI")
        rules, source, program = self.path("rules.conf"), self.path("sum.c"), self.path("sum")
        self.ok("rules", "hypercube(2)", "--to", "openmpi", "-o", rules)
        with open(source, "w") as file:
            file.write(MPI_PROGRAM)
        subprocess.run(["mpicc.openmpi", source, "-o", program], check=True, capture_output=True)
        self.assertEqual(self.mpirun(program, rules), (0, "0 wrong\n"))
        # That the file decides: with an algorithm that does not exist the same program fails.
        with open(rules) as file:
            lines = file.read().replace(" rabenseifner", " ").splitlines()
        begin = lines.index("2 # allreduce")
        begin = next(i for i in range(begin, len(lines)) if lines[i] == "4 # ranks")
        for i in range(begin + 2, begin + 2 + int(lines[begin + 1].split()[0])):
            lines[i] = lines[i].split()[0] + " 99 0 0"
        with open(rules, "w") as file:
            file.write("\n".join(lines) + "\n")
        self.assertNotEqual(self.mpirun(program, rules)[0], 0)

    def mpirun(self, program, rules):
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        done = subprocess.run(["mpirun.openmpi", "-n", "4", "--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
                               "coll_tuned_dynamic_rules_filename", rules, program], capture_output=True, text=True,
                              timeout=300, env=environment)
        return done.returncode, done.stdout

    def test_mpich_takes_the_rules(self):
        library = next(iter(glob.glob("/usr/lib/*/libmpich.so.12*")), None)
        if not shutil.which("mpiexec.mpich") or not shutil.which("mpicc.mpich") or library is None:
            self.skipTest("no MPICH")
        base, rules = self.path("base.json"), self.path("rules.json")
        with open(library, "rb") as file:  # the library carries the tree that it takes by default
            found = re.search(rb'\{"collective=bcast":[^\0]*MPIR_Bcast_intra_binomial[^\0]*', file.read())
        if found is None:
            self.skipTest("this MPICH carries no tree")
        with open(base, "wb") as file:
            file.write(found.group())
        self.ok("rules", "hypercube(2)", "--to", "mpich", "--base", base, "-o", rules)
        source, program = self.path("gather.c"), self.path("gather")
        with open(source, "w") as file:
            file.write(MPI_PROGRAM.replace("MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD)",
                                           "MPI_Allgather(in, n / 4 + 1, MPI_INT, out, n / 4 + 1, MPI_INT, "
                                           "MPI_COMM_WORLD)")
                       .replace("wrong += out[i] != ranks * i + ranks * (ranks - 1) / 2",
                                "wrong += out[i] != i % (n / 4 + 1) + i / (n / 4 + 1)")
                       .replace("out[65536]", "out[70000]"))
        subprocess.run(["mpicc.mpich", source, "-o", program], check=True, capture_output=True)
        self.assertEqual(self.mpiexec(program, rules), (0, "0 wrong\n"))
        # That the file decides: with an algorithm that does not exist the same program fails.
        with open(rules) as file:
            text = file.read()
        self.assertIn("MPIR_Allgather_intra_", text)
        with open(rules, "w") as file:
            file.write(text.replace("MPIR_Allgather_intra_", "MPIR_Allgather_intra_no_"))
        self.assertNotEqual(self.mpiexec(program, rules)[0], 0)

    def mpiexec(self, program, rules):
        environment = {**os.environ, "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": rules}
        done = subprocess.run(["mpiexec.mpich", "-n", "4", program], capture_output=True, text=True, timeout=300,
                              env=environment)
        return done.returncode, done.stdout

    def test_open_mpi_json_is_json(self):
        out = self.path("rules.json")
        self.ok("rules", "hypercube(2)", "ring(3)", "--to", "openmpi-json", "--nodes", "1", "-o", out)
        with open(out) as file:
            rules = json.load(file)
        self.assertEqual((rules["rule_file_version"], rules["module"]), (3, "tuned"))
        for name, sizes in rules["collectives"].items():
            self.assertIn(name, ("allgather", "allreduce", "reducescatter"))
            for size in sizes:
                self.assertEqual(size["comm_size_min"], size["comm_size_max"])
                self.assertEqual(size["comm_rank_distribution"], "single-node")
                begin = 0
                for rule in size["rules"]:
                    self.assertEqual(rule["msg_size_min"], begin)
                    begin = rule["msg_size_max"] + 1 if rule["msg_size_max"] != "inf" else None
                self.assertIsNone(begin)

    def test_recursive_doubling_is_for_powers_of_two(self):
        out = self.path("rules.conf")
        for network, counts in (("hypercube(3)", True), ("complete(6)", False)):
            self.ok("rules", network, "--to", "openmpi", "-c", "all-gather", "-o", out)
            with open(out) as file:
                self.assertEqual("recursive_doubling" in file.read(), counts)

    def test_bad_input(self):
        out = self.path("out")
        self.refused("rules", "ring(4)", "--to", "rccl", "-o", out, says=["rccl", "nccl-tuner"])
        self.refused("rules", "ring(4)", "--to", "mpich", "-o", out, says=["--to mpich needs --base"])
        self.refused("rules", "ring(4)", "--to", "openmpi", "--base", out, "-o", out, says=["takes no --base"])
        self.refused("rules", "ring(4)", "--to", "nccl-tuner", "-c", "all-to-all", "-o", out,
                     says=["has no rules for all-to-all; it has some for all-reduce, all-gather"])
        self.refused("rules", "ring(4)", "torus(2,2)", "--to", "nccl-tuner", "-c", "all-gather", "-o", out,
                     says=["two rules for all-gather among 4 ranks"])
        self.assertFalse(os.path.exists(out))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Number of the field -> its values, in order."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def read_trace(path):
    """(type, data dependencies, attributes) of each node."""
    with open(path, "rb") as file:
        data = file.read()
    messages, at = [], 0
    while at < len(data):
        size, at = varint(data, at)
        messages.append(fields(data[at:at + size]))
        at += size
    assert messages[0] == {1: [b"0.0.4"]}, messages[0]
    nodes = []
    for number, node in enumerate(messages[1:]):
        assert node[1] == [number]
        depends, packed, at = [], b"".join(node.get(5, [])), 0
        while at < len(packed):
            value, at = varint(packed, at)
            depends.append(value)
        attributes = {}
        for attribute in map(fields, node[10]):
            (name,) = attribute.pop(1)
            ((attributes[name.decode()],),) = attribute.values()
        nodes.append((node[3][0], depends, attributes))
    return nodes


def astra_sim_ns(traces, links, bytes_per_ns, latency_ns):
    """When the last rank is done in ASTRA-sim's congestion-aware network: links are queues, which a message holds for the
    whole nanoseconds of its bytes and leaves those and the latency later, whole nanoseconds again; the next link takes it
    then. `links(source, destination)`: those on the way. A reduction takes 1 ns."""
    free, waiting, events = {}, {}, []
    left = [[len(depends) for _, depends, _ in trace] for trace in traces]
    arrived, done_at = set(), 0
    ticket = itertools.count()

    def at(time, action, *arguments):
        heapq.heappush(events, (time, next(ticket), action, arguments))

    def issue(now, rank, node):
        kind, _, words = traces[rank][node]
        if kind == 5:
            key = (rank, words["comm_dst"], words["comm_tag"])
            at(now, hop, key, words["comm_size"], tuple(links(rank, words["comm_dst"])), (rank, node))
        elif kind == 6:
            key = (words["comm_src"], rank, words["comm_tag"])
            if key in arrived:
                at(now, finish, rank, node)
            else:
                waiting[key] = (rank, node)
        else:
            at(now + 1, finish, rank, node)

    def hop(now, key, size, way, sender):
        start = max(now, free.get(way[0], 0))
        free[way[0]] = start + int(size / bytes_per_ns)
        there = start + int(latency_ns + size / bytes_per_ns)
        if len(way) > 1:
            at(there, hop, key, size, way[1:], sender)
            return
        arrived.add(key)
        at(there, finish, *sender)
        at(there, land, key)

    def land(now, key):
        if key in waiting:
            finish(now, *waiting.pop(key))

    def finish(now, rank, node):
        nonlocal done_at
        done_at = max(done_at, now)
        for after, (_, depends, _) in enumerate(traces[rank]):
            if node in depends:
                left[rank][after] -= 1
                if left[rank][after] == 0:
                    issue(now, rank, after)

    for rank, trace in enumerate(traces):
        for node, (_, depends, _) in enumerate(trace):
            if not depends:
                issue(0, rank, node)
    while events:
        now, _, action, arguments = heapq.heappop(events)
        action(now, *arguments)
    return done_at


class Chakra(harness.CliTest):
    def times(self, network, collective, algorithm, ranks, links):
        """Nanoseconds of the traces in ASTRA-sim's network and of the schedule in our simulator, at 1 MiB."""
        schedule = self.synth(network, collective, algorithm)
        self.ok("lower", schedule, "--to", "chakra", "--size", "1MiB", "-o", self.path("trace"))
        traces = [read_trace(self.path(f"trace.{rank}.et")) for rank in range(ranks)]
        ours = self.json("sim", schedule, "--size", "1MiB", "--mode", "eager", "--link-model", "pipelined")["time_s"]
        return astra_sim_ns(traces, links, 50 * 2**30 / 1e9, 500), ours * 1e9

    def test_times_are_those_of_astra_sim(self):
        # What ASTRA-sim itself printed of an 8-rank ring all-gather of 1 MiB at its 50 "GB/s" and 500 ns, on its ring and on its switch.
        speed = "bw=50GiB/s,alpha=500ns"
        theirs, ours = self.times(f"uniring(1,8,{speed})", "all-gather", "uniring", 8, lambda a, b: [(a, b)])
        self.assertEqual(theirs, 20587)
        self.assertLess(abs(theirs - ours), 7)  # a message loses less than a nanosecond there
        through = lambda a, b: [(a, "switch"), ("switch", b)]
        self.assertEqual(self.times(f"uniring(1,8,{speed})", "all-gather", "uniring", 8, through)[0], 41174)
        # A schedule through the switch, which sends each shard up once.
        theirs, ours = self.times(f"switch(8,{speed})", "all-gather", "uniring", 8, through)
        self.assertLess(abs(theirs - ours), 16)

    def test_times_of_other_schedules_agree_within_whole_nanoseconds(self):
        speed = "bw=50GiB/s,alpha=500ns"
        for network, collective, algorithm, ranks, chain in [
                (f"complete(5,{speed})", "all-gather", "direct", 5, 1), (f"complete(5,{speed})", "reduce-scatter", "direct", 5, 5),
                (f"hypercube(3,{speed})", "all-gather", "rhd", 8, 3), (f"hypercube(3,{speed})", "reduce-scatter", "rhd", 8, 6),
                (f"uniring(1,6,{speed})", "all-reduce", "uniring", 6, 15)]:
            with self.subTest(f"{network} {collective} {algorithm}"):
                theirs, ours = self.times(network, collective, algorithm, ranks, lambda a, b: [(a, b)])
                self.assertLessEqual(abs(theirs - ours), chain)  # a nanosecond a message, and one a reduction

    def test_ring_all_gather(self):
        schedule = self.synth("uniring(1,8)", "all-gather", "uniring")
        out = self.json("lower", schedule, "--to", "chakra", "--size", "1MiB", "-o", self.path("trace"))
        self.assertEqual(out["files"], 8)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".et")),
                         [f"trace.{rank}.et" for rank in range(8)])
        sent, received = set(), set()
        for rank in range(8):
            for kind, depends, attributes in read_trace(self.path(f"trace.{rank}.et")):
                self.assertEqual(attributes["comm_size"], 131072)
                if kind == 5:
                    sent.add((rank, attributes["comm_dst"], attributes["comm_tag"]))
                    self.assertEqual(len(depends), 0 if attributes["comm_tag"] == 0 else 1)
                else:
                    self.assertEqual((kind, depends), (6, []))
                    received.add((attributes["comm_src"], rank, attributes["comm_tag"]))
        self.assertEqual(sent, received)
        self.assertEqual(len(sent), 8 * 7)

    def test_all_reduce_through_switches(self):
        schedule = self.synth("dgx_h100(1)", "all-reduce", "forest")
        text = self.ok("lower", schedule, "--to", "chakra", "-o", self.path("t"))
        self.assertIn("t.0.et .. ", text)
        kinds = {kind for rank in range(8) for kind, _, _ in read_trace(self.path(f"t.{rank}.et"))}
        self.assertEqual(kinds, {4, 5, 6})

    def test_bad_input(self):
        schedule = self.synth("ring(4)", "all-gather", "ring")
        for size in ("0", "-1", "many"):
            self.refused("lower", schedule, "--to", "chakra", "--size", size, "-o", self.path("t"), says=["size"])
        # One of the files would be the schedule itself.
        taken = self.path("t.0.et")
        os.rename(schedule, taken)
        self.refused("lower", taken, "--to", "chakra", "-o", self.path("t"), says=["t.0.et"])
        self.assertEqual(os.listdir(self.folder), ["t.0.et"])


class NcclGraph(harness.CliTest):
    def channels(self, path):
        graphs = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(graphs.tag, "graphs")
        (graph,) = graphs
        self.assertEqual(int(graph.get("nchannels")), len(graph))
        return graph, [[(child.tag, int(child.get("dev"))) for child in channel] for channel in graph]

    def test_rings_of_a_box(self):
        schedule = self.synth("ring(8)", "all-reduce", "ring")
        out = self.path("graph.xml")
        self.ok("lower", schedule, "--to", "nccl-graph", "-o", out)
        graph, channels = self.channels(out)
        self.assertEqual(graph.get("id"), "0")
        self.assertEqual(len(channels), 2)  # the ring and its reverse
        self.assertEqual(channels[0], [("gpu", i) for i in range(8)])
        self.assertEqual(channels[1], [("gpu", -i % 8) for i in range(8)])

    def test_rings_of_several_boxes(self):
        schedule = self.synth("uniring(1,8)", "all-gather", "uniring")
        out = self.path("graph.xml")
        for box in range(2):
            self.ok("lower", schedule, "--to", "nccl-graph", "--box-ranks", "4", "--box", box, "-o", out)
            graph, channels = self.channels(out)
            self.assertEqual(graph.get("typeinter"), "PIX")
            self.assertEqual(channels, [[("net", 0), *(("gpu", i) for i in range(4)), ("net", 3)]])

    def trees(self, *trees):
        """A schedule of an all-reduce up and down each tree, one unit a tree; edges are (parent, child), the root's first."""
        text = self.path("empty.json")
        self.ok("synth", "complete(6)", "-c", "all-reduce", "-a", "dbt", "-o", text)
        with open(text) as file:
            schedule = json.load(file)
        transfers = []
        for unit, tree in enumerate(trees):
            ways = [(child, parent, "reduce") for parent, child in reversed(tree)] + [(parent, child, "copy") for parent, child in tree]
            transfers += [{"step": step, "shard": 0, "from": a, "to": b, "begin": unit, "end": unit + 1, "op": op}
                          for step, (a, b, op) in enumerate(ways)]
        schedule.update(steps=10, units_per_shard=len(trees), algorithm="trees", transfers=sorted(transfers, key=lambda one: one["step"]))
        out = self.path("trees.json")
        with open(out, "w") as file:
            json.dump(schedule, file)
        self.ok("verify", out)
        return out

    def test_trees_of_boxes(self):
        # NCCL's two trees of two boxes: each the root of one, the other below its first GPU.
        first = [(0, 2), (2, 1), (0, 4), (4, 3), (3, 5)]
        second = [(4, 3), (3, 5), (4, 0), (0, 2), (2, 1)]
        schedule = self.trees(first, second)
        for box, order in enumerate([[0, 2, 1], [1, 0, 2]]):
            out = self.path("graph.xml")
            answer = self.json("lower", schedule, "--to", "nccl-graph", "--box-ranks", "3", "--box", box, "-o", out)
            self.assertNotIn("note", answer)
            graph, channels = self.channels(out)
            self.assertEqual((graph.get("id"), graph.get("pattern")), ("1", "1"))
            self.assertEqual(channels, [[("net", order[0]), *(("gpu", i) for i in order), ("net", order[1])]])
        # One of the two trees alone is not what NCCL runs.
        for output in (self.ok("lower", self.trees(first), "--to", "nccl-graph", "--box-ranks", "3", "-o", out),
                       self.json("lower", self.trees(first), "--to", "nccl-graph", "--box-ranks", "3", "-o", out)["note"]):
            self.assertIn("the paths in each box are the schedule's", output)

    def test_trees_with_forks_are_refused(self):
        schedule = self.synth("complete(6)", "all-reduce", "bfb")
        self.refused("lower", schedule, "--to", "nccl-graph", "-o", self.path("graph.xml"), code=1,
                     says=["NCCL's graphs hold rings, and trees of paths within each box", "--to mscclpp"])
        self.assertFalse(os.path.exists(self.path("graph.xml")))


if __name__ == "__main__":
    unittest.main()
