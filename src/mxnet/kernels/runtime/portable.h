// Included first in each source of a wheel for manylinux_2_28 that is built on a newer Linux (scripts/build_dist.py --manylinux): the libraries then
// need no symbol that glibc 2.28 or the libstdc++ of GCC 8 lacks. In the image of manylinux_2_28 the linker does this.
#ifndef REMEX_PORTABLE_H
#define REMEX_PORTABLE_H

#include <cstddef>
#include <new>

// glibc 2.29 has versions of these that do not set errno.
#if defined(__x86_64__)
#define REMEX_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define REMEX_FIRST_GLIBC "GLIBC_2.17"
#endif
__asm__(".symver exp,exp@" REMEX_FIRST_GLIBC);
__asm__(".symver exp2,exp2@" REMEX_FIRST_GLIBC);
__asm__(".symver log,log@" REMEX_FIRST_GLIBC);
__asm__(".symver log2,log2@" REMEX_FIRST_GLIBC);
__asm__(".symver pow,pow@" REMEX_FIRST_GLIBC);

// GCC 11's std::vector calls it for sizes that overflow.
namespace std {
__attribute__((weak, visibility("hidden"), noreturn)) void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std

// GCC 11's libstdc++.a, from which std::from_chars for doubles comes, tests glibc 2.32's flag for a process with one thread.
extern "C" __attribute__((weak, visibility("hidden"))) char __libc_single_threaded = 0;

#endif
