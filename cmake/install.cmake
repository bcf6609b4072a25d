# What `cmake --install` puts where. CMake finds the library by find_package(faultless), others by
# faultless.pc; both say where they are relative to themselves, so a prefix may be moved. The
# components are Debian's packages (cmake/debian.cmake): library, dev, tools.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/faultless DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
if(NOT FL_DEBIAN) # which has them compressed
    install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
    install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 FILES_MATCHING PATTERN "*.7")
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)
set(doc_dir ${CMAKE_INSTALL_DOCDIR})
if(FL_DEBIAN)
    set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/faultless-tools)
endif()
install(FILES README.md DESTINATION ${doc_dir} COMPONENT tools)
install(DIRECTORY docs DESTINATION ${doc_dir} COMPONENT tools)
set(programs faultplan fl_launcher)
if(FL_FAULTSTAT)
    list(APPEND programs faultstat)
endif()
if(SKBUILD) # the Python package's folder: what pip builds (pyproject.toml)
    install(TARGETS ${programs} RUNTIME DESTINATION faultless/bin COMPONENT wheel)
    install(TARGETS faultless LIBRARY DESTINATION faultless/lib COMPONENT wheel NAMELINK_SKIP)
endif()
if(FL_TOOLS)
    install(TARGETS ${programs} RUNTIME COMPONENT tools)
    # What shells complete: bash and fish find it by the program's name, zsh by what the file says.
    set(zsh_dir zsh/site-functions)
    if(FL_DEBIAN)
        set(zsh_dir zsh/vendor-completions)
    endif()
    set(completion ${PROJECT_SOURCE_DIR}/tools/completion)
    set(bash_dir ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    set(fish_dir ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    install(FILES ${completion}/_faultless DESTINATION ${CMAKE_INSTALL_DATADIR}/${zsh_dir} COMPONENT tools)
    install(FILES ${completion}/faultless.bash DESTINATION ${bash_dir} RENAME faultless COMPONENT tools)
    install(FILES ${completion}/faultless.fish DESTINATION ${fish_dir} COMPONENT tools)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
    foreach(program IN ITEMS faultstat faultplan)
        file(CREATE_LINK faultless ${PROJECT_BINARY_DIR}/completion/${program} SYMBOLIC)
        file(CREATE_LINK faultless.fish ${PROJECT_BINARY_DIR}/completion/${program}.fish SYMBOLIC)
        install(FILES ${PROJECT_BINARY_DIR}/completion/${program} DESTINATION ${bash_dir} COMPONENT tools)
        install(FILES ${PROJECT_BINARY_DIR}/completion/${program}.fish DESTINATION ${fish_dir} COMPONENT tools)
    endforeach()
endif()

if(FL_PRELOADABLE)
    set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/faultless)
    set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    install(TARGETS faultless EXPORT faultless-targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
    install(EXPORT faultless-targets NAMESPACE faultless:: DESTINATION ${package_dir} COMPONENT dev)
    configure_package_config_file(cmake/faultless-config.cmake.in ${PROJECT_BINARY_DIR}/faultless-config.cmake
                                  INSTALL_DESTINATION ${package_dir})
    # Before 1.0 a new minor version may change the interface.
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/faultless-config-version.cmake
                                     COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/faultless-config.cmake ${PROJECT_BINARY_DIR}/faultless-config-version.cmake
            DESTINATION ${package_dir} COMPONENT dev)

    file(RELATIVE_PATH pc_to_lib ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR})
    file(RELATIVE_PATH pc_to_include ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
    configure_file(cmake/faultless.pc.in ${PROJECT_BINARY_DIR}/faultless.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/faultless.pc DESTINATION ${pc_dir} COMPONENT dev)
endif()
