#include "faultstat/record/module.h"

#include "faultstat/record/demangle.h"
#include "faultstat/record/event.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t fl_modules_get(struct fl_modules *modules, const char *path)
{
    for (size_t i = 1; i < modules->count; i++) {
        if (strcmp(modules->module[i].path, path) == 0) {
            return (uint32_t)i;
        }
    }
    if (modules->count + 1 >= modules->capacity) {
        size_t capacity = modules->capacity != 0 ? modules->capacity * 2 : 64;
        struct fl_module *grown = reallocarray(modules->module, capacity, sizeof(*grown));
        if (grown == NULL) {
            return 0;
        }
        modules->module = grown;
        modules->capacity = capacity;
    }
    if (modules->count == 0) {
        modules->module[modules->count++] = (struct fl_module){.is_opened = true}; /* M1 */
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return 0;
    }
    modules->module[modules->count] = (struct fl_module){.path = copy, .fd = -1};
    return (uint32_t)modules->count++;
}

uint32_t fl_modules_get_jit(struct fl_modules *modules, pid_t pid)
{
    char path[40];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
    uint32_t number = fl_modules_get(modules, path);
    if (number != 0) {
        modules->module[number].is_jit = true;
    }
    return number;
}

static void open_elf(struct fl_module *module)
{
    static char *no_path;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &no_path,
    };
    GElf_Addr bias = 0;
    module->dwfl = dwfl_begin(&callbacks);
    if (module->dwfl == NULL) {
        return;
    }
    module->dw = dwfl_report_offline(module->dwfl, module->path, module->path, -1);
    dwfl_report_end(module->dwfl, NULL, NULL);
    if (module->dw == NULL || dwfl_module_getelf(module->dw, &bias) == NULL) {
        dwfl_end(module->dwfl);
        module->dwfl = NULL;
        return;
    }
    module->bias = bias;
    module->cfi = dwfl_module_eh_cfi(module->dw, &module->cfi_bias);
}

static int compare_jit(const void *a, const void *b)
{
    const struct fl_jit_name *x = a;
    const struct fl_jit_name *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Lines of a perf map: START LEN NAME, numbers in hexadecimal. */
static void open_jit(struct fl_module *module, time_t began)
{
    FILE *file = fopen(module->path, "re");
    struct stat status;
    char *line = NULL;
    size_t room = 0;
    if (file != NULL && (fstat(fileno(file), &status) != 0 || status.st_mtime < began)) {
        fclose(file); /* left by a process that had this number before */
        return;
    }
    while (file != NULL && getline(&line, &room, file) > 0) {
        char *at = line;
        struct fl_jit_name name = {.start = strtoull(at, &at, 16)};
        name.len = strtoull(at, &at, 16);
        at += strspn(at, " ");
        at[strcspn(at, "\n")] = '\0';
        struct fl_jit_name *grown =
            reallocarray(module->jit, module->jit_count + 1, sizeof(*grown));
        if (name.len == 0 || grown == NULL || (name.name = strdup(at)) == NULL) {
            module->jit = grown != NULL ? grown : module->jit;
            continue;
        }
        module->jit = grown;
        module->jit[module->jit_count++] = name;
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    if (module->jit_count != 0) {
        qsort(module->jit, module->jit_count, sizeof(*module->jit), compare_jit);
    }
}

static struct fl_module *opened(struct fl_modules *modules, uint32_t number)
{
    if (number == 0 || number >= modules->count) {
        return NULL;
    }
    struct fl_module *module = &modules->module[number];
    if (!module->is_jit && !module->is_opened) {
        module->is_opened = true;
        open_elf(module);
    }
    return module;
}

uint64_t fl_modules_address(struct fl_modules *modules, uint32_t number, uint64_t offset)
{
    struct fl_module *module = opened(modules, number);
    GElf_Addr bias;
    Elf *elf =
        module != NULL && module->dwfl != NULL ? dwfl_module_getelf(module->dw, &bias) : NULL;
    size_t count = 0;
    if (elf == NULL || elf_getphdrnum(elf, &count) != 0) {
        return offset;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr head;
        if (gelf_getphdr(elf, (int)i, &head) != NULL && head.p_type == PT_LOAD &&
            offset >= head.p_offset && offset - head.p_offset < head.p_filesz) {
            return offset - head.p_offset + head.p_vaddr;
        }
    }
    return offset;
}

#ifdef __x86_64__
/* Our register for one of DWARF's on x86-64; -1: not kept. */
static int register_of(uint64_t dwarf)
{
    static const int8_t ours[] = {-1,
                                  -1,
                                  -1,
                                  FL_REG_BX,
                                  -1,
                                  -1,
                                  FL_REG_BP,
                                  FL_REG_SP,
                                  -1,
                                  -1,
                                  -1,
                                  -1,
                                  FL_REG_R12,
                                  FL_REG_R12 + 1,
                                  FL_REG_R12 + 2,
                                  FL_REG_R12 + 3,
                                  FL_REG_IP};
    return dwarf < sizeof(ours) ? ours[dwarf] : -1;
}

/* The register of an operation "register + offset", and the offset; -1: it is none. */
static int read_register(const Dwarf_Op *op, int32_t *offset)
{
    bool is_any = op->atom == DW_OP_bregx;
    if (!is_any && (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)) {
        return -1;
    }
    *offset = (int32_t)(is_any ? op->number2 : op->number);
    return register_of(is_any ? op->number : (uint64_t)op->atom - DW_OP_breg0);
}

/* The canonical frame address: register + offset, or what lies there. */
static bool read_base(Dwarf_Frame *frame, struct fl_row *row)
{
    Dwarf_Op *op;
    size_t count;
    if (dwarf_frame_cfa(frame, &op, &count) != 0 || count < 1 || count > 2 ||
        (count == 2 && op[1].atom != DW_OP_deref)) {
        return false;
    }
    int base = read_register(&op[0], &row->offset);
    row->is_deref = count == 2;
    row->base = (uint8_t)base;
    return base >= 0;
}

/* Where one register of the caller's is, by its number in DWARF. */
static struct fl_saved read_saved(Dwarf_Frame *frame, int dwarf)
{
    struct fl_saved saved = {.base = FL_BASE_LOST};
    Dwarf_Op memory[3];
    Dwarf_Op *op;
    size_t count;
    if (dwarf_frame_register(frame, dwarf, memory, &op, &count) != 0) {
        return saved;
    }
    if (count == 0) {
        saved.base = op == NULL ? FL_BASE_SAME : FL_BASE_LOST;
    } else if (op[0].atom == DW_OP_call_frame_cfa && count == 1) {
        saved.base = FL_BASE_FRAME;
    } else if (op[0].atom == DW_OP_call_frame_cfa && count == 2 &&
               op[1].atom == DW_OP_plus_uconst) {
        saved = (struct fl_saved){FL_BASE_FRAME, (int32_t)op[1].number};
    } else if (op[0].atom == DW_OP_call_frame_cfa && count == 2) {
        int base = read_register(&op[1], &saved.offset); /* it leaves the frame address aside */
        saved.base = (int8_t)(base >= 0 ? base : FL_BASE_LOST);
    }
    return saved;
}

struct fl_row fl_modules_row(struct fl_modules *modules, uint32_t number, uint64_t address)
{
    static const int kept[] = {3, 6, 12, 13, 14, 15}; /* those that calls preserve */
    struct fl_row row = {0};
    Dwarf_Frame *frame;
    struct fl_module *module = opened(modules, number);
    if (module == NULL || module->cfi == NULL ||
        dwarf_cfi_addrframe(module->cfi, address + module->bias - module->cfi_bias, &frame) != 0) {
        return row;
    }
    bool has_base = read_base(frame, &row);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        row.saved[register_of((uint64_t)kept[i])] = read_saved(frame, kept[i]);
    }
    row.saved[FL_REG_SP].base = FL_BASE_SAME;
    row.saved[FL_REG_IP] = read_saved(frame, 16);
    row.is_last = has_base && row.saved[FL_REG_IP].base == FL_BASE_LOST;
    row.is_known = has_base && row.saved[FL_REG_IP].base == FL_BASE_FRAME;
    free(frame);
    return row;
}
#else
struct fl_row fl_modules_row(struct fl_modules *modules, uint32_t number, uint64_t address)
{
    (void)modules, (void)number, (void)address;
    return (struct fl_row){0}; /* the kernel follows frame pointers */
}
#endif

bool fl_modules_follows_call(struct fl_modules *modules, uint32_t number, uint64_t offset)
{
    enum { FL_LONGEST = 7, FL_CALL = 0xe8, FL_GROUP = 0xff };
    static const uint8_t len[] = {2, 3, 6, 7}; /* of calls by register or memory */
    unsigned char code[FL_LONGEST];
    struct fl_module *module = opened(modules, number);
    if (module == NULL || module->is_jit || offset < FL_LONGEST) {
        return false;
    }
    if (module->fd < 0) {
        module->fd = open(module->path, O_RDONLY | O_CLOEXEC);
    }
    if (module->fd < 0 ||
        pread(module->fd, code, FL_LONGEST, (off_t)offset - FL_LONGEST) != (ssize_t)FL_LONGEST) {
        return false;
    }
    bool is_call = code[FL_LONGEST - 5] == FL_CALL;
    for (size_t i = 0; i < sizeof(len); i++) {
        const unsigned char *at = code + FL_LONGEST - len[i];
        is_call = is_call || (at[0] == FL_GROUP && (at[1] & 0x38) == 0x10);
    }
    return is_call;
}

static const char *jit_name(struct fl_module *module, time_t began, uint64_t address)
{
    if (!module->is_opened) {
        module->is_opened = true; /* at the end of the run: the program writes it all along */
        open_jit(module, began);
    }
    size_t low = 0;
    size_t high = module->jit_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (module->jit[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || address - module->jit[low - 1].start >= module->jit[low - 1].len) {
        return NULL;
    }
    return module->jit[low - 1].name;
}

const char *fl_modules_name(struct fl_modules *modules, uint32_t number, uint64_t address)
{
    struct fl_module *module = opened(modules, number);
    if (module == NULL) {
        return NULL;
    }
    if (module->is_jit) {
        return jit_name(module, modules->began, address);
    }
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char *name = module->dwfl == NULL
                           ? NULL
                           : dwfl_module_addrinfo(module->dw, address + module->bias, &offset,
                                                  &symbol, NULL, NULL, NULL);
    if (name == NULL || (symbol.st_size != 0 && offset >= symbol.st_size)) {
        return NULL; /* the nearest symbol is another function's */
    }
    static char plain[256];
    size_t len = strcspn(name, "@"); /* a version may follow */
    if (name[len] != '\0' && len < sizeof(plain)) {
        memcpy(plain, name, len);
        plain[len] = '\0';
        name = plain;
    }
    return fl_demangle(name);
}

const char *fl_modules_line(struct fl_modules *modules, uint32_t number, uint64_t address)
{
    static char text[256];
    struct fl_module *module = opened(modules, number);
    if (module == NULL || module->is_jit || module->dwfl == NULL) {
        return NULL;
    }
    int line = 0;
    Dwfl_Line *at = dwfl_module_getsrc(module->dw, address + module->bias);
    const char *file = at != NULL ? dwfl_lineinfo(at, NULL, &line, NULL, NULL, NULL) : NULL;
    if (file == NULL) {
        return NULL;
    }
    const char *slash = strrchr(file, '/');
    snprintf(text, sizeof(text), "%s:%d", slash != NULL ? slash + 1 : file, line);
    return text;
}

const char *fl_modules_file(const struct fl_modules *modules, uint32_t number)
{
    if (number == 0 || number >= modules->count) {
        return "?";
    }
    const char *slash = strrchr(modules->module[number].path, '/');
    return slash != NULL ? slash + 1 : modules->module[number].path;
}

void fl_modules_clear(struct fl_modules *modules)
{
    for (size_t i = 1; i < modules->count; i++) {
        struct fl_module *module = &modules->module[i];
        for (size_t j = 0; j < module->jit_count; j++) {
            free(module->jit[j].name);
        }
        free(module->jit);
        free(module->path);
        if (module->fd >= 0) {
            close(module->fd);
        }
        if (module->dwfl != NULL) {
            dwfl_end(module->dwfl);
        }
    }
    free(modules->module);
    memset(modules, 0, sizeof(*modules));
}
