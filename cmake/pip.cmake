# A checkout that pip builds: a compiler is enough. pip cannot install what faultstat needs beside
# it, so where that is not there, faultstat is left out.
find_package(PkgConfig)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(FL_FAULTSTAT_NEEDS QUIET jansson libdw ncursesw)
endif()
if(NOT FL_FAULTSTAT_NEEDS_FOUND)
    message(WARNING "faultstat is left out: it needs pkg-config, jansson, libdw and ncurses (tools/setup installs them)")
    set(FL_FAULTSTAT OFF)
endif()
