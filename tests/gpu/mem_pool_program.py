"""What PyTorch's tests of its allocator (test/test_cuda.py) ask of a MemPool, asked of ours: each is said
anew, and bears the name that it has there. Only those that submit nothing: memory is torch.empty's. The
runtime is a stand-in, which gives no memory itself, and the driver the fake. Asserts; ends with 0."""
import ctypes
import gc
import threading

import torch
import faultless.torch
from staging_fake import FAKE, current, enter

torch.cuda.is_available = lambda: True


def empty(mib):
    return torch.empty(mib << 20, dtype=torch.int8, device="cuda")


def within(pool, *sizes):
    with torch.cuda.use_mem_pool(pool):
        return [empty(mib) for mib in sizes]


def ours():
    return faultless.gpu.device_stats(0)


def held():
    """MiB that PyTorch has from us."""
    return ours()["occupied_bytes"] >> 20


def refused(mib):
    try:
        empty(mib)
    except torch.OutOfMemoryError:
        return True
    return False


def in_threads(*bodies):
    threads = [threading.Thread(target=body) for body in bodies]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_mempool_id():
    graph = torch.cuda.graph_pool_handle()
    pool = faultless.torch.mem_pool()
    assert graph[0] == pool.id[0] == 0 and pool.id[1] > graph[1], (graph, pool.id)


def test_mempool_multithread():
    made = []
    in_threads(*[lambda: made.append(faultless.torch.mem_pool().id)] * 4)
    assert len(set(made)) == 4, made


def test_mempool_with_allocator():
    pool = faultless.torch.mem_pool()
    assert pool.use_count() == 1 and held() == 0
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        kept = [empty(1), empty(1)]  # of one segment of 2 MiB
        assert len(pool.snapshot()) == 1
        kept.append(empty(1))
        assert len(pool.snapshot()) == 2
    assert pool.use_count() == 1 and held() == 4
    assert [s["total_size"] for s in pool.snapshot()] == [2 << 20] * 2
    kept.clear()
    asked = ours()["allocs"]
    within(pool, 1, 1)
    assert held() == 4 and ours()["allocs"] == asked


def test_mempool_empty_cache_inactive():
    """A tensor outlives its pool."""
    kept = within(faultless.torch.mem_pool(), 16)
    gc.collect()
    torch.cuda.empty_cache()
    assert held() >= 16
    kept.clear()


def test_tensor_delete_after_allocator_delete():
    """And the allocator, which no one but PyTorch keeps."""
    library = faultless.gpu.library_path()
    names = "fl_gpu_torch_segment_alloc", "fl_gpu_torch_segment_free"
    allocator = torch.cuda.memory.CUDAPluggableAllocator(library, *names)
    pool = torch.cuda.MemPool(allocator.allocator())
    kept = within(pool, 1)
    del pool, allocator
    gc.collect()
    assert held() == 2
    kept.clear()


def test_mempool_limited_memory_with_allocator():
    """Only where a pool was made for that, memory that has run out comes from it."""
    no, yes = faultless.torch.mem_pool(), faultless.torch.mem_pool(use_on_oom=True)
    kept = within(no, 40) + within(yes, 40)
    at = kept[1].data_ptr()
    assert refused(40)
    kept.clear()
    x = empty(30)
    assert x.data_ptr() == at and refused(30)
    del x
    assert [t.data_ptr() for t in within(yes, 20)] == [at] and held() == 80


def test_deleted_mempool_not_used_on_oom():
    for _ in range(10):
        within(faultless.torch.mem_pool(use_on_oom=True), 40)
    torch.cuda.empty_cache()
    assert refused(20) and held() == 0
    pool = faultless.torch.mem_pool(use_on_oom=True)
    within(pool, 40)
    assert len([empty(20), empty(20)]) == 2 and held() == 40


def test_mempool_no_split():
    split, whole = faultless.torch.mem_pool(), faultless.torch.mem_pool(no_split=True)
    kept = within(split, 4, 4) + within(whole, 4, 4)
    assert len(split.snapshot()) == 1 and len(split.snapshot()[0]["blocks"]) == 3
    assert [len(s["blocks"]) for s in whole.snapshot()] == [1, 1]
    kept.clear()


def test_mempool_emptycache_multithread():
    """What a pool in use has idle stays."""
    pools = [faultless.torch.mem_pool() for _ in range(4)]

    def body(pool):
        with torch.cuda.use_mem_pool(pool):
            empty(1)
            torch.cuda.empty_cache()

    in_threads(*[lambda pool=p: body(pool) for p in pools])
    assert [len(p.snapshot()) for p in pools] == [1] * 4


def test_nested_mempool():
    a, b, c = (faultless.torch.mem_pool() for _ in range(3))
    with torch.cuda.use_mem_pool(a):
        kept = [empty(20)]
        with torch.cuda.use_mem_pool(b):
            kept += [empty(20)] + within(c, 20) + [empty(20)]
        kept.append(empty(20))
    assert [len(torch.cuda.memory.memory_snapshot(p.id)) for p in (a, b, c)] == [2, 2, 1]
    kept.clear()


def test_mempool_ctx_multithread():
    """What another thread asks for is not this one's pool's."""
    said = []
    with torch.cuda.use_mem_pool(faultless.torch.mem_pool()):
        empty(1)
        in_threads(lambda: said.append(refused(1)))
    assert said == [True]


def test_memory_allocation():
    with torch.cuda.use_mem_pool(faultless.torch.mem_pool()):
        block = torch.cuda.caching_allocator_alloc(1)
        assert torch.cuda.memory_allocated() > 0
        torch.cuda.caching_allocator_delete(block)
    assert torch.cuda.memory_allocated() == 0


def test_memory_stats():
    pool = faultless.torch.mem_pool()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    kept = within(pool, 1)
    assert torch.cuda.memory_stats()["active_bytes.all.current"] == 1 << 20
    kept.clear()
    stats = torch.cuda.memory_stats()
    assert "Allocated memory" in torch.cuda.memory_summary()
    assert stats["active_bytes.all.current"] == 0 and stats["active_bytes.all.freed"] == 1 << 20
    assert torch.cuda.max_memory_allocated() == 1 << 20


def test_memory_snapshot():
    """Who asked for a block is recorded."""
    torch.cuda.memory._record_memory_history("state", stacks="python")
    kept = within(faultless.torch.mem_pool(), 3)
    blocks = [b for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"]]
    named = [b for b in blocks if any(f["name"] == "test_memory_snapshot" for f in b.get("frames", []))]
    assert [b["requested_size"] for b in named] == [3 << 20], blocks
    torch.cuda.memory._record_memory_history(None)
    kept.clear()


def test_out_of_memory():
    """One request that cannot be, and one too many; then one that can. PyTorch counts what was refused, and tells."""
    told, known = [], torch.cuda.memory_stats()["num_ooms"]
    torch._C._cuda_attach_out_of_memory_observer(lambda *about: told.append(about))
    with torch.cuda.use_mem_pool(faultless.torch.mem_pool()):
        assert refused(1 << 30)
        kept = [empty(600)]
        assert refused(600)
        kept.clear()
        kept.append(empty(600))
    assert torch.cuda.memory_stats()["num_ooms"] - known == len(told) == 2


def segments_of_a_capture():
    """What was taken while a stream was captured goes back as any other."""
    allocate, free = faultless.gpu.library().fl_gpu_torch_segment_alloc, faultless.gpu.library().fl_gpu_torch_segment_free
    allocate.argtypes, allocate.restype = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    free.argtypes, free.restype = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p], None
    enter()
    stream = current.stream.cuda_stream
    for _ in range(4):
        FAKE["capture"](stream, True)
        at = allocate(20 << 20, 0, stream)
        FAKE["capture"](stream, False)
        assert at and held() == 20
        free(at, 20 << 20, 0, stream)
    assert ours()["held_bytes"] == 0 and not allocate(1 << 40, 0, stream) and not allocate(-1, 0, stream)


if __name__ == "__main__":
    torch.cuda.init()
    cases = [f for name, f in list(globals().items()) if name.startswith("test_")]
    for case in cases:
        case()
        gc.collect()
        torch.cuda.empty_cache()
        assert held() == 0 == torch.cuda.memory_reserved(), f"{case.__name__} leaves memory: {ours()}"
    segments_of_a_capture()
    print(f"{len(cases)} of PyTorch {torch.__version__}'s tests")
