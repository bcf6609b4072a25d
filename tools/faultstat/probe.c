/* What compare has done by a process of its own: `probe` says which library a preload really
 * brought in and its version, `warm` touches memory and frees it. Both are faultstat itself,
 * started anew. */
#include "faultstat/faultstat.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct search {
    const char *wanted; /* a path, or the name of a file */
    const char *found;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (strcmp(info->dlpi_name, search->wanted) == 0 ||
        (slash != NULL && strcmp(slash + 1, search->wanted) == 0)) {
        search->found = info->dlpi_name;
        return 1;
    }
    return 0;
}

/* A function pointer from dlsym: POSIX lets the two kinds of pointer be the same. */
#define FL_LOOK_UP(function, name) (*(void **)&(function) = dlsym(RTLD_DEFAULT, name)) != NULL

/* Of libNAME-VERSION.so; without a name, the interface's number in libX.so.NUMBER. */
static void print_file_version(const char *name, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    const char *so = strstr(file, ".so");
    const char *dash = so != NULL ? memrchr(file, '-', (size_t)(so - file)) : NULL;
    if (dash != NULL && dash[1] >= '0' && dash[1] <= '9') {
        printf("version=%s%.*s\n", name, (int)(so - dash - 1), dash + 1);
    } else if (so != NULL && so[3] == '.' && name[0] == '\0') {
        printf("version=%s\n", so + strlen(".so."));
    } else {
        printf("version=%sunknown\n", name);
    }
}

/* 209 is 2.0.9, and 30403 is 3.4.3. */
static void print_mimalloc_version(int v)
{
    int digits = v < 1000 ? 10 : 100;
    printf("version=mimalloc %d.%d.%d\n", v / digits / digits, v / digits % digits, v % digits);
}

static void print_symbol_version(const char *file_name)
{
    const char *(*fl_version)(void);
    int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    const char *(*tc_version)(int *, int *, const char **);
    int (*mi_version)(void);
    const char *text = NULL;
    size_t len = sizeof(text);
    if (FL_LOOK_UP(fl_version, "fl_version")) {
        printf("version=faultless %s\n", fl_version());
    } else if (FL_LOOK_UP(mallctl, "mallctl") && mallctl("version", &text, &len, NULL, 0) == 0) {
        if (strncmp(text, "0.0.0", 5) == 0) { /* built outside its repository */
            print_file_version("jemalloc ", file_name);
        } else {
            printf("version=jemalloc %.*s\n", (int)strcspn(text, "-"), text);
        }
    } else if (FL_LOOK_UP(tc_version, "tc_version")) {
        int major;
        int minor;
        const char *patch;
        (void)tc_version(&major, &minor, &patch);
        printf("version=gperftools %d.%d%s\n", major, minor, patch);
    } else if (FL_LOOK_UP(mi_version, "mi_version")) {
        print_mimalloc_version(mi_version());
    } else {
        print_file_version("", file_name);
    }
}

int fl_probe_main(int argc, char **argv)
{
    struct search search = {.wanted = argc > 1 ? argv[1] : ""};
    if (search.wanted[0] == '\0') {
        printf("path=\nversion=glibc %s\n", gnu_get_libc_version());
        return 0;
    }
    dl_iterate_phdr(match_object, &search);
    if (search.found == NULL) {
        return 1;
    }
    char *path = realpath(search.found, NULL);
    printf("path=%s\n", search.found);
    print_symbol_version(path != NULL ? path : search.found);
    free(path);
    return 0;
}

/* In a virtual machine whose host takes back what lies free, the first touch after a while costs 20
 * to 50 times a page fault; a run must not pay for what the run before it left. */
int fl_warm_main(int argc, char **argv)
{
    size_t len = (size_t)strtoul(argc > 1 ? argv[1] : "0", NULL, 10) << 20;
    long page_len = sysconf(_SC_PAGESIZE);
    char *base =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        perror("faultstat: --warm");
        return FL_EXIT_OWN;
    }
    (void)madvise(base, len, MADV_HUGEPAGE);
    for (size_t at = 0; at < len; at += (size_t)page_len) {
        base[at] = 1;
    }
    return 0;
}
