#include "unit/fake_map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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
    [FAKE_MAP_HUGETLB] = -ENOMEM, [FAKE_RESERVE] = -ENOMEM,    [FAKE_MAP_AT] = -EEXIST,
    [FAKE_UNMAP] = -ENOMEM,       [FAKE_COMMIT] = -ENOMEM,     [FAKE_DECOMMIT] = -ENOMEM,
    [FAKE_ADVISE] = -EINVAL,      [FAKE_POPULATE] = -ENOMEM,   [FAKE_RESIDENT] = -ENOMEM,
    [FAKE_NAME] = -EINVAL,        [FAKE_TOUCHED] = -EPERM,     [FAKE_READ_FILE] = -ENOENT,
    [FAKE_LAZY_FREE] = -EINVAL,   [FAKE_MOVE_BEGIN] = -ENOMEM, [FAKE_MOVE] = -EBUSY,
    [FAKE_REMAP] = -EFAULT,       [FAKE_FIND_SPLIT] = -ENOENT, [FAKE_SURVEY] = -EIO,
    [FAKE_PRESENT] = -EPERM};

void fake_enter(void)
{
    if (!fake.quiet) {
        pthread_mutex_lock(&lock);
    }
}

void fake_leave(void)
{
    if (!fake.quiet) {
        pthread_mutex_unlock(&lock);
    }
}

int fake_scripted(enum fake_slot slot)
{
    int rc = fake.rc[slot];

    if (fake.quiet) {
        return rc;
    }
    fake_enter();
    if ((fake.fail_slots >> slot & 1) != 0 && ++fake.ncalls == fake.fail_at) {
        fake.failed = slot;
        rc = slot == FAKE_MAP_AT && fake.fail_enomem ? -ENOMEM : refusal[slot];
    }
    fake_leave();
    return rc;
}

int fake_note_advice(enum fake_slot slot, struct fl_range r, int rc, enum fl_sys_advice advice)
{
    fl_lock_check_call("a call of the tests' table");
    if (!fake.quiet) {
        fake_enter();
        if (fake.nlog < FAKE_LOG) {
            fake.log[fake.nlog] = (struct fake_call){slot, r, rc, advice};
        }
        fake.nlog++;
        fake.count[slot]++;
        fake_leave();
    }
    return rc;
}

int fake_note(enum fake_slot slot, struct fl_range r, int rc)
{
    return fake_note_advice(slot, r, rc, FL_ADVICE_HUGE);
}

static uint64_t fake_now(void)
{
    return atomic_load(&fake.now_ns);
}

static uint64_t fake_own(void)
{
    return atomic_load(&fake.now_ns) - fake.lost_ns;
}

/* On ordinary pages, which look alike. Refused, nothing is there. */
static int fake_map_hugetlb(struct fl_range r, size_t page)
{
    int rc = fake_scripted(FAKE_MAP_HUGETLB);

    fake.hugetlb = page;
    if (r.base % page != 0 || r.len % page != 0 || fl_sys.unmap(r) != 0) {
        abort();
    }
    return fake_note(FAKE_MAP_HUGETLB, r, rc != 0 ? rc : fl_sys.map_at(r));
}

static int fake_read_file(const char *path, char *buf, size_t size)
{
    struct fl_range none = {0, 0};
    int rc = fake_scripted(FAKE_READ_FILE);

    buf[0] = '\0';
    if (fake.on_read_file != NULL) {
        fake.on_read_file();
    }
    for (size_t i = 0; rc == 0 && i < fake.nfile; i++) {
        if (strcmp(fake.file[i].path, path) == 0 && fake.file[i].text != NULL) {
            size_t len = fl_min(strlen(fake.file[i].text), size - 1);
            memcpy(buf, fake.file[i].text, len);
            buf[len] = '\0';
            return fake_note(FAKE_READ_FILE, none, 0);
        }
    }
    return fake_note(FAKE_READ_FILE, none, rc != 0 ? rc : -ENOENT);
}

static int fake_touched(struct fl_range r, struct fl_range out[], unsigned most)
{
    int rc = fake_scripted(FAKE_TOUCHED);

    return fake_note(FAKE_TOUCHED, r, rc != 0 ? rc : fl_sys_linux.touched(r, out, most));
}

static int fake_present(struct fl_range r, size_t *out_bytes)
{
    int rc = fake_scripted(FAKE_PRESENT);

    *out_bytes = 0;
    return fake_note(FAKE_PRESENT, r, rc != 0 ? rc : fl_sys_linux.present(r, out_bytes));
}

static uint64_t fake_limit(int resource)
{
    return resource == RLIMIT_AS ? fake.limit_as : fake.limit_data;
}

static uint64_t fake_memory_total(uint64_t *swap)
{
    if (swap != NULL) {
        *swap = fake.swap_total;
    }
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
    fake_enter();
    size_t fits = fl_min(len, FAKE_SAID - 1 - fake.nsaid);
    memcpy(fake.said + fake.nsaid, text, fits);
    fake.nsaid += fits;
    fake.said[fake.nsaid] = '\0';
    fake_leave();
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

/* The machine's base pages: tests write to real memory. Above 4 KiB there are no huge pages, see
 * sys/page.c. */
static void install_page(void)
{
    size_t base = (size_t)sysconf(_SC_PAGESIZE);

    fl_page = (struct fl_page){.base = base,
                               .huge = 2u << 20,
                               .shift = (unsigned)__builtin_ctzl(base),
                               .thp = base == 4096};
}

static int fake_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    fake.waited_for = word;
    return fl_sys_linux.wait(word, expected, timeout_ns);
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
        .now_ns = fake_now,
        .own_ns = fake_own,
        .touched = fake_touched,
        .present = fake_present,
        .huge = fl_sys_linux.huge,
        .filled = fl_sys_linux.filled,
        .read_file = fake_read_file,
        .limit = fake_limit,
        .memory_total = fake_memory_total,
        .entropy = fake_entropy,
        .wait = fake_wait,
        .wake = fl_sys_linux.wake,
        .write = fake_write,
        .append_file = fl_sys_linux.append_file,
        .replace_file = fl_sys_linux.replace_file,
    };
    fake_map_slots(&fl_sys);
    fl_sys.map_hugetlb = fake_map_hugetlb;
    install_page();
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
    int status = 0;
    pid_t pid = fork(), got;

    if (pid == 0) {
        fl_sys.write = fl_sys_linux.write; /* what it says is to be seen */
        fake_map_forked();
        _exit(f());
    }
    do { /* a fuzzer's alarm may interrupt it */
        got = pid > 0 ? waitpid(pid, &status, 0) : -1;
    } while (got < 0 && pid > 0 && errno == EINTR);
    return got > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

size_t fake_kept_from_child(struct fl_range r)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].no_fork ? fl_range_common(fake.map[i].range, r).len : 0;
    }
    return sum;
}

size_t fake_hidden(struct fl_range r)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].no_dump ? fl_range_common(fake.map[i].range, r).len : 0;
    }
    return sum;
}
