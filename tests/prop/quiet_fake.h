/* The fake kernel for several threads: it adds no order of its own, and moves real pages. */
#ifndef FL_TESTS_PROP_QUIET_FAKE_H
#define FL_TESTS_PROP_QUIET_FAKE_H

#include "unit/fake_sys.h"

static void install_quiet_fake(void)
{
    fake_install();
    fake.quiet = true;
    fake.pretend_populate = true;
    fl_sys.move_begin = fl_sys_linux.move_begin;
    fl_sys.move_pages = fl_sys_linux.move_pages;
    fl_sys.move_end = fl_sys_linux.move_end;
    fl_sys.find_split = fl_sys_linux.find_split;
    fl_sys.survey = fl_sys_linux.survey;
    fl_sys.advise = fl_sys_linux.advise;
}

#endif
