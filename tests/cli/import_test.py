"""tutti topo import: files of other systems to a network that the other commands take."""
import os
import pathlib
import re
import shutil
import subprocess
import time

import harness

SAMPLES = "tests/data/import/"


class Import(harness.CliTest):
    def test_two_boxes_and_their_fabric(self):
        network = self.path("cluster.topo.json")
        out = self.ok("topo", "import", f"node[0-1]={SAMPLES}nvidia-smi/dgx_h100.txt",
                      f"{SAMPLES}ibnetdiscover/rails_two_nodes.txt", "-o", network)
        for words in ["16 ranks and 12 switches, 96 links", "nvidia-smi", "ibnetdiscover", "node0: NVSwitch",
                      "450GB/s a GPU (18 NVLinks, assumed 25 GB/s a link)", "dgx_h100.txt:2", "rails_two_nodes.txt:",
                      "alpha of every link", f"written to {network}"]:
            self.assertIn(words, out)
        shown = self.json("topo", "show", network)
        self.assertEqual((shown["ranks"], shown["nodes"], shown["links"]), (16, 28, 96))
        self.ok("synth", network, "-c", "all-gather", "-a", "direct", "-o", self.path("s.sched"))

    def test_json_says_who_said_what(self):
        out = self.json("topo", "import", f"*={SAMPLES}nccl-xml/a100_node0.xml",
                        f"{SAMPLES}slurm-conf/two_levels.conf", "--oversubscription", "3:2")
        self.assertEqual(out["ranks"], 64)
        self.assertEqual([file["format"] for file in out["files"]], ["nccl-xml", "slurm-conf"])
        rows = {row["what"]: row for row in out["provenance"]}
        self.assertIn("two_levels.conf:3", rows["leaf1 - spine"]["source"])
        self.assertEqual(rows["alpha of every link"]["source"], "assumed")
        self.assertEqual(out["warnings"], [])

    def test_the_fabric_may_be_given(self):
        boxes = f"node[0-3]={SAMPLES}nvidia-smi/dgx_h100.txt"
        out = self.json("topo", "import", boxes, "--fabric", "rails(spines=2,nic=400Gbit/s)")
        self.assertEqual((out["ranks"], out["nodes"], out["warnings"]), (32, 32 + 4 + 8 + 2, []))
        self.assertIn({"what": "network", "value": "8 rails below 2 spines", "source": "given"}, out["provenance"])
        self.refused("topo", "import", boxes, "--fabric", "tree", says=["--fabric: fabric 'tree'", "rails(count=C"])

    def test_the_files_name_decides_nothing(self):
        odd = self.path("node7.json")
        pathlib.Path(odd).write_bytes(pathlib.Path(SAMPLES + "nvidia-smi/hgx_4_direct.txt").read_bytes())
        self.assertIn("node7: NVLink", self.ok("topo", "import", odd))

    def test_bad_input(self):
        matrix, conf = f"a[0-1]={SAMPLES}nvidia-smi/dgx_h100.txt", f"{SAMPLES}slurm-conf/two_levels.conf"
        out = self.path("out.json")
        for arguments, says in [
                ([matrix], ["a0: nothing says how fast the NIC mlx5_0 is", "--nic"]),
                ([matrix, "--nic", "0"], ["--nic"]),
                ([matrix, "--nic", "fast"], ["--nic"]),
                ([matrix, "--nic", "1GB/s", "--oversubscription", "0"], ["--oversubscription", "3:2"]),
                ([conf, "--nic", "1GB/s", "--alpha", "3"], ["--alpha"]),
                (["*=" + conf], ["describes no single host"]),
                ([self.path("nothing")], ["nothing", "No such file"]),
                ([os.path.abspath("README.md")], ["README.md: nothing in it is of a format that is known"])]:
            with self.subTest(arguments):
                self.refused("topo", "import", *arguments, "-o", out, says=says)
                self.assertFalse(os.path.exists(out))
        bomb = self.path("bomb.xml")
        pathlib.Path(bomb).write_text('<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<system>&b;</system>\n')
        self.refused("topo", "import", bomb, "-o", out, says=["bomb.xml:1: a document type"])
        contrary = self.path("node.conf")
        pathlib.Path(contrary).write_text("SwitchName=other Nodes=node[01-08]\n")
        self.refused("topo", "import", conf, contrary, "--nic", "1GB/s", "-o", out,
                     says=["node01 is below leaf1", "two_levels.conf:1", "but below other", "node.conf:1"])
        # Nothing is written over what is read.
        copy = self.path("copy.txt")
        pathlib.Path(copy).write_bytes(pathlib.Path(SAMPLES + "nvidia-smi/hgx_4_direct.txt").read_bytes())
        self.refused("topo", "import", copy, "-o", copy, says=["copy.txt"])

    def test_contradictions_and_halves(self):
        samples = pathlib.Path(SAMPLES)

        def changed(name, sample, *changes):
            text = (samples / sample).read_text()
            for old, new in changes:
                self.assertIn(old, text)
                text = text.replace(old, new)
            path = self.path(name)
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_text(text)
            return path

        matrix, xml = f"{SAMPLES}nvidia-smi/dgx_h100.txt", f"{SAMPLES}nccl-xml/h100_node0.xml"
        pcie = "nccl-xml/no_nvlink_two_sockets.xml"
        log = self.path("half.log")
        whole = (samples / "nccl-log/pcie_two_hosts.log").read_bytes()
        pathlib.Path(log).write_bytes(whole[:len(whole) * 2 // 3])
        swapped = changed("swapped.txt", "nvidia-smi/dgx_h100.txt", ("NIC0: mlx5_0", "NIC0: mlx5_7"), ("NIC7: mlx5_7", "NIC7: mlx5_0"))
        long = changed("a_very_long_directory_name_for_a_file_of_a_cluster/and_another_one_below_it/node0.xml", "nccl-xml/h100_node0.xml",
                       ('<gpu dev="1"', '<gpu dev="0"'))
        for arguments, says in [
                ([long], [f"{long}:17: <gpu>: dev=\"0\" stands in line 5, too"]),
                ([changed("slow.xml", pcie, ("16.0 GT/s", "0.0 GT/s"))], ['slow.xml:3: <pci>: link_speed="0.0 GT/s PCIe"']),
                ([changed("twice.json", "topograph/leaf_only.json", ('{"id"', '{"id": "x", "id"'))], ["twice.json: $.instances[0]: the key 'id' is twice"]),
                ([log], [f"{log}:", "of 8 ranks 5 stand in the log, rank 5 does not"]),
                ([f"node0={matrix}", f"node0={SAMPLES}nccl-xml/a100_node0.xml"],
                 [f"node0: 18 NVLinks between GPU 0 and GPU 1 ({matrix}:2), but 12 to the NVSwitch ({SAMPLES}nccl-xml/a100_node0.xml:7)"]),
                ([f"node0={swapped}", f"node0={xml}"], [f"node0: mlx5_0 is nearest to GPU 7 ({swapped}:17), but to GPU 0 ({xml}:11)"])]:
            with self.subTest(arguments):
                self.refused("topo", "import", *arguments, "--nic", "1GB/s", says=says)
        lanes = self.json("topo", "import", changed("lanes.xml", pcie, ('link_width="16"', 'link_width="0"')))
        self.assertEqual(lanes["warnings"][:1], [f'{self.path("lanes.xml")}:3: link_width="0" of 2 GPUs: their PCIe links are not known'])
        blocks = self.json("topo", "import", f"{SAMPLES}slurm-conf/blocks.conf", f"*={matrix}", "--nic", "1GB/s")
        self.assertEqual(blocks["ranks"], 288)
        self.assertIn("nothing says what joins the 2 blocks", blocks["warnings"][0])

    def test_detect_reads_sysfs(self):
        device = pathlib.Path(self.path("sys/devices/pci0000:00/0000:00:03.0"))
        device.mkdir(parents=True)
        (device / "numa_node").write_text("0\n")
        eth = pathlib.Path(self.path("sys/class/net/eth0"))
        eth.mkdir(parents=True)
        (eth / "speed").write_text("25000\n")
        (eth / "device").symlink_to(device)
        network = self.path("here.topo.json")
        out = self.ok("topo", "detect", "--root", self.folder, "--host", "here", "-o", network)
        self.assertIn("1 ranks and 0 switches", out)
        self.assertEqual(self.json("topo", "show", network)["ranks"], 1)
        for name in "n0", "n1":
            pathlib.Path(self.path(name + ".json")).write_text(
                '{"lldp": {"interface": {"eth0": {"chassis": {"leaf": {"id": {}}}}}}}')
        shown = self.json("topo", "import", self.path("n0.json"), self.path("n1.json"), "--nic", "25Gbit/s")
        self.assertEqual((shown["ranks"], shown["nodes"], shown["links"]), (2, 3, 4))
        self.refused("topo", "detect", "--root", self.path("nowhere"), says=["no sysfs is there"])
        self.refused("topo", "detect", "--root", self.folder, "--host", "a b", says=["no name of a host"])


class SimulatedFabric(harness.CliTest):
    """The fabric of a sample, cabled again in ibsim and discovered there by ibnetdiscover itself."""

    def setUp(self):
        super().setUp()
        self.tools = [shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") for tool in ("ibsim", "ibsim-run", "ibnetdiscover")]
        if None in self.tools:
            self.skipTest("no ibsim-utils or no infiniband-diags")

    def cables(self, sample):
        """What ibsim reads: nodes by the names of the sample, with their ports."""
        nodes, lines = {}, pathlib.Path(sample).read_text().splitlines()
        for line in lines:
            if header := re.match(r'(Switch|Ca)\s+\d+ "([^"]*)"\s+# "([^"]*)"', line):
                nodes[header[2]] = header[3]
        text = ""
        for line in lines:
            if header := re.match(r'(Switch|Ca)\s+\d+ "([^"]*)"', line):
                text += f'\n{"Switch" if header[1] == "Switch" else "Hca"} {64 if header[1] == "Switch" else 1} "{nodes[header[2]]}"\n'
            elif cable := re.match(r'\[(\d+)\]\S*\s+"([^"]*)"\[(\d+)\]', line):
                text += f'[{cable[1]}] "{nodes[cable[2]]}"[{cable[3]}]\n'
        return text

    def discover(self, cables, host):
        net = self.path("net")
        with open(net, "w") as file:
            file.write(cables)
        ibsim, ibsim_run, ibnetdiscover = self.tools
        environment = {**os.environ, "IBSIM_SOCKNAME": f"tutti-{os.getpid()}", "SIM_HOST": host}
        with open(self.path("ibsim.log"), "w") as log:
            simulator = subprocess.Popen([ibsim, "-s", "-n", net], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        try:
            deadline = time.monotonic() + 120
            while simulator.poll() is None and time.monotonic() < deadline:
                done = subprocess.run([ibsim_run, ibnetdiscover], capture_output=True, text=True, env=environment, timeout=120)
                if done.returncode == 0 and "Switch" in done.stdout:
                    return done.stdout
                time.sleep(0.2)
        finally:
            simulator.kill()
            simulator.wait()
        self.fail(f"ibsim shows no fabric: {pathlib.Path(self.path('ibsim.log')).read_text()}")

    def test_ibnetdiscover_in_ibsim_reads_as_the_sample(self):
        sample = f"{SAMPLES}ibnetdiscover/rails_two_nodes.txt"
        fabric = self.path("fabric.txt")
        with open(fabric, "w") as file:
            file.write(self.discover(self.cables(sample), "node0 mlx5_0"))
        boxes = f"node[0-1]={SAMPLES}nvidia-smi/dgx_h100.txt"
        written, simulated = (self.json("topo", "import", boxes, path) for path in (sample, fabric))
        for key in ("ranks", "nodes", "links"):
            self.assertEqual(simulated[key], written[key], key)
        # ibsim's cables are four lanes of 2.5 Gbit/s with eight bits in ten.
        links = [row for row in simulated["provenance"] if row["source"].startswith(fabric)]
        self.assertTrue(links)
        self.assertEqual({row["value"] for row in links if "mlx5_" in row["what"]}, {"1GB/s"})
        self.assertEqual({row["what"] for row in simulated["provenance"]}, {row["what"] for row in written["provenance"]})


if __name__ == "__main__":
    harness.main()
