/* The command's file: dynamic or static, for whom, with whose malloc. */
#include "launcher/check.h"

#include "faultstat/elf.h"

#include <errno.h>
#include <fcntl.h>
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

bool fl_target_has_malloc(const char *path)
{
    struct fl_elf elf;

    return fl_elf_read(path, &elf) == 0 && elf.has_malloc;
}

const char *fl_target_value(void *unused, const char *name)
{
    (void)unused;
    return getenv(name);
}

bool fl_target_is_part(const struct fl_target *t)
{
    char text[8];

    return t->nown != 0 && !t->own[0].is_package &&
           fl_allocators_say(&t->own[0], fl_target_value, NULL, text, sizeof text);
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

static void read_program(struct fl_target *t)
{
    struct fl_elf elf;

    if (fl_elf_read(t->path, &elf) != 0) {
        t->kind = FL_TARGET_UNKNOWN;
        return;
    }
    t->kind = elf.is_other_class || elf.is_other_machine ? FL_TARGET_OTHER
              : elf.has_loader                           ? FL_TARGET_DYNAMIC
                                                         : FL_TARGET_STATIC;
    t->own_malloc = elf.has_malloc || elf.has_sanitizer;
    t->raised = is_raised(t->path);
    t->nown = fl_allocators_find(t->path, &t->own[0]) ? 1 : 0;
    t->nown += fl_allocators_packages(t->path, t->own + t->nown, FL_TARGET_OWN - t->nown);
}

/* What runs in place of the script `t->path`: into `next`. False: it is no script. */
static bool is_run_by(const struct fl_target *t, char next[PATH_MAX])
{
    struct image m;

    if (!map(t->path, &m)) {
        return false;
    }
    bool is_script = interpreter_of(&m, next);
    if (is_script) {
        (void)fl_shim_read((const char *)m.bytes, m.len, t->path, next);
    }
    unmap(&m);
    return is_script;
}

void fl_target_read(struct fl_target *t, const char *name)
{
    char next[PATH_MAX];

    *t = (struct fl_target){.kind = FL_TARGET_UNKNOWN};
    snprintf(next, sizeof next, "%s", name);
    for (int i = 0; i <= SCRIPTS; i++) {
        t->error = find(next, t->path);
        if (t->error != 0) {
            return;
        }
        if (!is_run_by(t, next)) {
            break;
        }
        if (i == 0) {
            snprintf(t->script, sizeof t->script, "%s", t->path);
        }
    }
    read_program(t);
}
