/* Says of itself that it is mimalloc 3.4.3. */
int mi_version(void);

int mi_version(void)
{
    return 30403;
}
