#include "test.h"
TEST(nothing) { CHECK(1); }
