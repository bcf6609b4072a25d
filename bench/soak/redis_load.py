"""Loads a redis-server for long: values of about 1 MiB set, read back whole, grown, cut and dropped; saved in the background
while they change.

  redis_load.py --seconds S --keys N --rounds N --idle-ms N --dir DIR [--preload LIB]

The server alone runs under LIB. Prints `PID n`, the server's, and a line EPOCH {json} for each epoch; the figures are the server's."""
import argparse, json, os, random, signal, socket, subprocess, sys, tempfile, time
import process

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--keys", type=int, default=96)
parser.add_argument("--rounds", type=int, default=4)
parser.add_argument("--idle-ms", type=int, default=3000)
parser.add_argument("--dir", required=True)
parser.add_argument("--preload", default="")
o = parser.parse_args()
MIB = 1 << 20
LONGEST = 4 * MIB
draw = random.Random(1)
template = draw.randbytes(LONGEST + MIB)
errors = 0


def error(text):
    global errors
    errors += 1
    print("redis_load: " + text, file=sys.stderr, flush=True)


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            out += [b"$%d\r\n" % len(word), word, b"\r\n"]
        self.socket.sendall(b"".join(out))
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"-" or not kind:
            raise RuntimeError(f"{words[0]}: {line!r}")
        return int(rest) if kind == b":" else rest


def value(key, version, n):
    head = b"%08d %08d " % (key, version)
    at = (key * 4099 + version * 257) % MIB
    return (head + template[at:at + n])[:n]


def start(path):
    env = dict(os.environ)
    env.pop("LD_PRELOAD", None)
    if o.preload:
        env["LD_PRELOAD"] = o.preload
    log = open(o.dir + "/redis.log", "w")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", o.dir,
                               "--daemonize", "no"], env=env, stdout=log, stderr=log)
    for _ in range(300):
        try:
            if Client(path)("PING") == b"PONG":
                return server
        except OSError:
            time.sleep(0.1)
    sys.exit("redis_load: the server does not answer; see redis.log")


class Load:
    def __init__(self, client):
        self.call, self.held, self.version = client, {}, 0      # key: (version, length)

    def put(self, key, n):
        self.version += 1
        self.call("SET", key, value(key, self.version, n))
        self.held[key] = (self.version, n)

    def look(self, key):
        version, n = self.held[key]
        if self.call("GET", key) != value(key, version, n):
            error(f"the value of {key} is not what was set")

    def round(self):
        for key in range(o.keys):
            self.put(key, MIB)
            self.look(key)

    def change(self):
        for key in draw.sample(sorted(self.held), o.keys // 2):
            version, n = self.held[key]
            kind = draw.randrange(3)
            if kind == 0 and 2 * n <= LONGEST:                  # grows, as a realloc
                longer = draw.randrange(n + 1, 2 * n)
                self.call("APPEND", key, value(key, version, longer)[n:])
                self.held[key] = (version, longer)
            elif kind == 1:
                self.put(key, draw.randrange(64 * 1024, LONGEST))
            else:
                self.call("DEL", key)
                del self.held[key]

    def save(self):
        self.call("BGSAVE")
        for key in draw.sample(sorted(self.held), len(self.held) // 4):     # while the child reads the old ones
            self.put(key, self.held[key][1])
        for _ in range(1200):
            info = self.call("INFO", "persistence")
            if b"rdb_bgsave_in_progress:0" in info:
                break
            time.sleep(0.05)
        if b"rdb_last_bgsave_status:ok" not in info or b"rdb_bgsave_in_progress:0" not in info:
            error("BGSAVE failed")

    def epoch(self, server, number):
        epoch = process.Epoch(server, number)
        for _ in range(o.rounds):
            before, began = server.faults()[0], time.monotonic()
            self.round()
            epoch.step(began, before)
        self.change()
        before = server.faults()[0]
        self.save()
        epoch.apart = server.faults()[0] - before
        for key in self.held:
            self.look(key)
        for key in [k for k in self.held if k >= o.keys // 8]:
            self.call("DEL", key)
            del self.held[key]
        time.sleep(o.idle_ms / 1000)
        print("EPOCH " + json.dumps(epoch.leave(errors)), flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:               # a socket's path must be short
        path = folder + "/redis.sock"
        server = start(path)
        signal.signal(signal.SIGTERM, lambda *_: (server.kill(), os._exit(1)))
        print(f"PID {server.pid}", flush=True)
        load, figures, begin, number = Load(Client(path)), process.Process(server.pid), time.monotonic(), 0
        try:
            while time.monotonic() - begin < o.seconds:
                load.epoch(figures, number)
                number += 1
            # By its own command, so that it reports.
            load.call.socket.sendall(b"*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n")
            if server.wait(60) != 0:
                error(f"the server ended with {server.returncode}")
        finally:
            if server.poll() is None:
                server.kill()


main()
sys.exit(1 if errors else 0)
