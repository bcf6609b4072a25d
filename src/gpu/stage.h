/* Staging buffers' end, and what all copies ask first. One folder's inner header. */
#ifndef FL_GPU_STAGE_H
#define FL_GPU_STAGE_H

#include "gpu/pinned.h"
#include "gpu/trace.h"

/* Before the device is closed: its staging buffers, if there are any, go. No lock of an allocation's. */
void fl_stage_end(struct fl_gpu *gpu);
/* 0; -EINPROGRESS: the stream is being captured into a graph, which would copy again whenever it runs; no event says when. push.c */
int fl_gpu_refuse_capture(fl_CUstream stream);

#endif
