/* SPDX-License-Identifier: Apache-2.0 */
#include "box_fixture.h"
NOTHING_IS_LEFT_TEST
