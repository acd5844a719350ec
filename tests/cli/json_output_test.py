"""docs/formats/json-output.md knows every key that a command prints with --json, and none that no command prints."""
import pathlib
import re
import unittest

import harness

PAGE = pathlib.Path("docs/formats/json-output.md")
# `out["key"] = ..`, `{"key", value}`; a literal behind a literal is a list of words.
IN_SOURCES = [re.compile(r'\b(?:out|row|json|entry|shown|rows_json)\["(\w+)"\]'), re.compile(r'\{"(\w+)",\s+(?!")')]
EXACT = {"num", "den", "value"}  # the parts of an exact value, told at the top of the page


def last(key):
    """"b" of "a[].b"."""
    return key.split(".")[-1].replace("[]", "")


def documented():
    """The last names of all keys: those of groups under "", those of a command under its first word."""
    keys, section = {"": set()}, ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("##"):
            heading = re.match(r"## `tutti (\w+)", line)
            section = heading[1] if heading else ""
            keys.setdefault(section, set())
        elif row := re.match(r"\| `([^`]+)` \|", line):
            keys[section].add(last(row[1]))
    return keys


def names_in(value):
    """All names of members; not of those that a collective, a column or a path names, nor inside of exact values."""
    if isinstance(value, list):
        return set().union(*map(names_in, value)) if value else set()
    if not isinstance(value, dict) or set(value) == EXACT:
        return set()
    names = set()
    for name, inner in value.items():
        members = inner.values() if name in ("bounds", "cells", "model") and isinstance(inner, dict) else [inner]
        names |= {name}.union(*map(names_in, members))
    return names


class JsonOutput(harness.CliTest):
    def test_page_and_sources_name_the_same_keys(self):
        # What the daemon and the controller answer is printed as it is.
        sources = [*sorted(pathlib.Path("src/cli").rglob("*.cc")), pathlib.Path("src/service/reports.cc"),
                   pathlib.Path("src/controller/requests.cc")]
        text = "".join(path.read_text() for path in sources)
        in_sources = set().union(*(pattern.findall(text) for pattern in IN_SOURCES)) - EXACT
        on_page = set().union(*documented().values()) - {"*"}
        self.assertEqual(sorted(in_sources - on_page), [], f"not on {PAGE}")
        self.assertEqual(sorted(key for key in on_page if f'"{key}"' not in text), [], "printed by nobody")

    def test_every_printed_key_is_on_the_page(self):
        network, sched, routes = self.path("n.topo.json"), self.path("s.sched"), self.path("r.routes")
        xml = self.path("s.xml")
        keys = documented()
        for command in [
                ["topo", "show", "torus(3,3)", "-o", network],
                ["topo", "show", "genkautz(2,5)"],
                ["topo", "import", "tests/data/import/nvidia-smi/hgx_4_direct.txt"],
                ["topo", "detect", "--host", "here"],
                ["topo", "list"],
                ["synth", network, "-a", "bfb", "-c", "all-reduce", "-o", sched],
                ["synth", network, "-a", "auto", "-c", "all-reduce", "--size", "1MiB"],
                ["synth", "switch(5)", "-a", "ten", "--unwind", "auto"],
                ["synth", "mesh(3,4,bw=[1,2]GB/s)", "-a", "ten"],
                ["synth", "torus(6,6)", "-a", "bfb", "--symmetric"],
                ["synth", "mesh(4,4)", "-a", "ten", "--cost-only"],
                ["synth", network, "-a", "tsmcf", "-c", "all-to-all"],
                ["synth", network, "-a", "mcf-extp", "-c", "all-to-all", "--layers", "2", "-o", routes],
                ["synth", "mesh(2,3)", "-c", "all-gather", "-a", "step-lp"],
                ["synth", "complete(6)", "-c", "all-gather", "-a", "direct", "--groups", "0,1;3,4", "--others", "idle",
                 "--placement", "best", "--size", "1MB"],
                ["synth", "torus(4,4)", "-c", "all-to-all", "--groups", "blocks=4", "-a", "mcf-extp"],
                ["synth", "switch(4,reduces=true)", "-c", "all-reduce", "-a", "forest"],
                ["topo", "show", "switch(4,reduces=true)"],
                ["compare", "torus(3,3)", "-c", "all-gather", "--groups", "0-2;3-8", "-a", "direct", "--size", "1MiB"],
                ["design", "-n", "16", "-d", "4", "--by-flow"],
                ["verify", sched],
                ["verify", routes],
                ["cost", sched, "--size", "1KiB,1MiB"],
                ["sim", sched, "--size", "1MiB", "--bins", "2"],
                ["compare", network, "-c", "all-reduce", "-a", "bfb,c-cube,auto", "--size", "1MiB"],
                ["compare", network, "-c", "all-to-all", "-a", "tsmcf,mcf-extp", "--size", "1MiB"],
                ["explain", "dgx_h100(2)", "-a", "forest", "--size", "1MiB"],
                ["explain", sched, "--size", "1KiB,1MiB"],
                ["diff", sched, sched],
                ["explore", sched, sched, "--size", "1MiB", "-o", self.path("page.html")],
                ["advise", "mesh(4)", "--size", "1MiB"],
                ["advise", "dgx_h100(2)", "-c", "all-reduce", "--size", "1MiB"],
                ["flow", "torus(3,3)", "genkautz(2,7)"],
                ["lower", sched, "--to", "msccl-xml", "-o", xml],
                ["verify", xml],
                ["lower", sched, "--to", "mscclpp", "-o", xml],
                ["verify", xml],
                ["run", sched, "--size", "64KiB", "--iters", "1", "--predict"],
                ["lower", sched, "--to", "plan-file", "-o", xml],
                ["verify", xml],
                ["calibrate", "--hosts", "localhost:2", "-n", "1", "--size", "16M", "-o", network],
                ["design", "-n", "16", "-d", "4", "--size", "1MiB"],
                ["train", "resnet-50", "torus(2,2)", "-a", "ring"],
                ["mpi", "predict", "-n", "8", "--file", self.path("mpi")],
                ["bench"],
        ]:
            with self.subTest(command=command):
                printed = names_in(self.json(*command))
                self.assertEqual(sorted(printed - keys[""] - keys[command[0]]), [], f"not on {PAGE}")


if __name__ == "__main__":
    unittest.main()
