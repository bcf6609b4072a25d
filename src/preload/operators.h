/* C++ operators beside libraries that a program loads. */
#ifndef FL_PRELOAD_OPERATORS_H
#define FL_PRELOAD_OPERATORS_H

/* Before each dlopen(3): where no operators are behind ours, what is loaded finds its own.
 * Threads: any. */
void fl_operators_before_load(void);

#endif
