/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h: cmocka with the headers that it needs, in the order that it needs. Every test file
 * begins with this one.
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
