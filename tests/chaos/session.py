"""A person's session: a cluster of processes, a client, fits and predictions as they are asked.

Run as ``python -m chaos.session FD``: reads commands from stdin, one JSON line each, and
writes what happens to the file descriptor. Commands that disturb act at once, beside what runs.
"""

import json
import os
import queue
import sys
import threading
import time
from contextlib import suppress

from distributed import Client, LocalCluster

import daskls
from chaos import methods
from chaos.outcomes import outcome_of


class Session:
    def __init__(self, fd):
        self.fd, self.work = fd, queue.Queue()
        limits = {"threads_per_worker": 1, "memory_limit": "1GiB"}
        self.cluster = LocalCluster(n_workers=2, dashboard_address=None, **limits)
        self.client = Client(self.cluster)
        methods.many_small_tasks()

    def tell(self, event, **values):
        os.write(self.fd, (json.dumps({"event": event, **values}) + "\n").encode())

    def listen(self):
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] in ("restart", "close"):
                threading.Thread(target=self.disturb, args=[command], daemon=True).start()
            else:
                self.work.put(command)
        self.work.put(None)

    def disturb(self, command):
        ways = {
            "restart": lambda: self.client.restart(timeout=60),
            "cluster": lambda: self.cluster.close(timeout=30),
            "client": lambda: self.client.close(timeout=30),
            "workers": lambda: self.cluster.scale(0),
        }
        try:
            ways[command.get("how", command["do"])]()
            self.tell("disturbed", message="")
        except Exception as error:  # what the disturbance says for itself is no outcome
            self.tell("disturbed", message=repr(error)[:300])

    def run(self):
        self.tell("ready", pids=[worker.pid for worker in self.cluster.workers.values()])
        command = {}
        while command is not None:
            # An interrupt may come when the work was done already.
            with suppress(KeyboardInterrupt):
                if (command := self.work.get()) is not None:
                    self.do(command)

    def do(self, command):
        self.tell("begin")
        began = time.monotonic()
        result = outcome_of(lambda: getattr(self, command.pop("do"))(**command))
        self.tell("end", seconds=time.monotonic() - began, result=vars(result))

    def fit(self, name, size, store, data):
        methods.fit(name, size, data, store=store, client=self.client)

    def predict(self, store, data, target):
        model = daskls.load(store, client=self.client)
        methods.block_a_chunk(data)
        model.predict_to_zarr(f"{data}/X", target)
        return methods.digest_of_labels(target)


def main():
    session = Session(int(sys.argv[1]))
    threading.Thread(target=session.listen, daemon=True).start()
    session.run()
    session.client.close(timeout=5)
    session.cluster.close(timeout=5)


if __name__ == "__main__":
    main()
