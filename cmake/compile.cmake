# Flags shared by everything that is compiled: target `fl_flags`; the library's own on top:
# `fl_library_flags`.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(fl_flags INTERFACE)
target_compile_definitions(fl_flags INTERFACE _GNU_SOURCE FL_CHECK_LEVEL=${FL_CHECK_LEVEL}
                           FL_VERSION="${PROJECT_VERSION}")
target_compile_options(fl_flags INTERFACE
    -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wundef -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -fno-common
    $<$<BOOL:${FL_WERROR}>:-Werror>)
if(FL_SANITIZE)
    target_compile_options(fl_flags INTERFACE -fsanitize=${FL_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(fl_flags INTERFACE -fsanitize=${FL_SANITIZE})
endif()

# Without -fno-builtin-*, gcc 12 -O2 compiles a calloc made of malloc and memset into a call of
# itself.
add_library(fl_library_flags INTERFACE)
target_link_libraries(fl_library_flags INTERFACE fl_flags fl_uring)
target_include_directories(fl_library_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_include_directories(fl_library_flags SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third-party)
target_compile_options(fl_library_flags INTERFACE
    -fvisibility=hidden -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
if(NOT FL_SANITIZE)
    target_compile_options(fl_library_flags INTERFACE -ftls-model=initial-exec -fno-plt)
endif()

# fl_layer(NAME FILE...): one folder of src/ as one OBJECT library.
function(fl_layer name)
    add_library(fl_${name} OBJECT ${ARGN})
    target_link_libraries(fl_${name} PRIVATE fl_library_flags)
endfunction()
