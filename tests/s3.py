"""An S3 server on this machine, in a process of its own, for tests of buckets."""

import subprocess
import sys
from contextlib import contextmanager

import boto3

BUCKET = "models"
SERVE = """
import functools, sys, threading
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

# moto looks whether an object is there and then puts it, in as many threads as there are requests:
# of two conditional puts both could win. S3 lets one.
lock = threading.RLock()


def one_at_a_time(method):
    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with lock:
            return method(self, *args, **kwargs)

    return locked


for name in ("put_object", "_key_response_post", "_key_response_delete"):
    setattr(S3Response, name, one_at_a_time(getattr(S3Response, name)))
server = ThreadedMotoServer(ip_address=sys.argv[1], port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def settings(endpoint):
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": endpoint,
    }


@contextmanager
def serving(host="127.0.0.1"):
    """Yield the endpoint of a server with the bucket `BUCKET`, on a free port."""
    command = [sys.executable, "-c", SERVE, host]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            endpoint = f"http://{host}:{int(process.stdout.readline())}"
            client(endpoint).create_bucket(Bucket=BUCKET)
            yield endpoint
        finally:
            process.kill()


def client(endpoint):
    """Return another program's client of the server."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
