# SPDX-License-Identifier: Apache-2.0
#
# Tests are found by name. tests/AREA/**/test_X.c is a cmocka executable and the CTest test
# unit.AREA.X (label unit); test_mock_X.c under tests/brokers/kafka is mock.brokers.kafka.X (label
# mock: librdkafka's mock cluster). Other .c files of an area are helpers that its tests link.
# tests/fuzz/fuzz_X.c replays its corpus as fuzz.X. tests/AREA/X.sh or X.py is AREA.X for the areas
# cli, tools, clients and examples; tests/kafka/X.sh, .py or test_X.c is kafka.X (label real), run on
# a real broker; tests/pulsar alike.
pkg_check_modules(lw_cmocka_pc IMPORTED_TARGET cmocka)
set(LW_TESTS ${PROJECT_SOURCE_DIR}/tests)
set(LW_TEST_ENV "LANEWAY=${PROJECT_BINARY_DIR}/bin/laneway" "BUILD_DIR=${PROJECT_BINARY_DIR}")

# The layers that a test of an area may reach; an area that is not named reaches all.
set(lw_area_base lw_base)
set(lw_area_core lw_core)
set(lw_area_policy lw_policy)
set(lw_area_engines lw_engines)
set(lw_area_brokers lw_brokers)
if(LANEWAY_KAFKA)
    list(APPEND lw_area_brokers lw_kafka)
endif()
if(LANEWAY_PULSAR)
    list(APPEND lw_area_brokers lw_test_pulsar lw_pulsar)
    set(lw_area_dispatcher lw_cli lw_test_pulsar)
endif()

if(LANEWAY_SPOOL)
    list(APPEND lw_area_brokers lw_spool)
endif()

add_library(lw_test_compile INTERFACE)
target_link_libraries(lw_test_compile INTERFACE lw_compile)
target_include_directories(lw_test_compile INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(lw_test_compile INTERFACE LW_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                           LW_BINARY_DIR="${PROJECT_BINARY_DIR}")

file(GLOB support_sources CONFIGURE_DEPENDS ${LW_TESTS}/support/*.c)
list(FILTER support_sources EXCLUDE REGEX "/(c11_threads_shim|[a-z0-9_]*_main)\\.c$")
add_library(lw_test_support STATIC ${PROJECT_BINARY_DIR}/empty.c ${support_sources})
target_link_libraries(lw_test_support PRIVATE lw_test_compile PkgConfig::lw_cmocka_pc)

# The embedded Pulsar broker: of the client's folder it may know the wire only.
if(LANEWAY_PULSAR)
    file(GLOB embedded_sources CONFIGURE_DEPENDS ${LW_TESTS}/support/pulsar/embedded*.c)
    list(FILTER embedded_sources EXCLUDE REGEX "_main\\.c$")
    add_library(lw_test_pulsar STATIC ${embedded_sources})
    target_link_libraries(lw_test_pulsar PRIVATE lw_test_compile PUBLIC lw_pulsar lw_openssl)
    add_executable(support_embedded_pulsar ${LW_TESTS}/support/pulsar/embedded_main.c
                   ${LW_TSAN_SHIM})
    set_target_properties(support_embedded_pulsar PROPERTIES OUTPUT_NAME embedded_pulsar
                          ENABLE_EXPORTS ${LW_EXPORTS}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/support)
    target_link_libraries(support_embedded_pulsar PRIVATE lw_test_compile lw_test_pulsar)
endif()

# Tests that are worth a run under the thread sanitizer: several threads touch their subject.
set(LW_TSAN_TESTS "^unit\\.(base\\.(mailbox|publish|loop|log|fault)|engines\\.|dispatcher\\.|brokers\\.spool\\.)|^mock\\.")

function(lw_set_test name label timeout_s)
    set(labels ${label})
    if(name MATCHES "${LW_TSAN_TESTS}")
        list(APPEND labels tsan-ok)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout_s}
                         SKIP_RETURN_CODE 77 ENVIRONMENT "${LW_TEST_ENV}")
endfunction()

# Handlers in shared objects: tests/plugins/X.c is build/tests/plugins/X.so. `absent` is the library
# that `needs_absent` does not find.
file(GLOB plugin_sources CONFIGURE_DEPENDS ${LW_TESTS}/plugins/*.c)
add_custom_target(test_plugins)
add_dependencies(test_plugins laneway-zygote)
foreach(source IN LISTS plugin_sources)
    get_filename_component(name ${source} NAME_WE)
    add_library(plugin_${name} MODULE ${source})
    set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SKIP_BUILD_RPATH ON
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plugins)
    target_link_libraries(plugin_${name} PRIVATE lw_test_compile)
    add_dependencies(test_plugins plugin_${name})
endforeach()
add_library(plugin_library_absent SHARED ${LW_TESTS}/plugins/library/absent.c)
set_target_properties(plugin_library_absent PROPERTIES OUTPUT_NAME laneway_absent
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plugins/library)
target_link_libraries(plugin_library_absent PRIVATE lw_test_compile)
target_link_libraries(plugin_needs_absent PRIVATE plugin_library_absent)
target_sources(plugin_obey PRIVATE ${LW_TESTS}/engines/obey.c)
target_link_libraries(plugin_obey PRIVATE Threads::Threads)

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
    add_executable(${target} ${source} ${LW_TSAN_SHIM})
    get_filename_component(file ${path} NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} ENABLE_EXPORTS ${LW_EXPORTS}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
    target_link_libraries(${target} PRIVATE lw_test_compile lw_test_${area} lw_test_support
                          ${libraries} PkgConfig::lw_cmocka_pc)
    if(path MATCHES "plugin|oom_api|processes|batch_order")
        add_dependencies(${target} test_plugins)
        # What the plug-ins use and the test itself may not.
        target_link_options(${target} PRIVATE LINKER:-u,lw_delivery_finish,-u,lw_delivery_reply
                            LINKER:-u,lw_delivery_topic)
    endif()
    add_test(NAME ${label}.${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    lw_set_test(${label}.${name} ${label} 300)
    set_property(GLOBAL APPEND PROPERTY lw_${label}_targets ${target})
endfunction()

function(lw_add_area area)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${LW_TESTS}/${area}/*.c)
    if(NOT LANEWAY_KAFKA)
        list(FILTER sources EXCLUDE REGEX "/brokers/kafka/")
    endif()
    if(NOT LANEWAY_PULSAR)
        list(FILTER sources EXCLUDE REGEX "/brokers/pulsar/|/test_pulsar_")
    endif()
    if(NOT LANEWAY_SPOOL)
        list(FILTER sources EXCLUDE REGEX "/brokers/spool/|/test_config_spool")
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

# lw_add_script_tests(AREA LABEL TIMEOUT): tests/AREA/X.sh and X.py as AREA.X.
function(lw_add_script_tests area label timeout_s)
    file(GLOB scripts CONFIGURE_DEPENDS ${LW_TESTS}/${area}/*.sh ${LW_TESTS}/${area}/*.py)
    foreach(script IN LISTS scripts)
        get_filename_component(name ${script} NAME_WE)
        if(name MATCHES "^_")
            continue()
        endif()
        set(kind ${label})
        if(label STREQUAL "real")
            set(kind ${area})
        endif()
        add_test(NAME ${area}.${name} COMMAND ${LW_TESTS}/support/run-script ${kind} ${script}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        lw_set_test(${area}.${name} ${label} ${timeout_s})
        if(label STREQUAL "real")
            set_tests_properties(${area}.${name} PROPERTIES FIXTURES_REQUIRED ${area}
                                 RESOURCE_LOCK broker)
        endif()
    endforeach()
endfunction()

# Programs that tests start: tests/support/X_main.c is build/tests/support/X.
file(GLOB support_mains CONFIGURE_DEPENDS ${LW_TESTS}/support/*_main.c)
foreach(source IN LISTS support_mains)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_main$" "" name ${name})
    set(libraries lw_cli)
    if(name MATCHES "spool" AND NOT LANEWAY_SPOOL)
        continue()
    endif()
    if(name MATCHES "kafka")
        if(NOT LANEWAY_KAFKA)
            continue()
        endif()
        set(libraries lw_rdkafka Threads::Threads)
    endif()
    add_executable(support_${name} ${source} ${LW_TSAN_SHIM})
    set_target_properties(support_${name} PROPERTIES OUTPUT_NAME ${name} ENABLE_EXPORTS ${LW_EXPORTS}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/support)
    target_link_libraries(support_${name} PRIVATE lw_test_compile ${libraries})
    if(name STREQUAL "memory_run") # what plug-ins of examples use
        target_link_options(support_${name} PRIVATE LINKER:-u,lw_delivery_reply)
    endif()
endforeach()

if(lw_cmocka_pc_FOUND)
    foreach(area base core policy dispatcher engines brokers service cli oom)
        lw_add_area(${area})
    endforeach()
else()
    message(STATUS "cmocka is missing: unit tests are not built (run tools/setup)")
endif()

lw_add_script_tests(cli unit 300)
lw_add_script_tests(tools unit 300)
lw_add_script_tests(clients unit 600)
lw_add_script_tests(examples unit 600)

# The simulator: one executable, 2,000 seeds in an ordinary test run.
file(GLOB sim_sources CONFIGURE_DEPENDS ${LW_TESTS}/sim/*.c)
if(sim_sources)
    add_executable(sim ${sim_sources})
    set_target_properties(sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(sim PRIVATE lw_test_compile lw_test_support lw_dispatcher lw_engines lw_brokers)
    add_test(NAME sim.seeds COMMAND sim --seeds 2000 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    lw_set_test(sim.seeds sim 900)
endif()

# Each fuzz target twice: over its corpus as an ordinary test, and by libFuzzer in preset fuzz.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${LW_TESTS}/fuzz/fuzz_*.c)
if(NOT LANEWAY_PULSAR)
    list(FILTER fuzz_sources EXCLUDE REGEX "/fuzz_pulsar_")
endif()
if(NOT LANEWAY_SPOOL)
    list(FILTER fuzz_sources EXCLUDE REGEX "/fuzz_spool_")
endif()
add_custom_target(fuzz)
foreach(source IN LISTS fuzz_sources)
    get_filename_component(target ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name ${target})
    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fuzz)
    target_link_libraries(${target} PRIVATE lw_test_compile lw_cli)
    add_dependencies(fuzz ${target})
    if(LANEWAY_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${target} PRIVATE ${LW_TESTS}/fuzz/replay.c)
        add_test(NAME fuzz.${name} COMMAND ${target} ${LW_TESTS}/fuzz/corpus/${name})
        lw_set_test(fuzz.${name} unit 300)
    endif()
endforeach()

# Tests on real brokers go one at a time, also those of different brokers: with a broker, members and
# handlers each fills two processors, and members have sessions of a second.
# tests/kafka/test_X.c is a cmocka executable and the test kafka.X, on a real broker; pulsar alike.
function(lw_add_real_c_tests broker)
    file(GLOB sources CONFIGURE_DEPENDS ${LW_TESTS}/${broker}/*.c)
    set(helpers ${sources})
    list(FILTER helpers EXCLUDE REGEX "/test_[^/]*\\.c$")
    list(FILTER sources INCLUDE REGEX "/test_[^/]*\\.c$")
    foreach(source IN LISTS sources)
        get_filename_component(file ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" name ${file})
        add_executable(${broker}_${name} ${source} ${helpers} ${LW_TSAN_SHIM})
        set_target_properties(${broker}_${name} PROPERTIES OUTPUT_NAME ${name}
                              ENABLE_EXPORTS ${LW_EXPORTS}
                              RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${broker})
        target_link_libraries(${broker}_${name} PRIVATE lw_test_compile lw_test_brokers lw_test_support
                              lw_${broker} PkgConfig::lw_cmocka_pc)
        add_test(NAME ${broker}.${name} COMMAND ${LW_TESTS}/support/run-script ${broker}
                 $<TARGET_FILE:${broker}_${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        lw_set_test(${broker}.${name} real 600)
        set_tests_properties(${broker}.${name} PROPERTIES FIXTURES_REQUIRED ${broker}
                             RESOURCE_LOCK broker)
    endforeach()
endfunction()

# A real broker, started once for all tests that want one, and stopped after them.
function(lw_add_real_tests broker)
    lw_add_script_tests(${broker} real 900)
    if(lw_cmocka_pc_FOUND)
        lw_add_real_c_tests(${broker})
    endif()
    file(GLOB scripts ${LW_TESTS}/${broker}/*.sh ${LW_TESTS}/${broker}/*.py
         ${LW_TESTS}/${broker}/test_*.c)
    if(scripts)
        set(command ${LW_TESTS}/support/run-script broker ${PROJECT_SOURCE_DIR}/tools/broker
            ${broker})
        add_test(NAME ${broker}.broker_start COMMAND ${command} start)
        add_test(NAME ${broker}.broker_stop COMMAND ${command} stop)
        lw_set_test(${broker}.broker_start real 600)
        lw_set_test(${broker}.broker_stop real 60)
        set_tests_properties(${broker}.broker_start PROPERTIES FIXTURES_SETUP ${broker}
                             RESOURCE_LOCK broker)
        set_tests_properties(${broker}.broker_stop PROPERTIES FIXTURES_CLEANUP ${broker})
    endif()
endfunction()

if(LANEWAY_KAFKA)
    lw_add_real_tests(kafka)
endif()
if(LANEWAY_PULSAR)
    lw_add_real_tests(pulsar)
    # Brokers of its own, since it kills them.
    add_test(NAME pulsar.tools.broker COMMAND ${LW_TESTS}/support/run-script broker
             ${LW_TESTS}/tools/pulsar/broker.sh WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    lw_set_test(pulsar.tools.broker real 600)
    set_tests_properties(pulsar.tools.broker PROPERTIES RESOURCE_LOCK broker)
    # They measure who is served first, and when, not what else the machine does.
    set_tests_properties(pulsar.priority pulsar.delays PROPERTIES RUN_SERIAL ON)
    # The official client against the embedded broker: needs no Java.
    add_test(NAME pulsar.embedded_official COMMAND ${LW_TESTS}/support/run-script broker
             ${LW_TESTS}/tools/pulsar/embedded_official.sh $<TARGET_FILE:support_embedded_pulsar>
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    lw_set_test(pulsar.embedded_official real 300)
endif()
