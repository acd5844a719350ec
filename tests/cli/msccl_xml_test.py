"""MSCCL XML judged by an interpreter of its own, written from the format's facts and not from ours: what it executes must end with
what the collective promises, both ends of a message must name the same places (checkers of others ask for that), and where it finds a
spoilt file wrong, `tutti verify` must, too."""
import collections
import copy
import random
import unittest
import xml.etree.ElementTree as ElementTree

import harness

SLOTS = 2  # messages of a connection that are under way at most


class Wrong(Exception):
    pass


class Machine:
    """All ranks of a file; a chunk is the count of what was summed in it: {(rank, chunk of its input): times}."""

    def __init__(self, root, in_place):
        self.coll = root.get("coll")
        self.in_place = in_place
        gpus = root.findall("gpu")
        self.num_ranks = len(gpus)
        self.per_loop = int(root.get("nchunksperloop"))
        self.chunks_a_shard = self.per_loop // self.num_ranks
        self.memory, self.blocks = [], []
        for rank, gpu in enumerate(gpus):
            self.memory.append({buffer: [None] * int(gpu.get(buffer + "_chunks")) for buffer in "ios"})
            for block in gpu.findall("tb"):
                self.blocks.append((rank, int(block.get("id")), int(block.get("send")), int(block.get("recv")),
                                    int(block.get("chan")), [dict(step.attrib) for step in block.findall("step")]))
            for chunk in range(self.chunks_a_shard if self.coll == "allgather" else self.per_loop):
                self.write(rank, "i", chunk, {(rank, chunk): 1})

    def wanted(self, rank):
        ranks, shard = range(self.num_ranks), self.chunks_a_shard
        if self.coll == "allgather":
            return [{(source, i): 1} for source in ranks for i in range(shard)]
        if self.coll == "alltoall":
            return [{(source, rank * shard + i): 1} for source in ranks for i in range(shard)]
        if self.coll == "reducescatter":
            return [{(source, rank * shard + i): 1 for source in ranks} for i in range(shard)]
        if self.coll == "allreduce":
            return [{(source, i): 1 for source in ranks} for i in range(self.per_loop)]
        raise AssertionError(f"no collective {self.coll}")

    def place(self, rank, buffer, chunk):
        """The cells and which of them; in place the smaller of input and output is a part of the larger."""
        if not 0 <= chunk < len(self.memory[rank].get(buffer, [])):
            raise Wrong(f"rank {rank} has no {buffer}[{chunk}]")
        if self.in_place and self.coll == "allgather" and buffer == "i":
            return self.memory[rank]["o"], rank * self.chunks_a_shard + chunk
        if self.in_place and self.coll == "reducescatter" and buffer == "o":
            return self.memory[rank]["i"], rank * self.chunks_a_shard + chunk
        return self.memory[rank]["i" if self.in_place and buffer == "o" and self.coll == "allreduce" else buffer], chunk

    def read(self, rank, buffer, chunk):
        cells, at = self.place(rank, buffer, chunk)
        if cells[at] is None:
            raise Wrong(f"rank {rank} reads {buffer}[{chunk}] before anything is there")
        return cells[at]

    def write(self, rank, buffer, chunk, value):
        cells, at = self.place(rank, buffer, chunk)
        cells[at] = value

    def run(self, order):
        at = [0] * len(self.blocks)
        index = {(rank, block): i for i, (rank, block, *_) in enumerate(self.blocks)}
        queues = collections.defaultdict(collections.deque)
        waiting = [i for i, block in enumerate(self.blocks) if block[5]]
        while waiting:
            order.shuffle(waiting)
            moved = [i for i in waiting if self.step(i, at, index, queues)]
            if not moved:
                raise Wrong("nothing can go on")
            waiting = [i for i in waiting if at[i] < len(self.blocks[i][5])]
        if any(queues.values()):
            raise Wrong("a message is left")
        for rank in range(self.num_ranks):
            for chunk, value in enumerate(self.wanted(rank)):
                if self.read(rank, "o", chunk) != value:
                    raise Wrong(f"rank {rank} ends with another o[{chunk}]")

    def step(self, i, at, index, queues):
        """Whether the step that block `i` is at could be taken."""
        rank, _, send, receive, channel, steps = self.blocks[i]
        step = steps[at[i]]
        kind, count = step["type"], int(step["cnt"])
        source, target = step["srcbuf"], step["dstbuf"]
        source_at, target_at = int(step["srcoff"]), int(step["dstoff"])
        if int(step["depid"]) >= 0:
            other = index.get((rank, int(step["depid"])))
            if other is None or int(step["deps"]) >= len(self.blocks[other][5]):
                raise Wrong("it waits for what is not there")
            if self.blocks[other][5][int(step["deps"])]["hasdep"] != "1" or at[other] <= int(step["deps"]):
                return False
        incoming = queues[receive, rank, channel] if kind.startswith("r") and kind != "re" else None
        outgoing = queues[rank, send, channel] if kind in ("s", "rcs", "rrs", "rrcs") else None
        if (incoming is not None and (receive < 0 or not incoming)) or (outgoing is not None and len(outgoing) >= SLOTS):
            return False
        values = []
        if incoming is not None:
            values, places = incoming.popleft()
            if len(values) != count:
                raise Wrong("both ends count differently")
            if places != (source, source_at, target, target_at) and kind in ("r", "rcs"):
                raise Wrong(f"both ends name different places: {places} and {(source, source_at, target, target_at)}")
        if kind in ("s", "cpy"):
            values = [self.read(rank, source, source_at + k) for k in range(count)]
        if kind in ("rrs", "rrc", "rrcs"):
            values = [self.sum(values[k], self.read(rank, source, source_at + k)) for k in range(count)]
        if kind == "re":
            values = [self.sum(self.read(rank, source, source_at + k), self.read(rank, target, target_at + k)) for k in range(count)]
        if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
            for k, value in enumerate(values):
                self.write(rank, target, target_at + k, value)
        if outgoing is not None:
            outgoing.append((values, (source, source_at, target, target_at)))
        at[i] += 1
        return True

    @staticmethod
    def sum(a, b):
        total = dict(a)
        for key, times in b.items():
            total[key] = total.get(key, 0) + times
        return total


def fault_of(root, orders=6):
    """What an execution of the file does wrong, in any of several orders; None: nothing was found."""
    for in_place in (False, True):
        for seed in range(orders if root.get("inplace" if in_place else "outofplace") == "1" else 0):
            try:
                Machine(root, in_place).run(random.Random(seed))
            except Wrong as wrong:
                return str(wrong)
    return None


def spoil(root, draw):
    """One small change somewhere."""
    steps = list(root.iter("step"))
    step = draw.choice(steps)
    what = draw.choice(["srcoff", "dstoff", "depid", "hasdep", "type", "remove", "cnt"])
    if what in ("srcoff", "dstoff"):
        step.set(what, str(int(step.get(what)) + draw.choice([-1, 1])))
    elif what == "depid":
        step.set("depid", "-1")
        step.set("deps", "-1")
    elif what == "hasdep":
        step.set("hasdep", "0" if step.get("hasdep") == "1" else "1")
    elif what == "cnt":
        step.set("cnt", str(int(step.get("cnt")) + 1))
    elif what == "type":
        step.set("type", draw.choice(["s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "nop"]))
    else:
        block = next(block for block in root.iter("tb") if step in list(block))
        block.remove(step)
        for number, left in enumerate(block):
            left.set("s", str(number))
    return what


class MscclXml(harness.CliTest):
    def lowered(self, topology, collective, algorithm, *more):
        path = self.path("a.xml")
        self.ok("lower", self.synth(topology, collective, algorithm), "--to", "msccl-xml", "-o", path, *more)
        return ElementTree.parse(path).getroot()

    def test_what_is_written_runs_as_promised(self):
        for collective in ("all-gather", "reduce-scatter", "all-reduce", "all-to-all"):
            for topology, algorithm in [("ring(5)", "bfb"), ("hypercube(3)", "bfb"), ("dgx1", "ten"), ("torus(3,3)", "direct"),
                                        ("genkautz(2,7)", "bfb"), ("complete(4)", "direct"), ("switch(4)", "forest")]:
                if collective == "all-to-all":
                    algorithm = "direct"
                for more in ((), ("--in-place",)) if collective != "all-to-all" else ((),):
                    root = self.lowered(topology, collective, algorithm, *more)
                    self.assertIsNone(fault_of(root), (collective, topology, algorithm, more))

    def test_what_it_finds_the_checker_finds(self):
        draw = random.Random(1)
        found = 0
        for collective, topology in [("all-gather", "hypercube(3)"), ("all-reduce", "ring(4)"), ("reduce-scatter", "dgx1"),
                                     ("all-to-all", "torus(3,3)")]:
            good = self.lowered(topology, collective, "direct" if collective == "all-to-all" else "bfb")
            for number in range(25):
                root = copy.deepcopy(good)
                what = spoil(root, draw)
                path = self.path("spoilt.xml")
                ElementTree.ElementTree(root).write(path)
                done = harness.run("verify", path)
                self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                fault = fault_of(root)
                found += fault is not None
                if fault is not None:
                    self.assertNotEqual(done.returncode, 0, (collective, number, what, fault))
        self.assertGreater(found, 60)  # of 100


if __name__ == "__main__":
    unittest.main()
