/* A stream of operations on the region beside the model of prop/ops.c: one byte chooses the
 * configuration, five bytes are an operation. */
#include "prop/ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { OP_BYTES = 5, OPS = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct op ops[OPS];
    size_t n = 0, at;

    if (size == 0) {
        return 0;
    }
    const struct ops_config *c = &ops_configs[data[0] % ops_nconfigs];
    for (size_t i = 1; i + OP_BYTES <= size && n < OPS; i += OP_BYTES) {
        ops[n++] = (struct op){data[i] % OP_KINDS, (uint16_t)(data[i + 1] | data[i + 2] << 8),
                               (uint16_t)(data[i + 3] | data[i + 4] << 8)};
    }
    const char *wrong = ops_play(c, ops, n, &at);
    if (wrong != NULL) {
        fprintf(stderr, "%s: operation %zu: %s\n", c->name, at, wrong);
        ops_print(ops, n);
        abort();
    }
    return 0;
}
