"""What test_gpu_frameworks runs under the library: one program a mode. Asserts; ends with 0."""
import contextlib
import ctypes
import io
import os
import sys
import warnings

from raising import raises


def use_torch(expected):
    """faultless.torch.use() twice: its answer, and what it warns of."""
    import faultless.torch
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        answer = faultless.torch.use()
        if not answer:
            assert faultless.torch.use() is False
    assert answer is expected, [str(w.message) for w in seen]
    assert len(seen) == (0 if expected else 1), [str(w.message) for w in seen]
    return str(seen[0].message) if seen else ""


def refused(words):
    import torch
    told = use_torch(False)
    assert words in told and "stays as it is" in told, told
    assert getattr(torch, "changed", []) == []


def cpu():
    """A real PyTorch without CUDA, or without a device: nothing changes."""
    import torch
    before = torch.arange(12).reshape(3, 4).sum().item()
    told = use_torch(False)
    assert "stays as it is" in told, told
    assert torch.arange(12).reshape(3, 4).sum().item() == before == 66
    assert (torch.ones(3, requires_grad=True) * 2).sum().backward() is None


def hooks():
    import torch
    import faultless.gpu
    import faultless.torch
    with raises(ValueError, "auto_growth"):
        faultless.torch.use("none such")
    use_torch(True)
    target = torch.changed[0].allocator()
    want = set(faultless.torch.HOOKS) if "old" not in torch._lacks else set(list(faultless.torch.HOOKS)[:5])
    assert set(target.hooks) == want, target.hooks
    assert torch.settings == ([] if "no-setting" in torch._lacks else ["pinned_use_cuda_host_register:True"])
    pool = faultless.torch.pool()
    assert pool.handle == faultless.torch.pool(0).handle
    for _ in range(4):
        blocks = [target.alloc(1 << 20, 0, None) for _ in range(5)]
        assert all(blocks)
        assert faultless.gpu.device_stats()["occupied_bytes"] == 5 << 20
        for block in blocks:
            target.free(block, 1 << 20, 0, None)
    assert pool.stats()["hits"] >= 15, pool.stats()
    pool.collect()
    pool.retire(0)
    block = target.alloc(32 << 20, 0, None)
    target.free(block, 32 << 20, 0, None)
    assert pool.trim(1 << 40) == 0 and pool.trim() >= 32 << 20
    with raises(faultless.gpu.Error, "no device of that number"):
        faultless.torch.pool(63)


def cupy():
    import cupy as stand_in
    import faultless.cupy
    import faultless.gpu
    assert faultless.cupy.use() is True
    malloc = stand_in.chosen[0]
    block = malloc(1 << 20)
    assert block.ptr != 0 and malloc(0).ptr == 0
    assert faultless.cupy.pool().stats()["occupied_bytes"] == 1 << 20
    del block
    assert faultless.cupy.pool().stats()["occupied_bytes"] == 0
    with raises(stand_in.cuda.memory.OutOfMemoryError, "allocating 1,125,899,906,842,624 bytes of the device: "):
        malloc(1 << 50)
    del stand_in.cuda.memory.OutOfMemoryError
    with raises(MemoryError, "bytes of the device"):
        malloc(1 << 50)


def quick_start(**names):
    """docs/gpu.md's program, but for lines that need a device: what it prints."""
    lines = [x for x in os.environ["QUICK_START"].splitlines() if "# needs a device" not in x]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec("\n".join(lines), names)
    return said.getvalue()


def quick_start_torch():
    def train(_batch):
        import torch
        target = torch.changed[0].allocator()
        for block in [target.alloc(1 << 20, 0, None) for _ in range(5)]:
            target.free(block, 1 << 20, 0, None)

    said = quick_start(data=range(4), train=train)
    assert int(said) >= 15, said


def quick_start_cupy():
    import cupy as stand_in
    said = quick_start()
    assert "'occupied_bytes': 0" in said, said
    assert len(stand_in.chosen) == 1


def real_cupy():
    """CuPy's own blocks call the pair; its allocator asks the runtime for a device, so it is not run."""
    import cupy
    from cupy.cuda.memory import CFunctionAllocatorMemory
    import faultless.cupy
    import faultless.gpu
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert faultless.cupy.use() is False and faultless.cupy.use() is False
    assert ["no CUDA device" in str(w.message) for w in seen] == [True], seen
    faultless.cupy.allocator(cupy)  # CuPy takes it
    error = faultless.cupy.out_of_memory(cupy, 1 << 50)
    assert isinstance(error, cupy.cuda.memory.OutOfMemoryError) and "of the device" in str(error), error
    pair = [ctypes.cast(getattr(faultless.gpu.library(), name), ctypes.c_void_p).value
            for name in ("fl_gpu_cupy_alloc", "fl_gpu_cupy_free")]
    blocks = [CFunctionAllocatorMemory(n << 20, 0, *pair, 0) for n in (1, 2, 3)]
    assert all(b.ptr for b in blocks) and blocks[1].size == 2 << 20
    assert faultless.cupy.pool().stats()["occupied_bytes"] == 6 << 20
    del blocks[:2]
    assert faultless.cupy.pool().stats()["occupied_bytes"] == 3 << 20
    blocks.clear()
    assert faultless.cupy.pool().stats()["occupied_bytes"] == 0
    assert CFunctionAllocatorMemory(1 << 50, 0, *pair, 0).ptr == 0
    assert CFunctionAllocatorMemory(0, 0, *pair, 0).ptr == 0
    print(f"CuPy {cupy.__version__}")


def real():
    """PyTorch's own C++ calls the hooks; the runtime is a stand-in, the driver the fake."""
    import torch
    import faultless.gpu
    import faultless.torch
    torch.cuda.is_available = lambda: True
    use_torch(True)
    alloc = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    pool = faultless.torch.pool()
    for _ in range(4):
        for block in [alloc(1 << 20, 0) for _ in range(3)]:
            free(block)
    assert pool.stats()["hits"] >= 9, pool.stats()
    error = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
    try:
        alloc(1 << 50, 0)
        raise AssertionError("no exception")
    except RuntimeError as e:
        assert "CUDA out of memory. Tried to allocate 1125899906842624 bytes" in str(e), e
        assert isinstance(e, error) or not torch.compiled_with_cxx11_abi(), type(e)
        print(f"PyTorch {torch.__version__} raises {type(e).__name__}")


def real_statistics():
    """torch.cuda.memory_stats and what rests on it say what the pool counts."""
    import torch
    import faultless.torch
    torch.cuda.is_available = lambda: True
    use_torch(True)
    torch.cuda.init()
    alloc = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    blocks = [alloc(n << 20, 0) for n in (1, 2, 3)]
    free(blocks.pop())
    stats, nested = faultless.torch.pool().stats(), torch.cuda.memory_stats(0)
    assert torch.cuda.memory_allocated(0) == stats["occupied_bytes"] == 3 << 20
    assert torch.cuda.max_memory_allocated(0) == stats["occupied_peak_bytes"] == 6 << 20
    assert torch.cuda.memory_reserved(0) == stats["occupied_bytes"] + stats["free_bytes"] >= 6 << 20
    assert torch.cuda.max_memory_reserved(0) == stats["held_peak_bytes"] >= 6 << 20
    assert nested["allocation.all.current"] == 2 and nested["allocation.all.allocated"] == 3
    assert nested["allocated_bytes.all.freed"] == 3 << 20 and nested["requested_bytes.all.current"] == 3 << 20
    assert nested["num_device_alloc"] == stats["driver_allocs"] == nested["segment.all.current"]
    try:
        alloc(1 << 45, 0)
        raise AssertionError("no exception")
    except RuntimeError:
        pass
    nested = torch.cuda.memory_stats(0)
    assert nested["segment.all.allocated"] == stats["driver_allocs"]  # not what was refused
    assert nested["num_alloc_retries"] == faultless.torch.pool().stats()["retries"] == stats["retries"] + 1
    torch.cuda.reset_peak_memory_stats(0)
    assert torch.cuda.max_memory_allocated(0) == 3 << 20
    assert "Allocated memory      |   3072 KiB |   3072 KiB |   6144 KiB |   3072 KiB" in torch.cuda.memory_summary(0)
    other_ways(torch, alloc, free)
    for block in blocks:
        free(block)
    torch.cuda.reset_peak_memory_stats(0)
    assert torch.cuda.memory_allocated(0) == torch.cuda.max_memory_allocated(0) == 0
    with raises(faultless.gpu.Error, "has taken the place"):
        faultless.torch.mem_pool()


def other_ways(torch, alloc, free):
    """torch.accelerator's figures are the same; a device that is not used stays so; totals begin anew."""
    import faultless.gpu
    if hasattr(torch.accelerator, "memory_allocated"):
        assert torch.accelerator.memory_allocated(0) == torch.cuda.memory_allocated(0) == 3 << 20
        torch.accelerator.reset_peak_memory_stats(0)
        assert torch.accelerator.max_memory_allocated(0) == torch.cuda.max_memory_allocated(0) == 3 << 20
        block = alloc(3 << 20, 0)
        free(block)
        torch.accelerator.empty_cache()
        assert torch.cuda.max_memory_allocated(0) == 6 << 20
    torch.cuda.reset_peak_memory_stats(1)
    assert torch.cuda.memory_allocated(1) == torch.cuda.max_memory_reserved(1) == 0
    assert faultless.gpu.device_stats(1)["pools"] == 0  # nor has it a context
    torch.cuda.reset_accumulated_memory_stats(0)
    nested = torch.cuda.memory_stats(0)
    assert nested["allocation.all.allocated"] == nested["allocated_bytes.all.freed"] == 0
    assert nested["num_alloc_retries"] == 0
    assert nested["allocation.all.current"] == 2 and nested["allocated_bytes.all.current"] == 3 << 20
    free(alloc(1 << 20, 0))
    nested = torch.cuda.memory_stats(0)
    assert nested["allocation.all.allocated"] == nested["allocation.all.freed"] == 1
    assert nested["allocated_bytes.all.allocated"] == nested["allocated_bytes.all.freed"] == 1 << 20


if __name__ == "__main__":
    MODES = (hooks, cupy, real, real_statistics, cpu, real_cupy, quick_start_torch, quick_start_cupy)
    {f.__name__: f for f in MODES}.get(sys.argv[1], lambda: refused(sys.argv[1]))()
