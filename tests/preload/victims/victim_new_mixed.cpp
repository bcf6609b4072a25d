// What belongs to malloc's family and what belongs to new's, each freed as it should be; `free`:
// what came from new goes to free; `delete`: what came from malloc to delete. That is wrong, and
// works with each allocator that has both.
#include "use_new.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void *volatile hidden; // so that the compiler does not see whose a block is

static void *launder(void *p, std::size_t n)
{
    std::memset(p, 1, n);
    hidden = p;
    return hidden;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    bool free_new = std::strcmp(mode, "free") == 0,
         delete_malloc = std::strcmp(mode, "delete") == 0;
    const std::size_t sizes[] = {1, 60000, 1 << 16, 1 << 20, 8 << 20};

    use_every_form();
    for (std::size_t n : sizes) {
        void *p = launder(std::realloc(launder(std::malloc(n), n), 2 * n), 2 * n);
        void *q = launder(::operator new(n), n), *many = launder(::operator new[](n), n);
        void *aligned = launder(::operator new (n, std::align_val_t{64}), n);
        if (free_new) {
            std::free(launder(std::realloc(q, 2 * n), 2 * n));
            std::free(many);
            std::free(aligned);
        } else {
            ::operator delete(q, n);
            ::operator delete[](many);
            ::operator delete (aligned, n, std::align_val_t{64});
        }
        if (delete_malloc) {
            ::operator delete(p);
            ::operator delete[](launder(std::calloc(1, n), n));
            ::operator delete(launder(std::aligned_alloc(64, (n + 63) / 64 * 64), n));
        } else {
            std::free(p);
        }
    }
    std::puts("through");
    return 0;
}
