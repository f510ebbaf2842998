# SPDX-License-Identifier: Apache-2.0
#
# Language, warnings, hardening, link-time optimisation, sanitizers. Our asserts are a macro of our
# own that stays on, so no build type defines NDEBUG.

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(LW_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual
    -Wwrite-strings -Wundef -Wvla -Wformat=2)
# For the product; tests are full of literals and of cmocka's casts.
set(LW_STRICT_WARNINGS -Wconversion -Wsign-conversion -Wnull-dereference -Wswitch-enum)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND LW_WARNINGS -Wduplicated-cond -Wlogical-op -Wimplicit-fallthrough=5)
else()
    list(APPEND LW_WARNINGS -Wimplicit-fallthrough)
endif()

# Everything that our own code is compiled with, as a target.
add_library(lw_compile INTERFACE)
target_compile_options(lw_compile INTERFACE ${LW_WARNINGS})
target_compile_definitions(lw_compile INTERFACE _GNU_SOURCE)
target_include_directories(lw_compile INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_SOURCE_DIR}/src)
if(LANEWAY_WERROR)
    target_compile_options(lw_compile INTERFACE -Werror)
endif()
if(LANEWAY_KAFKA)
    target_compile_definitions(lw_compile INTERFACE LW_WITH_KAFKA=1)
else()
    target_compile_definitions(lw_compile INTERFACE LW_WITH_KAFKA=0)
endif()
if(LANEWAY_PULSAR)
    target_compile_definitions(lw_compile INTERFACE LW_WITH_PULSAR=1)
else()
    target_compile_definitions(lw_compile INTERFACE LW_WITH_PULSAR=0)
endif()
if(LANEWAY_SPOOL)
    target_compile_definitions(lw_compile INTERFACE LW_WITH_SPOOL=1)
else()
    target_compile_definitions(lw_compile INTERFACE LW_WITH_SPOOL=0)
endif()
if(LANEWAY_COVERAGE)
    target_compile_options(lw_compile INTERFACE --coverage)
    target_link_options(lw_compile INTERFACE --coverage)
endif()

add_link_options(-Wl,--as-needed)
set(LW_LTO OFF)
if(LANEWAY_SANITIZE)
    add_compile_options(-fsanitize=${LANEWAY_SANITIZE} -fno-omit-frame-pointer -O1)
    add_link_options(-fsanitize=${LANEWAY_SANITIZE})
    if(LANEWAY_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|aarch64")
        add_compile_options(-fstack-clash-protection)
    endif()
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        add_compile_options(-fcf-protection)
    endif()
    add_link_options(-Wl,-z,relro,-z,now)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT LANEWAY_COVERAGE)
        set(LW_LTO ON)
    endif()
endif()

# The objects carry ordinary code beside the LTO form: the installed liblaneway.a works with any
# linker, and test executables link in a fraction of the time. Only products and benches are
# linked by LTO.
if(LW_LTO)
    target_compile_options(lw_compile INTERFACE -flto=auto -ffat-lto-objects)
    add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:LW_LINK_LTO>>,-flto=auto,-fno-lto>)
endif()
if(LANEWAY_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Executables export what is LW_API: handlers in shared objects find it there.
set(LW_EXPORTS ON)
# librdkafka starts its threads by C11 calls, which a thread sanitizer does not see: every
# executable of that build carries its own, exported.
set(LW_TSAN_SHIM "")
if(LANEWAY_SANITIZE MATCHES "thread")
    set(LW_TSAN_SHIM ${PROJECT_SOURCE_DIR}/tests/support/c11_threads_shim.c)
endif()
