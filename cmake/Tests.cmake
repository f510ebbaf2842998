# SPDX-License-Identifier: Apache-2.0
#
# Tests are found by name. tests/AREA/**/test_X.c is a cmocka executable and the CTest test
# unit.AREA.X (label unit); test_mock_X.c under tests/brokers/kafka is mock.brokers.kafka.X (label
# mock: librdkafka's mock cluster). Other .c files of an area are helpers that its tests link.
# tests/fuzz/fuzz_X.c replays its corpus as fuzz.X. tests/cli/X.sh is cli.X, tests/tools/X.sh is
# tools.X, and tests/kafka/X.sh or .py is kafka.X (label real), run on a real broker.
pkg_check_modules(lw_cmocka_pc IMPORTED_TARGET cmocka)
set(LW_TESTS ${PROJECT_SOURCE_DIR}/tests)
set(LW_TEST_ENV "LANEWAY=${PROJECT_BINARY_DIR}/bin/laneway" "BUILD_DIR=${PROJECT_BINARY_DIR}")

# The layers that a test of an area may reach; an area that is not named reaches all.
set(lw_area_base lw_base)
set(lw_area_core lw_core)
set(lw_area_policy lw_policy)
set(lw_area_engines lw_engines)

add_library(lw_test_compile INTERFACE)
target_link_libraries(lw_test_compile INTERFACE lw_compile)
target_include_directories(lw_test_compile INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(lw_test_compile INTERFACE
                       -Wno-conversion -Wno-sign-conversion -Wno-null-dereference)
target_compile_definitions(lw_test_compile INTERFACE LW_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                           LW_BINARY_DIR="${PROJECT_BINARY_DIR}")

file(GLOB support_sources CONFIGURE_DEPENDS ${LW_TESTS}/support/*.c)
list(FILTER support_sources EXCLUDE REGEX "/c11_threads_shim\\.c$")
add_library(lw_test_support STATIC ${PROJECT_BINARY_DIR}/empty.c ${support_sources})
target_link_libraries(lw_test_support PRIVATE lw_test_compile PkgConfig::lw_cmocka_pc)

# librdkafka starts its threads by C11 calls, which a thread sanitizer does not see.
set(lw_tsan_shim "")
if(LANEWAY_SANITIZE MATCHES "thread")
    set(lw_tsan_shim ${LW_TESTS}/support/c11_threads_shim.c)
endif()

function(lw_add_unit_test source area libraries)
    file(RELATIVE_PATH path ${LW_TESTS} ${source})
    string(REGEX REPLACE "\\.c$" "" path ${path})
    get_filename_component(folder ${path} DIRECTORY)
    string(REPLACE "/" "_" target ${path})
    string(REGEX REPLACE "/test_" "/" name ${path})
    set(label unit)
    if(path MATCHES "^brokers/kafka/test_mock_")
        set(label mock)
        string(REGEX REPLACE "/mock_" "/" name ${name})
    endif()
    string(REPLACE "/" "." name ${name})
    add_executable(${target} ${source} ${lw_tsan_shim})
    get_filename_component(file ${path} NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} ENABLE_EXPORTS ON
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
    target_link_libraries(${target} PRIVATE lw_test_compile lw_test_${area} lw_test_support
                          ${libraries} PkgConfig::lw_cmocka_pc)
    add_test(NAME ${label}.${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT 120
                         SKIP_RETURN_CODE 77 ENVIRONMENT "${LW_TEST_ENV}")
    set_property(GLOBAL APPEND PROPERTY lw_${label}_targets ${target})
endfunction()

function(lw_add_area area)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${LW_TESTS}/${area}/*.c)
    if(NOT LANEWAY_KAFKA)
        list(FILTER sources EXCLUDE REGEX "/brokers/kafka/")
    endif()
    set(libraries lw_cli)
    if(DEFINED lw_area_${area})
        set(libraries ${lw_area_${area}})
    endif()
    set(tests ${sources})
    set(helpers ${sources})
    list(FILTER tests INCLUDE REGEX "/test_[^/]*\\.c$")
    list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
    add_library(lw_test_${area} STATIC ${PROJECT_BINARY_DIR}/empty.c ${helpers})
    target_link_libraries(lw_test_${area} PRIVATE lw_test_compile ${libraries}
                          PkgConfig::lw_cmocka_pc)
    foreach(source IN LISTS tests)
        lw_add_unit_test(${source} ${area} "${libraries}")
    endforeach()
endfunction()

if(lw_cmocka_pc_FOUND)
    foreach(area base core policy dispatcher engines brokers service cli oom)
        lw_add_area(${area})
    endforeach()
else()
    message(STATUS "cmocka is missing: unit tests are not built (run tools/setup)")
endif()
