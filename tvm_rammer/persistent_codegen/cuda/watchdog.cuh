// A watchdog: a kernel whose wait never comes true ends, and says what it waits for. Only in texts that are made with one.
//
// `report` is the end of the state (state.py): a line with the number of blocks that have given up, then eight words for
// each block: why it has (1: it waited for too long; 2: another block did, while this one waited), row of its lane,
// event, count that it expects, count that it saw, number of the run or step. A block that has given up goes
// through its rows without a run and without a signal, so the kernel ends; its counters are of no use any more.
#ifndef RAMMER_WATCHDOG
#define RAMMER_WATCHDOG

// As rammer_wait, but for `limit` times 2^20 cycles at most; `run` is the number of the run or step.
__device__ __forceinline__ int rammer_watched_wait(
    int* state, int word, int waits, int target, int ahead, int run, int* report, int row, int limit) {
  const unsigned lane = threadIdx.x & 31, every = 0xffffffffu;
  const bool looking = lane < 2 * waits && word >= 0, waiting = looking && lane < waits && ahead < 0;
  int* counter = state + (looking ? word : 0);
  const long long began = clock64();
  unsigned pause = 16;
  for (bool first = true;; first = false) {
    const int reached = __nv_atomic_load_n(counter, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
    const int seen = looking ? reached - target : -1;
    const unsigned behind = __ballot_sync(every, waiting && seen < 0);
    if (!behind) return seen;
    const bool others = __nv_atomic_load_n(report, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) != 0;
    const bool late = (clock64() - began) >> 20 >= limit;
    if (__any_sync(every, others || late)) {
      if (lane == (unsigned)(__ffs(behind) - 1) && !(first && others)) {
        int* own = report + 32 + 8 * blockIdx.x;
        __nv_atomic_add(report, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
        own[0] = others ? 2 : 1, own[1] = row, own[2] = word / 32 - 2;
        own[3] = target, own[4] = reached, own[5] = run;
      }
      __syncwarp(every);  // thread 0 looks at `report` next
      return -1;
    }
    __nanosleep(pause);
    if (pause < 256) pause *= 2;
  }
}

// What the row is to do (rows.py), where no block has given up; else neither a run nor a signal. A block barrier: all
// threads get the same.
__device__ __forceinline__ int rammer_watched_barrier(int* report, int what) {
  const bool stop =
      threadIdx.x == 0 && __nv_atomic_load_n(report, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) != 0;
  return __syncthreads_or(stop) ? -2 : what;
}

#endif  // RAMMER_WATCHDOG
