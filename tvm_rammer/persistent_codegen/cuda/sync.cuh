// How the blocks of an rProgram's persistent kernel wait for one another. Fixed text, the same in every program.
//
// A counter only grows: an event with n arrivals has happened in run r once its counter has reached n * r.
// Counters are unsigned and may wrap around; a difference taken as signed stays right while it is under 2^31.
// The calling code puts a block barrier before rammer_signal and after rammer_wait, so that one thread's
// release covers what the whole block wrote, and its acquire what the whole block reads.
#ifndef RAMMER_SYNC
#define RAMMER_SYNC

// Number of this run, from 1. `finished` counts blocks that have finished, over all runs. Those of the runs before have,
// since a launch begins when the one before it has ended; this block has not. So the quotient is the same for every block,
// whatever the others have done by now, and needs no memory order: one counter is read and written coherently.
__device__ __forceinline__ int rammer_run_number(int* finished, int blocks) {
  auto counter = reinterpret_cast<unsigned long long*>(finished);
  return (int)(__nv_atomic_load_n(counter, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) / (unsigned)blocks) + 1;
}

// One thread waits. It sleeps ever longer between two looks, so as not to take bandwidth from those who work.
__device__ __forceinline__ void rammer_wait(int* counter, int arrivals, int run) {
  unsigned target = (unsigned)arrivals * (unsigned)run, pause = 16;
  while ((int)((unsigned)__nv_atomic_load_n(counter, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) - target) < 0) {
    __nanosleep(pause);
    if (pause < 256) pause *= 2;
  }
}

// One thread says that its block has arrived.
__device__ __forceinline__ void rammer_signal(int* counter) {
  __nv_atomic_add(counter, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
}

// One thread of each block says that it is done. What the block wrote is visible to the next launch in any case.
__device__ __forceinline__ void rammer_finish(int* finished) {
  __nv_atomic_add(
      reinterpret_cast<unsigned long long*>(finished), 1ull, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// All threads of the block.
__device__ __forceinline__ void rammer_block_barrier() { __syncthreads(); }

// The first `threads` threads of the block (a multiple of 32), on hardware barrier `id` (1 to 15).
__device__ __forceinline__ void rammer_rtask_barrier(int id, int threads) { __barrier_sync_count(id, threads); }

// The first of two pointers where a condition holds.
template <typename T>
__device__ __forceinline__ T* rammer_select(bool condition, T* one, T* other) {
  return condition ? one : other;
}

#endif  // RAMMER_SYNC
