/* A program whose steps are planned, with a mirror of its plan: what it mallocs in them has a twin
 * on the device. The environment names a fake driver. */
#include "mirror.h"
#include "worker.h"

#include "gpu/fake_cuda.h"

static const struct fake_cuda *fake;

static void *as_input(size_t n, unsigned char value)
{
    char *p = taken(n);

    (void)CALL(fl_gpu_mirror_input)(p);
    memset(p, value, n);
    return p;
}

struct step {
    unsigned char value;
    struct fl_gpu_mirror *m;
    uint64_t seen; /* inputs that were pushed, and are there */
};

static void push_and_look(struct step *s, const char *in[2], const size_t len[2])
{
    const struct fl_gpu_mirror_map *map = CALL(fl_gpu_mirror_map)(s->m);
    void *base = NULL;
    int rc = CALL(fl_gpu_mirror_begin)(s->m, &base);

    CHECK(rc == 0);
    CHECK(CALL(fl_gpu_mirror_push)(s->m, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        uint64_t twin = fl_gpu_twin(map, in[i]);
        CHECK(twin != 0);
        s->seen += fake->holds(twin, len[i], s->value);
    }
}

static void one_step(struct fl_step_context *c, struct step *s)
{
    const size_t len[2] = {300 * KIB, 2 * MIB};

    CHECK(CALL(fl_step_begin)(c) == 0);
    const char *in[2] = {as_input(len[0], s->value), as_input(len[1], s->value)};
    char *work = malloc(5 * MIB), *more = calloc(1, 700 * KIB);
    CHECK(work != NULL && more != NULL);
    memset(work, 1, 5 * MIB);
    if (s->m != NULL) {
        push_and_look(s, in, len);
        CHECK(madvise(work, 64 * KIB, MADV_DONTNEED) == -1 && errno == EBUSY);
        CHECK(fl_gpu_twin(CALL(fl_gpu_mirror_map)(s->m), work) != 0);
        CHECK(CALL(fl_gpu_mirror_pull_range)(s->m, work, 1 * MIB, NULL) == 0);
    }
    free(work);
    free(more);
    free((void *)(uintptr_t)in[0]);
    free((void *)(uintptr_t)in[1]);
    CHECK(CALL(fl_step_end)(c) == 0);
}

static int make_of_plan(struct fl_gpu *gpu, struct fl_step_context *c, struct fl_gpu_mirror **out)
{
    struct fl_gpu_mirror_options o;

    CALL(fl_gpu_mirror_defaults)(&o);
    o.context = c;
    return CALL(fl_gpu_mirror_create)(gpu, &o, out);
}

static void uses_blocks(char *p)
{
    (void)p;
    free(malloc(3 * MIB));
    storm();
}

int main(void)
{
    void *library = dlopen(getenv("FAULTLESS_GPU_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    struct fl_step_context *c = NULL;
    struct fl_gpu_mirror *m = NULL, *second = NULL;
    struct step s = {.value = 1};
    struct fl_gpu *gpu = NULL;
    int rc = -ENODATA;

    CHECK(library != NULL);
    fake = dlsym(library, "fake_cuda");
    CHECK(CALL(fl_gpu_open)(0, &gpu) == 0);
    CHECK(CALL(fl_step_new)(&c) == 0);
    for (int i = 0; i < 60; i++, s.value++) { /* until there is a plan that knows of the inputs */
        one_step(c, &s);
        wait_until_worker_sleeps();
    }
    rc = make_of_plan(gpu, c, &m);
    if (rc != 0) {
        dprintf(2, "%d: %s\n", rc, CALL(fl_gpu_error)());
    }
    CHECK(rc == 0);
    CHECK(make_of_plan(gpu, c, &second) == -EBUSY);
    s.m = m;
    for (int i = 0; i < 40; i++, s.value++) {
        one_step(c, &s);
        if (i % 10 == 0) {
            malloc_trim(0);
            CHECK(ends_by(uses_blocks, NULL) == 0);
        }
    }
    const char *report = fake->report();
    printf("seen %lu\n", (unsigned long)s.seen);
    CHECK(report[0] == '\0');
    CHECK(CALL(fl_gpu_mirror_destroy)(m) == 0);
    CHECK(fake->registered() == 0);
    s.m = NULL;
    for (int i = 0; i < 10; i++) {
        one_step(c, &s);
    }
    malloc_trim(0);
    CHECK(CALL(fl_step_free)(c) == 0);
    CHECK(CALL(fl_gpu_close)(gpu) == 0);
    return 0;
}
