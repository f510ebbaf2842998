# SPDX-License-Identifier: Apache-2.0
#
# Libraries that are linked. libcurl is not among them: it is loaded at run time when a token
# must be fetched or a handler is behind HTTP, since linking it costs milliseconds of every start.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# lw_find(NAME MODULE): the target lw_NAME from a pkg-config module, its headers as system ones.
function(lw_find name module)
    pkg_check_modules(lw_${name}_pc REQUIRED IMPORTED_TARGET ${module})
    add_library(lw_${name} INTERFACE)
    target_include_directories(lw_${name} SYSTEM INTERFACE ${lw_${name}_pc_INCLUDE_DIRS})
    target_link_libraries(lw_${name} INTERFACE PkgConfig::lw_${name}_pc)
endfunction()

lw_find(uv "libuv>=1.44")
lw_find(yaml "yaml-0.1>=0.2.5")
lw_find(jansson "jansson>=2.14")
if(LANEWAY_KAFKA)
    lw_find(rdkafka "rdkafka>=2.0.2")
endif()
if(LANEWAY_PULSAR)
    lw_find(openssl "openssl>=3.0")
    lw_find(lz4 "liblz4>=1.9")
    lw_find(zlib "zlib>=1.2.11")
    lw_find(zstd "libzstd>=1.4")
    lw_find(snappy "snappy>=1.1.8")
endif()
if(LANEWAY_SPOOL)
    lw_find(sqlite "sqlite3>=3.40")
endif()
