/* The functions of whatever a victim runs under: it is not linked with them. */
#ifndef FAULTLESS_TESTS_PRELOAD_API_H
#define FAULTLESS_TESTS_PRELOAD_API_H

#include "victim.h"

#include "faultless/gpu.h"

#include <dlfcn.h>

#define CALL(name) ((__typeof__(&name))symbol(#name))

static inline void *symbol(const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);

    CHECK(p != NULL);
    return p;
}

#endif
