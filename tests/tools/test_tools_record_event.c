/* Records as a kernel wrote them (Linux 6.18, x86-64, victim_sites under events with 64 bytes of
 * stack), decoded; and the same cut at every byte. */
#include "cases.h"
#include "faultstat/record/event.h"

#include <sys/mman.h>

static const uint64_t fault[] = {
    0x00c8000200000009, 0x00000000000007e1, 0x00005f5800005f57, 0x00000d66fe0c8bba,
    0x00007f5439112000, 0x0000000000000002, 0x0000000000000000, 0x0000000000000000,
    0x00007f5438f1eec8, 0x0000558fb671d61c, 0xffffffffffffff80, 0x0000000000000000,
    0x00007fff2a41dde0, 0x00007f543871f000, 0x0000000000000040, 0x0000558fb671d64c,
    0x00007f5438f1f6c0, 0x00007f5438fac1f5, 0x0000000000000000, 0x00007f5438f1f6c0,
    0x00007f5438f1f6c0, 0x3d45e3fea25789dc, 0xffffffffffffff80, 0x0000000000000040,
    0x0000000000001000,
};
/* A fault of the kernel's while it runs exec. */
static const uint64_t no_stack[] = {
    0x0090000100000009, 0x00000000000007c3, 0x00005d8e00005d8e, 0x00000d64b77e8a25,
    0x00007fe961f1a110, 0x0000000000000002, 0x00007ffc080ae3f8, 0x00007ffc080ae2e0,
    0x00007ffc080ae2a8, 0x00007f6555551ad7, 0x0000000000000000, 0x00007ffc080ae420,
    0x0000564df2e99dc8, 0x00007f65556ab020, 0x0000000000000008, 0x0000000000000000,
    0x0000000000000000, 0x0000000000001000,
};
static const uint64_t exec[] = {
    0x0038200000000003, 0x00005d8e00005d8e, 0x735f6d6974636976, 0x0000000073657469,
    0x00005d8e00005d8e, 0x00000d64b77d7390, 0x00000000000007c3,
};
static const uint64_t map[] = {
    0x007800020000000a, 0x00005d8e00005d8e, 0x0000560eebc3a000, 0x0000000000001000,
    0x0000000000001000, 0x00000000000000fe, 0x0000000000abc1e0, 0x00000000f408df0d,
    0x0000000200000005, 0x636f6c2f7273752f, 0x69746369762f6c61, 0x0073657469735f6d,
    0x00005d8e00005d8e, 0x00000d64b77ddd4f, 0x00000000000007c3,
};
static const uint64_t thread[] = {
    0x0038000000000007, 0x00005d8e00005d8e, 0x00005d8e00005d8f, 0x00000d64b8001280,
    0x00005d8e00005d8e, 0x00000d64b800117c, 0x00000000000007c3,
};
static const uint64_t end[] = {
    0x0038000000000004, 0x00005d8b00005d8e, 0x00005d8b00005d8f, 0x00000d64b873f9f1,
    0x00005d8f00005d8e, 0x00000d64b873f662, 0x00000000000007c3,
};
static const uint64_t lost[] = {0x30000000000002, 0x7c3, 17, 0x5d8e00005d8e, 0xd64b873f662, 0x7c3};
/* The tracepoint: identifier, thread, time, length and 32 bytes of raw data, and 4 of padding. */
static const uint64_t protect[] = {
    0x48000200000009, 0x7c5, 0x5d8e00005d8e, 0xd64b77e8a25, (uint64_t)0x62 << 32 | 36, 0, 0, 0, 0};

static const uint64_t ids[] = {0x7c3, 0x7c4, 0x7c5, 0x7c6, 0x7e1, 0x7e2, 0, 0};

static const struct fl_event_layout layout = {
    .fault_type = FL_SAMPLE_COMMON | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER |
                  PERF_SAMPLE_STACK_USER | PERF_SAMPLE_DATA_PAGE_SIZE,
    .id = ids,
    .ids = sizeof(ids) / sizeof(ids[0]),
    .protect_addr = 8,
    .protect_error = 24,
};

#define DECODE(record, out) fl_event_decode(&layout, record, sizeof(record), out)

CASE(a_fault_has_its_address_page_registers_and_stack)
{
    struct fl_event e;
    assert_int_equal(DECODE(fault, &e), 0);
    assert_int_equal(e.type, FL_EVENT_FAULT);
    assert_false(e.is_major);
    assert_int_equal(e.pid, 0x5f57);
    assert_int_equal(e.tid, 0x5f58);
    assert_int_equal(e.time_ns, 0xd66fe0c8bba);
    assert_int_equal(e.addr, 0x7f5439112000);
    assert_int_equal(e.page_size, 4096);
    assert_non_null(e.reg);
    assert_int_equal(e.reg[FL_REG_IP], 0x558fb671d61c);
    assert_int_equal(e.reg[FL_REG_SP], 0x7f5438f1eec8);
    assert_int_equal(e.reg[FL_REG_R12], 0xffffffffffffff80);
    assert_int_equal(e.stack_len, 64);
    uint64_t word;
    memcpy(&word, e.stack, sizeof(word));
    assert_int_equal(word, 0x558fb671d64c); /* the return address into run_thread */
}

/* Identifier, thread, time, and user registers: which mode the tick met is in the header. */
CASE(a_tick_says_whom_it_met)
{
    struct fl_event_layout own = layout;
    struct fl_event e;
    uint64_t tick[] = {0x30000200000009, 0x7c6, 0x5f5800005f57, 0xd66fe0c8bba, 2, 0x558fb671d61c};
    own.clock_has_ip = true;
    assert_int_equal(fl_event_decode(&own, tick, sizeof(tick), &e), 0);
    assert_int_equal(e.type, FL_EVENT_CLOCK);
    assert_int_equal(e.pid, 0x5f57);
    assert_int_equal(e.time_ns, 0xd66fe0c8bba);
    assert_int_equal(e.addr, 0x558fb671d61c);
    assert_false(e.is_kernel);
    tick[0] = 0x30000100000009;
    assert_int_equal(fl_event_decode(&own, tick, sizeof(tick), &e), 0);
    assert_true(e.is_kernel);
    uint64_t bare[] = {0x20000200000009, 0x7c6, 0x5f5800005f57, 0xd66fe0c8bba};
    assert_int_equal(DECODE(bare, &e), 0); /* a machine whose registers are not asked for */
    assert_int_equal(e.addr, 0);
}

/* The physical address stands before the page's size, and is 0 for the kernel's page of zeros. */
CASE(a_read_of_fresh_memory_has_no_page)
{
    struct fl_event_layout own = layout;
    struct fl_event e;
    own.fault_type =
        FL_SAMPLE_COMMON | PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
    uint64_t record[] = {0x38000200000009, 0x7c3,   0x5f5800005f57, 0xd66fe0c8bba,
                         0x7f5439112000,   0x12000, 0x1000};
    assert_int_equal(fl_event_decode(&own, record, sizeof(record), &e), 0);
    assert_false(e.is_no_page);
    assert_int_equal(e.page_size, 4096);
    record[5] = 0;
    assert_int_equal(fl_event_decode(&own, record, sizeof(record), &e), 0);
    assert_true(e.is_no_page);
    assert_int_equal(DECODE(fault, &e), 0); /* where it is not asked for, nothing is claimed */
    assert_false(e.is_no_page);
}

CASE(a_dump_of_which_nothing_is_used_is_empty)
{
    struct fl_event e;
    assert_int_equal(DECODE(no_stack, &e), 0);
    assert_int_equal(e.stack_len, 0);
    assert_int_equal(e.page_size, 4096);
}

CASE(the_identifier_says_which_event_it_was)
{
    struct fl_event e;
    uint64_t copy[sizeof(fault) / sizeof(fault[0])];
    memcpy(copy, fault, sizeof(fault));
    copy[1] = 0x7e2;
    assert_int_equal(DECODE(copy, &e), 0);
    assert_true(e.is_major);
    copy[1] = 0x99;
    assert_int_equal(DECODE(copy, &e), 0);
    assert_int_equal(e.type, FL_EVENT_OTHER);
}

CASE(a_protection_fault_is_the_tracepoints)
{
    struct fl_event e;
    uint64_t copy[sizeof(protect) / sizeof(protect[0])];
    memcpy(copy, protect, sizeof(protect));
    const uint64_t addr = 0x7fe961f1a110;
    memcpy((char *)&copy[4] + 4 + 8, &addr, sizeof(addr)); /* after the length, at its offset */
    assert_int_equal(DECODE(copy, &e), 0);
    assert_int_equal(e.type, FL_EVENT_PROTECT);
    assert_int_equal(e.addr, addr);
    assert_int_equal(e.time_ns, 0xd64b77e8a25);
}

CASE(mappings_and_processes_are_told)
{
    struct fl_event e;
    assert_int_equal(DECODE(map, &e), 0);
    assert_int_equal(e.type, FL_EVENT_MAP);
    assert_int_equal(e.addr, 0x560eebc3a000);
    assert_int_equal(e.len, 0x1000);
    assert_int_equal(e.offset, 0x1000);
    assert_int_equal(e.prot, PROT_READ | PROT_EXEC);
    assert_int_equal(e.flags, MAP_PRIVATE);
    assert_string_equal(e.name, "/usr/local/victim_sites");
    assert_int_equal(e.time_ns, 0xd64b77ddd4f);
    assert_int_equal(DECODE(exec, &e), 0);
    assert_int_equal(e.type, FL_EVENT_EXEC);
    assert_string_equal(e.name, "victim_sites");
    assert_int_equal(DECODE(thread, &e), 0);
    assert_int_equal(e.type, FL_EVENT_FORK);
    assert_int_equal(e.pid, e.parent); /* a thread */
    assert_int_equal(e.tid, 0x5d8f);
    assert_int_equal(DECODE(end, &e), 0);
    assert_int_equal(e.type, FL_EVENT_EXIT);
    assert_int_equal(DECODE(lost, &e), 0);
    assert_int_equal(e.type, FL_EVENT_LOST);
    assert_int_equal(e.lost, 17);
}

/* Each record, in memory that ends where the record does: a sanitizer would see a read past it. */
CASE(what_is_cut_is_refused)
{
    static const struct {
        const uint64_t *record;
        size_t len;
    } each[] = {
        {fault, sizeof(fault)},     {no_stack, sizeof(no_stack)}, {exec, sizeof(exec)},
        {map, sizeof(map)},         {thread, sizeof(thread)},     {lost, sizeof(lost)},
        {protect, sizeof(protect)},
    };
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        for (size_t len = 0; len < each[i].len; len++) {
            struct fl_event e;
            unsigned char *cut = malloc(len + 1);
            assert_non_null(cut);
            memcpy(cut, each[i].record, len);
            assert_int_equal(fl_event_decode(&layout, cut, len, &e), -EPROTO);
            free(cut);
        }
    }
}

/* A stack that says to be longer than the record, a name without an end. */
CASE(sizes_that_lie_are_refused)
{
    struct fl_event e;
    uint64_t copy[sizeof(fault) / sizeof(fault[0])];
    memcpy(copy, fault, sizeof(fault));
    copy[14] = UINT64_MAX;
    assert_int_equal(DECODE(copy, &e), -EPROTO);
    uint64_t named[sizeof(map) / sizeof(map[0])];
    memcpy(named, map, sizeof(map));
    memset(&named[9], 'x', 6 * sizeof(named[0]));
    assert_int_equal(DECODE(named, &e), -EPROTO);
}

CASES_MAIN()
