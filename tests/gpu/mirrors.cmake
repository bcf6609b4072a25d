# Mirrors, on the fake driver and on a device; with host memory of the mirror's own and of the
# region's.
function(fl_mirror_test name label)
    fl_gpu_test(NAME ${name} LABELS ${label} SOURCES ${name}.c SHARED mirror_fixture.c ${ARGN})
    add_test(NAME ${name}_region COMMAND ${name})
    fl_test_properties(${name}_region ${label} "" "FAULTLESS_GPU_DRIVER=$<TARGET_FILE:fake_cuda>;FL_TEST_REGION=1")
endfunction()

fl_mirror_test(test_gpu_mirror unit)
fl_mirror_test(test_gpu_mirror_threads unit)
fl_mirror_test(test_gpu_mirror_read unit)
fl_mirror_test(test_fault_gpu_mirror fault NO_DEVICE)
set(scripted fl_plan_layout fl_plan_hold fl_plan_let_go fl_inner_around fl_inner_pin fl_inner_unpin)
list(TRANSFORM scripted PREPEND -Wl,--wrap=)
fl_gpu_test(NAME test_gpu_mirror_plan LABELS unit SOURCES test_gpu_mirror_plan.c SHARED mirror_fixture.c
            LIBS ${scripted} NO_DEVICE)
