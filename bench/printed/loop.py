"""Asks for the same large blocks again and again, and fills them: four of 3 to 12 MB and two copies, sixty times."""
for _ in range(60):
    blocks = [bytearray(b"x") * (n * 1000000) for n in (3, 5, 8, 12)]
    copies = [bytes(blocks[0]), bytes(blocks[3])]
