/* Environment names of others: for options of ours, which win, and for what has no other name
 * (others.def).
 *
 * Sources: DeepRec's documentation of its memory optimisation on CPUs; MXNet's env_var.md, and what
 * its code reads instead; PaddlePaddle's flags.cc and the page "memory management flags" of its
 * guide. */
#include "core/options.h"

#include <errno.h>
#include <string.h>

enum how {
    PLAIN,       /* a number without unit */
    MIB,         /* a number of MiB */
    REAL,        /* a decimal number; outside of our bounds: the bound */
    SWITCH,      /* a boolean, as gflags has them */
    WORD,        /* one of ours, in whatever case */
    UNPOOLED,    /* a boolean; true: the strategy unpooled */
    AUTO_GROWTH, /* a boolean: the strategy auto_growth, or naive_best_fit */
    STEPS,       /* a boolean; false: off */
};

/* Of those for the same option the first counts. */
static const struct alias {
    const char *name;
    enum fl_option_id id;
    enum how how;
} table[] = {
    {"START_STATISTIC_STEP", FL_OPTION_plan_start, PLAIN},
    {"STABLE_STATISTIC_STEP", FL_OPTION_plan_stable, PLAIN},
    {"MAX_STATISTIC_STEP", FL_OPTION_plan_max, PLAIN},
    {"ENABLE_MEMORY_OPTIMIZATION", FL_OPTION_steps, STEPS},
    /* The code of MXNet reads the first of these two, its documentation names the second. */
    {"MXNET_USE_NAIVE_STORAGE_MANAGER", FL_OPTION_gpu_strategy, UNPOOLED},
    {"MXNET_USE_NAIVE_STORAGE_MANAGERS", FL_OPTION_gpu_strategy, UNPOOLED},
    {"MXNET_USE_NAIVE_STORAGE_MANAGER", FL_OPTION_gpu_pinned_strategy, UNPOOLED},
    {"MXNET_USE_NAIVE_STORAGE_MANAGERS", FL_OPTION_gpu_pinned_strategy, UNPOOLED},
    {"MXNET_GPU_MEM_POOL_TYPE", FL_OPTION_gpu_strategy, WORD},
    {"MXNET_CPU_PINNED_MEM_POOL_TYPE", FL_OPTION_gpu_pinned_strategy, WORD},
    /* Likewise. */
    {"MXNET_GPU_POOL_PAGE_SIZE", FL_OPTION_gpu_page, PLAIN},
    {"MXNET_GPU_MEM_POOL_PAGE_SIZE", FL_OPTION_gpu_page, PLAIN},
    {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", FL_OPTION_gpu_large_round, PLAIN},
    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", FL_OPTION_gpu_cutoff, PLAIN},
    {"MXNET_GPU_MEM_POOL_RESERVE", FL_OPTION_gpu_reserve, PLAIN},
    {"FLAGS_allocator_strategy", FL_OPTION_gpu_strategy, WORD},
    {"FLAGS_use_auto_growth_pinned_allocator", FL_OPTION_gpu_pinned_strategy, AUTO_GROWTH},
    {"FLAGS_fraction_of_gpu_memory_to_use", FL_OPTION_gpu_fraction, REAL},
    {"FLAGS_fraction_of_cuda_pinned_memory_to_use", FL_OPTION_gpu_pinned_fraction, REAL},
    {"FLAGS_initial_gpu_memory_in_mb", FL_OPTION_gpu_initial, MIB},
    {"FLAGS_reallocate_gpu_memory_in_mb", FL_OPTION_gpu_regrow, MIB},
    {"FLAGS_auto_growth_chunk_size_in_mb", FL_OPTION_gpu_chunk, MIB},
    {"FLAGS_gpu_memory_limit_mb", FL_OPTION_gpu_limit, MIB},
    {"FLAGS_eager_delete_tensor_gb", FL_OPTION_gpu_gc_gb, REAL},
    {"FLAGS_memory_fraction_of_eager_deletion", FL_OPTION_gpu_gc_fraction, REAL},
    {"FLAGS_fast_eager_deletion_mode", FL_OPTION_gpu_fast_gc, SWITCH},
};
enum { ALIASES = sizeof table / sizeof table[0] };

static void complain(struct fl_options *o, const char *entry)
{
    char line[200];
    struct fl_text t = fl_text_on(line, sizeof line);

    o->nbad++;
    if (o->value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_text_str(&t, entry);
        fl_text_str(&t, " is not understood; ignored");
        fl_say(line);
    }
}

/* In small letters. 1 or 0; -EINVAL. */
static int parse_switch(const char *s)
{
    if (strcmp(s, "t") == 0 || strcmp(s, "y") == 0) {
        return 1;
    }
    if (strcmp(s, "f") == 0 || strcmp(s, "n") == 0) {
        return 0;
    }
    return fl_parse_bool(s);
}

/* MXNet's three pools, PaddlePaddle's two. */
static int parse_strategy(const struct alias *a, const char *s, uint64_t *out)
{
    static const char *const mxnet[] = {"naive", "round", "unpooled"};
    static const char *const paddle[] = {"naive_best_fit", "auto_growth"};
    bool is_mxnet = a->name[0] == 'M';
    const char *const *words = is_mxnet ? mxnet : paddle;

    for (size_t i = 0; i < (is_mxnet ? 3 : 2); i++) {
        if (strcmp(s, words[i]) == 0) {
            return fl_option_parse(a->id, s, out);
        }
    }
    return -EINVAL;
}

static int parse_mib(enum fl_option_id id, const char *s, uint64_t *out)
{
    char with_unit[32];
    struct fl_text t = fl_text_on(with_unit, sizeof with_unit);
    uint64_t mib;

    if (fl_parse_u64(s, &mib) != 0) {
        return -EINVAL;
    }
    fl_text_u64(&t, mib);
    fl_text_str(&t, "M");
    return fl_option_parse(id, with_unit, out);
}

/* Where we are bounded and they are not: the bound. */
static int parse_real(enum fl_option_id id, const char *s, uint64_t *out)
{
    int rc = fl_option_parse(id, s, out);

    if (rc == -ERANGE) {
        return fl_option_parse(id, "1", out);
    }
    if (rc == -EINVAL && *s == '-' && fl_parse_millionths(s + 1, out) == 0) {
        return fl_option_parse(id, "0", out);
    }
    return rc;
}

static int parse_plain(enum fl_option_id id, const char *s, uint64_t *out)
{
    if (fl_parse_u64(s, out) != 0) {
        return -EINVAL;
    }
    return fl_option_parse(id, id == FL_OPTION_plan_max && *out < 2 ? "2" : s, out);
}

/* The words that stand for true and for false, of the option; NULL: that says nothing of it. */
static int parse_chosen(enum fl_option_id id, int on, const char *yes, const char *no,
                        uint64_t *out)
{
    const char *word = on > 0 ? yes : no;

    if (on < 0) {
        return on;
    }
    return word == NULL ? -ENOENT : fl_option_parse(id, word, out);
}

/* 0 and the value; -ENOENT: it says nothing of the option; else it is not understood. */
static int parse(const struct alias *a, const char *value, uint64_t *out)
{
    char low[24]; /* nothing longer is understood */
    struct fl_text t = fl_text_on(low, sizeof low);

    for (; *value != '\0' && t.len < sizeof low - 1; value++) {
        char c[2] = {(char)(*value >= 'A' && *value <= 'Z' ? *value - 'A' + 'a' : *value), '\0'};
        fl_text_str(&t, c);
    }
    if (*value != '\0') {
        return -EINVAL;
    }
    switch (a->how) {
    case PLAIN:
        return parse_plain(a->id, low, out);
    case MIB:
        return parse_mib(a->id, low, out);
    case REAL:
        return parse_real(a->id, low, out);
    case WORD:
        return parse_strategy(a, low, out);
    case SWITCH:
        return parse_chosen(a->id, parse_switch(low), "1", "0", out);
    case UNPOOLED:
        return parse_chosen(a->id, parse_switch(low), "unpooled", NULL, out);
    case AUTO_GROWTH:
        return parse_chosen(a->id, parse_switch(low), "auto_growth", "naive_best_fit", out);
    case STEPS:
        return parse_chosen(a->id, parse_switch(low), NULL, "off", out);
    }
    return -EINVAL;
}

const char *fl_option_alias(const struct fl_options *o, enum fl_option_id id)
{
    fl_assert(o->alias[id] != 0);
    return table[o->alias[id] - 1].name;
}

static void read_entry(struct fl_options *o, const char *entry)
{
    size_t len = strcspn(entry, "=");
    bool bad = false;

    for (size_t i = 0; i < ALIASES; i++) {
        const struct alias *a = &table[i];
        uint64_t v;
        if (strncmp(entry, a->name, len) != 0 || a->name[len] != '\0' || entry[len] != '=' ||
            o->origin[a->id] == FL_ORIGIN_ENVIRONMENT ||
            (o->alias[a->id] != 0 && o->alias[a->id] <= i)) {
            continue;
        }
        int rc = parse(a, entry + len + 1, &v);
        if (rc == 0) {
            o->value[a->id] = v;
            o->origin[a->id] = FL_ORIGIN_ALIAS;
            o->alias[a->id] = (uint8_t)(i + 1);
        }
        bad |= rc != 0 && rc != -ENOENT;
    }
    if (bad) {
        complain(o, entry);
    }
}

void fl_options_aliases(struct fl_options *o, char *const env[])
{
    for (; env != NULL && *env != NULL; env++) {
        if (strchr("SMEF", **env) != NULL && **env != '\0') {
            read_entry(o, *env);
        }
    }
}
