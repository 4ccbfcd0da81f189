/* The configuration of this copy of LAME, in place of the one that LAME's configure script writes. Written for polymux;
   the values are those of Debian's package on 64-bit systems. */
#ifndef LAME_CONFIG_H
#define LAME_CONFIG_H

#define STDC_HEADERS 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_LIMITS_H 1
#define HAVE_STDINT_H 1
#define HAVE_STRCHR 1
#define HAVE_MEMCPY 1

#define PACKAGE "lame"
#define VERSION "3.100"
#define LAME_LIBRARY_BUILD 1

/* Both select between calculations that round differently. The frames equal those of other builds only with these. */
#define TAKEHIRO_IEEE754_HACK 1
#define USE_FAST_LOG 1

typedef long double ieee854_float80_t;
typedef double ieee754_float64_t;
typedef float ieee754_float32_t;

#ifdef __SSE__
#define HAVE_XMMINTRIN_H 1
#endif

#endif
