#include "sys/groups.h"

#include <stdatomic.h>
#include <string.h>

enum { PATH_BYTES = 384, GROUPS_BYTES = 1536, FILE_BYTES = 64, FILE_NAME_BYTES = 24 };

struct fl_group_folder {
    char path[PATH_BYTES];
    size_t len; /* of its own part; a file's name may follow */
    char text[FILE_BYTES];
};

static atomic_flag taken = ATOMIC_FLAG_INIT;
static struct fl_group_folder folder; /* `taken`'s */
static char groups[GROUPS_BYTES];     /* likewise */

bool fl_group_number(struct fl_group_folder *f, const char *file, uint64_t *out,
                     const char **out_rest)
{
    struct fl_text t = fl_text_on(f->path + f->len, sizeof f->path - f->len);

    fl_text_str(&t, file);
    if (fl_sys.read_file(f->path, f->text, sizeof f->text) != 0 ||
        !fl_parse_after(f->text, "", out)) {
        return false;
    }
    if (out_rest != NULL) {
        *out_rest = f->text + strcspn(f->text, " ");
    }
    return true;
}

/* In a container the path may be the host's: then its upper folders are not there, and the mount is
 * the group. */
static bool find(const struct fl_group_kind *k)
{
    const char *path = NULL;
    size_t have = strlen(k->mount);

    for (size_t i = 0; path == NULL && k->mark[i] != NULL; i++) {
        path = strstr(groups, k->mark[i]);
        path = path != NULL ? path + strlen(k->mark[i]) : NULL;
    }
    size_t len = path != NULL ? strcspn(path, "\n") : 0;
    if (path == NULL || have + len + FILE_NAME_BYTES > sizeof folder.path) {
        return false;
    }
    memcpy(folder.path, k->mount, have);
    memcpy(folder.path + have, path, len);
    folder.len = have + len - (folder.path[have + len - 1] == '/');
    return true;
}

/* From the folder that was found upwards. */
static uint64_t least_of(const struct fl_group_kind *k)
{
    uint64_t least = UINT64_MAX;

    while (folder.len >= strlen(k->mount)) {
        least = fl_min(least, k->read(&folder));
        while (folder.path[--folder.len] != '/') {
        }
    }
    return least;
}

uint64_t fl_groups_least(const struct fl_group_kind *kinds, size_t n)
{
    uint64_t least = UINT64_MAX;

    if (atomic_flag_test_and_set(&taken)) {
        return 0;
    }
    groups[0] = '\n'; /* so that each line has one before it */
    if (fl_sys.read_file("/proc/self/cgroup", groups + 1, sizeof groups - 1) == 0) {
        for (size_t i = 0; i < n; i++) {
            least = find(&kinds[i]) ? fl_min(least, least_of(&kinds[i])) : least;
        }
    }
    atomic_flag_clear(&taken);
    return least;
}

void fl_groups_fork_child(void)
{
    atomic_flag_clear(&taken);
}
