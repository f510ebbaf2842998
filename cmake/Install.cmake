# SPDX-License-Identifier: Apache-2.0
#
# Install: command, helper programs, both libraries, headers, pkg-config file and CMake package.
include(CMakePackageConfigHelpers)

if(TARGET laneway)
    install(TARGETS laneway RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
get_property(lw_helpers GLOBAL PROPERTY LW_HELPERS)
install(TARGETS ${lw_helpers} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/laneway)
install(TARGETS laneway_shared laneway_static
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/laneway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")

# What the static library needs from whoever links it.
set(LW_PRIVATE_LIBS "-luv -lyaml -ljansson")
set(LW_PRIVATE_MODULES libuv yaml-0.1 jansson)
if(LANEWAY_KAFKA)
    string(APPEND LW_PRIVATE_LIBS " -lrdkafka")
    list(APPEND LW_PRIVATE_MODULES rdkafka)
endif()
if(LANEWAY_PULSAR)
    string(APPEND LW_PRIVATE_LIBS " -lssl -lcrypto -llz4 -lz -lzstd -lsnappy")
    list(APPEND LW_PRIVATE_MODULES openssl liblz4 zlib libzstd snappy)
endif()
if(LANEWAY_SPOOL)
    string(APPEND LW_PRIVATE_LIBS " -lsqlite3")
    list(APPEND LW_PRIVATE_MODULES sqlite3)
endif()
string(APPEND LW_PRIVATE_LIBS " -lpthread -ldl")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/laneway)
file(RELATIVE_PATH LW_PC_ROOT /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(cmake/laneway.pc.in laneway.pc @ONLY)
configure_package_config_file(cmake/lanewayConfig.cmake.in lanewayConfig.cmake
                              INSTALL_DESTINATION ${package_folder}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(lanewayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/laneway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/lanewayConfig.cmake
              ${PROJECT_BINARY_DIR}/lanewayConfigVersion.cmake DESTINATION ${package_folder})
