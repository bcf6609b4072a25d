# The oldest glibc that a portable build (FL_PORTABLE) runs on: target `fl_floor`, an archive with a
# member for each name that glibc has moved or renewed since 2.28, RHEL 8's. Who takes such a name
# takes the older version by it; a file that asks for more all the same fails its build.
set(FL_GLIBC_FLOOR 2.28 CACHE STRING "The oldest glibc that a portable build runs on: 2.28 or newer")

# fl_floored(TARGET): it is linked with fl_floor, and judged. Called before what has newer versions
# is linked with it, as libm.
function(fl_floored target)
    if(TARGET fl_floor)
        # By their files' names: those of a newer glibc are only there to be loaded, which costs a
        # process some 20 system calls.
        target_link_libraries(${target} PRIVATE fl_floor
            -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
    endif()
    if(FL_PORTABLE)
        add_custom_command(TARGET ${target} POST_BUILD VERBATIM
            COMMAND ${PROJECT_SOURCE_DIR}/cmake/floor/check ${FL_GLIBC_FLOOR} $<TARGET_FILE:${target}>)
    endif()
endfunction()

if(NOT FL_PORTABLE OR NOT FL_GLIBC_FLOOR VERSION_LESS 2.34)
    return()
endif()
set(floor ${CMAKE_CURRENT_LIST_DIR}/floor)
set(members ${floor}/stat.c ${floor}/start.c)
file(STRINGS ${floor}/names.txt lines REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${floor}/names.txt)
foreach(line IN LISTS lines)
    string(REPLACE " " ";" names "${line}")
    list(POP_FRONT names version)
    list(GET names 0 member)
    list(TRANSFORM names REPLACE "(.+)" "FL_FLOOR(\\1, \"${version}\")\n")
    string(CONCAT text "#include \"floor.h\"\n" ${names})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/floor/${member}.c CONTENT "${text}" @ONLY)
    list(APPEND members ${PROJECT_BINARY_DIR}/floor/${member}.c)
endforeach()
add_library(fl_floor STATIC ${members})
target_include_directories(fl_floor PRIVATE ${floor})
target_compile_options(fl_floor PRIVATE -ffreestanding)
