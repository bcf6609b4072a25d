/* System calls that a sandbox refuses from a program's start on. */
#ifndef FAULTLESS_TESTS_PRELOAD_REFUSE_H
#define FAULTLESS_TESTS_PRELOAD_REFUSE_H

/* In a child: each call whose number is in the list, which ends with 0, answers EPERM. For struct
 * fl_how: `arg` is a const unsigned[]. */
void fl_refuse(void *arg);

#endif
