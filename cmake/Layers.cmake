# SPDX-License-Identifier: Apache-2.0
#
# lw_add_layer(NAME [FOREIGN_ENUMS] [FOLDER path] [EXCLUDE regex] DEPENDS targets): src/FOLDER as
# the archive lw_NAME. A folder that is still empty gives an empty archive instead of an error.
# FOREIGN_ENUMS: it switches over a library's enum of hundreds of values, which grows.
set(LW_LAYERS "")
file(WRITE ${PROJECT_BINARY_DIR}/empty.c "struct lw_empty;\n")

function(lw_add_layer name)
    cmake_parse_arguments(ARG "FOREIGN_ENUMS" "FOLDER;EXCLUDE" "DEPENDS" ${ARGN})
    if(NOT ARG_FOLDER)
        set(ARG_FOLDER ${name})
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER}/*.c)
    if(ARG_EXCLUDE)
        list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
    endif()
    if(NOT sources)
        set(sources ${PROJECT_BINARY_DIR}/empty.c)
    endif()
    add_library(lw_${name} STATIC ${sources})
    target_link_libraries(lw_${name} PRIVATE lw_compile PUBLIC ${ARG_DEPENDS})
    target_compile_options(lw_${name} PRIVATE ${LW_STRICT_WARNINGS})
    if(ARG_FOREIGN_ENUMS)
        target_compile_options(lw_${name} PRIVATE -Wno-switch-enum)
    endif()
    set(LW_LAYERS ${LW_LAYERS} lw_${name} PARENT_SCOPE)
endfunction()
