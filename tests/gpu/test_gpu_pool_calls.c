/* What a pair of alloc and free costs in calls of the driver, on streams of every kind; and that
 * what costs none is right all the same. */
#include "gpu/pool_script.h"

#define ALL "initial=8M regrow=8M chunk=8M"
#define PINNED ALL " pinned=1"

ROWS(device_memory,
     {"on a stream that lasts a pair calls nothing", "NRBA", ALL, LATE,
      "+a x=L64K y=a64K -xL -ya C x=l64K y=a64K -xl -ya x=L64K -xL calls=0"},
     {"on another it asks for context, capture and number; a free records an event", "NRBA", ALL,
      LATE,
      "x=O64K y=a64K z=B64K -xO -ya -zB C x=O64K calls<3 C -xO calls<4 C y=a64K calls<3 C -ya "
      "calls<4 C z=B64K calls<3 C -zB calls<4"},
     {"collect asks those that something waits for", "NRBA", ALL, LATE, "x=a64K -xa C K calls<3"}, )

/* Copies are queued when a block is freed: it is the host's at once, or not to be had yet. */
ROWS(pinned_memory,
     {"hits and what the host frees call nothing", "NRBA", PINNED, LATE,
      "x=H64K y=H64K -xH -yH C x=H64K y=H64K -xH x=H64K -xH -yH calls=0"},
     {"nor do they by default", "-", "initial=4M regrow=4M pinned=1", LATE,
      "x=H4K -xH C x=H4K y=H64K -xH -yH x=H4K y=H64K -yH -xH calls=0 driver_allocs=1"},
     {"a default stream is the current context's, which is asked for", "NRBA", PINNED, LATE,
      "x=H64K y=H64K z=H64K -xL -yl -zO K _ K C x=H64K y=H64K z=H64K calls=0 .xL .yl .zO C -xL "
      "calls<1 C -yl calls<1 C -zO calls<5 x=H64K y=H64K z=H64K"},
     {"others are asked as on the device", "NRBA", PINNED, LATE,
      "+a x=H64K y=H64K z=H64K -xa -yb -zB K _ K C x=H64K y=H64K z=H64K calls=0 .xa .yb .zB C -xa "
      "calls=0 C -yb calls<4 C -zB calls<4 x=H64K y=H64K z=H64K"},
     {"NULL lasts in each context", "A", "pinned=1", LATE, /* 2: calls to change it and back */
      "x=H64K -xL x=H64K 2-xL x=H64K C -xL calls<1 x=H64K C 2-xL calls<3 known=2"}, )

GPU_MAIN("test_gpu_pool_calls")
