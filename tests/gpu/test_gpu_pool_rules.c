/* The rules of the pools, S1 to S9 of docs/gpu.md: who may have what another stream freed, and
 * when. What is tried when memory is out. What MXNet's and PaddlePaddle's pools do, to the byte:
 * numbers that were worked out by hand. */
#include "gpu/pool_script.h"

ROWS(streams,
     {"S1: the legacy stream has two names", "A", NULL, ONCE,
      "x=L64K -xl y=L64K y~x driver_allocs=1 cross_stream_hits=0"},
     {"S3: a stream is in order after itself", "A", NULL, EACH,
      "+a x=a1M ^a .xa -xa y=a1M y~x .ya ?ya events=0"},
     {"S4: another's is had when it is done, and not before", "A", NULL, EACH,
      "x=a2M ^a .xa -xa y=b2M .yb _a z=b2M .zb ?zb cross_stream_hits=1 waits=0 implicit_syncs=0"},
     {"S4: one event covers many frees", "N", NULL, ONCE,
      "+a x=a4K y=a4K z=a4K -xa -ya -za _a t=b4K _a u=b4K v=b4K cross_stream_hits=3 events=1"},
     {"S5: what another stream uses waits for it", "A", NULL, EACH,
      "+a x=a1M .xa _a @xb @xb ^b .xb -xa events=1 y=a1M .ya _b z=a1M .za x|yz ?za"},
     {"S6: a handle used again is another stream", "A", NULL, EACH,
      "x=d1M ^d .xd -xd <d y=a1M .ya ?ya quarantined=0"},
     {"S6: a stream that has gone is not asked", "A", NULL, ONCE,
      "x=a1M y=b2M .xa -xa <a z=b1M .zb K T"},
     {"S6: nor is its refusal the pool's end", "A", NULL, ONCE, "!cuStreamGetId:709 x$a1M x=b1M"},
     {"S5, S6: a recorded stream goes before the block", "A", NULL, EACH,
      "x=a1M .xa _a @xd ^d .xd >d <d -xa y=a1M .ya _a @yd ^d .yd >d <d -ya _ K pending=0 "
      "x=a1M .xa _a @xd ^d .xd >d <d -xa _ K pending=0 held<2M"},
     {"S3: it is said to last, and is retired", "A", NULL, ONCE,
      "+a x=a1M -xa events=0 >a events=1"},
     {"S6: it goes unsaid when all is freed", "A", NULL, EACH,
      "x=d1M .xd -xd <d x=d1M .xd -xd <d x=d1M .xd -xd <d >a events>3 quarantined=0"},
     {"S6: or with a word", "A", NULL, EACH,
      "x=d1M .xd -xd >d <d x=d1M .xd -xd >d <d x=d1M .xd -xd >d <d >a events>3 quarantined=0"},
     {"fast_eager_deletion_mode=False: kernels are waited for", "A", "slow=1", LATE,
      "x=a1M ^a .xa -xa y=a1M y#x _a z=a1M z~x"},
     {"so they are with garbage", "A", "slow=1 garbage=1", LATE,
      "x=a1M ^a .xa -xa y=a1M y#x _a z=a1M z~x"}, )

ROWS(chunks,
     {"S7: neighbours of two streams stay apart until both are safe", "A", "chunk=2M", ONCE,
      "x=a1M y=a1M held=2M .xa .yb -xa -yb _a _b z=a2M held=2M"},
     {"all that touches becomes one; b waits for a", "B", "initial=8M regrow=8M limit=8M", EACH,
      "p=b64K -pb v=a1M w=a2560K x=a1M y=a2560K z=a1M w~v+1M z~y+2560K -va -xa -za _ T ^a .wa -wa "
      "-ya "
      "s=b2M t=b5M driver_allocs=1"},
     {"streams share a chunk, and the pool ends", "B", "initial=8M regrow=8M", EACH,
      "w=a2560K x=a1M y=a2560K z=a2M ^a .wa -wa s=b2200K .ya -ya t=c2200K -sa -ta -xa -za"},
     {"freed without its stream it goes too", "B", "initial=8M regrow=8M", EACH,
      "x=a1M y=b1M ^a .xa driver_allocs=1 %xa %yb"},
     {"an odd limit gives no odd address", "AB", "limit=10M+100 chunk=20M initial=20M regrow=20M",
      ONCE, "x=L1000 &x y=L1000 &y z=L1000 &z held<10M+100"},
     {"what the driver gives beyond the request serves the next", "A", NULL, ONCE,
      "x=L1536K y=L512K driver_allocs=1 held=2M used=2M z=L512K held=2M+512K"},
     {"a limit cuts to whole pages", "A", "limit=5M chunk=8M", ONCE, "x=L256K retries=0 held=4M"},
     {"a limit cuts to whole pages", "A", "limit=3M chunk=8M", ONCE, "x=L256K retries=0 held=2M"},
     {"or below one", "A", "limit=1536K chunk=8M", ONCE, "x=L256K retries=0 held=1M-256"},
     {"where slabs do not grow, a small block has a part of a chunk", "A", "chunk=0 limit=8M", ONCE,
      "x=L8M -xL x=L7M y=L256 held=8M"},
     {"peaks begin anew", "A", NULL, ONCE,
      "x=L4M y=L2M -xL occupied_peak_bytes=6M P occupied_peak_bytes=2M -yL T held_peak_bytes>6M P "
      "occupied_peak_bytes=0 held_peak_bytes=0"}, )

ROWS(captures,
     {"S9: a captured stream has what is safe for all", "A", NULL, ONCE,
      "x=a1M -xa [a y=a1M y#x z/a2G capture_refusals=1 z=a1M -za @yb -ya ]a z=a1M z~x"},
     {"S9: or was never used", "A", "chunk=32M limit=32M", ONCE, "x=a1M [a y=a1M held=32M ]a"},
     {"others go on meanwhile", "A", NULL, ONCE, "+a x=a4M -xa [a y=b8M z=b4M z#x ]a"},
     {"906: the legacy stream has frees, and a blocking one is captured", "A", NULL, ONCE,
      "x=L1M .xL -xL [B y=b1M y#x ]B"},
     {"what is freed in a capture a graph may use whenever it runs", "ABN", "initial=8M regrow=8M",
      ONCE, "x=a1M -xa [a x=a1M -xa ]a y=a1M y#x -ya y=b1M y#x -yb y=b1M y#x"},
     {"so it may what its stream was recorded on, and another frees", "UBA", "initial=4M regrow=4M",
      ONCE, "x=b8M @xa [a -xb driver_frees=0 ]a y=b8M y#x"},
     {"or the host does", "UBA", "initial=4M regrow=4M", ONCE,
      "x=b8M @xa [a -xH driver_frees=0 ]a y=b8M y#x"},
     {"of pinned memory, too", "UBA", "initial=4M regrow=4M pinned=1", ONCE,
      "x=b8M @xa [a -xb driver_frees=0 ]a y=b8M y#x"},
     {"or the host does", "UBA", "initial=4M regrow=4M pinned=1", ONCE,
      "x=b8M @xa [a -xH driver_frees=0 ]a y=b8M y#x"},
     {"a refusal of one stream's event does not hide another's capture", "A", NULL, ONCE,
      "x=a1M @xb [a !cuEventRecord:2 -xa ]a _ K y=b1M -yb y=a1M y#x -ya K y=b1M -yb y=a1M y#x"},
     {"S5, S6: a retired stream's captures are retired", "A", NULL, ONCE,
      "x=a1M [d @xd ]d >d <d -xa"},
     {"S6: amid a capture none is said to last; then it goes as any", "A", NULL, ONCE,
      "x=a1M @xd [d :d ]d >d <d -xa"},
     {"S1: a captured stream is not its handle's last", "A", NULL, ONCE,
      "x=d1M .xd -xd <d [e y=e1M y#x -ye ]e"}, )

ROWS(out_of_memory,
     {"another stream is waited for, on the device, before anything goes back", "A", "device=16M",
      LATE, "x=a12M .xa -xa y=b10M y~x+2M .yb waits=1 implicit_syncs=0 driver_frees=0"},
     {"garbage comes before that", "A", "device=16M hoard=1", LATE,
      "x=a12M .xa -xa y=a12M y~x gc_batches=1 waits=0 implicit_syncs=0"},
     {"then idle chunks go back; the refused call counts as none", "A", "device=16M", LATE,
      "x=a6M y=a6M .xa .ya -xa -ya z=a14M trims=1 retries=1 driver_allocs=3 driver_frees=2 "
      "held=14M"},
     {"chunks are made smaller rather than refused", "A", "device=16M chunk=32M", LATE,
      "x=a1M held=1M"},
     {"in the end there is none", "R", "device=16M", LATE, "x=a8M y!a16M retries=1"},
     {"limit_mb: what is held; idle chunks go back first", "A", "limit=10M", ONCE,
      "x=L6M y=L4M z!L1 -xL -yL y=L10M held=10M held_peak_bytes=10M -yL z!L10M+1"}, )

ROWS(mxnet_and_paddlepaddle,
     {"..._LARGE_ALLOC_ROUND_SIZE=1 is off: 1221 pages", "N", "round=1", ONCE,
      "x=L5000001 held=5001216"},
     {"naive: a page is any number", "N", "round=1 page=1000", ONCE, "x=L2500 held=3000"},
     {"round: three times 2^20 above the cutoff", "R", "cutoff=20 page=512", ONCE,
      "x=L3 held=512 y=L2097153 held=3146240"},
     {"naive: exact sizes, not cut", "N", NULL, ONCE,
      "x=L8000 y=L8100 -xL -yL held=16384 z=L4096 held=20480 u=L4100 u|xy v=L8192 v|xy u#v"},
     {"naive: for a reserve of 5 %, 50 MiB, the whole cache goes back", "N", "device=1000M", ONCE,
      "x=L500M y=L300M -xL z=L150M held=950M driver_frees=0 w=L2M held=452M driver_frees=1"},
     {"best fit: at first use 92 % of what is free less a twentieth; merged again", "B",
      "device=1000M", ONCE,
      "held=0 x=L1000 y=L1000 held<874M held>874M-511 y~x+1024 driver_allocs=1 "
      "served_api_bytes=1024 served_pool_bytes=1024 -xL -yL z=L800M z~x"},
     {"best fit: initial, regrow; what is above both is not pooled", "B", "initial=16M regrow=4M",
      ONCE,
      "u=L10M held=16M v=L8M held=24M w=L7M held=31M x=L6M held=31M y=L1M held=35M "
      "z=L16M+1 held=51M+256 -zL held=35M -yL -xL -wL -vL -uL held=35M"},
     {"best fit: a fraction of nothing pools nothing", "B", "nothing=1", ONCE,
      "x=L1000 -xL held=0 driver_frees=1"},
     {"auto growth: the lowest of the smallest that fit, its upper end; merged", "A", "chunk=8M",
      ONCE,
      "x=L1M held=8M y=L2M y~x-2M z=L3M z~x-5M -yL u=L1M u~x-6M v=L2M v~x-2M w=L20M held=28M "
      "-uL -vL -zL -xL -wL t=L8M t~x-7M"},
     {"garbage: at 14 MiB the largest until half is reached: 6 and 4", "N", "garbage=14M half=1",
      ONCE,
      "w=L2M x=L6M y=L2M z=L4M -wL -xL -yL gc_batches=0 free_bytes=10M -zL gc_batches=1 "
      "gc_bytes=10M s=L6M s~x t=L4M t~z u=L2M u#w u#y K gc_bytes=14M v=L2M v|wy"},
     {"garbage may wait to be asked for", "R", "hoard=1", ONCE,
      "x=L512M -xL gc_batches=0 K y=L512M y~x"},
     {"what made the pool grow is wholly the API's; in-place use", "A", "chunk=4M", ONCE,
      "x=L1000 y=L1000 served_api_bytes=1024 served_pool_bytes=1024 occupied_bytes=2048 "
      "free_bytes=4M-2048 requested_bytes=2000 ix1024 Ix1025 requested_bytes=2024 inplace=1"}, )

GPU_MAIN("test_gpu_pool_rules")
