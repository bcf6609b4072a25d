#include "unit/fake_sys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
static const bool under_tsan = true;
#else
static const bool under_tsan = false;
#endif

struct fake fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const int refusal[FAKE_SLOTS] = {
    [FAKE_RESERVE] = -ENOMEM,   [FAKE_MAP_AT] = -EEXIST,    [FAKE_UNMAP] = -ENOMEM,
    [FAKE_COMMIT] = -ENOMEM,    [FAKE_DECOMMIT] = -ENOMEM,  [FAKE_ADVISE] = -EINVAL,
    [FAKE_POPULATE] = -ENOMEM,  [FAKE_RESIDENT] = -ENOMEM,  [FAKE_NAME] = -EINVAL,
    [FAKE_READ_FILE] = -ENOENT, [FAKE_LAZY_FREE] = -EINVAL, [FAKE_MOVE_BEGIN] = -ENOMEM,
    [FAKE_MOVE] = -EBUSY,       [FAKE_REMAP] = -ENOMEM};

static void enter(void)
{
    if (!fake.quiet) {
        pthread_mutex_lock(&lock);
    }
}

static void leave(void)
{
    if (!fake.quiet) {
        pthread_mutex_unlock(&lock);
    }
}

/* The scripted answer to the call; 0: let it happen. */
static int scripted(enum fake_slot slot)
{
    int rc = fake.rc[slot];

    if (fake.quiet) {
        return rc;
    }
    enter();
    if ((fake.fail_slots >> slot & 1) != 0 && ++fake.ncalls == fake.fail_at) {
        fake.failed = slot;
        rc = slot == FAKE_MAP_AT && fake.fail_enomem ? -ENOMEM : refusal[slot];
    }
    leave();
    return rc;
}

static int note_advice(enum fake_slot slot, struct fl_range r, int rc, enum fl_sys_advice advice)
{
    if (!fake.quiet) {
        enter();
        if (fake.nlog < FAKE_LOG) {
            fake.log[fake.nlog] = (struct fake_call){slot, r, rc, advice};
        }
        fake.nlog++;
        fake.count[slot]++;
        leave();
    }
    return rc;
}

static int note(enum fake_slot slot, struct fl_range r, int rc)
{
    return note_advice(slot, r, rc, FL_ADVICE_HUGE);
}

/* Adds `r`, which overlaps nothing in the list, and joins it with its neighbours of the same kind. */
static void add_map(struct fl_range r, bool usable)
{
    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i];
        if (m.usable == usable &&
            (fl_range_end(m.range) == r.base || fl_range_end(r) == m.range.base)) {
            r = (struct fl_range){m.range.base < r.base ? m.range.base : r.base,
                                  m.range.len + r.len};
            fake.map[i] = fake.map[--fake.nmap];
            i = 0;
        } else {
            i++;
        }
    }
    if (fake.nmap == FAKE_MAPS) {
        abort(); /* the test maps more pieces than it should */
    }
    fake.map[fake.nmap++] = (struct fake_map){r, usable};
}

/* Takes `r` out of the list; what sticks out of it stays. Returns the bytes taken out. */
static size_t remove_map(struct fl_range r)
{
    uintptr_t end = fl_range_end(r);
    size_t removed = 0;

    for (size_t i = 0; i < fake.nmap;) {
        struct fake_map m = fake.map[i];
        uintptr_t m_end = fl_range_end(m.range);
        if (m_end <= r.base || m.range.base >= end) {
            i++;
            continue;
        }
        fake.map[i] = fake.map[--fake.nmap];
        removed += m.range.len;
        if (m.range.base < r.base) {
            add_map((struct fl_range){m.range.base, r.base - m.range.base}, m.usable);
            removed -= r.base - m.range.base;
        }
        if (m_end > end) {
            add_map((struct fl_range){end, m_end - end}, m.usable);
            removed -= m_end - end;
        }
        i = 0;
    }
    return removed;
}

enum change { ADD_RESERVED, ADD_USABLE, REMOVE, BECOME_USABLE, BECOME_RESERVED };

static void change_map(struct fl_range r, enum change how)
{
    if (fake.quiet) {
        return;
    }
    enter();
    size_t removed = how >= REMOVE ? remove_map(r) : 0;
    if (how >= REMOVE && removed != r.len) {
        abort(); /* somebody gives back, or makes usable, what is not his */
    }
    if (how != REMOVE) {
        add_map(r, how == ADD_USABLE || how == BECOME_USABLE);
    }
    leave();
}

static bool is_too_much(size_t len)
{
    return !fake.quiet && (len > fake.commit_max ||
                           (fake.charge_max != SIZE_MAX && fake_usable() + len > fake.charge_max));
}

static int fake_reserve(size_t len, uintptr_t *out_base)
{
    int rc = scripted(FAKE_RESERVE);
    struct fl_range r = {0, len};

    if (rc == 0 && len > fake.reserve_max) {
        rc = -ENOMEM;
    } else if (rc == 0 && fake.reserve_skip != 0) {
        fake.reserve_skip--;
    } else if (rc == 0 && fake.reserve_refuse != 0) {
        fake.reserve_refuse--;
        rc = -ENOMEM;
    }
    if (rc == 0 && (rc = fl_sys_linux.reserve(len, out_base)) == 0) {
        r.base = *out_base;
        change_map(r, ADD_RESERVED);
    }
    return note(FAKE_RESERVE, r, rc);
}

static int fake_map_at(struct fl_range r)
{
    int rc = scripted(FAKE_MAP_AT);

    if (rc == 0) {
        rc = fake.no_quiet_addresses ? -EEXIST
             : is_too_much(r.len)    ? -ENOMEM
                                     : fl_sys_linux.map_at(r);
    }
    if (rc == 0) {
        change_map(r, ADD_USABLE);
    }
    return note(FAKE_MAP_AT, r, rc);
}

static int fake_unmap(struct fl_range r)
{
    int rc = scripted(FAKE_UNMAP);

    if (fake.on_purge != NULL) {
        fake.on_purge();
    }
    if (rc == 0 && (rc = fl_sys_linux.unmap(r)) == 0) {
        change_map(r, REMOVE);
    }
    return note(FAKE_UNMAP, r, rc);
}

static int fake_commit(struct fl_range r)
{
    int rc = scripted(FAKE_COMMIT);

    if (rc == 0) {
        rc = is_too_much(r.len) ? -ENOMEM : fl_sys_linux.commit(r);
    }
    if (rc == 0) {
        change_map(r, BECOME_USABLE);
    }
    return note(FAKE_COMMIT, r, rc);
}

static int fake_decommit(struct fl_range r)
{
    int rc = scripted(FAKE_DECOMMIT);

    if (fake.on_purge != NULL) {
        fake.on_purge();
    }
    if (rc == 0 && (rc = fl_sys_linux.decommit(r)) == 0) {
        change_map(r, BECOME_RESERVED);
    }
    return note(FAKE_DECOMMIT, r, rc);
}

static int fake_advise(struct fl_range r, enum fl_sys_advice advice)
{
    int rc = scripted(FAKE_ADVISE);

    return note_advice(FAKE_ADVISE, r, rc != 0 ? rc : fl_sys_linux.advise(r, advice), advice);
}

static int fake_populate(struct fl_range r)
{
    int rc = scripted(FAKE_POPULATE);

    if (fake.on_populate != NULL) {
        fake.on_populate(r);
    }
    if (rc == 0 && !fake.pretend_populate) {
        rc = fl_sys_linux.populate(r);
    }
    return note(FAKE_POPULATE, r, rc);
}

/* Helpers have no part in what a test of the layers above judges. */
static int fake_populate_shared(struct fl_range r, unsigned helpers)
{
    atomic_fetch_add(&fake.shared, 1);
    atomic_store(&fake.helpers, helpers);
    return fake_populate(r);
}

static int fake_lazy_free(struct fl_range r)
{
    int rc = scripted(FAKE_LAZY_FREE);

    if (fake.on_lazy_free != NULL) {
        fake.on_lazy_free(r);
    }
    return note(FAKE_LAZY_FREE, r, rc != 0 ? rc : fl_sys_linux.lazy_free(r));
}

static void copy_away(struct fl_range from, uintptr_t to)
{
    memcpy((void *)to, (const void *)from.base, from.len);
    (void)madvise((void *)from.base, from.len, MADV_DONTNEED);
}

static int fake_move_begin(struct fl_range to, int *out_fd)
{
    int rc = scripted(FAKE_MOVE_BEGIN);

    *out_fd = 1000;
    fake.moves_open += rc == 0;
    return note(FAKE_MOVE_BEGIN, to, rc);
}

static int fake_move_pages(int fd, struct fl_range from, uintptr_t to, size_t *out_moved)
{
    int rc = fd == 1000 ? scripted(FAKE_MOVE) : -EBADF;
    size_t len = fake.move_most != 0 ? fl_min(fake.move_most, from.len) : from.len;

    *out_moved = rc == 0 ? len : 0;
    if (rc == 0) {
        copy_away((struct fl_range){from.base, len}, to);
        rc = len < from.len ? -EAGAIN : 0;
    }
    return note(FAKE_MOVE, from, rc);
}

static void fake_move_end(int fd, struct fl_range to)
{
    (void)fd;
    (void)to;
    fake.moves_open--;
}

static int fake_remap(struct fl_range from, uintptr_t to)
{
    int rc = scripted(FAKE_REMAP);

    if (rc == 0) {
        copy_away(from, to);
        rc = fl_sys_linux.unmap(from);
        change_map(from, REMOVE);
    }
    return note(FAKE_REMAP, from, rc);
}

static int fake_resident(struct fl_range r, size_t *out_bytes)
{
    int rc = scripted(FAKE_RESIDENT);

    *out_bytes = 0;
    return note(FAKE_RESIDENT, r, rc != 0 ? rc : fl_sys_linux.resident(r, out_bytes));
}

static int fake_name(struct fl_range r, const char *name)
{
    (void)name;
    return note(FAKE_NAME, r, scripted(FAKE_NAME));
}

static uint64_t fake_now(void)
{
    return atomic_load(&fake.now_ns);
}

static int fake_read_file(const char *path, char *buf, size_t size)
{
    struct fl_range none = {0, 0};
    int rc = scripted(FAKE_READ_FILE);

    buf[0] = '\0';
    for (size_t i = 0; rc == 0 && i < fake.nfile; i++) {
        if (strcmp(fake.file[i].path, path) == 0 && fake.file[i].text != NULL) {
            size_t len = fl_min(strlen(fake.file[i].text), size - 1);
            memcpy(buf, fake.file[i].text, len);
            buf[len] = '\0';
            return note(FAKE_READ_FILE, none, 0);
        }
    }
    return note(FAKE_READ_FILE, none, rc != 0 ? rc : -ENOENT);
}

static uint64_t fake_limit(int resource)
{
    return resource == RLIMIT_AS ? fake.limit_as : fake.limit_data;
}

static uint64_t fake_memory_total(void)
{
    return fake.memory_total;
}

static uint64_t fake_entropy(void)
{
    return fake.entropy;
}

static int fake_write(int fd, const char *text, size_t len)
{
    if (fd != STDERR_FILENO) {
        return fl_sys_linux.write(fd, text, len);
    }
    enter();
    size_t fits = fl_min(len, FAKE_SAID - 1 - fake.nsaid);
    memcpy(fake.said + fake.nsaid, text, fits);
    fake.nsaid += fits;
    fake.said[fake.nsaid] = '\0';
    leave();
    return 0;
}

void fake_file(const char *path, const char *text)
{
    for (size_t i = 0; i < fake.nfile; i++) {
        if (strcmp(fake.file[i].path, path) == 0) {
            fake.file[i].text = text;
            return;
        }
    }
    if (fake.nfile == FAKE_FILES) {
        abort(); /* more files than there is room for */
    }
    fake.file[fake.nfile].path = path;
    fake.file[fake.nfile++].text = text;
}

void fake_forget(void)
{
    fake.nlog = 0;
    fake.nsaid = 0;
    fake.said[0] = '\0';
    memset(fake.count, 0, sizeof fake.count);
    fake.shared = 0;
}

void fake_install(void)
{
    const char *mode = getenv("FL_TEST_WINDOW");

    for (size_t i = 0; i < fake.nmap; i++) {
        (void)fl_sys_linux.unmap(fake.map[i].range);
    }
    memset(&fake, 0, sizeof fake);
    fake.no_quiet_addresses = under_tsan || (mode != NULL && strcmp(mode, "reserved") == 0);
    fake.reserve_max = (size_t)1100 << 20;
    fake.commit_max = fake.charge_max = SIZE_MAX;
    fake.limit_as = fake.limit_data = UINT64_MAX;
    fake.memory_total = (uint64_t)16 << 30;
    fake.entropy = 0x123456789abcdef1;
    fake_file("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000 kB\n"
                               "MemAvailable:   14680064 kB\n");
    fake_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    fake_file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    fl_sys = (struct fl_sys){
        .reserve = fake_reserve,
        .map_at = fake_map_at,
        .unmap = fake_unmap,
        .commit = fake_commit,
        .decommit = fake_decommit,
        .advise = fake_advise,
        .populate = fake_populate,
        .populate_shared = fake_populate_shared,
        .lazy_free = fake_lazy_free,
        .move_begin = fake_move_begin,
        .move_pages = fake_move_pages,
        .move_end = fake_move_end,
        .remap = fake_remap,
        .resident = fake_resident,
        .name = fake_name,
        .now_ns = fake_now,
        .read_file = fake_read_file,
        .limit = fake_limit,
        .memory_total = fake_memory_total,
        .entropy = fake_entropy,
        .wait = fl_sys_linux.wait,
        .wake = fl_sys_linux.wake,
        .write = fake_write,
        .append_file = fl_sys_linux.append_file,
    };
    fl_page = (struct fl_page){.base = 4096, .huge = 2u << 20, .shift = 12, .thp = true};
}

const struct fake_call *fake_nth(enum fake_slot slot, size_t i)
{
    for (size_t k = 0; k < fl_min(fake.nlog, FAKE_LOG); k++) {
        if (fake.log[k].slot == slot && i-- == 0) {
            return &fake.log[k];
        }
    }
    fl_fatal("the test asks for a call that was not made");
}

size_t fake_bytes(enum fake_slot slot)
{
    size_t sum = 0;

    for (size_t k = 0; k < fl_min(fake.nlog, FAKE_LOG); k++) {
        sum += fake.log[k].slot == slot && fake.log[k].rc == 0 ? fake.log[k].range.len : 0;
    }
    return sum;
}

size_t fake_mapped(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].range.len;
    }
    return sum;
}

size_t fake_usable(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].usable ? fake.map[i].range.len : 0;
    }
    return sum;
}

size_t fake_purged(void)
{
    return fake_bytes(FAKE_UNMAP) + fake_bytes(FAKE_DECOMMIT);
}

unsigned fake_purges(void)
{
    return fake.count[FAKE_UNMAP] + fake.count[FAKE_DECOMMIT];
}

void fake_fail_at(unsigned n, unsigned slots)
{
    fake.fail_at = n;
    fake.fail_slots = slots != 0 ? slots : ((1u << FAKE_SLOTS) - 1) & ~(1u << FAKE_UNMAP);
    fake.ncalls = 0;
}

bool fake_fired(void)
{
    return fake.fail_at != 0 && fake.ncalls >= fake.fail_at;
}

static void become_child(int stderr_fd)
{
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)signal(SIGABRT, SIG_DFL);
    (void)dup2(stderr_fd, STDERR_FILENO);
    fl_sys.write = fl_sys_linux.write;
}

bool fake_dies(void (*f)(void), char *out, size_t size)
{
    int fd[2], status;
    size_t have = 0;

    if (pipe(fd) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        become_child(fd[1]);
        f();
        _exit(0);
    }
    close(fd[1]);
    for (ssize_t n; have + 1 < size && (n = read(fd[0], out + have, size - 1 - have)) > 0;) {
        have += (size_t)n;
    }
    out[have] = '\0';
    close(fd[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

int fake_child(int (*f)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        fl_sys.write = fl_sys_linux.write; /* what it says is to be seen */
        _exit(f());
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}
