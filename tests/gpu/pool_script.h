/* Scripts of what is asked of a pool. Words:
 *
 *   x=a2M  x!a2M  x/a2M  x$a2M   x is so much, taken on stream a; or refused: -ENOMEM,
 *                                -EINPROGRESS, -EINVAL
 *   -xa  =xa  %xa  @xa           x is freed on a; or that is refused; as PyTorch does, who may have
 *                                ended a; x is used by a
 *   .xa  ?xa                     a writes to all of x, or copies from it if it is pinned; it holds
 *                                what was written, a being waited for
 *   S9:256                       so much is served by so much, and goes back
 *   ix9  Ix9                     x is used in place for so much; it cannot be
 *   x~y-2M  x#y  x|yz  &x        x lies there; elsewhere; where one of these does; at a multiple
 *                                of 256
 *   ^a  _a  _  +a  :a  >a  <a    a is busy; is waited for; all are; it is said to last; which is
 *                                refused; it is retired; it ends, and a is another from now on
 *   [a  ]a                       a is captured, and no longer
 *   T  K  P                      trim, collect, reset the peaks
 *   !cuCall:2                    the next such call says 2, and it must come to that
 *   hits=3  held<2M  held>2M     a figure is; is at most; is at least
 *   C                            calls=3 is of the driver's from here on
 *
 *   1word  1E  2word             another thread does that; it ends; in device 1's context
 *   X                            in the end nothing is waited for
 *   (7a  )7  {7                  allocations of a (none: of all) go to PyTorch's private pool 7; no
 *                                longer; it is released. For script_more
 *
 * Streams: a to e; f of device 1; B, which is a blocking one; L and l the legacy stream by either
 * name; O the thread's own; H the host, which writes to what is pinned as soon as it is taken. In
 * the end what is left is freed, and the pool must let itself be destroyed. */
#ifndef FL_TESTS_GPU_POOL_SCRIPT_H
#define FL_TESTS_GPU_POOL_SCRIPT_H

#include "gpu/pool_fixture.h"

enum when { ONCE, LATE, EACH /* schedule */ };

struct row {
    const char *rule;
    /* Each of these: Naive, Round, Unpooled, Best fit, Auto growth, - the default; T: PyTorch's
     * pools, which stay, and of which only `used` is known. */
    const char *strategies;
    const char *options; /* "chunk=8M device=16M" */
    enum when when;
    const char *script;
};

/* Words that begin with a bracket. */
extern void (*script_more)(char what, unsigned long long pool, void *stream);
void scripts_run(const struct row *row, size_t n);
/* A case of such rows. */
#define ROWS(name, ...)                                                                            \
    CASE(name)                                                                                     \
    {                                                                                              \
        static const struct row row[] = {__VA_ARGS__};                                             \
        scripts_run(row, sizeof row / sizeof row[0]);                                              \
    }

#endif
