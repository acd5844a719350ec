#!/usr/bin/python3
"""docs/guide/operate.md, walked as an operator does, on the testbed's four hosts: daemons that attach themselves with TLS, a controller
that follows, tenants, a policy simulated, applied and explained, the controller and then each daemon replaced while
others' collectives go on. Exit code 77 where the kernel refuses namespaces or a tool is missing."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ("H0", "H1", "H2", "H3")
NETWORK = "cluster(boxes=4,gpus=2,nics=2,nic=100Mbit/s,fabric=spine_leaf(2,2),oversubscription=2)"
PATIENCE_S = 120


def program(name):
    return os.environ.get(name.upper().replace("-", "_"), str(ROOT / "build/release/bin" / name))


def nics(host):
    return os.environ[f"TESTBED_{host}"].split()


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come")
        time.sleep(0.05)
    return answer


class Operator(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.running = {}  # by name

    def path(self, name):
        return str(self.folder / name)

    def start(self, name, *command, **how):
        with open(self.path(name + ".log"), "a") as log:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, **how)
        self.running[name] = process
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, name):
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE_S), 0, self.log(name))

    def log(self, name):
        return pathlib.Path(self.path(name + ".log")).read_text()

    def tutti(self, *arguments):
        done = subprocess.run([program("tutti"), "service", *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return json.loads(done.stdout)

    def policy(self, *arguments):
        return self.tutti("policy", *arguments, "--controller", self.path("controller.sock"))

    # --- What the guide's first part sets up

    def certificates(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, cwd=self.folder, capture_output=True)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "cluster.pem", "-days", "2", "-subj", "/CN=ca")
        self.folder.joinpath("names").write_text(f"subjectAltName=IP:{nics('H0')[0]}")
        for name in ("c", *HOSTS):
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "cluster.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem",
                    "-days", "2", "-extfile", "names")

    def tls(self, name):
        return ["--tls-certificate", self.path(f"{name}.pem"), "--tls-key", self.path(f"{name}.key"),
                "--tls-authority", self.path("cluster.pem")]

    def controller_address(self):
        return f"{nics('H0')[0]}:7700"

    def start_daemon(self, host):
        with open(self.path(f"{host}.json"), "w") as file:
            json.dump({"host": host, "listen": nics(host)[0], "nics": nics(host), "socket": self.path(f"{host}.sock"),
                       "admin": self.path(f"{host}.admin"),
                       "tenants": [{"name": "A", "token": "of A", "devices": [0, 1]}, {"name": "B", "token": "of B", "devices": [0, 1]}]}, file)
        self.start(host, "on", host, program("tuttid"), "--config", self.path(f"{host}.json"),
                   "--controller", self.controller_address(), *self.tls(host))

    def start_controller(self, **policy):
        with open(self.path("cluster.json"), "w") as file:
            json.dump({"topology": NETWORK, "hosts": [{"name": host, "nics": nics(host)} for host in HOSTS],
                       "routes": [{"ports": [50000, 1000]}, {"ports": [51000, 1000]}], "tenants": {"A": {"class": 1}}, **policy}, file)
        self.start("controller", "on", "H0", program("tutti-controller"), "--config", self.path("cluster.json"), "--listen",
                   self.controller_address(), "--follow", "1", "--socket", self.path("controller.sock"), *self.tls("c"))
        until("the controller", lambda: os.path.exists(self.path("controller.sock")))

    def start_tenant(self, tenant, hosts, run):
        ranks = [(host, device) for host in hosts for device in (0, 1)]
        for host in hosts:
            here = [str(rank) for rank, (at, _) in enumerate(ranks) if at == host]
            self.start(f"{run}.{host}", "on", host, program("tutti"), "service", "load", "--socket", self.path(f"{host}.sock"), "--ranks",
                       str(len(ranks)), "--here", *here, "--id", self.path(f"{run}.id"), "--size", "20000", "--until", self.path(f"{run}.stop"),
                       env=dict(os.environ, TUTTI_SERVICE_TOKEN=f"of {tenant}"))

    def end_tenant(self, hosts, run):
        self.folder.joinpath(f"{run}.stop").touch()
        for host in hosts:
            process = self.running.pop(f"{run}.{host}")
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"{run}.{host}"))

    # --- What is looked at

    def answers(self):
        done = subprocess.run([program("tutti"), "service", "policy", "show", "--json", "--controller", self.path("controller.sock")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:  # the socket of a controller that has ended may still be there
            self.assertIn("Connection refused", done.stderr)
            return False
        return all(host["error"] == "" for host in json.loads(done.stdout)["hosts"])

    def communicator(self, tenant):
        found = [one for one in self.policy("show")["communicators"] if one["tenant"] == tenant]
        return found[0] if found else None

    def has_strategy(self, tenant, strategy):
        one = self.communicator(tenant)
        return one if one and one["strategy"].startswith(strategy) and one["flows"] else None

    def completed(self, tenant, host):
        comms = self.tutti("comms", "--admin", self.path(f"{host}.admin"))["communicators"]
        return sum(rank["completed"] for one in comms if one["tenant"] == tenant for rank in one["local_ranks"])

    def goes_on(self, tenant, host):
        before = self.completed(tenant, host)
        until(f"a collective of {tenant}", lambda: self.completed(tenant, host) > before)

    def test_from_installation_to_upgrade(self):
        self.certificates()
        for host in HOSTS:
            self.start_daemon(host)
        self.start_controller()
        until("an answer of each daemon", self.answers)
        self.start_tenant("A", ("H0", "H2"), "first")
        self.start_tenant("B", ("H1", "H3"), "other")
        for tenant in "AB":
            until(f"ffa for {tenant}", lambda tenant=tenant: self.has_strategy(tenant, "ffa"))

        # A policy is tried, then changed to while all run; its reasons are asked for.
        wanted = ("pfa", "--reserved-routes", "1")
        self.assertTrue(any(one["new"] for one in self.policy("simulate", *wanted)["strategies"]))
        self.assertTrue(self.has_strategy("A", "ffa"), "a simulation changes nothing")
        applied = self.policy("apply", *wanted)
        self.assertEqual([one["error"] for one in applied["applied"]], ["", ""])
        self.assertTrue(applied["certificate"])
        # Where the machine is so busy that a way falls silent, the controller goes round it for a while.
        of_a = until("pfa for A", lambda: self.has_strategy("A", "pfa all-reduce"))
        until("the free route for B", lambda: {flow["route"] for flow in self.communicator("B")["flows"]} == {1})
        self.assertTrue(self.policy("explain", of_a["communicator"])["flows"])

        # The controller is replaced while all run: with the policy in its file it finds what is in force and changes nothing.
        self.end("controller")
        for tenant, host in (("A", "H0"), ("B", "H1")):
            self.goes_on(tenant, host)
        self.start_controller(policy="pfa", reserved_routes=1)
        until("an answer of each daemon", self.answers)
        again = until("the flows of before", lambda: (one := self.has_strategy("A", "pfa")) and one["flows"] == of_a["flows"] and one)
        if "lost: " not in self.log("controller"):
            self.assertEqual(again["epoch"], of_a["epoch"])
            self.assertFalse(any(one["new"] for one in self.policy("simulate")["strategies"]))

        # Daemons are replaced host by host, when the jobs there have ended; others' jobs go on.
        self.end_tenant(("H0", "H2"), "first")
        for host in ("H0", "H2"):
            until(f"{host} to be empty", lambda host=host: not self.tutti("comms", "--admin", self.path(f"{host}.admin"))["communicators"])
            self.end(host)
            self.goes_on("B", "H1")
            self.start_daemon(host)
            until("an answer of each daemon", self.answers)
        self.start_tenant("A", ("H0", "H2"), "second")
        until("pfa for A again", lambda: self.has_strategy("A", "pfa"))
        self.goes_on("A", "H2")
        self.goes_on("B", "H3")
        self.end_tenant(("H0", "H2"), "second")
        self.end_tenant(("H1", "H3"), "other")


def main():
    if "TESTBED_HOSTS" in os.environ:
        unittest.main()
    if shutil.which("openssl") is None:
        print("there is no openssl")
        sys.exit(77)
    libraries = subprocess.run(["ldd", program("tuttid")], stdout=subprocess.PIPE, text=True).stdout
    if "libgrpc" not in libraries:
        print("built without gRPC")
        sys.exit(77)
    sys.exit(subprocess.run([ROOT / "scripts/testbed", "spine-leaf", "--", sys.executable, "-B", os.path.abspath(__file__)]).returncode)


if __name__ == "__main__":
    main()
