/* What PyTorch's pluggable allocator asks of the CUDA runtime before it calls an allocator: there
 * is a device, it is number 0, of compute capability 8.8. The runtime itself does not run on the
 * fake driver. Preloaded. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cudaGetDevice(int *device);
EXPORT int cudaGetDeviceCount(int *count);
EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device);

int cudaGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cudaGetDeviceCount(int *count)
{
    *count = 1;
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 8;
    return 0;
}

/* And before it looks at a stream. */
EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return 0;
}
