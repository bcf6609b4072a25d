/* Program headers for the loader, the dynamic symbol table for names. Source: elf(5). Every offset
 * is checked: the file may be anything. */
#include "faultstat/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const unsigned char *base;
    size_t len;
};

/* `count` things of `size` bytes at `offset`, aligned to 8; NULL when the file does not hold
 * them. */
static const void *at(const struct image *image, uint64_t offset, uint64_t count, uint64_t size)
{
    bool is_inside = offset <= image->len && (size == 0 || count <= (image->len - offset) / size);
    return is_inside && offset % 8 == 0 ? image->base + offset : NULL;
}

static bool is_name(const struct image *image, const Elf64_Shdr *names, uint32_t offset,
                    const char *wanted)
{
    size_t len = strlen(wanted) + 1;
    return names->sh_offset <= image->len && names->sh_size <= image->len - names->sh_offset &&
           offset <= names->sh_size && len <= names->sh_size - offset &&
           memcmp(image->base + names->sh_offset + offset, wanted, len) == 0;
}

static void read_symbols(const struct image *image, const Elf64_Shdr *section, size_t sections,
                         const Elf64_Shdr *table, struct fl_elf *out)
{
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbol = at(image, table->sh_offset, count, sizeof(*symbol));
    if (symbol == NULL || table->sh_link >= sections) {
        return;
    }
    const Elf64_Shdr *names = &section[table->sh_link];
    for (uint64_t i = 0; i < count; i++) {
        bool is_defined = symbol[i].st_shndx != SHN_UNDEF;
        out->has_malloc |= is_defined && is_name(image, names, symbol[i].st_name, "malloc");
        out->has_sanitizer |= is_name(image, names, symbol[i].st_name, "__sanitizer_malloc_hook");
    }
}

static int read_image(const struct image *image, struct fl_elf *out)
{
    const Elf64_Ehdr *head = at(image, 0, 1, sizeof(*head));
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
        return -ENOEXEC;
    }
    if (head->e_ident[EI_CLASS] != ELFCLASS64) {
        out->is_other_class = true;
        return 0;
    }
    const Elf64_Phdr *segment = at(image, head->e_phoff, head->e_phnum, sizeof(*segment));
    for (size_t i = 0; segment != NULL && i < head->e_phnum; i++) {
        out->has_loader |= segment[i].p_type == PT_INTERP;
    }
    const Elf64_Shdr *section = at(image, head->e_shoff, head->e_shnum, sizeof(*section));
    for (size_t i = 0; section != NULL && i < head->e_shnum; i++) {
        if (section[i].sh_type == SHT_DYNSYM) {
            read_symbols(image, section, head->e_shnum, &section[i], out);
        }
    }
    return 0;
}

int fl_elf_read(const char *path, struct fl_elf *out)
{
    struct stat what;
    *out = (struct fl_elf){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int rc = fstat(fd, &what) != 0 ? -errno : what.st_size <= 0 ? -ENOEXEC : 0;
    void *base =
        rc == 0 ? mmap(NULL, (size_t)what.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (rc == 0 && base == MAP_FAILED) {
        rc = -errno;
    }
    close(fd);
    if (rc == 0) {
        struct image image = {base, (size_t)what.st_size};
        rc = read_image(&image, out);
        munmap(base, (size_t)what.st_size);
    }
    return rc;
}
