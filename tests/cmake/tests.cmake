# How a test is declared. Every test has a label (its folder's name), a time limit, and 77 as its
# word for "skipped".
#
#   fl_test(NAME test_region_extent LABELS unit SOURCES test_region_extent.c UPTO region
#           SHARED region_fixture.c)
#   fl_cxx_test(NAME test_heap_cxx LABELS unit SOURCES test_heap_cxx.cpp)
#   fl_preload_test(NAME test_preload_ls LABELS preload SOURCES test_preload_ls.c)
#   fl_rungs(test_preload_ls)
#   fl_victim(NAME victim_double_free SOURCES victim_double_free.c)
#   fl_script_test(NAME test_tools_setup LABELS tools COMMAND ${here}/test_tools_setup)
#   fl_fuzz(NAME fuzz_core_options SOURCES fuzz_core_options.c UPTO core CORPUS ${here}/corpus)

find_package(Threads REQUIRED)

set(FL_VICTIM_DIR ${PROJECT_BINARY_DIR}/tests/victims)
# Where a test finds the library and what it starts.
find_library(FL_MIMALLOC NAMES libmimalloc.so.3 libmimalloc.so.2) # Debian 13's, 12's
get_filename_component(mimalloc "${FL_MIMALLOC}" NAME)
set(FL_TEST_PATHS FL_LIB_PATH="${PROJECT_BINARY_DIR}/libfaultless.so" FL_MIMALLOC="${mimalloc}" FL_VICTIM_DIR="${FL_VICTIM_DIR}"
                  FL_BUILD_DIR="${PROJECT_BINARY_DIR}" FL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
file(STRINGS ${PROJECT_SOURCE_DIR}/src/layers.txt FL_LAYERS REGEX "^[a-z]")

# fl_test_properties(NAME LABELS TIMEOUT ENV): what every test has, whatever runs it.
function(fl_test_properties name labels timeout env)
    if(NOT labels)
        message(FATAL_ERROR "test ${name}: LABELS is missing")
    endif()
    if(NOT timeout)
        set(timeout 60)
    endif()
    if(FL_SANITIZE)
        math(EXPR timeout "${timeout} * 4")
    endif()
    if(CMAKE_CROSSCOMPILING) # emulated
        math(EXPR timeout "${timeout} * 10")
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77
                         ENVIRONMENT "${env}")
endfunction()

# fl_layer_objects(OUT UPTO LAYER...): the objects of the named layers and, with UPTO, of all up to
# that one.
function(fl_layer_objects out upto)
    set(layers ${ARGN})
    if(upto)
        if(NOT upto IN_LIST FL_LAYERS)
            message(FATAL_ERROR "UPTO ${upto}: not in src/layers.txt")
        endif()
        foreach(layer IN LISTS FL_LAYERS)
            list(APPEND layers ${layer})
            if(layer STREQUAL upto)
                break()
            endif()
        endforeach()
    endif()
    list(REMOVE_DUPLICATES layers)
    set(objects "")
    foreach(layer IN LISTS layers)
        list(APPEND objects $<TARGET_OBJECTS:fl_${layer}>)
    endforeach()
    set(${out} ${objects} PARENT_SCOPE)
endfunction()

# fl_share(TARGET FILE...): adds files that are compiled once, for every test that shares them. They
# see FL_TEST_PATHS, and no definition of a test's own.
function(fl_share target)
    foreach(file IN LISTS ARGN)
        get_filename_component(file ${file} ABSOLUTE)
        file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${file})
        string(MAKE_C_IDENTIFIER "shared_${name}" name)
        if(NOT TARGET ${name})
            add_library(${name} OBJECT ${file})
            target_link_libraries(${name} PRIVATE fl_library_flags PkgConfig::CMOCKA)
            target_compile_definitions(${name} PRIVATE ${FL_TEST_PATHS})
            target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tools
                                       ${PROJECT_SOURCE_DIR}/bench)
        endif()
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${name}>)
    endforeach()
endfunction()

# fl_test(NAME n LABELS l SOURCES f... [SHARED f...] [LAYERS x...] [UPTO x] [LIBS t...]
#         [DEFINITIONS d...] [INCLUDES d...] [TIMEOUT s] [ENV k=v...] [ARGS a...] [SERIAL])
# A cmocka program linked with the layers' objects, so with the core under its fl_ names: malloc
# stays libc's. UNIT_TESTING is never defined: cmocka's header would rename malloc. SHARED files are
# fl_share's. gcc takes twice as long for -O2 as for -O1 over cmocka's macros.
function(fl_test)
    cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT;UPTO"
                          "LABELS;SOURCES;SHARED;LAYERS;LIBS;DEFINITIONS;INCLUDES;ENV;ARGS" ${ARGN})
    fl_layer_objects(objects "${T_UPTO}" ${T_LAYERS})
    add_executable(${T_NAME} ${T_SOURCES} ${objects})
    fl_share(${T_NAME} ${T_SHARED})
    target_compile_options(${T_NAME} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    target_link_libraries(${T_NAME} PRIVATE fl_library_flags PkgConfig::CMOCKA Threads::Threads ${T_LIBS})
    target_compile_definitions(${T_NAME} PRIVATE ${T_DEFINITIONS})
    target_include_directories(${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${T_INCLUDES})
    set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} ${T_ARGS})
    fl_test_properties(${T_NAME} "${T_LABELS}" "${T_TIMEOUT}" "${T_ENV}")
    if(T_SERIAL)
        set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# fl_cxx_test(NAME n LABELS l SOURCES f... [ENV k=v...]): a C++17 program that is linked with
# libfaultless.so, as a user's is. Nothing to do without a C++ compiler, or where the library cannot
# be built.
function(fl_cxx_test)
    if(NOT FL_PRELOADABLE OR NOT CMAKE_CXX_COMPILER)
        return()
    endif()
    cmake_parse_arguments(T "" "NAME" "LABELS;SOURCES;ENV" ${ARGN})
    add_executable(${T_NAME} ${T_SOURCES})
    target_compile_options(${T_NAME} PRIVATE -std=c++17 -Wall -Wextra $<$<BOOL:${FL_WERROR}>:-Werror>)
    target_link_libraries(${T_NAME} PRIVATE faultless Threads::Threads)
    set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME})
    fl_test_properties(${T_NAME} "${T_LABELS}" "" "${T_ENV}")
endfunction()

# fl_preload_test(as fl_test): a parent that is not preloaded and starts real programs under
# libfaultless.so. It finds the library by FL_LIB_PATH and the victims by FL_VICTIM_DIR. Nothing to
# do where the library cannot be built.
function(fl_preload_test)
    if(NOT FL_PRELOADABLE)
        return()
    endif()
    cmake_parse_arguments(T "" "NAME" "" ${ARGN})
    fl_test(${ARGN})
    target_compile_definitions(${T_NAME} PRIVATE ${FL_TEST_PATHS})
endfunction()

# fl_rung(NAME RUNG): the preload test once more on that rung, under the label rungs and the name
# NAME@RUNG. A rung is what FL_TEST_RUNG takes (tests/preload/run.h), with + for the comma.
function(fl_rung name rung)
    string(REPLACE "+" "," words ${rung})
    add_test(NAME ${name}@${rung} COMMAND ${name})
    fl_test_properties(${name}@${rung} rungs 300 "FL_TEST_RUNG=${words}")
endfunction()

# fl_rungs(NAME [EXCEPT r...]): the same, on each.
set(FL_RUNGS move move+uffd uffd uring thp populate worker seccomp nobody seccomp+nobody)
function(fl_rungs name)
    cmake_parse_arguments(R "" "" "EXCEPT" ${ARGN})
    if(NOT FL_PRELOADABLE)
        return()
    endif()
    foreach(rung IN LISTS R_EXCEPT)
        if(NOT rung IN_LIST FL_RUNGS)
            message(FATAL_ERROR "fl_rungs ${name}: no rung ${rung}")
        endif()
    endforeach()
    foreach(rung IN LISTS FL_RUNGS)
        if(NOT rung IN_LIST R_EXCEPT)
            fl_rung(${name} ${rung})
        endif()
    endforeach()
endfunction()

# fl_victim(NAME n SOURCES f... [SHARED] [LIBS t...] [OPTIONS o...]): a program (or a library for it
# to load) that knows nothing of faultless, put where preload tests look for it.
function(fl_victim)
    if(NOT FL_PRELOADABLE)
        return()
    endif()
    cmake_parse_arguments(V "SHARED" "NAME" "SOURCES;LIBS;OPTIONS" ${ARGN})
    if(V_SHARED)
        add_library(${V_NAME} MODULE ${V_SOURCES})
        set_target_properties(${V_NAME} PROPERTIES PREFIX "")
    else()
        add_executable(${V_NAME} ${V_SOURCES})
    endif()
    # -fno-builtin: the compiler must not remove an allocation that the victim exists to make.
    # -U: what some distributions define by default aborts where a victim writes to all of
    # malloc_usable_size.
    target_compile_options(${V_NAME} PRIVATE -fno-builtin -U_FORTIFY_SOURCE ${V_OPTIONS})
    target_compile_definitions(${V_NAME} PRIVATE _GNU_SOURCE)
    target_include_directories(${V_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${V_NAME} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} ${V_LIBS})
    set_target_properties(${V_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${FL_VICTIM_DIR}
                          LIBRARY_OUTPUT_DIRECTORY ${FL_VICTIM_DIR})
endfunction()

# fl_script_test(NAME n LABELS l COMMAND c... [TIMEOUT s] [ENV k=v...]): a test that is a script. It
# gets the build folder, the source folder and the library's path in FL_BUILD_DIR, FL_SOURCE_DIR and
# FL_LIB_PATH.
function(fl_script_test)
    cmake_parse_arguments(T "" "NAME;TIMEOUT" "LABELS;COMMAND;ENV" ${ARGN})
    add_test(NAME ${T_NAME} COMMAND ${T_COMMAND})
    fl_test_properties(${T_NAME} "${T_LABELS}" "${T_TIMEOUT}"
                       "FL_BUILD_DIR=${PROJECT_BINARY_DIR};FL_SOURCE_DIR=${PROJECT_SOURCE_DIR};FL_LIB_PATH=${PROJECT_BINARY_DIR}/libfaultless.so;${T_ENV}")
endfunction()

# fl_fuzz(NAME n SOURCES f... [UPTO x] [LAYERS x...] [LIBS t...] [CORPUS dir] [SECONDS s]): a
# libFuzzer target, in the fuzz preset only. As a test (label fuzz) it replays the committed corpus,
# then searches for s seconds (30) from it; what it finds goes to the build folder, never to the
# committed corpus.
function(fl_fuzz)
    if(NOT FL_FUZZ)
        return()
    endif()
    cmake_parse_arguments(F "" "NAME;UPTO;CORPUS;SECONDS" "SOURCES;LAYERS;LIBS" ${ARGN})
    if(NOT F_SECONDS)
        set(F_SECONDS 30)
    endif()
    fl_layer_objects(objects "${F_UPTO}" ${F_LAYERS})
    add_executable(${F_NAME} ${F_SOURCES} ${objects})
    target_link_libraries(${F_NAME} PRIVATE fl_library_flags Threads::Threads ${F_LIBS})
    target_compile_options(${F_NAME} PRIVATE -fsanitize=fuzzer)
    target_link_options(${F_NAME} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${F_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(found ${PROJECT_BINARY_DIR}/tests/corpus-${F_NAME})
    file(MAKE_DIRECTORY ${found})
    add_test(NAME ${F_NAME} COMMAND ${F_NAME} -max_total_time=${F_SECONDS} -print_final_stats=1
             -artifact_prefix=${PROJECT_BINARY_DIR}/tests/ ${found} ${F_CORPUS})
    math(EXPR timeout "${F_SECONDS} + 60")
    fl_test_properties(${F_NAME} fuzz ${timeout} "")
endfunction()
