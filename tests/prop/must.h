/* For functions that return NULL, or what went wrong. */
#ifndef FL_TESTS_PROP_MUST_H
#define FL_TESTS_PROP_MUST_H

#define MUST(what, text)                                                                           \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            return text;                                                                           \
        }                                                                                          \
    } while (0)

#endif
