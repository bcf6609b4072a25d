/* Asks for large blocks and writes to them; linked in the ways in which no preloaded library serves
 * it. It marks once, so that faultstat has looked at it before it ends. */
#include "faultless/step.h"

#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (int i = 0; i < 8; i++) {
        char *block = malloc(4 << 20);
        if (block == NULL) {
            return 3;
        }
        memset(block, i, 4 << 20);
        free(block);
    }
    (void)fl_step_mark();
    return 0;
}
