/* The loader looks for `malloc` in the program, then in LD_PRELOAD's libraries in their order, then
 * in what the program is linked with. So do we. Source: ld.so(8), proc(5), getauxval(3). */
#include "faultstat/served.h"

#include "faultstat/elf.h"
#include "faultstat/proc.h"
#include "faultstat/replacements.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FL_PATH = 64, FL_MAPS_MOST = 4 << 20, FL_ENVIRON_MOST = 1 << 20 };

/* The runtime of a sanitizer replaces malloc, too: so its file's name begins. */
static const char *const sanitizers[] = {"libasan", "libclang_rt.asan"};

static void set(struct fl_served *out, enum fl_served_state state, bool is_final,
                const char *reason)
{
    out->state = state;
    out->is_final = is_final;
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

/* A file of /proc/PID, whole, with a final NUL; NULL when it cannot be read. The caller frees
 * it. */
static char *read_file(pid_t pid, const char *name, size_t most, size_t *len)
{
    char path[FL_PATH];
    char *text = malloc(most);
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    ssize_t n = text != NULL ? fl_proc_read_text(path, text, most) : -ENOMEM;
    if (n < 0) {
        free(text);
        errno = (int)-n;
        return NULL;
    }
    *len = (size_t)n;
    return text;
}

/* Does the loader distrust who started it? 1, 0, or -errno. */
static int is_secure(pid_t pid)
{
    uint64_t pair[64][2] = {0};
    size_t len;
    char *text = read_file(pid, "auxv", sizeof(pair), &len);
    if (text == NULL) {
        return -errno;
    }
    memcpy(pair, text, len < sizeof(pair) ? len : sizeof(pair));
    free(text);
    for (size_t i = 0; i < 64 && pair[i][0] != AT_NULL; i++) {
        if (pair[i][0] == AT_SECURE) {
            return pair[i][1] != 0;
        }
    }
    return 0;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The path of the next line of maps, cut out of it; NULL at the end. */
static char *next_mapping(char **maps)
{
    char *line;
    while ((line = strsep(maps, "\n")) != NULL) {
        char *path = strchr(line, '/');
        if (path != NULL) {
            return path;
        }
    }
    return NULL;
}

/* Is it that file, or what a link of that name leads to: libx.so.4 is libx.so.4.5.10? */
static bool is_version_of(const char *mapped, const char *wanted)
{
    size_t len = strlen(wanted);
    return len > 0 && strncmp(mapped, wanted, len) == 0 &&
           (mapped[len] == '\0' || mapped[len] == '.');
}

/* Find a mapped file with this name; `wanted` may be a path, of which the end counts. */
static bool find_mapped(const char *maps, const char *wanted, char path[PATH_MAX])
{
    bool found = false;
    char *copy = strdup(maps);
    char *rest = copy;
    const char *mapped;
    while (!found && copy != NULL && (mapped = next_mapping(&rest)) != NULL) {
        if (is_version_of(file_name(mapped), file_name(wanted))) {
            snprintf(path, PATH_MAX, "%s", mapped);
            found = true;
        }
    }
    free(copy);
    return found;
}

/* Is this library mapped? By its path, or by where its path leads. */
static bool is_mapped(const char *maps, const char *library)
{
    char path[PATH_MAX];
    char real[PATH_MAX];
    return find_mapped(maps, library, path) ||
           (realpath(library, real) != NULL && find_mapped(maps, real, path));
}

/* Does this file, as that process sees it, define malloc? */
static bool defines_malloc(pid_t pid, const char *path)
{
    char inside[PATH_MAX + FL_PATH];
    struct fl_elf elf;
    snprintf(inside, sizeof(inside), "/proc/%d/root%s", (int)pid, path);
    return fl_elf_read(inside, &elf) == 0 && elf.has_malloc;
}

static bool is_allocator(const char *file)
{
    for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++) {
        if (strncmp(file, sanitizers[i], strlen(sanitizers[i])) == 0) {
            return true;
        }
    }
    return fl_replacement_is(file);
}

/* Does this item of LD_PRELOAD replace malloc? Before the loader has mapped it its name must do.
 *   path   receives what was mapped for it, or the item. */
static bool replaces_malloc(pid_t pid, const char *maps, const char *item, char path[PATH_MAX])
{
    char real[PATH_MAX];
    if (maps == NULL) {
        snprintf(path, PATH_MAX, "%s", item);
        return is_allocator(file_name(item));
    }
    return (find_mapped(maps, item, path) ||
            (realpath(item, real) != NULL && find_mapped(maps, real, path))) &&
           defines_malloc(pid, path);
}

/* An allocator that LD_PRELOAD names before ours.
 *   maps   NULL: the loader has not mapped anything yet. */
static bool find_earlier(pid_t pid, const char *maps, const char *library, char name[64])
{
    char path[PATH_MAX];
    bool found = false;
    size_t len = 0;
    char *environment = read_file(pid, "environ", FL_ENVIRON_MOST, &len);
    char *list = NULL;
    for (char *at = environment; at != NULL && at < environment + len; at += strlen(at) + 1) {
        if (strncmp(at, "LD_PRELOAD=", 11) == 0) {
            list = at + 11;
            break;
        }
    }
    const char *item;
    while (!found && list != NULL && (item = strsep(&list, " :")) != NULL) {
        bool is_one = item[0] != '\0' && replaces_malloc(pid, maps, item, path);
        /* By its file's name alone where the path has a space (fl_find_preloadable). */
        const char *ours = strchr(item, '/') != NULL ? library : file_name(library);
        if (strcmp(item, ours) == 0 || (is_one && strcmp(path, library) == 0)) {
            break;
        }
        found = is_one;
    }
    if (found) {
        snprintf(name, 64, "%.63s", file_name(path));
    }
    free(environment);
    return found;
}

/* An allocator that the program brought along, where the C library's own is wanted. */
static bool find_linked(pid_t pid, const char *maps, char name[64])
{
    bool found = false;
    char *copy = strdup(maps);
    char *rest = copy;
    const char *mapped;
    while (!found && copy != NULL && (mapped = next_mapping(&rest)) != NULL) {
        found = is_allocator(file_name(mapped)) && defines_malloc(pid, mapped);
        if (found) {
            snprintf(name, 64, "%.63s", file_name(mapped));
        }
    }
    free(copy);
    return found;
}

/* The loader maps what is preloaded before the C library: when that is there, all is. */
static void read_maps(pid_t pid, const char *library, struct fl_served *out)
{
    char name[64];
    char path[PATH_MAX];
    size_t len;
    char *maps = read_file(pid, "maps", FL_MAPS_MOST, &len);
    if (maps == NULL || (!find_mapped(maps, "libc.so.6", path) && !strstr(maps, "/ld-musl"))) {
        bool is_shadowed = find_earlier(pid, NULL, library, name); /* too early for certainty */
        set(out, is_shadowed ? FL_SERVED_SHADOWED : FL_SERVED_OK, false, is_shadowed ? name : "");
    } else if (library[0] == '\0' ? find_linked(pid, maps, name)
                                  : find_earlier(pid, maps, library, name)) {
        set(out, FL_SERVED_SHADOWED, true, name);
    } else if (library[0] != '\0' && !is_mapped(maps, library)) {
        set(out, FL_SERVED_NOT_LOADED, true, "the loader did not map it");
    } else {
        set(out, FL_SERVED_OK, true, "");
    }
    free(maps);
}

/* What the file says, whichever user runs it. True when that is all there is to say. */
static bool judge_file(const struct fl_elf *elf, bool is_preload, struct fl_served *out)
{
    if (elf->is_other_class) {
        set(out, is_preload ? FL_SERVED_NOT_LOADED : FL_SERVED_OK, true, "32-bit program");
    } else if (!elf->has_loader) {
        set(out, is_preload ? FL_SERVED_NOT_LOADED : FL_SERVED_OK, true, "static program");
    } else if (elf->has_malloc) {
        set(out, FL_SERVED_SHADOWED, true,
            elf->has_sanitizer ? "a sanitizer in the program" : "the program's own malloc");
    } else {
        return false;
    }
    return true;
}

void fl_served_read(pid_t pid, const char *library, struct fl_served *out)
{
    char path[FL_PATH];
    struct fl_elf elf;
    int secure = is_secure(pid);
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    int rc = fl_elf_read(path, &elf);
    bool is_preload = library[0] != '\0';
    if (is_preload && (secure == 1 || secure == -EACCES || secure == -EPERM)) {
        set(out, FL_SERVED_NOT_LOADED, true, "raised privileges");
    } else if (secure < 0 || rc != 0) {
        set(out, FL_SERVED_UNKNOWN, false, "");
    } else if (!judge_file(&elf, is_preload, out)) {
        read_maps(pid, library, out);
    }
}

/* Find it as execvp(3) does. */
static bool find_program(const char *program, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    if (strchr(program, '/') != NULL || folders == NULL) {
        snprintf(path, PATH_MAX, "%s", program);
        return access(path, X_OK) == 0;
    }
    while (*folders != '\0') {
        size_t len = strcspn(folders, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", (int)len, folders, program);
        if (access(path, X_OK) == 0) {
            return true;
        }
        folders += len + (folders[len] == ':');
    }
    return false;
}

void fl_served_predict(const char *program, const char *library, struct fl_served *out)
{
    char path[PATH_MAX];
    struct fl_elf elf;
    struct stat what;
    set(out, FL_SERVED_UNKNOWN, false, "");
    if (!find_program(program, path) || stat(path, &what) != 0 || fl_elf_read(path, &elf) != 0) {
        return;
    }
    bool is_preload = library[0] != '\0';
    bool is_raised = ((what.st_mode & S_ISUID) != 0 && what.st_uid != geteuid()) ||
                     ((what.st_mode & S_ISGID) != 0 && what.st_gid != getegid());
    if (is_preload && is_raised) {
        set(out, FL_SERVED_NOT_LOADED, false, "raised privileges");
    } else if (!judge_file(&elf, is_preload, out)) {
        set(out, FL_SERVED_OK, false, "");
    }
}

void fl_served_text(const struct fl_served *served, char *text, size_t len)
{
    static const char *const word[] = {"unknown", "ok", "not loaded: ", "shadowed by "};
    snprintf(text, len, "%s%s", word[served->state],
             served->state >= FL_SERVED_NOT_LOADED ? served->reason : "");
}
