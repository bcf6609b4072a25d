# Debian packages by CPack, one a component of cmake/install.cmake: tools/debs builds them. What
# every Debian package has beside the files of `cmake --install` is installed here, and only here.
if(NOT FL_DEBIAN)
    return()
endif()

set(FL_DEBIAN_DIR ${PROJECT_SOURCE_DIR}/packaging/debian)
set(FL_PACKAGES library=libfaultless0 dev=libfaultless-dev tools=faultless-tools python=python3-faultless)

set(FL_MAINTAINER "faultless maintainers <faultless@users.noreply.github.com>" CACHE STRING "Who makes the packages")
set(FL_DEBIAN_VERSION ${PROJECT_VERSION}-1)

function(fl_gzip from to)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/gzip)
    execute_process(COMMAND gzip -9nc ${from} OUTPUT_FILE ${PROJECT_BINARY_DIR}/gzip/${to} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

configure_file(${FL_DEBIAN_DIR}/changelog.in changelog @ONLY)
fl_gzip(${PROJECT_BINARY_DIR}/changelog changelog.Debian.gz)
set(changelog ${PROJECT_BINARY_DIR}/gzip/changelog.Debian.gz)
file(GLOB pages ${PROJECT_SOURCE_DIR}/man/*.[17])
foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME)
    string(REGEX MATCH "[17]$" section ${name})
    fl_gzip(${page} ${name}.gz)
    install(FILES ${PROJECT_BINARY_DIR}/gzip/${name}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT tools)
endforeach()

# As pip would leave it: the version is in the metadata.
set(python_dir lib/python3/dist-packages)
file(GLOB modules ${PROJECT_SOURCE_DIR}/python/faultless/*.py ${PROJECT_SOURCE_DIR}/python/faultless/py.typed)
foreach(module IN LISTS modules)
    get_filename_component(name ${module} NAME)
    file(REAL_PATH ${module} module) # one is a link to a file of the tools
    install(FILES ${module} DESTINATION ${python_dir}/faultless RENAME ${name} COMPONENT python)
endforeach()
file(CONFIGURE OUTPUT METADATA CONTENT "Metadata-Version: 2.1\nName: faultless\nVersion: ${PROJECT_VERSION}\n")
install(FILES ${PROJECT_BINARY_DIR}/METADATA DESTINATION ${python_dir}/faultless-${PROJECT_VERSION}.dist-info
        COMPONENT python)

set(CPACK_COMPONENTS_ALL "")
foreach(pair IN LISTS FL_PACKAGES)
    string(REGEX MATCH "^(.*)=(.*)$" _ ${pair})
    set(component ${CMAKE_MATCH_1})
    set(package ${CMAKE_MATCH_2})
    string(TOUPPER ${component} upper)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
    set(CPACK_DEBIAN_${upper}_FILE_NAME DEB-DEFAULT)
    install(FILES ${FL_DEBIAN_DIR}/copyright ${changelog} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
            COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME faultless)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT ${FL_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(about "It keeps the memory of a program's large buffers, populated and in huge pages,
and hands it out again, so that a steady step of a training loop takes no page
faults. It is preloaded; the program is not changed.
.
")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${about}This package has the library.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
configure_file(${FL_DEBIAN_DIR}/shlibs.in shlibs @ONLY)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${FL_DEBIAN_DIR}/triggers ${PROJECT_BINARY_DIR}/shlibs)
set(CPACK_DEBIAN_DEV_DESCRIPTION "${about}This package has what a program that calls it is compiled with.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libfaultless0 (= ${FL_DEBIAN_VERSION})")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "${about}This package has the launcher faultless; faultstat, which counts page faults
and compares allocators; and faultplan, which shows what was learned of steps.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libfaultless0 (= ${FL_DEBIAN_VERSION})")
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "${about}This package has the Python package: python3 -m faultless runs a program
under it, with the optimizer's steps as its steps.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3:any (>= 3.8), faultless-tools (>= ${FL_DEBIAN_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${FL_DEBIAN_DIR}/postinst ${FL_DEBIAN_DIR}/prerm)
include(CPack)
