/* Unwinds this program's own stack from registers and a dump, as a sample has them; and code
 * without call frame information, as a perf map describes it. */
#include "cases.h"
#include "faultstat/record/unwind.h"

#include <fcntl.h>
#include <sys/stat.h>

#ifdef __x86_64__
enum { FL_DUMP = 8192, FL_PID = 1 };

static uint64_t reg[FL_REG_COUNT];
static unsigned char dump[FL_DUMP];
static size_t dump_len;
static struct fl_processes processes;
static struct fl_unwinder unwinder;

static void add(struct fl_process *process, uint64_t start, uint64_t end, uint64_t offset,
                uint32_t module)
{
    struct fl_map map = {.start = start,
                         .end = end,
                         .whole = end - start,
                         .offset = offset,
                         .kind = FL_MAP_FILE,
                         .module = module};
    assert_int_equal(fl_process_map(process, &map), 0);
}

/* This process's own code, as the kernel would tell it. */
static void take_own_maps(struct fl_process *process)
{
    char line[512];
    FILE *file = fopen("/proc/self/maps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *at = line;
        uint64_t start = strtoull(at, &at, 16);
        uint64_t end = strtoull(at + 1, &at, 16);
        bool is_code = at[3] == 'x';
        uint64_t offset = strtoull(at + 6, &at, 16);
        char *path = strchr(at, '/');
        if (is_code && path != NULL) {
            path[strcspn(path, "\n")] = '\0';
            add(process, start, end, offset, fl_modules_get(&unwinder.modules, path));
        }
    }
    fclose(file);
}

enum { FL_BX, FL_BP, FL_SP, FL_IP, FL_R12, FL_RAW = FL_R12 + 4 };

/* What the kernel writes at a fault in here, whose caller's registers are all as they were: it has
 * no frame, however this is compiled. On to captured. */
int capture(uint64_t raw[static FL_RAW]);
__asm__(".text\n"
        ".type capture, @function\n"
        "capture:\n\t"
        ".cfi_startproc\n\t"
        "movq %rbx, 0(%rdi)\n\t"
        "movq %rbp, 8(%rdi)\n\t"
        "movq %rsp, 16(%rdi)\n\t"
        "leaq 0(%rip), %rax\n\t"
        "movq %rax, 24(%rdi)\n\t"
        "movq %r12, 32(%rdi)\n\t"
        "movq %r13, 40(%rdi)\n\t"
        "movq %r14, 48(%rdi)\n\t"
        "movq %r15, 56(%rdi)\n\t"
        "jmp captured\n\t"
        ".cfi_endproc\n"
        ".size capture, . - capture\n");

/* The dump ends where the stack of main may. A sanitizer must not mind what lies between the
 * variables. */
int captured(const uint64_t raw[static FL_RAW]);
__attribute__((used, no_sanitize("address", "undefined"))) int
captured(const uint64_t raw[static FL_RAW])
{
    extern char **environ; /* above all frames */
    reg[FL_REG_BX] = raw[FL_BX];
    reg[FL_REG_BP] = raw[FL_BP];
    reg[FL_REG_SP] = raw[FL_SP];
    reg[FL_REG_IP] = raw[FL_IP];
    for (int i = 0; i < 4; i++) {
        reg[FL_REG_R12 + i] = raw[FL_R12 + i];
    }
    uint64_t top = (uint64_t)(uintptr_t)environ;
    dump_len = top - reg[FL_REG_SP] < FL_DUMP ? top - reg[FL_REG_SP] : FL_DUMP;
    const volatile unsigned char *from = (const void *)(uintptr_t)reg[FL_REG_SP];
    for (size_t i = 0; i < dump_len; i++) {
        dump[i] = from[i];
    }
    return 1;
}

__attribute__((noinline)) static int inner(int n)
{
    volatile char room[100];
    uint64_t raw[FL_RAW];
    room[n] = 1;
    return capture(raw) + room[n];
}

/* Aligned more than the stack, with arguments on the stack: the frame address lies in memory.
 * Vectorised loops are compiled so. */
__attribute__((noinline)) static int aligned(int n, long a, long b, long c, long d, long e, long f)
{
    volatile char room[256] __attribute__((aligned(64)));
    volatile char *more = __builtin_alloca((size_t)n + 16);
    room[n] = (char)(a + b + c + d + e + f);
    more[n] = 0;
    return inner(n) + room[n] + more[n];
}

/* Its frame has no fixed size: the frame address is reckoned from another register. */
__attribute__((noinline)) static int outer(int n)
{
    volatile char *room = __builtin_alloca((size_t)n * 16 + 16);
    room[n] = 2;
    return aligned(n, 0, 0, 0, 0, 0, 0) + room[n];
}

static const char *name_at(struct fl_place place)
{
    const char *name = fl_modules_name(&unwinder.modules, place.module, place.address);
    return name != NULL ? name : "";
}

/* Compilers make copies of a function, and name them NAME.constprop.0 and the like. */
static void assert_is(struct fl_place place, const char *name)
{
    if (strncmp(name_at(place), name, strlen(name)) != 0) {
        fail_msg("'%s' is not %s", name_at(place), name);
    }
}

CASE(callers_are_found_to_the_beginning)
{
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    struct fl_event fault = {.reg = reg, .stack = dump};
    struct fl_process *process = fl_processes_get(&processes, FL_PID);
    assert_int_equal(outer(5), 4);
    take_own_maps(process);
    fault.stack_len = dump_len;
    for (int pass = 0; pass < 2; pass++) { /* anew, and from what is kept */
        size_t count = fl_unwind(&unwinder, process, &fault, place, &is_cut);
        assert_true(count >= 6);
        assert_is(place[0], "capture");
        assert_is(place[1], "inner");
        assert_is(place[2], "aligned");
        assert_is(place[3], "outer");
        assert_is(place[4], "callers_are_found_to_the_beginning");
        if (dump_len < FL_DUMP) { /* else the dump ends first */
            assert_is(place[count - 1], "_start");
            assert_false(is_cut);
        }
    }
}

CASE(a_dump_that_is_too_short_cuts_the_stack)
{
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    struct fl_event fault = {.reg = reg, .stack = dump};
    struct fl_process *process = fl_processes_get(&processes, FL_PID);
    for (size_t len = 0; len < 512; len++) {
        fault.stack_len = len;
        size_t count = fl_unwind(&unwinder, process, &fault, place, &is_cut);
        assert_true(count >= 1 && count < FL_FRAMES_MOST);
        assert_true(is_cut);
    }
}

/* Python's trampoline: one word, then the return address. */
CASE(generated_code_is_named_by_its_map)
{
    const uint64_t code = UINT64_C(0x5000000);
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    pid_t pid = getpid();
    const char *path = text_as("/tmp/perf-%d.map", (int)pid);
    write_text(path, "5000000 20 py::step:/x/train.py\nbroken line\n"
                     "5000040 20 py::main:/x/train.py\n");
    struct fl_process *process = fl_processes_get(&processes, pid);
    add(process, code, code + 4096, 0, fl_modules_get_jit(&unwinder.modules, pid));
    uint64_t stack[4] = {0, code + 0x48, 0, 0x1234};
    uint64_t at[FL_REG_COUNT] = {[FL_REG_IP] = code + 8, [FL_REG_SP] = 0x7000};
    struct fl_event fault = {
        .reg = at, .stack = (const unsigned char *)stack, .stack_len = sizeof(stack)};
    size_t count = fl_unwind(&unwinder, process, &fault, place, &is_cut);
    assert_true(count >= 2);
    assert_string_equal(name_at(place[0]), "py::step:/x/train.py");
    assert_string_equal(name_at(place[1]), "py::main:/x/train.py");
    assert_null(fl_modules_name(&unwinder.modules, place[0].module, code + 0x30)); /* between */
    unlink(path);
}

/* Numbers of processes come again, and the maps are not removed. */
CASE(a_map_of_an_earlier_process_names_nothing)
{
    const pid_t pid = (1 << 22) + 1; /* above all that there are */
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    uint64_t address = UINT64_C(0x5000008);
    const char *path = text_as("/tmp/perf-%d.map", (int)pid);
    write_text(path, "5000000 20 another\n");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    uint32_t module = fl_modules_get_jit(&unwinder.modules, pid);
    assert_null(fl_modules_name(&unwinder.modules, module, address));
    unlink(path);
}

/* Generated code that saved six registers, as oneDNN's does, and that nothing describes: its caller
 * is found by its return address into this program, and from there on all is known. */
CASE(generated_code_without_a_frame_is_left_by_a_return_address)
{
    const uint64_t code = UINT64_C(0x6000000);
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    struct fl_process *process = fl_processes_get(&processes, FL_PID);
    add(process, code, code + 4096, 0, fl_modules_get_jit(&unwinder.modules, FL_PID));
    struct fl_event fault = {.reg = reg, .stack = dump, .stack_len = dump_len};
    size_t count = fl_unwind(&unwinder, process, &fault, place, &is_cut);
    assert_true(count > 2);
    /* The stack at the return into inner, with six saved registers and a local word below it. */
    static _Alignas(8) unsigned char stack[8 * 8 + FL_DUMP];
    static const uint8_t order[] = {FL_REG_R12 + 3, FL_REG_R12 + 2, FL_REG_R12 + 1,
                                    FL_REG_R12,     FL_REG_BP,      FL_REG_BX};
    size_t at = 0; /* of the return address in the dump: the first word */
    uint64_t word = 0;
    while (at + sizeof(word) <= dump_len) {
        memcpy(&word, dump + at, sizeof(word));
        const struct fl_map *map = fl_process_find(process, word);
        if (map != NULL && map->module != 0 &&
            fl_modules_address(&unwinder.modules, map->module, word - map->start + map->offset) ==
                place[1].address + 1) {
            break;
        }
        at += sizeof(word);
    }
    assert_true(at + sizeof(word) <= dump_len);
    for (size_t i = 0; i < sizeof(order); i++) {
        memcpy(stack + 8 + i * 8, &reg[order[i]], sizeof(uint64_t));
    }
    memcpy(stack + 7 * 8, dump + at, dump_len - at);
    uint64_t lost[FL_REG_COUNT] = {
        [FL_REG_IP] = code + 16, [FL_REG_SP] = reg[FL_REG_SP] + at - 7 * 8};
    struct fl_event inside = {.reg = lost, .stack = stack, .stack_len = 7 * 8 + dump_len - at};
    struct fl_place found[FL_FRAMES_MOST];
    size_t again = fl_unwind(&unwinder, process, &inside, found, &is_cut);
    assert_int_equal(again, count);
    for (size_t i = 1; i < count; i++) {
        assert_int_equal(found[i].address, place[i].address);
    }
}

CASE(a_frame_that_does_not_rise_ends_the_walk)
{
    struct fl_place place[FL_FRAMES_MOST];
    bool is_cut;
    uint64_t stack[2] = {0, 0}; /* returns to address 0 */
    uint64_t at[FL_REG_COUNT] = {[FL_REG_IP] = UINT64_C(0x5000008), [FL_REG_SP] = 0x7000};
    struct fl_event fault = {
        .reg = at, .stack = (const unsigned char *)stack, .stack_len = sizeof(stack)};
    size_t count =
        fl_unwind(&unwinder, fl_processes_get(&processes, getpid()), &fault, place, &is_cut);
    assert_int_equal(count, 1);
    assert_true(is_cut);
}

int main(void)
{
    if (fl_unwinder_open(&unwinder) != 0) {
        return 1;
    }
    int failed = RUN_CASES();
    fl_unwinder_close(&unwinder);
    fl_processes_clear(&processes);
    return failed;
}
#else
int main(void)
{
    puts("SKIP test_tools_record_unwind: needs x86-64, got another machine");
    return 77;
}
#endif
