/* Objects that are loaded late, and find libc's functions before any other's: RTLD_DEEPBIND,
 * dlmopen, dlsym of a handle. Blocks go both ways between them and the program. */
#include "victim.h"

#include <dirent.h>
#include <dlfcn.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

static const char *const plugins[] = {"$ORIGIN/victim_late_lazy.so", "$ORIGIN/victim_late_now.so"};
static const int ways[] = {RTLD_LAZY, RTLD_NOW};

struct plugin {
    void *handle;
    void (*free[3])(void *);
    void *(*malloc)(size_t), *(*realloc)(void *, size_t), *(*reallocarray)(void *, size_t, size_t);
    size_t (*usable)(void *);
    int (*stream)(size_t), (*print)(size_t);
    char *(*line)(char *, size_t, size_t);
    void *(*open)(const char *, int);
};

static void *find(void *handle, const char *name)
{
    void *f = dlsym(handle, name);

    if (f == NULL) {
        dprintf(2, "%s\n", dlerror());
        _exit(1);
    }
    return f;
}

static struct plugin plugin_of(void *handle)
{
    if (handle == NULL) {
        dprintf(2, "%s\n", dlerror());
        _exit(1);
    }
    return (struct plugin){
        .handle = handle,
        .free = {find(handle, "plug_free"), find(handle, "plug_free_in_data"),
                 find(handle, "plug_free_kept")},
        .malloc = find(handle, "plug_malloc"),
        .realloc = find(handle, "plug_realloc"),
        .reallocarray = find(handle, "plug_reallocarray"),
        .usable = find(handle, "plug_usable"),
        .stream = find(handle, "plug_stream"),
        .print = find(handle, "plug_print"),
        .line = find(handle, "plug_line"),
        .open = find(handle, "plug_open"),
    };
}

/* The program's blocks. */
static void give(const struct plugin *g, size_t n)
{
    char *p;

    for (int i = 0; i < 3; i++) {
        CHECK((p = malloc(n)) != NULL);
        stamp(p, n, 1);
        g->free[i](p);
    }
    g->free[0](calloc(n, 1));
    CHECK(posix_memalign((void **)&p, 4096, n) == 0);
    g->free[0](p);
    CHECK((p = malloc(n)) != NULL && g->usable(p) >= n && g->usable(p) == malloc_usable_size(p));
    stamp(p, n, 2);
    CHECK((p = g->realloc(p, 2 * n)) != NULL && is_stamped_part(p, n, 2 * n, 2));
    CHECK((p = realloc(p, n)) != NULL && is_stamped_part(p, n, 2 * n, 2));
    CHECK((p = g->reallocarray(p, 3, n)) != NULL && is_stamped_part(p, n, 3 * n, 2));
    CHECK(g->reallocarray(p, SIZE_MAX / 2, 3) == NULL);
    CHECK((p = g->realloc(p, 100)) != NULL && is_stamped_part(p, n < 100 ? n : 100, 3 * n, 2));
    free(p);
    CHECK(g->realloc(malloc(n), 0) == NULL);
    CHECK(g->stream(n) && g->print(n));
    CHECK((p = g->line(malloc(n), n, n + n / 2 + 1)) != NULL);
    free(p);
    CHECK((p = g->line(malloc(n), n, n + n / 2 + 1)) != NULL);
    g->free[0](p);
}

/* Its blocks. */
static void take(const struct plugin *g, size_t n)
{
    char *p = g->malloc(n);

    CHECK(p != NULL && malloc_usable_size(p) >= n);
    stamp(p, n, 3);
    CHECK((p = realloc(p, 2 * n)) != NULL && is_stamped_part(p, n, 2 * n, 3));
    free(p);
    CHECK((p = g->malloc(n)) != NULL);
    stamp(p, n, 4);
    CHECK((p = realloc(p, 3 * n)) != NULL && is_stamped_part(p, n, 3 * n, 4));
    g->free[0](p);
}

/* Of 40 MiB with the first one alone: it takes a second. */
static void both_ways(const struct plugin *g, size_t least)
{
    static int calls;
    size_t most = calls++ == 0 ? 40 * MIB : MIB;
    const size_t sizes[] = {1, 60000, 64 * KIB, MIB, 40 * MIB};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] >= least && sizes[i] <= most) {
            give(g, sizes[i]);
            take(g, sizes[i]);
        }
    }
}

MODE(deep)
{
    for (size_t i = 0; i < 4; i++) {
        struct plugin g = plugin_of(dlopen(plugins[i % 2], ways[i / 2] | RTLD_DEEPBIND));
        both_ways(&g, 1);
        CHECK(dlclose(g.handle) == 0);
    }
}

MODE(deep_by_dlmopen)
{
    struct plugin g = plugin_of(dlmopen(LM_ID_BASE, plugins[1], RTLD_NOW | RTLD_DEEPBIND));

    both_ways(&g, 1);
}

/* Only what no allocator but the first one sees. */
MODE(deep_large)
{
    struct plugin g = plugin_of(dlopen(plugins[1], RTLD_NOW | RTLD_DEEPBIND));

    give(&g, 64 * KIB);
    give(&g, MIB);
    give(&g, 40 * MIB);
}

static void in_constructor(const char *file)
{
    char text[32], *p = malloc(MIB);

    stamp(p, MIB, 5);
    snprintf(text, sizeof text, "%p", (void *)p);
    setenv("VICTIM_LATE_BLOCK", text, 1);
    CHECK(dlopen(file, RTLD_NOW | RTLD_DEEPBIND) != NULL);
    free(malloc(MIB));
}

MODE_IS(constructor_lazy, in_constructor(plugins[0]))
MODE_IS(constructor_now, in_constructor(plugins[1]))

/* A plugin's dlopen is libc's too. */
MODE(nested)
{
    const int modes[] = {RTLD_LAZY, RTLD_NOW | RTLD_DEEPBIND, RTLD_LAZY | RTLD_DEEPBIND};
    struct plugin outer = plugin_of(dlopen(plugins[1], RTLD_NOW | RTLD_DEEPBIND));

    for (size_t i = 0; i < 3; i++) {
        struct plugin inner = plugin_of(outer.open(plugins[0], modes[i]));
        both_ways(&inner, 1);
        CHECK(dlclose(inner.handle) == 0);
    }
}

/* libc tells all threads. */
MODE(credentials)
{
    struct plugin g = plugin_of(dlopen(plugins[1], RTLD_NOW | RTLD_DEEPBIND));
    int (*become)(uid_t) = find(g.handle, "plug_become");
    uid_t id = geteuid() == 0 ? 65534 : geteuid();
    char path[300], text[8192], line[64];

    free(malloc(40 * MIB)); /* something to do for a thread that we may not know of */
    CHECK(become(id) == 0);
    snprintf(line, sizeof line, "\nUid:\t%u\t%u\t%u\t%u\n", id, id, id, id);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        (void)proc_text(text, path, "");
        CHECK(text[0] == '\0' || strstr(text, line) != NULL);
    }
    closedir(tasks);
    free(malloc(40 * MIB));
}

/* What writes over its code, to be told of maps, has to find it. */
MODE(munmap_of_libc)
{
    struct plugin g = plugin_of(dlopen(plugins[1], RTLD_NOW | RTLD_DEEPBIND));
    Dl_info info;

    give(&g, MIB);
    CHECK(dladdr(((void *(*)(void))find(g.handle, "plug_munmap"))(), &info) != 0);
    CHECK(strstr(info.dli_fname, "/libc.so.6") != NULL);
}

MODE(own_malloc)
{
    void *lib = dlopen("$ORIGIN/victim_late_own.so", RTLD_NOW | RTLD_DEEPBIND);

    CHECK(lib != NULL);
    CHECK(((int (*)(void))find(lib, "plug_uses_its_own"))());
    free(malloc(MIB));
}

static void *open_and_close(void *arg)
{
    long n = at_most(50);

    for (long i = 0; i < n; i++) {
        struct plugin g = plugin_of(dlopen(plugins[i % 2], ways[i / 2 % 2] | RTLD_DEEPBIND));
        give(&g, MIB);
        take(&g, 100 * KIB);
        CHECK(dlclose(g.handle) == 0);
    }
    return arg;
}

MODE(threads)
{
    pthread_t t[4];

    start_threads(t, 4, open_and_close);
    join_threads(t, 4);
}

/* ---- names that are looked up ---- */

static void free_by(void *f)
{
    char *p = malloc(MIB);

    CHECK(f != NULL);
    stamp(p, MIB, 6);
    ((void (*)(void *))f)(p);
    ((void (*)(void *))f)(malloc(10));
    free(malloc(MIB));
}

MODE_IS(handle_of_libc, free_by(dlsym(dlopen("libc.so.6", RTLD_LAZY), "free")))
MODE_IS(handle_of_a_library, free_by(dlsym(dlopen(plugins[0], RTLD_LAZY), "free")))
MODE_IS(handle_of_the_program, free_by(dlsym(dlopen(NULL, RTLD_LAZY | RTLD_DEEPBIND), "free")))
MODE_IS(of_a_version, free_by(dlvsym(dlopen("libc.so.6", RTLD_LAZY), "free", OLDEST)))

MODE(next_of_a_version)
{
    free(malloc(MIB));
    free_by(dlvsym(RTLD_NEXT, "free", OLDEST));
}

MODE(default_of_a_version)
{
    free(malloc(MIB));
    free_by(dlvsym(RTLD_DEFAULT, "free", OLDEST));
}

static void *runner(const char *name)
{
    void *lib = dlopen("$ORIGIN/victim_late_runner.so", RTLD_NOW);

    CHECK(lib != NULL);
    return find(lib, name);
}

MODE(next_behind)
{
    void *(*next)(const char *) = runner("run_next");

    free(malloc(MIB));
    free_by(next("free"));
}

/* ---- the caller, and what it is told ---- */

static void open_by(void *(*open)(const char *, int), int mode)
{
    struct plugin g = plugin_of(open("victim_late_now.so", mode));

    both_ways(&g, 1);
    CHECK(dlclose(g.handle) == 0);
}

/* Only the library that asks has where it lies in its RUNPATH. */
MODE(runpath)
{
    void *(*open)(const char *, int) = runner("run_open");
    void *(*open_in)(Lmid_t, const char *, int) = runner("run_open_in");

    CHECK(dlopen("victim_late_now.so", RTLD_NOW) == NULL);
    CHECK(dlopen("victim_late_now.so", RTLD_NOW | RTLD_DEEPBIND) == NULL);
    open_by(open, RTLD_NOW);
    open_by(open, RTLD_LAZY | RTLD_DEEPBIND);
    struct plugin g = plugin_of(open_in(LM_ID_NEWLM, "victim_late_now.so", RTLD_NOW));
    give(&g, MIB);
}

static void print_error(const void *found)
{
    const char *e = dlerror();

    printf("%s: %s\n", found != NULL ? "found" : "none", e != NULL ? e : "no error");
}

MODE(errors)
{
    const int modes[] = {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND, RTLD_DEEPBIND, RTLD_NOLOAD};

    for (size_t i = 0; i < 4; i++) {
        print_error(dlopen("/no/such/plugin.so", modes[i]));
        print_error(dlopen("no_such_plugin.so", modes[i]));
        print_error(dlopen("/dev/null", modes[i]));
        print_error(dlmopen(LM_ID_NEWLM, "/no/such/plugin.so", modes[i]));
        print_error(dlmopen(7, "libm.so.6", modes[i]));
    }
    print_error(dlmopen(LM_ID_NEWLM, NULL, RTLD_NOW));
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    const char *const names[] = {"free", "no_such_name", "malloc"};
    for (size_t i = 0; i < 3; i++) {
        errno = 77;
        print_error(dlsym(libc, names[i]));
        print_error(dlsym(RTLD_DEFAULT, names[i]));
        print_error(dlsym(RTLD_NEXT, names[i]));
        print_error(dlvsym(libc, names[i], OLDEST));
        print_error(dlvsym(libc, names[i], "NO_SUCH_VERSION"));
        CHECK(errno == 77);
    }
    free(malloc(MIB));
}

/* ---- namespaces ---- */

static struct plugin open_namespace(size_t i)
{
    return plugin_of(dlmopen(LM_ID_NEWLM, plugins[i % 2], ways[i / 2 % 2]));
}

/* What is shorter lies in a heap, which glibc's other one takes to be its own. */
MODE(namespaces)
{
    struct plugin one = open_namespace(0), other = open_namespace(3);

    both_ways(&one, MIB);
    both_ways(&other, MIB);
    both_ways(&one, MIB);
    CHECK(dlclose(one.handle) == 0);
    for (size_t i = 0; i < 40; i++) { /* there are 16 */
        struct plugin g = open_namespace(i);
        both_ways(&g, MIB);
        CHECK(dlclose(g.handle) == 0);
    }
    both_ways(&other, MIB);
}

MODE(namespace_first)
{
    struct plugin g = open_namespace(1);

    both_ways(&g, MIB);
}

MODE(namespaces_at_once)
{
    struct plugin g[8];

    for (size_t i = 0; i < 8; i++) {
        g[i] = open_namespace(i);
    }
    for (size_t i = 0; i < 8; i++) {
        both_ways(&g[i], MIB);
        char *p = g[(i + 1) % 8].malloc(100);
        stamp(p, 100, i);
        CHECK(is_stamped(p, 100, i));
        g[(i + 1) % 8].free[0](p);
    }
}

/* One more object there is bound like the first; one of the program's, to the program's. */
MODE(namespace_of_two)
{
    struct plugin one = open_namespace(1);
    Lmid_t id;

    CHECK(dlinfo(one.handle, RTLD_DI_LMID, &id) == 0);
    struct plugin two = plugin_of(dlmopen(id, plugins[0], RTLD_NOW)),
                  nested = plugin_of(one.open("libm.so.6", RTLD_NOW) != NULL
                                         ? one.open(plugins[0], RTLD_NOW)
                                         : NULL);
    give(&one, MIB);
    give(&two, MIB);
    give(&nested, MIB);
    deep();
    free_by(find(one.handle, "free"));
}

MODE(namespace_64k)
{
    struct plugin g = open_namespace(1);

    give(&g, 64 * KIB);
    give(&g, 100 * KIB);
    free(malloc(MIB));
}

MAIN()
