# SPDX-License-Identifier: Apache-2.0
#
# Every bench/X.c is build/bench/X; what they share lives in bench/support/.
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
file(GLOB bench_support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/support/*.c)
foreach(source IN LISTS bench_sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(bench_${name} ${source} ${bench_support})
    target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(bench_${name} PRIVATE lw_compile lw_service)
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} LW_LINK_LTO ON
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endforeach()
