/* A library to preload that changes nothing: it stands for an allocator where only LD_PRELOAD
 * counts. */
int fl_victim_preload(void);

int fl_victim_preload(void)
{
    return 1;
}
