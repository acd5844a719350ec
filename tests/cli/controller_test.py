"""tutti-controller and tutti service policy: daemons that attach, policies that change what tenants run, and what is left when
the controller is killed."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import unittest

import harness

TUTTID = os.environ.get("TUTTID", "build/release/bin/tuttid")
CONTROLLER = os.environ.get("TUTTI_CONTROLLER", "build/release/bin/tutti-controller")
HOSTS = ["H0", "H1", "H2", "H3"]
NETWORK = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)"


def has_grpc():
    said = subprocess.run([TUTTID, "--controller", "127.0.0.1:1", "--socket", "/proc/none"], stderr=subprocess.PIPE, text=True)
    libraries = subprocess.run(["ldd", TUTTID], stdout=subprocess.PIPE, text=True).stdout
    return "libgrpc" in libraries and "without gRPC" not in said.stderr


PYTHON_HAS_GRPC = shutil.which("grpc_python_plugin") and subprocess.run(
    ["/usr/bin/python3", "-c", "import grpc, google.protobuf"], stderr=subprocess.DEVNULL).returncode == 0


class ControllerTest(harness.CliTest):
    def start(self, arguments, says):
        running = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        lines = []
        for line in running.stderr:
            lines.append(line)
            if says in line:
                return running
        self.fail(f"{arguments} ended: {''.join(lines)}")

    def nic(self, host, device):
        return f"127.1.{HOSTS.index(host)}.{device + 1}"

    def daemon(self, host, *more):
        with open(self.path(f"{host}.json"), "w") as file:
            json.dump({"socket": self.path(f"{host}.sock"), "admin": self.path(f"{host}.admin"), "listen": self.nic(host, 0),
                       "host": host, "nics": [self.nic(host, 0), self.nic(host, 1)]}, file)
        return self.start([TUTTID, "--config", self.path(f"{host}.json"), *more], "tenants at")

    def configuration(self, attached, **more):
        hosts = []
        for host in HOSTS:
            hosts.append({"name": host, "nics": [self.nic(host, 0), self.nic(host, 1)]})
            if not attached:
                hosts[-1]["admin"] = self.path(f"{host}.admin")
        with open(self.path("cluster.json"), "w") as file:
            json.dump({"topology": NETWORK, "hosts": hosts, "routes": [{"ports": [30000, 500]}, {"ports": [30500, 500]}], **more}, file)
        return self.path("cluster.json")

    def controller(self, *more, attached=False, **fields):
        return self.start([CONTROLLER, "--config", self.configuration(attached, **fields), "--socket", self.path("controller.sock"),
                           *more], "operators at")

    def policy(self, *arguments, ok=0):
        """The answer of `tutti service policy`, which ends with `ok`; None: with anything that has an answer."""
        done = harness.run("service", "policy", *arguments, "--controller", self.path("controller.sock"), "--json")
        if ok is not None:
            self.assertEqual(done.returncode, ok, done.stderr)
        return json.loads(done.stdout)

    def tenant(self, hosts):
        """Ranks of a tenant, two a host, that run until the file `stop` is there."""
        running = []
        for i, host in enumerate(hosts):
            arguments = [harness.TUTTI, "service", "load", "--socket", self.path(f"{host}.sock"), "--ranks", str(2 * len(hosts)), "--here",
                         str(2 * i), str(2 * i + 1), "--id", self.path("id"), "--size", "64KiB", "--until", self.path("stop"), "--json"]
            running.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            for stream in (running[-1].stdout, running[-1].stderr):
                self.addCleanup(stream.close)
            self.addCleanup(running[-1].wait)
            self.addCleanup(running[-1].kill)
        return running

    def until(self, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not (value := what()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(value)
        return value

    def complete(self, ranks):
        """The label of the communicator whose ranks have all joined."""
        def look():
            for one in self.policy("show")["communicators"]:
                if len(one["ranks"]) == ranks and None not in one["ranks"] and one["state"] != "joining":
                    return one["communicator"]
            return None
        return self.until(look)

    def end(self, tenants):
        with open(self.path("stop"), "w"):
            pass
        for tenant in tenants:
            out, err = tenant.communicate(timeout=60)
            self.assertEqual(tenant.returncode, 0, err)
            self.assertGreater(len(json.loads(out)["iterations"]), 0)

    def connections_from(self, first, end):
        """Established connections that leave from a daemon's NIC (127.1.x.y, which nobody else uses) and a port of [first, end)."""
        with open("/proc/net/tcp") as table:
            locals_ = [line.split()[1].split(":") for line in table.readlines()[1:] if line.split()[3] == "01"]
        return sum(address.endswith("017F") and first <= int(port, 16) < end for address, port in locals_)

    def check_policies(self):
        tenants = self.tenant(["H0", "H2", "H1"])
        label = self.complete(6)
        show = self.policy("show")["communicators"][0]
        self.assertEqual(show["ranks"], ["box0.gpu0", "box0.gpu1", "box2.gpu0", "box2.gpu1", "box1.gpu0", "box1.gpu1"])
        self.assertEqual(self.connections_from(30000, 31000), 0)
        simulated = self.policy("simulate", "ffa")
        self.assertTrue(simulated["strategies"][0]["new"])
        self.assertEqual(simulated["applied"], [])
        self.assertEqual(self.policy("show")["communicators"][0]["strategy"], "built-in")
        applied = self.policy("apply", "ffa")["applied"]
        self.assertEqual([(one["communicator"], one["error"]) for one in applied], [(label, "")])
        # Four rings, each of which crosses between racks once each way, and those between H0 and H1 have one way; connections are
        # made on first use.
        self.until(lambda: self.connections_from(30000, 30500) == 4 and self.connections_from(30500, 31000) == 4)
        self.assertEqual(self.policy("apply")["applied"], [])  # it is in force already
        explained = self.policy("explain", label)["flows"]
        self.assertEqual(len(explained), 12)
        for flow in explained:
            chosen = [route for route in flow["routes"] if route["chosen"]]
            self.assertEqual(len(chosen), 1 if flow["routes"] else 0)
        return tenants

    def test_applies_policies_while_tenants_run(self):
        for host in HOSTS:
            self.daemon(host)
        first = self.controller()
        tenants = self.check_policies()
        # Killed: all goes on; the next one finds what is in force.
        first.kill()
        first.wait()
        self.controller()
        self.assertEqual(self.policy("apply")["applied"], [])
        self.assertEqual(len(self.policy("apply", "locality-ring")["applied"]), 1)
        self.until(lambda: self.connections_from(30000, 31000) == 0)
        text = self.ok("service", "policy", "show", "--controller", self.path("controller.sock"))
        self.assertIn("0 of 12", text)
        # An operator's own routes: one flow of the first ring between racks, by the second route.
        label = self.complete(6)
        flow = next(flow for flow in self.policy("explain", label)["flows"] if len(flow["routes"]) == 2)
        one = {key: flow[key] for key in ("from", "to", "channel")}
        routes = self.path("routes.json")

        def install(given):
            with open(routes, "w") as file:
                json.dump(given, file)
            return ["service", "policy", "install", label, "--routes", routes, "--controller", self.path("controller.sock")]
        self.assertIn(f"{label}: in force after", self.ok(*install({"routes": [{**one, "route": 1}]})))
        pinned = [each for each in self.policy("show")["communicators"][0]["flows"] if each["route"] != "ecmp"]
        self.assertEqual(pinned, [{**one, "route": 1}])
        self.refused(*install({"routes": [{**one, "route": 2}]}), says=["routes[0]: route 2, there are 2"])
        self.refused(*install({"ruotes": []}), says=[routes, "ruotes: there are rings, route and routes"])
        self.refused(*install([]), says=[routes, "is no JSON object"])
        self.refused(*install({}), says=["neither rings nor routes"])
        self.end(tenants)

    @unittest.skipUnless(has_grpc(), "built without gRPC")
    def test_daemons_attach_over_the_network(self):
        port = 17000 + os.getpid() % 1000
        address = f"127.0.0.1:{port}"
        daemons = {host: self.daemon(host, "--controller", address) for host in HOSTS}
        controller = self.controller("--listen", address, attached=True)
        self.until(lambda: not any(host["error"] for host in self.policy("show")["hosts"]))
        tenants = self.check_policies()
        # Daemons attach again to the next controller.
        controller.kill()
        controller.wait()
        self.controller("--listen", address, attached=True)
        self.until(lambda: not any(host["error"] for host in self.policy("show")["hosts"]))
        self.assertEqual(self.policy("apply")["applied"], [])
        # One that has no ranks may go; it is named.
        daemons["H3"].kill()
        self.until(lambda: self.policy("show")["hosts"][3]["error"])
        self.assertEqual(len(self.policy("apply", "locality-ring")["applied"]), 1)
        self.end(tenants)

    @unittest.skipUnless(has_grpc(), "built without gRPC")
    def test_a_daemon_ends_while_the_controller_asks_it(self):
        """What it was asked when it ended gets no answer, and nobody waits for one."""
        address = f"127.0.0.1:{18000 + os.getpid() % 1000}"
        self.controller("--listen", address, attached=True)
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asks:
                    asks.connect(self.path("controller.sock"))
                    asks.sendall(b'{"command": "show"}\n')
                    while (part := asks.recv(65536)) and not part.endswith(b"\n"):
                        pass

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                daemon = self.daemon("H0", "--controller", address)
                self.until(lambda: not self.policy("show")["hosts"][0]["error"])
                daemon.terminate()
                self.assertEqual(daemon.wait(60), 0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    @unittest.skipUnless(has_grpc() and PYTHON_HAS_GRPC, "built without gRPC, or no python3-grpcio")
    def test_a_policy_of_ones_own_in_python(self):
        address = f"127.0.0.1:{19000 + os.getpid() % 1000}"
        for host in HOSTS:
            self.daemon(host)
        self.controller("--listen", address)
        tenants = self.tenant(["H0", "H2"])
        label = self.complete(4)
        plugin = "protoc-gen-grpc=" + shutil.which("grpc_python_plugin")
        subprocess.run(["protoc", "-I", "src/rpc", f"--python_out={self.folder}", f"--grpc_out={self.folder}", f"--plugin={plugin}",
                        "controller.proto"], check=True)
        policy = ["/usr/bin/python3", "-B", "examples/controller/own_policy.py"]
        where = dict(os.environ, PYTHONPATH=self.folder)
        done = subprocess.run([*policy, address], env=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, f"^{label}: held for [0-9.]+ ms\n$")
        # One ring whose two hops between racks both take route 0.
        self.until(lambda: self.connections_from(30000, 30500) == 2)
        self.assertEqual(self.connections_from(30500, 31000), 0)
        self.assertEqual(self.policy("show")["communicators"][0]["strategy"], "installed all-reduce, installed all-gather, installed reduce-scatter, 2 flows")
        # Single flows: the second of the ring's two hops by the other route.
        client = ("import sys, grpc, controller_pb2 as m, controller_pb2_grpc as s\n"
                  "done = s.ControllerStub(grpc.insecure_channel(sys.argv[1])).Install(m.InstallRequest(communicator=sys.argv[2], route=0,\n"
                  "    rings=[m.Ring(ranks=[0, 1, 2, 3])], routes=[m.FlowRoute(**{'from': int(sys.argv[3]), 'to': int(sys.argv[4]), 'route': 1})]))\n"
                  "print(done.applied[0].error)")

        def install(one, other):
            return subprocess.run(["/usr/bin/python3", "-B", "-c", client, address, label, one, other], env=where, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        done = install("3", "0")
        self.assertEqual((done.returncode, done.stdout), (0, "\n"), done.stderr)
        flows = {(flow["from"], flow["to"]): flow["route"] for flow in self.policy("show")["communicators"][0]["flows"]}
        self.assertEqual((flows[(1, 2)], flows[(3, 0)]), (0, 1))
        self.assertIn("no flow of its rings goes from rank 0 to rank 3", install("0", "3").stderr)
        refused = subprocess.run([*policy, "127.0.0.1:1"], env=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("own_policy: ", refused.stderr)
        self.end(tenants)

    def test_two_controllers_and_one_that_is_killed_again_and_again(self):
        for host in HOSTS:
            self.daemon(host)
        self.controller()
        tenants = self.tenant(["H0", "H2"])
        self.complete(4)
        # A second one, of another mind, that changes what the first has done and dies at any moment of it.
        other = self.path("other.sock")
        for delay in range(0, 60, 6):
            if os.path.exists(other):
                os.unlink(other)
            second = self.start([CONTROLLER, "--config", self.path("cluster.json"), "--socket", other], "operators at")
            asks = subprocess.Popen([harness.TUTTI, "service", "policy", "apply", "locality-ring", "--controller", other],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if delay % 12 == 0:
                self.policy("apply", "ffa", ok=None)  # at the same time; one of two may be busy
            time.sleep(delay / 1000)
            second.kill()
            asks.wait(timeout=120)
        self.until(lambda: all(not one["error"] for one in self.policy("apply", "ffa", ok=None)["applied"]))
        self.until(lambda: self.policy("apply", "ffa")["applied"] == [])
        self.until(lambda: self.connections_from(30000, 30500) == 4 and self.connections_from(30500, 31000) == 4)
        self.end(tenants)  # whose bytes have been right all along

    @unittest.skipUnless(has_grpc() and shutil.which("openssl"), "built without gRPC, or no openssl")
    def test_both_sides_prove_who_they_are(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
        with open(self.path("names"), "w") as file:
            file.write("subjectAltName=IP:127.0.0.1")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "host.key", "-out", "host.csr", "-subj", "/CN=host")
        openssl("x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "host.pem", "-days", "2",
                "-extfile", "names")
        tls = ["--tls-certificate", self.path("host.pem"), "--tls-key", self.path("host.key"), "--tls-authority", self.path("ca.pem")]
        address = f"127.0.0.1:{18000 + os.getpid() % 1000}"
        self.controller("--listen", address, *tls, attached=True)
        self.daemon("H0", "--controller", address, *tls)
        self.daemon("H1", "--controller", address)  # proves nothing
        self.until(lambda: not self.policy("show")["hosts"][0]["error"])
        time.sleep(1.5)
        self.assertIn("no daemon of H1 is attached", self.policy("show")["hosts"][1]["error"])

    def test_follows_who_comes(self):
        for host in HOSTS:
            self.daemon(host)
        self.controller("--follow", "1")
        tenants = self.tenant(["H0", "H2"])
        self.complete(4)
        self.until(lambda: "ffa" in self.policy("show")["communicators"][0]["strategy"])
        self.end(tenants)

    def test_wrong_input(self):
        def refused(*arguments):
            done = subprocess.run([CONTROLLER, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        self.assertIn("--config", refused())
        self.assertIn("No such file", refused("--config", self.path("none.json")))
        config = self.configuration(attached=False)
        self.assertIn("/proc/none", refused("--config", config, "--socket", "/proc/none/x"))
        self.assertIn("hosts[0].admin: is missing", refused("--config", self.configuration(attached=True), "--socket", self.path("s")))
        self.assertIn("unknown policy 'fairst'", refused("--config", self.configuration(False, policy="fairst")))
        self.assertIn("hosts[0].colour: is no field", refused("--config", self.configuration(False, hosts=[{"name": "H0", "colour": 1}] * 4)))
        if has_grpc():
            config = self.configuration(attached=True)
            self.assertIn("can be reached by others", refused("--config", config, "--socket", self.path("s"), "--listen", "0.0.0.0:0"))
        self.refused("service", "policy", "show", "--controller", self.path("none"), says=[self.path("none")])


if __name__ == "__main__":
    unittest.main()
