# SPDX-License-Identifier: Apache-2.0
#
# Toolchain file of tools/check-portable: Debian's cross compiler, libraries from
# LANEWAY_SYSROOT, and programs run by qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LANEWAY_SYSROOT)
set(library_path ${LANEWAY_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-isystem ${LANEWAY_SYSROOT}/usr/include/aarch64-linux-gnu")
set(ENV{PKG_CONFIG_LIBDIR} ${library_path}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${LANEWAY_SYSROOT})
set(link_flags "-L${library_path} -Wl,-rpath-link,${library_path}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${link_flags}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${link_flags}")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${library_path})
