#!/usr/bin/env python3
"""`mlxcel download` next to curl, from a server on this machine.

    download.py [--program FILE] [--rounds N] [--mib N] [--files N]
                [--mib-per-second N] [--folder DIR]

The server sends the files of a model with sendfile, so that it costs little
itself; with --mib-per-second each connection gets no more than that. Rounds
alternate: curl, then mlxcel, each into an empty folder. curl fetches the same
files side by side (`--parallel`); it checks and syncs nothing, mlxcel compares
every SHA-256 and syncs every file. Prints MiB/s of every round, the medians
and their ratio.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
PIECE = 4 * MIB
COMMIT = "c" * 40


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        if self.path.startswith("/api/"):
            body = json.dumps(server.listing).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        path = server.folder / self.path.rsplit("/", 1)[1]
        size = path.stat().st_size
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.flush()
        self.send(path, size)

    def send(self, path, size):
        limit = self.server.bytes_per_second
        start, sent = time.monotonic(), 0
        with open(path, "rb") as file:
            while sent < size:
                count = min(PIECE, size - sent)
                if limit:
                    count = min(count, MIB)
                    time.sleep(max(0, sent / limit + start - time.monotonic()))
                sent += os.sendfile(self.connection.fileno(), file.fileno(),
                                    sent, count)


def make_files(folder, count, mib):
    siblings = []
    for i in range(count):
        name = f"model-{i + 1:05}-of-{count:05}.safetensors"
        digest = hashlib.sha256()
        with open(folder / name, "wb") as file:
            for _ in range(mib):
                piece = os.urandom(MIB)
                digest.update(piece)
                file.write(piece)
        siblings.append({"rfilename": name, "size": mib * MIB, "lfs": {
            "sha256": digest.hexdigest(), "size": mib * MIB}})
    return {"sha": COMMIT, "siblings": siblings}


def timed(command, env=None):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env,
                   timeout=300)
    return time.monotonic() - start


def curl(url, names, target):
    command = ["curl", "--no-progress-meter", "--fail", "--create-dirs",
               "--parallel", "--parallel-immediate"]
    for name in names:
        command += ["--output", target / name,
                    f"{url}/o/m/resolve/{COMMIT}/{name}"]
    return timed(command)


def mlxcel(program, url, target):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HF_", "MLXCEL_"))}
    return timed([program, "download", "o/m", "--local-dir", target],
                 {**kept, "HF_ENDPOINT": url})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=ROOT / "build/release/mlxcel")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="of each file")
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--mib-per-second", type=float, default=0)
    parser.add_argument("--folder", help="where to work; default: TMPDIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        source, target = Path(work) / "source", Path(work) / "target"
        source.mkdir()
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.folder = source
        server.bytes_per_second = options.mib_per_second * MIB
        server.listing = make_files(source, options.files, options.mib)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        compare(options, server, target)
        server.shutdown()


def compare(options, server, target):
    url = f"http://127.0.0.1:{server.server_port}"
    names = [row["rfilename"] for row in server.listing["siblings"]]
    contenders = {
        "curl": lambda: curl(url, names, target),
        "mlxcel": lambda: mlxcel(options.program, url, target)}
    rates = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, contender in contenders.items():
            seconds = contender()
            shutil.rmtree(target)
            rates[name].append(options.files * options.mib / seconds)
    for name, all_rates in rates.items():
        print(f"{name:>7} {statistics.median(all_rates):8.0f} MiB/s   "
              + " ".join(f"{rate:.0f}" for rate in all_rates))
    ratio = (statistics.median(rates["mlxcel"])
             / statistics.median(rates["curl"]))
    print(f"mlxcel / curl: {ratio:.2f}")


if __name__ == "__main__":
    main()
