# Tests of the pools.
foreach(name IN ITEMS default streams lives table threads edges whole)
    fl_gpu_test(NAME test_gpu_pool_${name} LABELS unit SOURCES test_gpu_pool_${name}.c SHARED pool_fixture.c)
endforeach()
fl_gpu_test(NAME test_gpu_pool_calls LABELS unit SOURCES test_gpu_pool_calls.c SHARED pool_fixture.c NO_DEVICE)
fl_gpu_test(NAME test_gpu_pool_capture LABELS unit TIMEOUT 120 SOURCES test_gpu_pool_capture.c SHARED pool_fixture.c NO_DEVICE)
fl_gpu_test(NAME test_gpu_pool_old LABELS unit SOURCES test_gpu_pool_old.c SHARED pool_fixture.c NO_DEVICE)
fl_gpu_test(NAME test_gpu_limit LABELS unit SOURCES test_gpu_limit.c SHARED pool_fixture.c)
fl_gpu_test(NAME test_gpu_planned LABELS unit SOURCES test_gpu_planned.c SHARED pool_fixture.c)
fl_gpu_test(NAME test_gpu_traces LABELS unit SOURCES test_gpu_traces.c SHARED pool_fixture.c NO_DEVICE
            DEFINITIONS FL_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/traces")
fl_gpu_test(NAME test_gpu_shims LABELS unit SOURCES test_gpu_shims.c SHARED pool_fixture.c)
fl_gpu_test(NAME test_gpu_torch LABELS unit SOURCES test_gpu_torch.c)
fl_gpu_test(NAME test_prop_gpu_pool LABELS prop TIMEOUT 120 SOURCES test_prop_gpu_pool.c SHARED pool_fixture.c)
fl_gpu_test(NAME test_fault_gpu_pool LABELS fault TIMEOUT 300 SOURCES test_fault_gpu_pool.c SHARED pool_fixture.c NO_DEVICE)
# On a driver that gives streams no numbers.
foreach(name IN ITEMS prop_gpu_pool gpu_pool_old)
    add_test(NAME test_${name}_11.8 COMMAND test_${name})
    fl_test_properties(test_${name}_11.8 prop 120
                       "FAULTLESS_GPU_DRIVER=$<TARGET_FILE:fake_cuda>;FL_TEST_DRIVER_VERSION=11080")
endforeach()
# While the pools are traced.
add_test(NAME test_gpu_torch_traced COMMAND test_gpu_torch)
fl_test_properties(test_gpu_torch_traced unit ""
                   "FAULTLESS_GPU_DRIVER=$<TARGET_FILE:fake_cuda>;FAULTLESS_GPU_TRACE=${CMAKE_CURRENT_BINARY_DIR}/torch.json")
# As PyTorch's C++ calls.
if(CMAKE_CXX_COMPILER)
    add_library(torch_caller OBJECT torch_caller.cpp)
    target_compile_options(torch_caller PRIVATE -std=c++17 -Wall -Wextra $<$<BOOL:${FL_WERROR}>:-Werror>)
    target_include_directories(torch_caller PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
    add_library(fake_c10 SHARED fake_c10.cpp)
    target_compile_options(fake_c10 PRIVATE -std=c++17 -Wall -Wextra $<$<BOOL:${FL_WERROR}>:-Werror>)
    target_include_directories(fake_c10 PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    set_target_properties(fake_c10 PROPERTIES OUTPUT_NAME c10 LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_library(fake_c10_cuda SHARED fake_c10.cpp)
    target_compile_options(fake_c10_cuda PRIVATE -std=c++17 -Wall -Wextra $<$<BOOL:${FL_WERROR}>:-Werror>)
    target_compile_definitions(fake_c10_cuda PRIVATE FL_FAKE_C10_CUDA)
    target_include_directories(fake_c10_cuda PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(fake_c10_cuda PRIVATE fake_c10)
    set_target_properties(fake_c10_cuda PROPERTIES OUTPUT_NAME c10_cuda LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    fl_gpu_test(NAME test_gpu_torch_graph LABELS unit SOURCES test_gpu_torch_graph.c $<TARGET_OBJECTS:torch_caller>
                LIBS stdc++ -Wl,--no-as-needed fake_c10_cuda fake_c10 NO_DEVICE)
endif()
