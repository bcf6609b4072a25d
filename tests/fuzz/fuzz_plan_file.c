/* The reader of plan files on arbitrary bytes: as they are, and with length and checksum forged to
 * fit. What it lets pass leads nowhere outside, can be written again, and is the same then. */
#include "plan/store/store.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16, SLOTS = ROOM / sizeof(struct fl_slot) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* All plans of a file that passed, in their order, into another. */
static void write_again(const unsigned char *file, size_t len)
{
    static unsigned char again[ROOM], kept[ROOM];
    struct fl_file_plan p;
    struct fl_file f;
    size_t at = FL_FILE_HEAD, found;

    must(fl_file_begin(&f, again, sizeof again));
    while (at < len) {
        uint64_t key, first = 0;
        memcpy(&key, file + at, sizeof key);
        for (found = 0; found != at; first++) { /* each is found by its key */
            must(fl_file_find(file, key, &found, &p) == 0 && found <= at && first < FL_FILE_PLANS);
        }
        must(p.key == key && p.n <= SLOTS && at + fl_file_cost(p.n) <= len);
        must(fl_file_add(&f, &p) == 0);
        at += fl_file_cost(p.n);
    }
    must(at == len && fl_file_end(&f) == len && memcmp(again, file, len) == 0);
    must(fl_file_begin(&f, kept, len) && fl_file_keep(&f, file, 1) == 0);
    must(fl_file_check(kept, fl_file_end(&f)) == 0);
    found = 0;
    must(fl_file_find(kept, 1, &found, &p) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* exactly as long as it says it is, so that ASan sees what lies beyond */
    unsigned char *file = malloc(size > 0 ? size : 1);
    size_t length;

    must(file != NULL);
    memcpy(file, data, size);
    int rc = fl_file_check(file, size);
    must(fl_file_why(rc)[0] != '\0');
    if (rc == 0 && fl_file_length(file, size, &length) == 0 && size <= ROOM) {
        write_again(file, length);
    }
    if (size >= FL_FILE_HEAD && size <= ROOM) {
        uint64_t len = size & ~(size_t)7, sum;
        memcpy(file, "FLPLANS\n\3\0\0\0", 12);
        memcpy(file + 16, &len, sizeof len);
        sum = fl_file_checksum(file, len);
        memcpy(file + FL_FILE_CHECKSUM_AT, &sum, sizeof sum);
        if (fl_file_check(file, size) == 0) {
            write_again(file, len);
        }
    }
    free(file);
    return 0;
}
