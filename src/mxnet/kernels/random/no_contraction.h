// From here on no multiplication is joined with an addition, so that results do not depend on the compiler. Standard headers are included before.
#pragma once

#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif
