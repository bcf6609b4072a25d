// A library that replaces the basic operators: of the program that is linked to it (made, live), or
// of itself alone where a C program loads it (plugin_run: 3 where all is well).
#include "own_new.h"
#include "use_new.h"

long made()
{
    return own_made;
}
long live()
{
    return own_live;
}

extern "C" int plugin_run(void)
{
    long before = own_live, was = own_made;
    use_every_form();
    std::printf("made %ld live %ld\n", own_made - was, own_live - before);
    std::fflush(stdout);
    return 3;
}
