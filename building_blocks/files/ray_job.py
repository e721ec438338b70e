#!/usr/bin/env python3
"""Run a command on a Ray cluster over the nodes of a job. Every rank of the job starts this, one rank on each node.

    ray-job COMMAND WORD ...

Rank 0 starts the head of the cluster, waits until the Ray of every other node has joined, and runs the command beside
the head, with RAY_ADDRESS. In its words {nodes} is the number of nodes, and {gpus} how many GPUs Ray found on each.
When the command ends, all of it ends, with the command's status; when a node's Ray or a rank ends, the command is
stopped, and the status is 1. Exit status 2: the cluster cannot be started as the job is laid out.

Ray listens on all interfaces of a node, and who may talk to it may run programs there. So each cluster has a token of
its own (RAY_AUTH_MODE=token, since Ray 2.52). The other ranks get it by a file in the job's folder that only its owner
may read, and that is gone as soon as all are there; the folder has to be one that all nodes see.

Variables: NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME name the interface by whose address the nodes know each other, else
it is the one by which they reach the first node; RAY_JOB_ADDRESS is this node's address itself; RAY_JOB_WAIT: how many
seconds nodes are waited for (300).
"""

import fcntl
import hmac
import json
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from ranks import JOB, first_node, first_of, place

ENDS = 15
"""Seconds that a program has to end in before it is killed."""


WHO_IS_THERE = """
import json, ray, sys
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(json.dumps([int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]]))
"""


class Lost(Exception):
    """Something that the cluster consists of is gone; its words say what."""


def stop(message):
    """Ends this rank with a message for people."""
    sys.stderr.write(f"ray-job: {message}\n")
    sys.exit(2)


# Where the nodes meet


def interface_address(text):
    """The IPv4 address of the first interface that a list of NCCL's names; None without one that has any.

    ``ib,hsn`` are beginnings of names, ``=eth0`` is one name. A list of what is not meant (``^docker``) names none.
    """
    if text.startswith("^"):
        return None
    exact = text.startswith("=")
    for wanted in text.lstrip("=").split(","):
        for _, name in sorted(socket.if_nameindex()):
            if name == wanted or (not exact and name.startswith(wanted)):
                try:
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                        # SIOCGIFADDR
                        answer = fcntl.ioctl(any_socket, 0x8915, struct.pack("256s", name.encode()[:15]))
                    return socket.inet_ntoa(answer[20:24])
                except OSError:
                    continue
    return None


def address_toward(there):
    """This node's address on the way to another; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        any_socket.connect((there, 9))
        return any_socket.getsockname()[0]


def own_address(head=None):
    """The address by which the other nodes know this one.

    Parameters
    ----------
    head: the address of rank 0, if this is another rank.
    """
    said = os.environ.get("RAY_JOB_ADDRESS")
    if said:
        return said
    named = first_of(("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"), os.environ)
    by_name = interface_address(named) if named else None
    if by_name:
        return by_name
    if head is not None:
        return address_toward(head)
    try:
        found = socket.gethostbyname(first_node(os.environ) or socket.gethostname())
    except OSError:
        found = "127.0.0.1"
    # Many distributions write the node's own name beside a loopback address.
    return address_toward("192.0.2.1") if found.startswith("127.") else found


def meeting_place():
    """The file by which the ranks of one start find each other, in the folder of the job."""
    step = os.environ.get("SLURM_STEP_ID", "0")
    job = "".join(sign for sign in first_of(JOB, os.environ) or "0" if sign.isalnum())
    return Path(f".ray-job-{job}-{step}").absolute()


def free_port(address):
    """A port that nothing listens on now."""
    with socket.create_server((address, 0)) as any_socket:
        return any_socket.getsockname()[1]


# Processes of this node


class Program:
    """A process with all that it starts, which is ended together."""

    def __init__(self, words, output=None):
        self.process = subprocess.Popen(words, start_new_session=True, stdout=output, stderr=output)

    def ended(self):
        """The status, or None while it runs."""
        return self.process.poll()

    def stop(self):
        """Asks it to end, and kills what is left of it."""
        if self.ended() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Ray(Program):
    """The Ray of this node. Its files are in a folder of its own, because /tmp/ray is one for all users."""

    def __init__(self, address, token, *words):
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        self.log = Path(self.folder, "start.log")
        os.environ.update(
            RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token, RAY_USAGE_STATS_ENABLED="0", VLLM_HOST_IP=address
        )
        program = Path(sys.executable).with_name("ray")
        cpus = len(os.sched_getaffinity(0))
        options = [f"--node-ip-address={address}", f"--num-cpus={cpus}", f"--temp-dir={self.folder}"]
        with self.log.open("w") as output:
            super().__init__([program, "start", "--block", "--disable-usage-stats", *options, *words], output)

    def check(self):
        """Lost, with what it printed, if it has ended."""
        if self.ended() is not None:
            raise Lost(f"Ray ended with {self.ended()}:\n{self.log.read_text()[-4000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def until(seconds, what, done, *watched):
    """What ``done`` gives at last; Lost if that takes too long, or one of the watched has ended."""
    end = time.monotonic() + seconds
    while True:
        found = done()
        if found:
            return found
        for each in watched:
            each.check()
        if time.monotonic() > end:
            raise Lost(f"{what} within {seconds:.0f} s (RAY_JOB_WAIT)")
        time.sleep(0.2)


# The head


class Others:
    """The connections of all other ranks; a rank that is gone shows by its end."""

    def __init__(self, listener, count):
        self.listener, self.count, self.there = listener, count, []

    def join(self, token):
        """Takes who waits at the door and knows the token; whether all are there."""
        while len(self.there) < self.count and select.select([self.listener], [], [], 0)[0]:
            link, _ = self.listener.accept()
            link.settimeout(10)
            try:
                known = hmac.compare_digest(link.makefile("r").readline(200).strip(), token)
                if known:
                    link.sendall(b"welcome\n")
                    self.there.append(link)
            except (OSError, ValueError):
                known = False
            if not known:
                link.close()
        return len(self.there) == self.count

    def check(self):
        """Lost, if one of them is gone."""
        gone = len(select.select(self.there, [], [], 0)[0])
        if gone:
            raise Lost(f"{gone} of {self.count} other nodes ended")

    def tell(self, word):
        """The last word to all of them."""
        for link in self.there:
            with suppress(OSError), link:
                link.sendall(f"{word}\n".encode())


def invite(file, said):
    """Write what the other ranks need to know, for this user alone, and at once."""
    begun = file.with_name(f"{file.name}-{os.getpid()}")
    begun.unlink(missing_ok=True)
    with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        json.dump(said, output)
    begun.replace(file)


def joined(address, nodes):
    """How many GPUs each node has, once Ray knows of all of them; None before.

    Another process asks: Ray takes the signals of a program that connects to it for itself.
    """
    asked = subprocess.run([sys.executable, "-I", "-c", WHO_IS_THERE, address], capture_output=True, text=True)
    there = json.loads(asked.stdout) if asked.returncode == 0 else []
    return there if len(there) >= nodes else None


def filled(words, nodes, gpus):
    """The words of the command with the numbers in their places."""
    if any("{gpus}" in word for word in words):
        if len(set(gpus)) > 1:
            raise Lost(f"the nodes have different numbers of GPUs: {', '.join(map(str, sorted(gpus)))}")
        if gpus[0] == 0:
            raise Lost("Ray found no GPU on the nodes; {gpus} in the command asks for some")
    return [word.replace("{nodes}", str(nodes)).replace("{gpus}", str(gpus[0])) for word in words]


def listening(address, port):
    """Whether somebody answers there."""
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True


def head(nodes, words, wait):
    """Rank 0: the head of the cluster and the command; the status of the command."""
    address, token, file = own_address(), secrets.token_hex(32), meeting_place()
    port = free_port(address)
    with socket.create_server((address, 0)) as listener:
        others = Others(listener, nodes - 1)
        try:
            with Ray(address, token, "--head", f"--port={port}", "--include-dashboard=false") as own:
                until(wait, "Ray's head did not start", lambda: listening(address, port), own)
                if nodes > 1:
                    invite(file, {"address": address, "port": port, "door": listener.getsockname()[1], "token": token})
                until(wait, f"not all {nodes - 1} other nodes came", lambda: others.join(token), own)
                file.unlink(missing_ok=True)
                os.environ["RAY_ADDRESS"] = f"{address}:{port}"
                all_there = partial(joined, os.environ["RAY_ADDRESS"], nodes)
                gpus = until(wait, "Ray did not start on all nodes", all_there, own, others)
                status = watched(filled(words, nodes, gpus), own, others)
                others.tell("end")
                return status
        finally:
            file.unlink(missing_ok=True)


def watched(words, *parts):
    """Run the command as long as all parts of the cluster are there; its status."""
    program = Program(words)
    try:
        while program.ended() is None:
            for part in parts:
                part.check()
            time.sleep(0.5)
        return program.ended()
    finally:
        program.stop()


# The other ranks


def meet(file):
    """What the head wrote, and the connection to it; None before it is there.

    A file that a start before this one left behind leads nowhere, and the next look finds the right one.
    """
    # Reading the folder lets a network file system look again.
    if file.name not in os.listdir(file.parent):
        return None
    try:
        said = json.loads(file.read_text())
        link = socket.create_connection((said["address"], said["door"]), 5)
        link.sendall(f"{said['token']}\n".encode())
        if link.makefile("r").readline() != "welcome\n":
            return None
    except (OSError, ValueError):
        return None
    link.settimeout(None)
    return said, link


def worker(wait):
    """Another rank: its node's Ray, until the head says that it is over."""
    said, link = until(wait, "the first node did not call", lambda: meet(meeting_place()))
    with link, Ray(own_address(said["address"]), said["token"], f"--address={said['address']}:{said['port']}") as own:
        while not select.select([link], [], [], 0.5)[0]:
            own.check()
        if link.recv(16) != b"end\n":
            raise Lost("the first node ended")
    return 0


def main():
    """The status of this rank."""
    words = sys.argv[1:]
    if not words:
        stop("a command is missing: ray-job COMMAND WORD ...")
    rank, size, local, _ = place(os.environ)
    if (local or "0") != "0":
        stop(f"rank {rank} is not the only one of its node; the job has to be laid out with one rank on each")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wait = float(os.environ.get("RAY_JOB_WAIT", "300"))
    try:
        return head(int(size), words, wait) if rank == "0" else worker(wait)
    except Lost as why:
        sys.stderr.write(f"ray-job: rank {rank}: {why}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
