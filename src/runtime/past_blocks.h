/* libc's functions that are handed a block: ours are served here, all others by the libc of the
 * namespace, to whose heap they belong. */
#ifndef FL_RUNTIME_PAST_BLOCKS_H
#define FL_RUNTIME_PAST_BLOCKS_H

enum fl_past_name {
    FL_PAST_FREE,
    FL_PAST_REALLOC,
    FL_PAST_REALLOCARRAY,
    FL_PAST_SIZE,
    FL_PAST_ALL
};
enum { FL_PAST_NAMESPACES = 16 }; /* glibc's DL_NNS */

extern const char *const fl_past_names[FL_PAST_ALL];

/* Notes what namespace `ns` has by that name, and returns what is to be called in its place. */
void *fl_past_block_call(unsigned ns, enum fl_past_name which, void *was);

#endif
