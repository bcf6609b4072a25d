"""Marks step boundaries for faultstat(1): the Python twin of include/faultless/step.h.

    import step
    step.mark()              # start of step 0
    for batch in data:
        train(batch)
        step.mark()          # end of this step, start of the next

Without faultstat (no FAULTSTAT_STEP_FD) a mark is one comparison and changes nothing."""
import os
import socket
import struct
import time
from typing import Optional

_channel = None
_inode = 0
_resumed_ns = 0                 # when the last mark returned


def _open() -> Optional[socket.socket]:
    global _inode
    text = os.environ.get("FAULTSTAT_STEP_FD", "")
    if not text.isdigit():
        return None
    try:
        channel = socket.socket(fileno=os.dup(int(text)))
    except OSError:
        return None
    if channel.family == socket.AF_UNIX and channel.type == socket.SOCK_SEQPACKET:
        _inode = os.fstat(channel.fileno()).st_ino
        return channel
    channel.close()
    return None


def mark() -> bool:
    """Say that a step ends here and the next one begins; wait while faultstat reads this process.

    Returns True when faultstat answered, False when it does not listen (then and from then on).
    Threads: one at a time. A forked child's marks are answered and ignored."""
    global _channel, _resumed_ns
    if _channel is None:
        return False
    message = struct.pack("=cQQ", b"s", _resumed_ns, time.monotonic_ns())
    try:
        if os.fstat(_channel.fileno()).st_ino == _inode:    # else closed, and the number reused
            _channel.send(message, socket.MSG_NOSIGNAL)
            if _channel.recv(1):
                _resumed_ns = time.monotonic_ns()
                return True
    except OSError:
        pass
    _channel.detach()
    _channel = None
    return False


_channel = _open()
