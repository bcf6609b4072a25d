# Toolchain file of the preset `arm64`: Debian's cross compiler, arm64's headers and libraries in a
# folder of their own, and QEMU's user emulation to run what was built. `tools/setup --what arm64`
# installs and fetches all three; FL_ARM64_CACHE says where the folder is, if not in the usual
# cache.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(DEFINED ENV{FL_ARM64_CACHE})
    set(cache $ENV{FL_ARM64_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(cache $ENV{XDG_CACHE_HOME}/faultless-arm64)
else()
    set(cache $ENV{HOME}/.cache/faultless-arm64)
endif()
set(CMAKE_SYSROOT ${cache}/root)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what IN ITEMS LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

# ctest runs programs by it; what they start themselves it does not.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../tests/arm64/emulate)
