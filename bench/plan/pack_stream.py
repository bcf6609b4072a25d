#!/usr/bin/python3
"""Packs a recording of bench/plan/record.c into a stream for the tests: pack_stream.py RAW OUT "what it is" [EVENTS [STEPS]]

A stream is a line "faultless stream 1: what it is", and then numbers (LEB128), in the order of the calls:
  8 * thread + k, bytes                 a request: k 0 malloc, 1 calloc, 2 aligned, 3 realloc
  8 * thread + 4, distance              a free of the thread's own: requests since the one that is freed (0: the last)
  8 * thread + 5, owner, distance       a free of what another thread had asked for, likewise in the owner's requests
  6                                     a step of the program ends here, and the next begins
  8 * count + 7, back                   the `count` events that began `back` events ago, once more
It begins with the program, and ends after so many events or steps."""
import struct
import sys

raw, out, what = sys.argv[1:4]
most = int(sys.argv[4]) if len(sys.argv) > 4 else 1 << 30
steps = int(sys.argv[5]) if len(sys.argv) > 5 else 1 << 30
data = open(raw, "rb").read()
events, marks = [], 0
for at in range(0, len(data) - 15, 16):
    kind, thread, owner, _, distance, size = struct.unpack_from("<BBBBIQ", data, at)
    events.append((6,) if kind == 6 else (8 * thread + 5, owner, distance) if kind == 5 else
                  (8 * thread + 4, distance) if kind == 4 else (8 * thread + kind, size))
    marks += kind == 6
    if len(events) == most or marks > steps:
        break


def number(v):
    b = bytearray()
    while v >= 128:
        b.append(v & 127 | 128)
        v >>= 7
    return bytes(b + bytes([v]))


KEY = 4
seen, packed, i = {}, bytearray(), 0
while i < len(events):
    best = (0, 0)
    for j in seen.get(tuple(events[i:i + KEY]), [])[-64:]:
        n = 0
        while i + n < len(events) and events[j + n] == events[i + n]:
            n += 1
        best = max(best, (n, j))
    n, j = best
    packed += number(8 * n + 7) + number(i - j) if n >= KEY else b"".join(map(number, events[i]))
    for _ in range(n if n >= KEY else 1):
        seen.setdefault(tuple(events[i:i + KEY]), []).append(i)
        i += 1
with open(out, "wb") as f:
    f.write(f"faultless stream 1: {what}\n".encode() + packed)
print(f"{out}: {len(events)} events, {marks} marks, {len(packed)} bytes")
