/* A plugin for victim_late.c: what it is handed, and what it hands out, belongs to either side. */
#include "victim.h"

#include <dlfcn.h>

/* volatile: the compiler would call free instead. */
static void (*volatile free_in_data)(void *) = free;
static void (*const volatile free_kept)(void *) = free;

/* A block that the program has said is the plugin's. */
__attribute__((constructor)) static void take_over(void)
{
    const char *block = getenv("VICTIM_LATE_BLOCK");

    if (block != NULL) {
        char *p = (char *)strtoull(block, NULL, 16);
        free(realloc(p, 3 * MIB));
    }
}

#ifdef VICTIM_OWN
static _Alignas(16) char heap[8 * MIB];
static size_t used, mallocs, frees;

void *malloc(size_t n)
{
    void *p = heap + used;

    mallocs++;
    used += (n + 15) / 16 * 16;
    return used <= sizeof heap ? p : NULL;
}

void free(void *p)
{
    frees += p != NULL;
}

int plug_uses_its_own(void)
{
    free(malloc(16));
    free_in_data(malloc(16));
    free_kept(malloc(16));
    return mallocs == 3 && frees == 3;
}
#endif

void plug_free(void *p)
{
    free(p);
}

void plug_free_in_data(void *p)
{
    free_in_data(p);
}

void plug_free_kept(void *p)
{
    free_kept(p);
}

void *plug_malloc(size_t n)
{
    return malloc(n);
}

void *plug_realloc(void *p, size_t n)
{
    return realloc(p, n);
}

void *plug_reallocarray(void *p, size_t count, size_t size)
{
    return reallocarray(p, count, size);
}

size_t plug_usable(void *p)
{
    return malloc_usable_size(p);
}

/* libc's own buffers. */
int plug_stream(size_t n)
{
    static char piece[50000];
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    memset(piece, 'x', sizeof piece);
    for (size_t i = 0; i < n; i += 50000) {
        fprintf(f, "%.*s", (int)(n - i < 50000 ? n - i : 50000), piece);
    }
    fclose(f);
    int right = len == n && text[0] == 'x' && text[n - 1] == 'x';
    free(text);
    return right;
}

int plug_print(size_t n)
{
    char *text = NULL;
    int len = asprintf(&text, "%*d", (int)n, 7);
    int right = len == (int)n && text[n - 1] == '7';

    free(text);
    return right;
}

/* libc makes a block longer that is the program's. */
char *plug_line(char *p, size_t had, size_t n)
{
    char *text = malloc(n);

    memset(text, 'y', n);
    FILE *f = fmemopen(text, n, "r");
    if (f == NULL || getline(&p, &had, f) != (ssize_t)n || p[0] != 'y' || p[n - 1] != 'y') {
        return NULL;
    }
    fclose(f);
    free(text);
    return p;
}

int plug_become(uid_t id)
{
    return setuid(id);
}

/* volatile: a jump to dlsym would make it the caller's search. */
void *plug_munmap(void)
{
    void *volatile found = dlsym(RTLD_NEXT, "munmap");

    return found;
}

void *plug_open(const char *file, int mode)
{
    return dlopen(file, mode);
}
