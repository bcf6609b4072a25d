# liburing, static, for the helpers of src/sys/ring.c: target `fl_uring`. Without it those helpers
# are threads. 2.2: what it calls for requests that are withdrawn.
find_package(PkgConfig REQUIRED)
pkg_check_modules(URING QUIET liburing>=2.2)
set(FL_HAVE_URING 0)
add_library(fl_uring INTERFACE)
if(URING_FOUND)
    find_library(FL_URING_ARCHIVE liburing.a HINTS ${URING_LIBDIR} ${URING_LIBRARY_DIRS})
    if(FL_URING_ARCHIVE)
        set(FL_HAVE_URING 1)
        target_include_directories(fl_uring SYSTEM INTERFACE ${URING_INCLUDE_DIRS})
        target_link_libraries(fl_uring INTERFACE ${FL_URING_ARCHIVE})
        target_link_options(fl_uring INTERFACE -Wl,--exclude-libs,liburing.a) # its names are not ours to export
    endif()
endif()
if(NOT FL_HAVE_URING)
    message(STATUS "No liburing.a: io_uring is left out (tools/setup installs it)")
endif()
