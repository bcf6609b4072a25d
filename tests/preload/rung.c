/* The rung of the ladder that a test's victims run on: words of FAULTLESS_DISABLE, a seccomp
 * filter, a user without rights; or with all shards open.
 *
 * State: what FL_TEST_RUNG said, read before main; a copy of library and victims that every user
 * may read, made at first need and removed at exit. */
#include "run.h"

#include <dirent.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/ioctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, REFUSED = 98 };

static char rung[128], disabled[128];
static unsigned rung_as;

static bool is_word(const char *at, const char *word)
{
    size_t len = strlen(word);

    return strcspn(at, ",") == len && strncmp(at, word, len) == 0;
}

static const char *after_word(const char *at)
{
    at += strcspn(at, ",");
    return at + (*at == ',');
}

bool fl_rung_has(const char *word)
{
    for (const char *p = rung; *p != '\0'; p = after_word(p)) {
        if (is_word(p, word)) {
            return true;
        }
    }
    return false;
}

const char *fl_rung(void)
{
    return rung;
}

const char *fl_rung_disabled(void)
{
    return disabled;
}

unsigned fl_rung_as(void)
{
    return rung_as;
}

/* Before main: no test need know of it. */
__attribute__((constructor)) static void read_rung(void)
{
    const char *words = getenv("FL_TEST_RUNG");

    if (words == NULL) {
        return;
    }
    snprintf(rung, sizeof rung, "%s", words);
    rung_as = (fl_rung_has("nobody") ? FL_AS_NOBODY : 0u) |
              (fl_rung_has("seccomp") ? FL_AS_CONTAINED : 0u);
    for (const char *p = rung; *p != '\0'; p = after_word(p)) {
        if (!is_word(p, "nobody") && !is_word(p, "seccomp") && !is_word(p, "shards")) {
            size_t at = strlen(disabled);
            snprintf(disabled + at, sizeof disabled - at, "%s%.*s", at > 0 ? "," : "",
                     (int)strcspn(p, ","), p);
        }
    }
    if ((rung_as & FL_AS_NOBODY) != 0 && geteuid() != 0) {
        printf("SKIP %s: needs root, to become `nobody`\n", program_invocation_short_name);
        exit(FL_SKIP);
    }
}

/* Calls that Docker's default profile (profiles/seccomp of moby, of 2023 and later, a container
 * without added capabilities) answers with EPERM: those that an allocator, a tracer or a sandboxed
 * program might try. */
static const unsigned short refused[] = {SYS_userfaultfd,
                                         SYS_io_uring_setup,
                                         SYS_io_uring_enter,
                                         SYS_io_uring_register,
                                         SYS_mbind,
                                         SYS_get_mempolicy,
                                         SYS_set_mempolicy,
                                         SYS_set_mempolicy_home_node,
                                         SYS_migrate_pages,
                                         SYS_move_pages,
                                         SYS_process_madvise,
                                         SYS_unshare,
                                         SYS_setns,
                                         SYS_mount,
                                         SYS_umount2,
                                         SYS_mount_setattr,
                                         SYS_move_mount,
                                         SYS_open_tree,
                                         SYS_fsopen,
                                         SYS_pivot_root,
                                         SYS_open_by_handle_at,
                                         SYS_name_to_handle_at,
                                         SYS_bpf,
                                         SYS_perf_event_open,
                                         SYS_fanotify_init,
                                         SYS_kcmp,
                                         SYS_pidfd_getfd,
                                         SYS_add_key,
                                         SYS_keyctl,
                                         SYS_request_key,
                                         SYS_swapon,
                                         SYS_swapoff,
                                         SYS_clock_settime,
                                         SYS_acct};

enum {
    NREFUSED = sizeof refused / sizeof refused[0],
    NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                 CLONE_NEWNET | CLONE_NEWCGROUP,
};

#define NR offsetof(struct seccomp_data, nr)
#define ARG(i) (offsetof(struct seccomp_data, args) + (i)*8) /* the low half */
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Goes on behind the next `skip` instructions when the loaded word is not `value`, or has no bit of
 * it. */
#define UNLESS_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define UNLESS_ANY(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, skip)

/* Victims are of one architecture: that the number means what it means here is not looked at. */
static void contain(void)
{
    const struct sock_filter rest[] = {
        /* So that glibc falls back to clone, whose flags a filter can read. */
        UNLESS_EQUAL(SYS_clone3, 1),
        ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
        UNLESS_EQUAL(SYS_clone, 4),
        LOAD(ARG(0)),
        UNLESS_ANY((unsigned)NAMESPACES, 1),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
        /* Not a matter of the profile: a container has no /dev/userfaultfd to ask in this way. */
        UNLESS_EQUAL(SYS_ioctl, 3),
        LOAD(ARG(1)),
        UNLESS_EQUAL((unsigned)USERFAULTFD_IOC_NEW, 1),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_filter code[1 + 2 * NREFUSED + sizeof rest / sizeof rest[0]] = {LOAD(NR)};
    size_t n = 1;

    for (size_t i = 0; i < NREFUSED; i++) {
        code[n++] = (struct sock_filter)UNLESS_EQUAL(refused[i], 1);
        code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM);
    }
    memcpy(code + n, rest, sizeof rest);
    const struct sock_fprog program = {(unsigned short)(sizeof code / sizeof code[0]), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(REFUSED);
    }
}

void fl_become(unsigned as)
{
    if ((as & FL_AS_NOBODY) != 0 &&
        (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
         setresuid(NOBODY, NOBODY, NOBODY) != 0)) {
        _exit(REFUSED);
    }
    if ((as & FL_AS_CONTAINED) != 0) {
        contain();
    }
}

/* Library and victims, where every user may read and run them. */
static char open_folder[] = "/tmp/fl-open-XXXXXX";
static const char *const inside[] = {"", "/tests", "/tests/victims"};

static void remove_open_folder(void)
{
    fl_remove_folder(open_folder);
}

static bool copy_to_open_folder(const char *file)
{
    char from[512], to[512];

    snprintf(from, sizeof from, "%s%s", FL_BUILD_DIR, file);
    snprintf(to, sizeof to, "%s%s", open_folder, file);
    return fl_copy_program(from, to);
}

static void make_open_folder(void)
{
    static bool made;

    if (made) {
        return;
    }
    assert_non_null(mkdtemp(open_folder));
    made = true;
    assert_int_equal(atexit(remove_open_folder), 0);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", open_folder, inside[i]);
        (void)mkdir(path, 0755);
        assert_int_equal(chmod(path, 0755), 0);
    }
    assert_true(copy_to_open_folder("/libfaultless.so"));
    DIR *d = opendir(FL_VICTIM_DIR);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[300];
        snprintf(file, sizeof file, "/tests/victims/%s", e->d_name);
        assert_true(e->d_type == DT_DIR || copy_to_open_folder(file));
    }
    closedir(d);
}

char *fl_for_user(const char *text, unsigned as)
{
    if ((as & FL_AS_NOBODY) == 0) {
        return strdup(text);
    }
    make_open_folder();
    size_t len = strlen(text), paths = len / sizeof FL_BUILD_DIR + 1, n = 0;
    char *out = malloc(len + paths * sizeof open_folder + 1);
    assert_non_null(out);
    while (*text != '\0') {
        if (strncmp(text, FL_BUILD_DIR "/", sizeof FL_BUILD_DIR) == 0) {
            memcpy(out + n, open_folder, sizeof open_folder - 1);
            n += sizeof open_folder - 1;
            text += sizeof FL_BUILD_DIR - 1;
        } else {
            out[n++] = *text++;
        }
    }
    out[n] = '\0';
    return out;
}
