/* The command's file: dynamic or static, for whom, with whose malloc. Nothing of it is trusted:
 * what lies outside of the file is not there. */
#include "launcher/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SCRIPTS = 4 }; /* interpreters that are scripts themselves */

struct image {
    const unsigned char *bytes;
    size_t len;
};

static bool map(const char *path, struct image *m)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_file = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0;
    void *bytes =
        is_file ? mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;

    if (fd >= 0) {
        close(fd);
    }
    if (bytes == MAP_FAILED) {
        return false;
    }
    *m = (struct image){bytes, (size_t)file.st_size};
    return true;
}

static void unmap(const struct image *m)
{
    munmap((void *)(uintptr_t)m->bytes, m->len);
}

/* `count` things of `width` bytes at `offset`, aligned for `align`; NULL: not all are in the
 * file. */
static const void *part(const struct image *m, uint64_t offset, uint64_t count, uint64_t width,
                        size_t align)
{
    bool fits = offset <= m->len && (width == 0 || count <= (m->len - offset) / width);

    return fits && offset % align == 0 ? m->bytes + offset : NULL;
}

static const ElfW(Ehdr) * head_of(const struct image *m)
{
    const ElfW(Ehdr) *h = part(m, 0, 1, sizeof *h, 1);

    return h != NULL && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 ? h : NULL;
}

static enum fl_target_kind kind_of(const struct image *m)
{
    const ElfW(Ehdr) *h = head_of(m), *mine;
    enum fl_target_kind kind = FL_TARGET_STATIC;
    struct image self;

    if (h == NULL) {
        return FL_TARGET_UNKNOWN;
    }
    if (!map("/proc/self/exe", &self)) {
        return FL_TARGET_UNKNOWN;
    }
    mine = head_of(&self);
    bool alike = mine != NULL && h->e_ident[EI_CLASS] == mine->e_ident[EI_CLASS] &&
                 h->e_machine == mine->e_machine;
    unmap(&self);
    if (!alike) {
        return FL_TARGET_OTHER;
    }
    const ElfW(Phdr) *p = part(m, h->e_phoff, h->e_phnum, sizeof *p, _Alignof(ElfW(Phdr)));
    for (size_t i = 0; p != NULL && i < h->e_phnum; i++) {
        kind = p[i].p_type == PT_INTERP ? FL_TARGET_DYNAMIC : kind;
    }
    return kind;
}

static bool is_named(const struct image *m, const ElfW(Shdr) * names, const ElfW(Sym) * s,
                     const char *name)
{
    size_t len = strlen(name) + 1;
    const char *at =
        s->st_name < names->sh_size ? part(m, names->sh_offset + s->st_name, len, 1, 1) : NULL;

    return at != NULL && memcmp(at, name, len) == 0;
}

/* Is it among the dynamic symbols? `defined`: not as one of another file. */
static bool has_symbol(const struct image *m, const char *name, bool defined)
{
    const ElfW(Ehdr) *h = head_of(m);
    const ElfW(Shdr) *s =
        h != NULL ? part(m, h->e_shoff, h->e_shnum, sizeof *s, _Alignof(ElfW(Shdr))) : NULL;
    bool found = false;

    for (size_t i = 0; s != NULL && i < h->e_shnum; i++) {
        const ElfW(Sym) *symbol = NULL;
        size_t n = s[i].sh_size / sizeof *symbol;
        if (s[i].sh_type != SHT_DYNSYM || s[i].sh_link >= h->e_shnum) {
            continue;
        }
        symbol = part(m, s[i].sh_offset, n, sizeof *symbol, _Alignof(ElfW(Sym)));
        for (size_t k = 0; symbol != NULL && k < n; k++) {
            found |= (!defined || symbol[k].st_shndx != SHN_UNDEF) &&
                     is_named(m, &s[s[i].sh_link], &symbol[k], name);
        }
    }
    return found;
}

/* A sanitizer's run-time library: its malloc comes first, or it ends the program. */
static bool has_sanitizer(const struct image *m)
{
    return has_symbol(m, "__asan_init", false) || has_symbol(m, "__hwasan_init", false) ||
           has_symbol(m, "__tsan_init", false) || has_symbol(m, "__msan_init", false);
}

bool fl_target_has_malloc(const char *path)
{
    struct image m;
    bool has = false;

    if (map(path, &m)) {
        has = has_symbol(&m, "malloc", true);
        unmap(&m);
    }
    return has;
}

/* As execvp(3). 0 or an error's number. */
static int find(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    int error = ENOENT;

    if (strchr(name, '/') != NULL) {
        struct stat file;
        snprintf(path, PATH_MAX, "%s", name);
        if (stat(path, &file) == 0 && S_ISDIR(file.st_mode)) {
            return EISDIR;
        }
        return access(path, F_OK) != 0 ? errno : access(path, X_OK) != 0 ? EACCES : 0;
    }
    folders = folders != NULL ? folders : "/bin:/usr/bin";
    for (const char *at = folders; error != 0; at++) {
        size_t len = strcspn(at, ":");
        int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, at, len != 0 ? "/" : "", name);
        if (n < 0 || n >= PATH_MAX) {
            return ENAMETOOLONG;
        }
        error = access(path, X_OK) == 0 ? 0 : error;
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    return error;
}

/* A script's interpreter: behind #!, and behind env where that is what stands there. False: `m` is
 * no script. */
static bool interpreter_of(const struct image *m, char name[PATH_MAX])
{
    char line[PATH_MAX], *rest;
    size_t len = m->len < sizeof line - 1 ? m->len : sizeof line - 1;

    memcpy(line, m->bytes, len);
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) != 0) {
        return false;
    }
    char *word = strtok_r(line + 2, " \t", &rest);
    const char *base = word != NULL ? strrchr(word, '/') : NULL;
    if (base != NULL && strcmp(base, "/env") == 0) {
        do {
            word = strtok_r(NULL, " \t", &rest);
        } while (word != NULL && (word[0] == '-' || strchr(word, '=') != NULL));
    }
    snprintf(name, PATH_MAX, "%s", word != NULL ? word : "");
    return word != NULL;
}

static bool is_raised(const char *path)
{
    struct stat file;
    bool set_id = stat(path, &file) == 0 && (file.st_mode & (S_ISUID | S_ISGID)) != 0;

    return set_id || getxattr(path, "security.capability", NULL, 0) > 0;
}

void fl_target_read(struct fl_target *t, const char *name)
{
    char next[PATH_MAX];
    struct image m;

    *t = (struct fl_target){.kind = FL_TARGET_UNKNOWN};
    snprintf(next, sizeof next, "%s", name);
    for (int i = 0; i <= SCRIPTS; i++) {
        t->error = find(next, t->path);
        if (t->error != 0 || !map(t->path, &m)) {
            return;
        }
        bool is_script = interpreter_of(&m, next);
        t->kind = kind_of(&m);
        t->own_malloc = has_symbol(&m, "malloc", true) || has_sanitizer(&m);
        unmap(&m);
        if (!is_script) {
            break;
        }
        if (i == 0) {
            snprintf(t->script, sizeof t->script, "%s", t->path);
        }
    }
    t->raised = is_raised(t->path);
}
