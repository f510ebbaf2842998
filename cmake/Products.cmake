# SPDX-License-Identifier: Apache-2.0
#
# What users get: the shared and the static library, the command, which is linked against our own
# objects so that it starts without looking for liblaneway.so, and the little programs that the
# library starts (src/helpers; found by base/installed.c).
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

# lw_add_helper(NAME SOURCE [LIBRARIES...]): a program in libexec/laneway, here and installed.
function(lw_add_helper name source)
    add_executable(${name} ${source} ${LW_TSAN_SHIM})
    target_link_libraries(${name} PRIVATE lw_compile ${ARGN})
    target_compile_options(${name} PRIVATE ${LW_STRICT_WARNINGS})
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ${LW_EXPORTS}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/laneway)
    set_property(GLOBAL APPEND PROPERTY LW_HELPERS ${name})
    add_dependencies(laneway_shared ${name})
endfunction()

lw_add_helper(laneway-exec ${PROJECT_SOURCE_DIR}/src/helpers/exec.c)
add_dependencies(lw_engines laneway-exec)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/installed.c APPEND PROPERTY COMPILE_DEFINITIONS
             LW_LIBEXEC_DIR="${CMAKE_INSTALL_FULL_LIBEXECDIR}/laneway")

# It is forked into worker processes that run plug-ins, which find the library's functions in it.
lw_add_helper(laneway-zygote ${PROJECT_SOURCE_DIR}/src/helpers/zygote.c lw_engines)
set_target_properties(laneway-zygote PROPERTIES ENABLE_EXPORTS ON)
