"""What operators and their tools meet of tuttid: metrics, RAS, systemd's protocols, reload, restart."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness

TUTTID = os.environ.get("TUTTID", "build/release/bin/tuttid")
UNITS = "examples/service"
BENCH = "service bench".split()


def read_to_end(stream):
    parts = []
    while part := stream.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def connect(path):
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(60)
    stream.connect(path)
    return stream


class OperatorsTest(harness.CliTest):
    def start(self, *more, config=None, environment=None):
        """A running daemon at the paths s and a, with metrics at m and RAS at r."""
        if config is not None:
            self.configure(config)
        arguments = [TUTTID, "--listen", "127.0.0.1", "--host", "one", "--socket", self.path("s"), "--admin", self.path("a")]
        arguments += ["--config", self.path("config")] if config is not None else []
        arguments += more
        running = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environment or {})})
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.assertIn("tenants at", running.stderr.readline())
        return running

    def configure(self, config):
        with open(self.path("config"), "w") as file:
            json.dump(config, file)

    def end(self, running):
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(60), 0)

    def bench(self, *more, **options):
        return self.ok(*BENCH, "--socket", self.path("s"), "--size", "8", "--batches", "1", "--alone", *more, **options)

    def scrape(self, token="", status=200):
        with contextlib.closing(connect(self.path("m"))) as stream:
            head = f"Authorization: Bearer {token}\r\n" if token else ""
            stream.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
            head, body = read_to_end(stream).split("\r\n\r\n", 1)
        self.assertTrue(head.startswith(f"HTTP/1.1 {status} "), head)
        return body

    def until(self, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not (value := what()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return value

    # --- Metrics ---------------------------------------------------------------------------------

    def test_metrics_are_well_formed_and_the_dashboard_names_only_what_is_there(self):
        self.start("--metrics", self.path("m"))
        self.bench("--ranks", "2")
        text = self.scrape()
        families, samples = {}, set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, families)
                families[name] = kind
            elif not line.startswith("#"):
                name, value = re.fullmatch(r'([a-z0-9_]+)(?:\{(?:[a-z0-9_]+="(?:[^"\\]|\\.)*",?)+\})? (\S+)', line).groups()
                float(value)
                self.assertNotIn(line.rsplit(" ", 1)[0], samples)
                samples.add(line.rsplit(" ", 1)[0])
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                self.assertTrue(name in families or families.get(base) == "histogram", name)
        for wanted in ("tutti_collectives_total", "tutti_bytes_total", "tutti_collective_seconds", "tutti_launch_delay_seconds",
                       "tutti_queue_depth", "tutti_connections", "tutti_reconfigurations_total", "tutti_hold_seconds",
                       "tutti_gate_closed_seconds", "tutti_path_bytes_total", "tutti_refused_total", "tutti_tenant_memory_bytes",
                       "tutti_runtime_busy_ratio", "nccl_bus_bandwidth_gbs", "nccl_collective_exec_time_microseconds"):
            self.assertIn(wanted, families)
        with open(f"{UNITS}/grafana.json") as file:
            dashboard = json.load(file)
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        expressions += [one["query"] for one in dashboard["templating"]["list"]]
        named = {re.sub(r"_(bucket|sum|count)$", "", name) if name not in families else name
                 for expression in expressions for name in re.findall(r"\b(?:tutti|nccl)_[a-z0-9_]+", expression)}
        self.assertGreater(len(families), 20)
        # A panel for each metric, and none for what there is not.
        self.assertEqual(named, set(families))
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
        self.assertEqual(len(places), len(set(places)))

    def test_communicators_that_run_are_counted_with_nccls_names_too(self):
        self.start("--metrics", self.path("m"))
        running = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path("s"), "--alone", "--ranks", "2", "--size",
                                    "64KiB", "--batches", "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        line = self.until(lambda: re.search(
            r'^nccl_bus_bandwidth_gbs\{version="tutti",slurm_job_id="unknown",node="one",gpu="rank1",comm_name="(c-[0-9a-f]{8})",'
            r'n_nodes="1",nranks="2",collective="AllReduce",message_size="65-66KB",algo_proto="built-in"\} (\S+)$',
            self.scrape(), re.M))
        self.assertGreater(float(line.group(2)), 0)
        self.assertIn(f'tutti_collectives_total{{tenant="user-{os.getuid()}",communicator="{line.group(1)}",kind="all-reduce"}}',
                      self.scrape())

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root, to be somebody else")
    def test_who_is_no_tenant_sees_nothing(self):
        self.start("--metrics", self.path("m"), "--ras", self.path("r"))
        os.chmod(self.folder, 0o755)
        asks = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); " \
               "print(s.recv(99999).decode())"
        def as_nobody(path, request):
            return subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c", asks, path, request],
                                  capture_output=True, text=True, timeout=60)
        self.assertIn("403 Forbidden", as_nobody(self.path("m"), "GET /metrics HTTP/1.1\r\n\r\n").stdout)
        self.assertNotIn("Tutti version", as_nobody(self.path("r"), "STATUS\n").stdout)

    # --- RAS -------------------------------------------------------------------------------------

    def test_ras_as_its_clients_speak_it(self):
        self.start("--ras", self.path("r"))
        with contextlib.closing(connect(self.path("r"))) as monitor, contextlib.closing(connect(self.path("r"))) as stream:
            monitor.sendall(b"SET FORMAT json\nMONITOR all\n")
            events = monitor.makefile("r")
            self.assertEqual([events.readline(), events.readline()], ["OK\n", "OK\n"])
            waits = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path("s"), "--alone", "--ranks", "2", "--here", "1",
                                      "--id", self.path("id"), "--size", "8"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            self.addCleanup(waits.wait)
            self.addCleanup(waits.kill)

            def event():
                text = ""
                while not text.endswith("\n}\n"):
                    text += events.readline()
                return json.loads(text)
            begun = event()
            self.assertEqual((begun["group"], begun["event"]), ("LIFECYCLE", "COMM_INIT"))
            for line, answer in ((b"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL 2\n"), (b"TIMEOUT 5\n", "OK\n"),
                                 (b"SET FORMAT json\n", "OK\n")):
                stream.sendall(line)
                self.assertEqual(stream.recv(100).decode(), answer)
            stream.sendall(b"VERBOSE STATUS\n")
            status = json.loads(read_to_end(stream))
            self.assertEqual(status["communicators_count"], 1)
            one = status["communicators"][0]
            self.assertEqual((one["size"], one["ranks_count"], one["missing_ranks_count"]), (2, 1, 1))
            self.assertEqual((one["ranks"][0]["rank"], one["ranks"][0]["pid"]), (0, waits.pid))
            self.assertEqual(one["missing_ranks"][0]["details"], "has not joined")
            self.assertEqual(sorted(status["ras"]), ["collection_time_sec", "timeouts_count"])
            waits.kill()
            dead = event()
            while dead["event"] != "PEER_DEAD":
                dead = event()
            self.assertEqual(dead["peer"]["pid"], waits.pid)

    def some_run(self):
        """A communicator whose ranks are there: one that they have left stays until its root has heard it."""
        return any(each["state"] == "active" and not any(rank["left"] for rank in each["local_ranks"])
                   for each in self.json("service", "comms", "--admin", self.path("a"))["communicators"])

    # --- systemd ---------------------------------------------------------------------------------

    def notified(self):
        there = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(there.close)
        there.bind(self.path("notify"))
        there.settimeout(60)
        return there

    def said(self, there, word):
        while True:
            lines = there.recv(4096).decode().split("\n")
            if word in lines:
                return lines

    def test_it_says_when_it_is_ready_reloads_and_ends(self):
        there = self.notified()
        running = self.start(config={"anybody": False, "tenants": [{"name": "blue", "token": "b"}]},
                             environment={"NOTIFY_SOCKET": self.path("notify")})
        self.assertIn(f"MAINPID={running.pid}", self.said(there, "READY=1"))
        blue, red = ({**os.environ, "TUTTI_SERVICE_TOKEN": token} for token in ("b", "r"))
        self.bench(env=blue)
        holds = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path("s"), "--alone", "--size", "8", "--batches", "100000"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=blue)
        self.addCleanup(holds.stderr.close)
        self.addCleanup(holds.wait)
        self.addCleanup(holds.kill)
        self.until(self.some_run)
        # One that is wrong changes nothing, and is said.
        with open(self.path("config"), "w") as file:
            file.write("{")
        running.send_signal(signal.SIGHUP)
        self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for line in self.said(there, "RELOADING=1")))
        self.said(there, "READY=1")
        self.assertIn("not reloaded: ", running.stderr.readline() + running.stderr.readline())
        self.bench(env=blue)
        self.configure({"anybody": False, "port": 1, "tenants": [{"name": "red", "token": "r", "weight": 3}]})
        running.send_signal(signal.SIGHUP)
        self.said(there, "RELOADING=1")
        self.said(there, "READY=1")
        self.bench(env=red)
        self.refused(*BENCH, "--socket", self.path("s"), "--size", "8", "--alone", env=blue, says=["with this token is no tenant"])
        self.assertIn("the service has gone", holds.communicate(timeout=60)[1])
        self.end(running)
        log = running.stderr.read()
        self.assertIn("reloaded but for port, which take a restart", log)
        self.assertIn("its tenant is no longer in the configuration", log)
        self.said(there, "STOPPING=1")

    def test_the_watchdog_hears_a_daemon_that_is_well_and_not_one_that_hangs(self):
        there = self.notified()
        running = self.start(environment={"NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "400000"})
        for _ in range(3):
            self.said(there, "WATCHDOG=1")
        running.send_signal(signal.SIGSTOP)
        there.settimeout(1)
        with self.assertRaises(TimeoutError):
            while True:  # what was said before
                there.recv(4096)
        running.send_signal(signal.SIGCONT)
        there.settimeout(60)
        self.said(there, "WATCHDOG=1")

    def listening(self, name, kind):
        there = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(there.close)
        there.bind(self.path(name))
        there.listen(16)
        return there

    def test_sockets_are_passed_and_outlive_a_restart(self):
        tenants = self.listening("s", socket.SOCK_SEQPACKET)
        admin = self.listening("a", socket.SOCK_STREAM)
        def start():
            # As systemd does: from descriptor 3 on.
            first = self.path("first")
            command = f"exec 3<&{tenants.fileno()} 4<&{admin.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=2 " \
                      f"LISTEN_FDNAMES=tenants:admin; exec {TUTTID} --listen 127.0.0.1 2>>{first}"
            running = subprocess.Popen(["bash", "-c", command], pass_fds=[tenants.fileno(), admin.fileno()])
            self.addCleanup(running.wait)
            self.addCleanup(running.kill)
            return running
        running = start()
        self.bench()
        holds = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path("s"), "--alone", "--size", "8", "--batches", "100000"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(holds.stderr.close)
        self.addCleanup(holds.wait)
        self.addCleanup(holds.kill)
        self.until(self.some_run)
        self.end(running)
        # Who was served is told; who comes between the two daemons waits.
        self.assertRegex(holds.communicate(timeout=60)[1], r"\Atutti: error: [^\n]*the service (has gone|ends)[^\n]*\n\Z")
        waits = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path("s"), "--size", "8", "--batches", "1", "--alone"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waits.stdout.close)
        self.addCleanup(waits.stderr.close)
        time.sleep(0.2)
        self.assertIsNone(waits.poll())
        running = start()
        out, error = waits.communicate(timeout=60)
        self.assertEqual((waits.returncode, error), (0, ""), out)
        self.end(running)
        self.assertTrue(os.path.exists(self.path("s")))  # its owner's, who passed it

    def test_what_cannot_be_passed_is_named(self):
        with open(self.path("file"), "w") as file:
            for names, descriptor, says in (("tenants", file.fileno(), "passed socket 'tenants': wanted a listening socket"),
                                            ("", file.fileno(), "descriptor 3 that was passed is no socket")):
                command = f"exec 3<&{descriptor}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={names}; exec {TUTTID}"
                done = subprocess.run(["bash", "-c", command], pass_fds=[descriptor], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(says, done.stderr)
        # Meant for another process: not taken.
        running = self.start(environment={"LISTEN_PID": "1", "LISTEN_FDS": "7"})
        self.end(running)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not there")
    def test_units_are_what_systemd_takes(self):
        for name in ("tuttid.service", "tuttid.socket", "tuttid-admin.socket"):
            with open(f"{UNITS}/{name}") as file:
                text = file.read()
            with open(self.path(name), "w") as file:
                file.write(text.replace("/usr/bin/tuttid", os.path.abspath(TUTTID)))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.path("tuttid.service")], capture_output=True, text=True,
                              timeout=60)
        complaints = [line for line in done.stderr.splitlines() if "tuttid" in line]
        self.assertEqual(complaints, [])

    # --- TLS -------------------------------------------------------------------------------------

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60, cwd=self.folder)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                     f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")

    def certificate(self, name, authority):
        """The configuration of a daemon with a certificate of this authority."""
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key",
                     "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                     "-CAcreateserial", "-out", f"{name}.pem", "-days", "2")
        return {"certificate": self.path(f"{name}.pem"), "key": self.path(f"{name}.key"), "authority": self.path("ours.pem")}

    def start_with(self, name, tls):
        with open(self.path(f"{name}.json"), "w") as file:
            json.dump({"tls": tls} if tls else {}, file)
        running = subprocess.Popen([TUTTID, "--listen", "127.0.0.1", "--host", name, "--socket", self.path(f"{name}.sock"),
                                    "--admin", self.path(f"{name}.admin"), "--config", self.path(f"{name}.json")],
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        line = running.stderr.readline()
        if "no TLS" in line or "this build has none" in line:
            self.skipTest(line.strip())
        return running, int(re.search(r"other daemons at 127.0.0.1:(\d+)", line).group(1))

    def meet(self, first, second):
        """Two ranks, one at each daemon; what the second says."""
        common = ["--alone", "--ranks", "2", "--here", "1", "--size", "8,1MiB", "--batches", "2", "--id", self.path(f"id-{second}")]
        there = subprocess.Popen([harness.TUTTI, *BENCH, "--socket", self.path(f"{first}.sock"), "--first", "0", *common],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(there.stdout.close)
        self.addCleanup(there.stderr.close)
        self.addCleanup(there.wait)
        self.addCleanup(there.kill)
        here = harness.run(*BENCH, "--socket", self.path(f"{second}.sock"), "--first", "1", *common, timeout=120)
        return here, there

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not there")
    def test_daemons_meet_by_tls_and_wrong_certificates_are_named(self):
        self.authority("ours")
        self.authority("theirs")
        one, port = self.start_with("one", self.certificate("one", "ours"))
        self.start_with("two", self.certificate("two", "ours"))
        done, there = self.meet("one", "two")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(there.wait(60), 0)
        # A daemon whose certificate is another authority's; one that speaks no TLS.
        self.start_with("stranger", self.certificate("stranger", "theirs"))
        done, _ = self.meet("one", "stranger")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it refuses the certificate of this host", done.stderr)
        self.start_with("plain", None)
        done, _ = self.meet("one", "plain")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the root daemon has gone", done.stderr)
        # Neither gets an answer without a certificate.
        with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
            stream.sendall(b"\0" * 64)
            self.assertNotIn(b"\x0f", stream.recv(100)[:1])
        self.end(one)
        self.assertIn("its certificate is refused: unable to get local issuer certificate", one.stderr.read())

    @unittest.skipUnless(shutil.which("openssl"), "openssl is not there")
    def test_files_of_tls_that_are_wrong_are_named(self):
        self.authority("ours")
        tls = self.certificate("one", "ours")
        self.start_with("one", tls)  # skips where this build has no TLS
        self.certificate("other", "ours")
        with open(self.path("nonsense"), "w") as file:
            file.write("nonsense")
        for fields, says in (({"certificate": self.path("none")}, "tls.certificate: "), ({"key": self.path("other.key")}, "tls.key: "),
                             ({"authority": self.path("nonsense")}, "tls.authority: "),
                             ({"key": ""}, "tls: wanted certificate, key and authority"), ({"port": 1}, "tls.port: is no field")):
            self.configure({"tls": {**tls, **fields}})
            done = subprocess.run([TUTTID, "--listen", "127.0.0.1", "--socket", self.path("s"), "--admin", self.path("a"),
                                   "--config", self.path("config")], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(says, done.stderr)

    # --- /proc -----------------------------------------------------------------------------------

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root, to be two processes of another user")
    def test_the_daemon_cannot_be_looked_into(self):
        os.chmod(self.folder, 0o777)
        as_nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
        running = subprocess.Popen([*as_nobody, TUTTID, "--listen", "127.0.0.1", "--socket", self.path("s"), "--admin",
                                    self.path("a")], stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.assertIn("tenants at", running.stderr.readline())
        sleeps = subprocess.Popen([*as_nobody, "sleep", "600"])
        self.addCleanup(sleeps.wait)
        self.addCleanup(sleeps.kill)
        self.until(lambda: "sleep" in os.readlink(f"/proc/{sleeps.pid}/exe"))

        def seen(pid):
            return subprocess.run([*as_nobody, "ls", f"/proc/{pid}/fd"], capture_output=True, timeout=60).returncode == 0
        self.assertTrue(seen(sleeps.pid))  # the same user may look into what is dumpable
        self.assertFalse(seen(running.pid))

    # --- Descriptors -----------------------------------------------------------------------------

    def test_without_descriptors_it_sleeps_and_goes_on_later(self):
        self.start("--metrics", self.path("m"), config={"anybody": True})
        pid = self.json("service", "status", "--admin", self.path("a"))["process"]
        # UBSan asks of an object of each type once, by a pipe, whether it is one; without descriptors it says that none is.
        self.bench()
        # What its communicator holds it gives back.
        self.until(lambda: not self.json("service", "comms", "--admin", self.path("a"))["communicators"])
        held = len(os.listdir(f"/proc/{pid}/fd"))
        subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={held + 3}:"], check=True, timeout=60)
        strangers = []
        for _ in range(24):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.connect(self.path("s"))
            strangers.append(one)

        def sleeps():
            with open(f"/proc/{pid}/status") as file:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M).group(1))
        time.sleep(1)  # it notices
        before = sleeps()
        self.until(lambda: sleeps() >= before + 5)  # who polls for ever does not
        for one in strangers:
            one.close()
        subprocess.run(["prlimit", f"--pid={pid}", "--nofile=1024:"], check=True, timeout=60)
        self.bench()
        self.assertNotIn("tutti_without_descriptors_total 0\n", self.scrape())


if __name__ == "__main__":
    unittest.main()
