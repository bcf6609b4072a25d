/* Large blocks touched and freed, then as much in small ones, again and again: under glibc each
 * finds the other's memory.
 *
 *   victim_alternate BLOCK_MIB BLOCKS SMALL_MIB ROUNDS */
#include "victim.h"

enum { MOST = 256, SMALL = 1000 };

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    size_t block = (size_t)atol(argv[1]) * MIB, blocks = (size_t)atol(argv[2]),
           small = (size_t)atol(argv[3]) * MIB;
    CHECK(blocks <= MOST);
    for (int round = 0; round < atoi(argv[4]); round++) {
        char *p[MOST];
        void **head = NULL;
        for (size_t i = 0; i < blocks; i++) {
            CHECK((p[i] = malloc(block)) != NULL);
            memset(p[i], 1, block);
        }
        for (size_t i = 0; i < blocks; i++) {
            free(p[i]);
        }
        for (size_t n = 0; n < small; n += SMALL) {
            void **next = malloc(SMALL);
            CHECK(next != NULL);
            memset(next, 1, SMALL);
            *next = head;
            head = next;
        }
        while (head != NULL) {
            void **next = *head;
            free(head);
            head = next;
        }
        printf("round %d\n", round);
        fflush(stdout);
    }
    return 0;
}
