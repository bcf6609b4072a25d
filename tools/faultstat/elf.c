/* Program headers for the loader, the dynamic symbol table for names. Source: elf(5), gelf(3). */
#include "faultstat/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* This program's own: what it is, others are to be. The linker defines it. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* A file that is open. */
struct image {
    int fd;
    Elf *elf;
};

static int open_image(struct image *image, const char *path)
{
    if (elf_version(EV_CURRENT) == EV_NONE) {
        return -ENOEXEC;
    }
    image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (image->fd < 0) {
        return -errno;
    }
    image->elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
    if (image->elf != NULL && elf_kind(image->elf) == ELF_K_ELF) {
        return 0;
    }
    (void)elf_end(image->elf);
    close(image->fd);
    return -ENOEXEC;
}

static void close_image(const struct image *image)
{
    (void)elf_end(image->elf);
    close(image->fd);
}

static bool is_sanitizers(const char *name)
{
    return strcmp(name, "__sanitizer_malloc_hook") == 0 || strcmp(name, "__asan_init") == 0 ||
           strcmp(name, "__hwasan_init") == 0 || strcmp(name, "__tsan_init") == 0 ||
           strcmp(name, "__msan_init") == 0;
}

static void read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *head, struct fl_elf *out)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data != NULL && head->sh_entsize != 0 ? data->d_size / head->sh_entsize : 0;
    GElf_Sym symbol;
    for (size_t i = 0; i < count && gelf_getsym(data, (int)i, &symbol) != NULL; i++) {
        const char *name = elf_strptr(elf, head->sh_link, symbol.st_name);
        if (name != NULL) {
            out->has_malloc |= symbol.st_shndx != SHN_UNDEF && strcmp(name, "malloc") == 0;
            out->has_sanitizer |= is_sanitizers(name);
        }
    }
}

static void read_facts(Elf *elf, struct fl_elf *out)
{
    GElf_Ehdr head;
    GElf_Phdr segment;
    GElf_Shdr table;
    size_t segments = 0;
    if (gelf_getehdr(elf, &head) == NULL) {
        return;
    }
    out->is_other_class = head.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS];
    out->is_other_machine = head.e_machine != __ehdr_start.e_machine;
    if (out->is_other_class || out->is_other_machine) {
        return;
    }
    (void)elf_getphdrnum(elf, &segments);
    for (size_t i = 0; i < segments && gelf_getphdr(elf, (int)i, &segment) != NULL; i++) {
        out->has_loader |= segment.p_type == PT_INTERP;
    }
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) != NULL;) {
        if (gelf_getshdr(s, &table) != NULL && table.sh_type == SHT_DYNSYM) {
            read_symbols(elf, s, &table, out);
        }
    }
}

int fl_elf_read(const char *path, struct fl_elf *out)
{
    struct image image;
    *out = (struct fl_elf){0};
    int rc = open_image(&image, path);
    if (rc == 0) {
        read_facts(image.elf, out);
        close_image(&image);
    }
    return rc;
}

static bool has_text(const GElf_Shdr *section, bool is_names)
{
    bool is_constant = (section->sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) == SHF_ALLOC;
    return is_names ||
           (is_constant && (section->sh_type == SHT_PROGBITS || section->sh_type == SHT_STRTAB));
}

int fl_elf_each_text(const char *path, bool (*take)(void *with, const char *bytes, size_t len),
                     void *with)
{
    struct image image;
    GElf_Shdr head;
    size_t names = 0;
    int rc = open_image(&image, path);
    if (rc != 0) {
        return rc;
    }
    (void)elf_getshdrstrndx(image.elf, &names);
    for (Elf_Scn *s = NULL; (s = elf_nextscn(image.elf, s)) != NULL;) {
        bool is_wanted = gelf_getshdr(s, &head) != NULL && has_text(&head, elf_ndxscn(s) == names);
        const Elf_Data *data = is_wanted ? elf_rawdata(s, NULL) : NULL;
        if (data != NULL && data->d_buf != NULL && take(with, data->d_buf, data->d_size)) {
            break;
        }
    }
    close_image(&image);
    return 0;
}
