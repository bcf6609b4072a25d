"""What a worker of each launcher does: allocates, and says whether the library served it."""


def work(_=None):
    import faultless

    for _ in range(3):
        [bytearray(n << 20) for n in (9, 3, 17, 5)]
    return "worker: served" if faultless.active() and faultless.stats()["requests"] >= 12 else "worker: not served"


if __name__ == "__main__":
    print(work(), flush=True)
