/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h: the version that a program was compiled against. The build reads these lines too,
 * so this file is the only place where the version is written. A change of LW_VERSION_MAJOR may
 * break programs; before 1.0, a change of LW_VERSION_MINOR may as well.
 */
#ifndef LANEWAY_VERSION_H
#define LANEWAY_VERSION_H

#define LW_VERSION_MAJOR 0
#define LW_VERSION_MINOR 1
#define LW_VERSION_PATCH 0
#define LW_VERSION_STRING "0.1.0"

/* 0x00MMmmpp: comparable with < and >=, also by the preprocessor. */
#define LW_VERSION_HEX ((LW_VERSION_MAJOR << 16) | (LW_VERSION_MINOR << 8) | LW_VERSION_PATCH)

#endif
