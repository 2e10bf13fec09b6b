/* Which processors' variants of the kernels may run here. */
#ifdef __x86_64__
#include <cpuid.h>

/* Whether the processor has what a level of the x86-64 psABI (section 3.1.1) asks for, beyond the level before. */
static int is_x86_64_v2(void) {
    unsigned a, b, c, d;
    const unsigned needed = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & needed) == needed;
}

static int is_x86_64_v3(void) {
    unsigned a, b, c, d, saved, high;
    const unsigned first = bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE, seventh = bit_AVX2 | bit_BMI | bit_BMI2;
    if (!is_x86_64_v2() || !__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first)
        return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 6) != 6) /* the system keeps no wide registers */
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & seventh) == seventh &&
           __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}
#endif
