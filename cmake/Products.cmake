# SPDX-License-Identifier: Apache-2.0
#
# What users get: the shared and the static library, and the command, which is linked against our
# own objects so that it starts without looking for liblaneway.so.
set(lw_objects "")
foreach(layer IN LISTS LW_LAYERS)
    list(APPEND lw_objects $<TARGET_OBJECTS:${layer}>)
endforeach()

add_library(laneway_shared SHARED ${lw_objects})
if(NOT LANEWAY_SANITIZE)
    target_link_options(laneway_shared PRIVATE -Wl,-z,defs)
endif()
target_link_libraries(laneway_shared PRIVATE ${LW_LAYERS})
set_target_properties(laneway_shared PROPERTIES OUTPUT_NAME laneway VERSION ${PROJECT_VERSION}
                      SOVERSION 0 LW_LINK_LTO ON LINKER_LANGUAGE C EXPORT_NAME laneway)

add_library(laneway_static STATIC ${lw_objects})
set_target_properties(laneway_static PROPERTIES OUTPUT_NAME laneway LINKER_LANGUAGE C
                      EXPORT_NAME static)

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
add_library(lw_cli STATIC ${PROJECT_BINARY_DIR}/empty.c)
list(FILTER cli_sources EXCLUDE REGEX "/main\\.c$")
if(cli_sources)
    target_sources(lw_cli PRIVATE ${cli_sources})
endif()
target_link_libraries(lw_cli PRIVATE lw_compile PUBLIC lw_service)
target_compile_options(lw_cli PRIVATE ${LW_STRICT_WARNINGS})
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.c)
    add_executable(laneway ${PROJECT_SOURCE_DIR}/src/cli/main.c ${LW_TSAN_SHIM})
    target_link_libraries(laneway PRIVATE lw_compile lw_cli)
    target_compile_options(laneway PRIVATE ${LW_STRICT_WARNINGS})
    set_target_properties(laneway PROPERTIES LW_LINK_LTO ON ENABLE_EXPORTS ${LW_EXPORTS}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
