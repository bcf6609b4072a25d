/* What tests may ask of the fake CUDA driver (tests/gpu/fake/), beside the driver's own calls.
 *
 * The fake is a library of its own, reached by FAULTLESS_GPU_DRIVER; a test gets this table by
 * dlsym(library, "fake_cuda"), and runs without it on a real driver. A device's memory is PROT_NONE
 * at its addresses and lies elsewhere; work that is submitted to a stream is queued and runs when
 * something forces it; and an access to bytes that another stream may still be at is reported,
 * whatever the schedule. All calls are counted, and each can be made to fail.
 * Threads: any; one lock. */
#ifndef FL_TESTS_GPU_FAKE_CUDA_H
#define FL_TESTS_GPU_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_cuda_mode {
    FAKE_CUDA_EAGER,  /* what is submitted runs at once */
    FAKE_CUDA_LATE,   /* nothing runs until a call that waits forces it */
    FAKE_CUDA_RANDOM, /* some of it, at each call */
};

/* Values of `set`; in brackets what `reset` makes of them. */
enum fake_cuda_setting {
    FAKE_CUDA_CAPACITY,     /* bytes of each device (1 GiB). Before its first allocation */
    FAKE_CUDA_DEVICES,      /* how many there are (2; 8 at most) */
    FAKE_CUDA_VERSION,      /* the driver's (13000): newer calls are not to be had */
    FAKE_CUDA_INIT_CODE,    /* what cuInit and everything else says (0): 34 is a stub */
    FAKE_CUDA_GONE,         /* 1: everything says DEINITIALIZED, as at exit */
    FAKE_CUDA_NODE,         /* HOST_NUMA_ID (0); -1: not known */
    FAKE_CUDA_REGISTER_MAX, /* bytes of one registration; more is OUT_OF_MEMORY (none) */
    FAKE_CUDA_SETTINGS
};

struct fake_cuda {
    /* As it was when it was loaded: settings, counts, reports, memory, streams; contexts too,
     * unless `keep_contexts`, so that an open handle goes on being good. What was queued is
     * dropped. */
    void (*reset)(bool keep_contexts);
    void (*set)(enum fake_cuda_setting which, uint64_t value);
    void (*schedule)(enum fake_cuda_mode mode, uint64_t seed);

    /* A kernel on `stream` that reads and writes (len 0: does not). It fills what it writes with
     * `fill`. 0, or the driver's code. */
    int (*kernel)(void *stream, uint64_t read, size_t read_len, uint64_t write, size_t write_len,
                  unsigned char fill);
    /* The host reads or writes memory that is pinned: compared with copies that may still be at
     * it. */
    void (*host_access)(const void *p, size_t len, bool write);
    /* What a device has at that address, once all that is queued has run; waits for nothing in the
     * eyes of the race detector. */
    bool (*holds)(uint64_t address, size_t len, unsigned char value);

    /* Reports: accesses that nothing orders, accesses to what is not allocated, pages that changed
     * under a registration, memory given back while something queued uses it, contexts that were
     * not current. */
    unsigned (*races)(void);      /* of the first kind */
    unsigned (*violations)(void); /* of all others */
    const char *(*report)(void);  /* the first of either; "" when there is none */

    /* Calls of an entry point ("cuMemAlloc", without suffix), NULL: of all. Failed ones count. */
    uint64_t (*calls)(const char *name);
    /* Calls that waited for the whole device and were not asked to. */
    uint64_t (*implicit_syncs)(void);
    /* Asynchronous copies from or to memory that is not registered: they are not asynchronous. */
    uint64_t (*pageable_copies)(void);
    uint64_t (*copies)(void);         /* copies in all; a batch counts each of its own */
    unsigned (*retained)(int device); /* how often its primary context is */
    size_t (*used)(int device);       /* bytes allocated */
    size_t (*registered)(void);       /* bytes of host memory registered */
    /* Streams, events, allocations, registrations, handles and pools that are there. */
    unsigned (*live)(void);

    /* The nth call from now on (1: the next) of `name` (NULL: any) says `code` and does nothing;
     * all calls after it, too, when `for_ever`. nth 0: none. */
    void (*refuse)(const char *name, unsigned nth, int code, bool for_ever);
    bool (*refused)(void); /* it has come to that */
    /* cuGetProcAddress does not know that one. */
    void (*hide)(const char *name);
    /* The stream is being captured into a graph: what it is given is not run, and calls that
     * capture forbids say 900, break the capture and are a violation. Begun by the calling thread,
     * in the mode of capture_as. */
    void (*capture)(void *stream, bool on);
    void (*capture_as)(
        int mode); /* of captures that begin from now on (CU_STREAM_CAPTURE_MODE_GLOBAL, 0) */
    /* A context of the device's that is not the primary one, current for the calling thread; and
     * its end, also while in use. */
    void *(*context_new)(int device);
    void (*context_end)(void *context);
    /* Called by another thread amid each call of `name` (NULL: any); NULL: no more. When it does
     * not return within five seconds, that is a violation: a lock is held over the call. */
    void (*amid)(const char *name, void (*fn)(void *arg), void *arg);
    /* Pages are told apart by their frames (root), not by their presence alone. */
    bool (*knows_frames)(void);
};

#endif
