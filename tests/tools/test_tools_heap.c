/* faultstat heap: what places in a program hold, in a running process and from a file, against what
 * the program is known to hold. */
#include "cases.h"
#include "live_victim.h"

#include "faultless/profile.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, PAGE = 4096 };

/* Each block is a sample. */
static const char *const every[] = {"LD_PRELOAD=" FL_LIBRARY, "FAULTLESS_DISABLE=worker",
                                    "FAULTLESS_PROFILE=1", "FAULTLESS_PROFILE_EVERY=1", NULL};
static const char *const usual[] = {"LD_PRELOAD=" FL_LIBRARY, "FAULTLESS_PROFILE=1",
                                    "FAULTLESS_PROFILE_EVERY=1M", NULL};

static struct fl_live_victim begin(const char *what, const char *const env[])
{
    struct fl_live_victim v = fl_live_victim_start(ARGV(FL_HEAP, what), env);
    (void)fl_live_victim_line(&v);
    return v;
}

/* Folded stacks of a process or file; `peak`: "--peak", or NULL. */
static void fold(const char *what, const char *peak)
{
    fl_child_ends(0, ARGV(FL_FAULTSTAT, "heap", what, "--folded", "-", peak), NULL);
    assert_string_equal(output.err, "");
}

/* Bytes of stacks that end in that function; "": of all. */
static uint64_t held_by(const char *name)
{
    uint64_t sum = 0;
    for (const char *line = output.out; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        const char *space = memrchr(line, ' ', (size_t)(end - line));
        const char *last = memrchr(line, ';', (size_t)(space - line));
        size_t len = strlen(name);
        bool is_it = len == 0 || (last != NULL && (size_t)(space - last - 1) == len &&
                                  memcmp(last + 1, name, len) == 0);
        sum += is_it ? strtoull(space + 1, NULL, 10) : 0;
    }
    return sum;
}

static void known_sites_hold_what_they_hold(void)
{
    assert_int_equal(held_by("f"), 3 * MIB);
    assert_int_equal(held_by("g"), 4 * MIB);
    assert_int_equal(held_by("h"), 74 * PAGE);
    assert_int_equal(held_by("k"), 0);
    assert_int_equal(held_by(""), 7 * MIB + 74 * PAGE);
    assert_says(output.out, ";main;sites;g 4194304\n");
}

CASE(a_running_process_is_read)
{
    struct fl_live_victim v = begin("sites", every);
    fold(fl_live_victim_text(v.pid), NULL);
    known_sites_hold_what_they_hold();
    fold(fl_live_victim_text(v.pid), "--peak");
    assert_int_equal(held_by("f"), 3 * MIB);
    assert_int_equal(held_by("k"), 8 * MIB);
    assert_int_equal(held_by("h"), 0);
    fl_child_ends(0, ARGV(FL_FAULTSTAT, "heap", fl_live_victim_text(v.pid)), NULL);
    assert_says(output.out, ": 7.3 MiB in large blocks; at the peak 15.0 MiB; 7 samples");
    assert_says(output.out, "       4.0  54.9        4.0        2  g (");
    assert_says(output.out, "       0.0   0.0        8.0        0  k (");
    assert_says(output.out, " 100.0  of sites together");
    assert_says(output.out, "kept free");
    assert_says(output.out, "not ours");
}

CASE(a_file_says_the_same)
{
    const char *option = text_as("FAULTLESS_PROFILE=%s/%%p.heap", fl_child_folder);
    const char *const env[] = {every[0], every[1], option, every[3], NULL};
    struct fl_live_victim v = begin("sites", env);
    const char *name = text_as("%s/%d.heap", fl_child_folder, (int)v.pid);
    assert_int_not_equal(access(name, F_OK), 0);
    assert_int_equal(fl_live_victim_end(&v), 0);
    fold(name, NULL);
    known_sites_hold_what_they_hold();
    fold(name, "--peak");
    assert_int_equal(held_by("k"), 8 * MIB);
}

CASE(each_function_holds_what_it_asked_for)
{
    /* the worker packs: only then a plan serves */
    const char *const with_worker[] = {every[0], every[2], every[3], NULL};
    static const struct {
        const char *mode;
        bool worker;
        size_t f, other, all; /* MiB */
        const char *name;     /* of the other */
    } table[] = {
        {"grow", false, 2, 20, 22, "r"}, {"threads", false, 0, 4, 4, "t"},
        {"steps", true, 1, 3, 4, "s"},   {"signals", false, 5, 0, 5, "k"},
        {"filter", false, 5, 0, 5, "k"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct fl_live_victim v = begin(table[i].mode, table[i].worker ? with_worker : every);
        fold(fl_live_victim_text(v.pid), NULL);
        if (held_by("f") != table[i].f * MIB || held_by(table[i].name) != table[i].other * MIB ||
            held_by("") != table[i].all * MIB) {
            fail_msg("%s:\n%s", table[i].mode, output.out);
        }
        assert_int_equal(fl_live_victim_end(&v), 0);
    }
}

CASE(a_child_of_fork_has_its_own)
{
    struct fl_live_victim v = fl_live_victim_start(ARGV(FL_HEAP, "fork"), every);
    pid_t child = 0;
    for (int i = 0; i < 2; i++) {
        pid_t pid = (pid_t)strtol(fl_live_victim_line(&v), NULL, 10);
        child = pid != v.pid ? pid : child;
    }
    fold(fl_live_victim_text(v.pid), NULL);
    assert_int_equal(held_by("f"), 2 * MIB);
    assert_int_equal(held_by(""), 2 * MIB);
    fold(fl_live_victim_text(child), NULL);
    assert_int_equal(held_by("c"), 3 * MIB);
    assert_int_equal(held_by(""), 3 * MIB);
}

CASE(a_childs_file_is_of_the_child)
{
    char option[96], name[64], head[64];
    snprintf(option, sizeof(option), "FAULTLESS_PROFILE=%s/%%p.heap", fl_child_folder);
    const char *const env[] = {every[0], every[1], option, every[3], NULL};
    struct fl_live_victim v = fl_live_victim_start(ARGV(FL_HEAP, "fork"), env);
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        pid[i] = (pid_t)strtol(fl_live_victim_line(&v), NULL, 10);
    }
    assert_int_equal(fl_live_victim_end(&v), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s/%d.heap", fl_child_folder, (int)pid[i]);
        snprintf(head, sizeof(head), "process %d: %s MiB", (int)pid[i],
                 pid[i] == v.pid ? "2.0" : "3.0");
        fl_child_ends(0, ARGV(FL_FAULTSTAT, "heap", name), NULL);
        assert_says(output.out, head);
    }
}

/* By a program that is the same each time, and its one thread. */
CASE(samples_stand_for_all_on_average)
{
    struct fl_live_victim v = begin("mixed", usual);
    fold(fl_live_victim_text(v.pid), NULL);
    uint64_t f = held_by("f");
    print_message("           %.0f MiB for 300\n", (double)f / MIB);
    assert_int_equal(held_by("g"), 300 * MIB); /* longer than the distance: exact */
    assert_true(f > 250 * (uint64_t)MIB && f < 350 * (uint64_t)MIB);
}

static void refused(const char *what, const char *why)
{
    fl_child_ends(125, ARGV(FL_FAULTSTAT, "heap", what), NULL);
    assert_says(output.err, why);
    assert_string_equal(output.out, "");
}

CASE(what_is_no_profile_is_refused)
{
    char name[64];
    struct fl_profile_head head = {.magic = FL_PROFILE_MAGIC,
                                   .version = FL_PROFILE_VERSION,
                                   .slots = 3,
                                   .stride = FL_PROFILE_STRIDE};
    struct fl_live_victim v = begin("sites", fl_live_victim_still);
    refused(fl_live_victim_text(v.pid), "not started with FAULTLESS_PROFILE");
    assert_int_equal(fl_live_victim_end(&v), 0);
    refused(fl_live_victim_text(getpid()), "not under faultless");
    refused(FL_HEAP, "this is no profile");
    refused("/nonexistent", "no such file");
    snprintf(name, sizeof(name), "%s/forged", fl_child_folder);
    for (int i = 0; i < 4; i++) {
        static const char *const why[] = {"this is no profile", "another version",
                                          "this is no profile", "this is no profile"};
        struct fl_profile_head forged = head; /* cut short; of a later version; ... */
        forged.version += i == 1;
        forged.slots = i == 2 ? UINT32_MAX : forged.slots;
        forged.stride = i == 3 ? 8 : forged.stride;
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(&forged, sizeof(forged), 1, file), 1);
        assert_int_equal(fclose(file), 0);
        refused(name, why[i]);
    }
    fl_child_ends(125, ARGV(FL_FAULTSTAT, "heap"), NULL);
}

/* Samples whose sizes, registers and stacks are nonsense. */
CASE(nonsense_does_no_harm)
{
    static unsigned char stack[FL_PROFILE_STACK];
    struct fl_profile_head head = {.magic = FL_PROFILE_MAGIC,
                                   .version = FL_PROFILE_VERSION,
                                   .slots = 64,
                                   .stride = FL_PROFILE_STRIDE,
                                   .peak_at = UINT64_MAX};
    char name[64];
    snprintf(name, sizeof(name), "%s/nonsense", fl_child_folder);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(&head, sizeof(head), 1, file), 1);
    srand(1);
    for (uint32_t i = 0; i < head.slots; i++) {
        struct fl_profile_sample s = {.state = i % 4, .len = 1 + i, .weight = UINT64_MAX};
        s.stack_len = i % 8 == 0 ? 0 : FL_PROFILE_STACK;
        for (size_t k = 0; k < FL_PROFILE_REGS; k++) {
            s.reg[k] = (uint64_t)rand() << (i % 40);
        }
        for (size_t k = 0; k < sizeof(stack); k++) {
            stack[k] = (unsigned char)rand();
        }
        assert_int_equal(fwrite(&s, sizeof(s), 1, file), 1);
        assert_int_equal(fwrite(stack, 1, s.stack_len, file), s.stack_len);
    }
    fputs("0-ffffffffffffffff r-xp 00000000 00:00 0 /bin/true\nx\n1-2\n", file);
    assert_int_equal(fclose(file), 0);
    fl_child_ends(0, ARGV(FL_FAULTSTAT, "heap", name), NULL);
}

CASE(values_of_the_option_are_checked)
{
    const char *const env[] = {every[0], "FAULTLESS_PROFILE=word", NULL};
    fl_child_ends(0, ARGV("/bin/true"), env);
    assert_says(output.err, "FAULTLESS_PROFILE=word");
    const char *const bad[] = {every[0], "FAULTLESS_PROFILE=/nonexistent/a", every[3], NULL};
    fl_child_ends(0, ARGV(FL_LIVE, "work"), bad);
    assert_says(output.err,
                "FAULTLESS_PROFILE=/nonexistent/a cannot be written: there is no such folder");
}

LIVE_VICTIM_MAIN("test_tools_heap", .teardown = fl_live_victims_end_well, IN_FOLDER)
