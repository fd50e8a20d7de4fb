// Loops whose runs differ in their number of steps: `steps` has how many there were in all runs before. What the counter of
// an event has got by then is that many times its arrivals in a step. Only in texts of such programs, after sync.cuh.
#ifndef RAMMER_STEPS
#define RAMMER_STEPS

// As a block begins; the last one to finish writes it.
__device__ __forceinline__ int rammer_steps_before(int* steps) {
  return __nv_atomic_load_n(steps, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// One thread of each block says that it is done; whether all have. Then they have read, too, what is written next, and
// counted all that they count.
__device__ __forceinline__ bool rammer_all_finished(int* finished, int blocks) {
  auto counter = reinterpret_cast<unsigned long long*>(finished);
  unsigned long long before = __nv_atomic_fetch_add(counter, 1ull, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
  return before % (unsigned)blocks == (unsigned)blocks - 1;
}

// As rammer_finish; `done` is how many steps there were by now, over all runs.
__device__ __forceinline__ void rammer_finish_steps(int* finished, int blocks, int* steps, int done) {
  if (rammer_all_finished(finished, blocks)) {
    __nv_atomic_store_n(steps, done, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }
}

// As rammer_finish, where a block need not know: `exits` counts an event that has one arrival in each step.
__device__ __forceinline__ void rammer_finish_exits(int* finished, int blocks, int* steps, int* exits) {
  if (rammer_all_finished(finished, blocks)) {
    const int done = __nv_atomic_load_n(exits, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_store_n(steps, done, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }
}

#endif  // RAMMER_STEPS
