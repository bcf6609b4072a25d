/* FL_FLOOR(name, version): `name` within one file is that version of glibc's, by a jump, where the
 * linker alone would take the newest. */
#ifdef __x86_64__
#define FL_FLOOR_JUMP(old) "jmp *" old "@GOTPCREL(%rip)\n"
#define FL_FLOOR_VERSION(version) "GLIBC_" version
#else
#define FL_FLOOR_JUMP(old)                                                                         \
    "adrp x16, :got:" old "\n"                                                                     \
    "ldr x16, [x16, :got_lo12:" old "]\n"                                                          \
    "br x16\n"
#define FL_FLOOR_VERSION(version) "GLIBC_2.17" /* the first that arm64 has */
#endif

#define FL_FLOOR(name, version)                                                                    \
    __asm__(".symver floor_" #name ", " #name "@" FL_FLOOR_VERSION(                                \
        version) "\n"                                                                              \
                 ".text\n"                                                                         \
                 ".globl " #name "\n"                                                              \
                 ".hidden " #name "\n"                                                             \
                 ".type " #name ", %function\n" #name ":\n"                                        \
                 ".cfi_startproc\n" FL_FLOOR_JUMP("floor_" #name) ".cfi_endproc\n"                 \
                                                                  ".size " #name ", . - " #name    \
                                                                  "\n");
