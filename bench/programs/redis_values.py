"""Redis: a server of its own, under what this process is preloaded with. Each step sets 48 values of
0.5 to 1.5 MiB anew, reads them, and drops a third. Faults and memory are the server's and the
client's.   redis_values.py --steps 10"""
import os
import random
import socket
import subprocess
import tempfile
import time

from meter import Meter, arguments

KEYS, MIB = 48, 1 << 20


def start(folder):
    """The server, and a connection to it."""
    path = os.path.join(folder, "socket")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "",
                               "--appendonly", "no"], stdout=subprocess.DEVNULL, cwd=folder)
    for _ in range(1000):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            return server, client, client.makefile("rb")
        except OSError:
            client.close()
            time.sleep(0.01)
    raise SystemExit("redis_values: the server does not answer")


def ask(client, reply, *words):
    client.sendall(b"*%d\r\n" % len(words) +
                   b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
    line = reply.readline()
    if line[:1] == b"-" or not line:
        raise SystemExit(f"redis_values: {line!r}")
    if line[:1] == b"$" and line[1:2] != b"-":
        reply.read(int(line[1:-2]) + 2)


def main():
    a = arguments(steps=12)
    draw = random.Random(0)
    source = draw.randbytes(2 * MIB)
    with tempfile.TemporaryDirectory() as folder:
        server, client, reply = start(folder)
        try:
            m = Meter("redis", a, with_children=True)
            for _ in m:
                for key in range(KEYS):
                    n = draw.randrange(MIB // 2, 3 * MIB // 2)
                    ask(client, reply, b"SET", b"key%d" % key, source[:n])
                for key in range(KEYS):
                    ask(client, reply, b"GET", b"key%d" % key)
                for key in range(0, KEYS, 3):
                    ask(client, reply, b"DEL", b"key%d" % key)
            m.report()
        finally:
            server.terminate()
            server.wait()


main()
