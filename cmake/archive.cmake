# libfaultless.a, for programs that bring the library along: one object, so that a program which
# calls malloc takes all of it. What the layers show each other is hidden in it; the program exports
# what other libraries are to call (-rdynamic).
set(archive ${PROJECT_BINARY_DIR}/libfaultless.a)
set(object ${PROJECT_BINARY_DIR}/archive/faultless.o)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/archive)
set(parts "")
foreach(layer IN LISTS at_start later)
    list(APPEND parts $<TARGET_OBJECTS:fl_${layer}>)
endforeach()
add_custom_command(OUTPUT ${archive} VERBATIM COMMAND_EXPAND_LISTS DEPENDS ${parts}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${object} ${parts} ${FL_URING_ARCHIVE}
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --localize-hidden -w --localize-symbol=io_uring_* --localize-symbol=__io_uring_* ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qcsD ${archive} ${object})
add_custom_target(fl_archive ALL DEPENDS ${archive})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
