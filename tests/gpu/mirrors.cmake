# Mirrors, on the fake driver and on a device; with host memory of the mirror's own and of the region's.
foreach(name IN ITEMS test_gpu_mirror)
    fl_gpu_test(NAME ${name} LABELS unit SOURCES ${name}.c mirror_fixture.c)
    add_test(NAME ${name}_region COMMAND ${name})
    fl_test_properties(${name}_region unit "" "FAULTLESS_GPU_DRIVER=$<TARGET_FILE:fake_cuda>;FL_TEST_REGION=1")
endforeach()
