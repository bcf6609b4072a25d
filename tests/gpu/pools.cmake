# Tests of the pools.
foreach(name IN ITEMS streams table threads)
    fl_gpu_test(NAME test_gpu_pool_${name} LABELS unit SOURCES test_gpu_pool_${name}.c pool_fixture.c)
endforeach()
fl_gpu_test(NAME test_gpu_planned LABELS unit SOURCES test_gpu_planned.c pool_fixture.c)
fl_gpu_test(NAME test_gpu_torch LABELS unit SOURCES test_gpu_torch.c)
fl_gpu_test(NAME test_prop_gpu_pool LABELS prop TIMEOUT 120 SOURCES test_prop_gpu_pool.c pool_fixture.c)
fl_gpu_test(NAME test_fault_gpu_pool LABELS fault TIMEOUT 120 SOURCES test_fault_gpu_pool.c pool_fixture.c NO_DEVICE)
