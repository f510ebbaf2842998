# SPDX-License-Identifier: Apache-2.0
#
# Every bench/X.c is build/bench/X; what they share lives in bench/support/. bench/plugins/X.c is
# build/bench/plugins/X.so, a shared object with handlers.
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
file(GLOB bench_support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/support/*.c)
if(NOT LANEWAY_SPOOL)
    list(FILTER bench_support EXCLUDE REGEX "/spool_")
endif()
foreach(source IN LISTS bench_sources)
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "spool" AND NOT LANEWAY_SPOOL)
        continue()
    endif()
    add_executable(bench_${name} ${source} ${bench_support})
    target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(bench_${name} PRIVATE lw_compile lw_service)
    target_compile_definitions(bench_${name} PRIVATE LW_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               LW_BINARY_DIR="${PROJECT_BINARY_DIR}")
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} LW_LINK_LTO ON
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endforeach()

add_library(bench_plugin_handlers MODULE ${PROJECT_SOURCE_DIR}/bench/plugins/handlers.c
            ${PROJECT_SOURCE_DIR}/src/engines/builtin/sha256.c)
set_target_properties(bench_plugin_handlers PROPERTIES PREFIX "" OUTPUT_NAME handlers
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench/plugins)
target_link_libraries(bench_plugin_handlers PRIVATE lw_compile)
add_dependencies(bench_engines bench_plugin_handlers laneway-zygote)
