/* Plans kept across runs: which program this is, and the file itself. */
#include "plan/store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

/* What comes after the last slash. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

uint64_t fl_file_key(const struct fl_file_program *p)
{
    const char *name = last_part(p->exe), *script = "";
    uint64_t sizes[2] = {fl_page.base, fl_page.huge};

    for (const char *arg = p->args; arg < p->args + p->args_len; arg += strlen(arg) + 1) {
        if (arg != p->args && arg[0] != '-' && arg[0] != '\0') {
            script = last_part(arg);
            break;
        }
    }
    uint64_t h = fl_file_hash(2, sizes, sizeof sizes);
    h = fl_file_hash(h, p->build, p->build_len);
    h = fl_file_hash(h, name, strlen(name));
    return fl_file_hash(h, script, strlen(script));
}

uint64_t fl_file_key_here(void)
{
    char args[1024] = "";
    /* NOLINTBEGIN(performance-no-int-to-ptr): the kernel tells addresses as numbers */
    const char *exe = (const char *)fl_sys_auxval(AT_EXECFN);
    const void *headers = (const void *)fl_sys_auxval(AT_PHDR);
    /* NOLINTEND(performance-no-int-to-ptr) */
    struct fl_file_program p = {.exe = exe != NULL ? exe : "", .args = args, .build = headers};

    if (headers != NULL) {
        p.build_len = fl_sys_auxval(AT_PHNUM) * fl_sys_auxval(AT_PHENT);
    }
    if (fl_sys.read_file("/proc/self/cmdline", args, sizeof args) == 0) {
        p.args_len = sizeof args;
    }
    return fl_file_key(&p);
}

int fl_file_look(const char *path, size_t *out_len)
{
    _Alignas(8) unsigned char head[FL_FILE_HEAD + 1] = {0};

    *out_len = 0;
    int rc = fl_sys.read_own_file(path, (char *)head, sizeof head);
    return rc != 0 ? rc : fl_file_length(head, FL_FILE_HEAD, out_len);
}

int fl_file_read(const char *path, void *buf, size_t len)
{
    /* the slot ends what it reads with a NUL, and does not say how much it was: where the file has
     * become shorter since, the checksum tells */
    memset(buf, 0, len + 1);
    int rc = fl_sys.read_own_file(path, buf, len + 1);
    return rc != 0 ? rc : fl_file_check(buf, len);
}

int fl_file_write(const char *path, const void *buf, size_t len)
{
    static const unsigned char nothing[FL_FILE_HEAD];
    _Alignas(8) unsigned char head[FL_FILE_HEAD + 1] = {0};
    size_t old;

    int rc = fl_sys.read_own_file(path, (char *)head, sizeof head);
    if (rc == -EACCES || (rc == 0 && memcmp(head, nothing, sizeof nothing) != 0 &&
                          fl_file_length(head, FL_FILE_HEAD, &old) == -EINVAL)) {
        return rc == 0 ? -EINVAL : rc;
    }
    return fl_sys.replace_file(path, buf, len);
}
