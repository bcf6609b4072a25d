#include "fault/sweep.h"

#include <string.h>

enum { SWEEP_END = 200 };

struct fl_extent *held[HELD];
size_t boot_bytes;

void sweep_begin(void)
{
    boot_bytes = usable_in_window();
    memset(held, 0, sizeof held);
}

size_t usable_in_window(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        struct fl_range r = fake.map[i].range;
        bool inside = r.base >= region.space.window.all.base &&
                      r.base < fl_range_end(region.space.window.all);
        sum += inside && fake.map[i].usable ? r.len : 0;
    }
    return sum;
}

static size_t lazy_bytes(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < HELD; i++) {
        sum += held[i] != NULL && held[i]->content == FL_CONTENT_LAZY ? held[i]->len : 0;
    }
    return sum;
}

void assert_tight(void)
{
    assert_settled();
    assert_int_equal(usable_in_window() - boot_bytes,
                     region.held.populated +
                         fl_holes_in(&region.pages.holes, region.space.window.all) -
                         region.pages.reserve.held + lazy_bytes());
}

bool hold_clean(size_t i, size_t len)
{
    held[i] = take_zeroed(len);
    assert_true(held[i] == NULL || is_filled(held[i], 0));
    return held[i] != NULL;
}

void assert_begins(const struct fl_extent *e, size_t len, unsigned char with)
{
    for (size_t at = 0; at < len; at += KIB(1)) {
        assert_int_equal(bytes(e)[at], with);
    }
}

static void sweep_as(const struct operation *op, bool enomem)
{
    unsigned served = 0, refused = 0;

    for (unsigned n = 1;; n++) {
        assert_true(n < SWEEP_END);
        region_begin(&op->config);
        fake.holes = op->config.method == FL_METHOD_REMAP;
        sweep_begin();
        if (op->prepare != NULL) {
            op->prepare();
        }
        fake_fail_at(n, op->slots);
        fake.fail_enomem = enomem;
        bool ok = op->run();
        bool fired = fake_fired();
        enum fake_slot hit = fake.failed;
        fake_fail_at(0, 1);
        assert_tight();
        if (!ok && (!fired || (op->may_refuse >> hit & 1) == 0)) {
            fail_msg("call %u: refused, though slot %d has a fallback or nothing failed", n,
                     (int)hit);
        }
        for (size_t i = 0; i < HELD; i++) {
            if (held[i] != NULL) {
                fill(held[i], 0x5a); /* memory that was handed out is memory */
                give(held[i]);
                held[i] = NULL;
                assert_tight();
            }
        }
        while (fl_region_purge(&region, 0) != 0) {
        }
        assert_int_equal(region.held.populated, 0);
        assert_tight();
        if (!fired) {
            break;
        }
        served += ok;
        refused += !ok;
    }
    print_message("  %u refusals of the kernel's absorbed, %u passed on\n", served, refused);
    assert_true(served >= op->absorbs);
}

void sweep(const struct operation *op, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sweep_as(&op[i], false);
        sweep_as(&op[i], true);
    }
}
