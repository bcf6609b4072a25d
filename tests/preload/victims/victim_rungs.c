/* Says who it is, what the kernel answers to calls that containers refuse, and that all the rest
 * works. */
#include "victim.h"

#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

/* With arguments that no kernel takes: what gets as far as the call itself changes nothing. */
MODE(calls)
{
    static const struct {
        const char *name;
        long nr;
    } all[] = {
        {"userfaultfd", SYS_userfaultfd},
        {"io_uring_setup", SYS_io_uring_setup},
        {"io_uring_enter", SYS_io_uring_enter},
        {"io_uring_register", SYS_io_uring_register},
        {"mbind", SYS_mbind},
        {"get_mempolicy", SYS_get_mempolicy},
        {"set_mempolicy", SYS_set_mempolicy},
        {"migrate_pages", SYS_migrate_pages},
        {"move_pages", SYS_move_pages},
        {"process_madvise", SYS_process_madvise},
        {"unshare", SYS_unshare},
        {"setns", SYS_setns},
        {"mount", SYS_mount},
        {"clone3", SYS_clone3},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        errno = 0;
        long rc = syscall(all[i].nr, -1L, -1L, -1L, -1L, -1L, -1L);
        printf("%s %s\n", all[i].name, rc == -1 ? strerrorname_np(errno) : "done");
    }
    errno = 0;
    long rc = syscall(SYS_clone, CLONE_NEWNET | CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L);
    if (rc == 0) {
        _exit(0);
    }
    printf("clone %s\n", rc == -1 ? strerrorname_np(errno) : "done");
}

MODE(who)
{
    printf("uid %d gid %d\n", getuid(), getgid());
    printf("capabilities %zu\n", proc_number("/proc/self/status", "CapEff:\t"));
    printf("filter %zu\n", proc_number("/proc/self/status", "Seccomp:\t"));
}

static void *use_some(void *arg)
{
    char *p = written(40 * MIB, 1);
    CHECK(is_stamped(p, 40 * MIB, 1));
    free(p);
    return arg;
}

extern char **environ;

MODE(lives)
{
    static char program[] = "/bin/true";
    char *const args[] = {program, NULL};
    pid_t pid;
    in_thread(use_some, NULL);
    IN_CHILD
    {
        use_some(NULL);
    }
    CHECK(posix_spawn(&pid, program, NULL, NULL, args, environ) == 0);
    ends_well(pid);
    CHECK(system("exit 0") == 0);
}

MAIN()
