"""As much of Kubernetes' API as Snakemake's executor needs; a pod is a process in an empty folder.

It shows whether the jobs of a workflow need anything but what is sent to them. It is no cluster: it
knows no images, nodes, limits or volumes.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: What a pod inherits: where programs and packages come from, and nothing of this machine's study.
INHERITED = re.compile(r"LANG$|LC_|PIP_|SSL_|REQUESTS_CA|OMP_NUM_THREADS$")


@dataclass
class Pod:
    """A job and the process that is its one pod."""

    body: Mapping[str, Any]
    process: subprocess.Popen
    log: Path


class Cluster:
    """Jobs by name, and what each was asked for.

    Args:
        folder: where each pod gets an empty folder.
        path: the PATH of pods: the interpreter that the image would have comes first.
    """

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.path = path
        self.secrets: dict[str, dict[str, str]] = {}
        self.pods: dict[str, Pod] = {}
        self.started: list[Mapping[str, Any]] = []

    def start(self, body: Mapping[str, Any]) -> None:
        """Run a job's container as a process."""
        name = body["metadata"]["name"]
        container = body["spec"]["template"]["spec"]["containers"][0]
        home = self.folder / name
        (home / "workdir").mkdir(parents=True)
        environment = {key: value for key, value in os.environ.items() if INHERITED.match(key)}
        environment |= {"PATH": self.path, "HOME": str(home), "TMPDIR": str(home)}
        for variable in container.get("env") or []:
            secret = variable["valueFrom"]["secretKeyRef"]
            encoded = self.secrets[secret["name"]][secret["key"]]
            environment[variable["name"]] = base64.b64decode(encoded).decode()
        log = home / "log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [*container["command"], *container["args"]],
                cwd=home / "workdir",
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pods[name] = Pod(body, process, log)
        self.started.append(body)

    def job(self, name: str) -> dict[str, Any]:
        """A job with its status."""
        code = self.pods[name].process.poll()
        state = "active" if code is None else "failed" if code else "succeeded"
        return {**self.pods[name].body, "status": {state: 1}}

    def pod(self, name: str) -> dict[str, Any]:
        """A job's pod with the state of its container."""
        code = self.pods[name].process.poll()
        state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
        status = {"name": "snakemake", "state": state}
        status |= {"image": "-", "imageID": "-", "ready": code is None, "restartCount": 0}
        return {"metadata": {"name": name}, "status": {"containerStatuses": [status]}}


class Handler(BaseHTTPRequestHandler):
    """The requests that the executor makes."""

    cluster: Cluster

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/secrets"):
            self.cluster.secrets[body["metadata"]["name"]] = body.get("data") or {}
        elif self.path.endswith("/jobs"):
            self.cluster.start(body)
        self._answer(body)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parts = url.path.split("/")
        if parts[-1] == "pods":
            label = parse_qs(url.query)["labelSelector"][0]
            name = label.removeprefix("job-name=")
            items = [self.cluster.pod(name)] if name in self.cluster.pods else []
            self._answer({"items": items})
        elif parts[-1] == "log":
            text = self.cluster.pods[parts[-2]].log.read_text(errors="replace")
            self._answer(text)
        elif parts[-1] == "status" and parts[-2] in self.cluster.pods:
            self._answer(self.cluster.job(parts[-2]))
        else:
            self.send_error(404)

    def do_DELETE(self) -> None:
        name = urlsplit(self.path).path.rsplit("/", 1)[1]
        if name in self.cluster.pods and self.cluster.pods[name].process.poll() is None:
            self.cluster.pods[name].process.terminate()
        self._answer({"status": "Success"})

    def _answer(self, content: Any) -> None:
        plain = isinstance(content, str)
        data = (content if plain else json.dumps(content)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if plain else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Requests are not printed."""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Cluster, Path]]:
    """The API on a free port of this machine; the cluster, and a kubeconfig that leads to it."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    cluster = Cluster(folder / "pods", path)
    handler = type("ClusterHandler", (Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {"token": "none"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config), encoding="utf-8")
    try:
        yield cluster, file
    finally:
        for pod in cluster.pods.values():
            if pod.process.poll() is None:
                pod.process.kill()
        server.shutdown()
