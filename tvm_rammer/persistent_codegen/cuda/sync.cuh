// How the blocks of an rProgram's persistent kernel wait for one another. Fixed text, the same in every program.
//
// A counter only grows: an event with n arrivals has happened in run r, or in the r-th step over all runs, once its counter
// has reached n * r.
// Counters may wrap around; a difference stays right while it is under 2^31.
// The calling code puts a block barrier before rammer_signal and after rammer_wait, so that one thread's
// release covers what the whole block wrote, and its acquire what the whole block reads.
//
// `word` is a lane's own word of a row of the plan (rows.py).
#ifndef RAMMER_SYNC
#define RAMMER_SYNC

// Number of this run, from 1. `finished` counts blocks that have finished, over all runs. Those of the runs before have,
// since a launch begins when the one before it has ended; this block has not. So the quotient is the same for every block,
// whatever the others have done by now, and needs no memory order: one counter is read and written coherently.
__device__ __forceinline__ int rammer_run_number(int* finished, int blocks) {
  auto counter = reinterpret_cast<unsigned long long*>(finished);
  return (int)(__nv_atomic_load_n(counter, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) / (unsigned)blocks) + 1;
}

// A word that was loaded or exchanged before, plus a 0 that nvcc does not know. A copy, or what is made of it, it would
// move to the word's origin, and the warp would wait there.
__device__ __forceinline__ int rammer_arrived(int word, int zero) { return word + zero; }

// The index of a thread of an rTask, one of `threads`. nvcc shall not see that it is the same in all rows: it would compute
// what the functions of all rTasks make of it ahead of the rows, and keep that in registers.
__device__ __forceinline__ int rammer_thread(int tid, int threads) {
  asm volatile("" : "+r"(tid));
  if (tid < 0 || tid >= threads) __builtin_unreachable();
  return tid;
}

// A word of a row, which lane `lane` of each warp has. All threads of a warp.
__device__ __forceinline__ int rammer_word(int word, int lane) { return __shfl_sync(0xffffffffu, word, lane); }

// What the counter of a lane is to reach: its arrivals, which another lane has, times the run or step, or one before it.
// The whole warp.
__device__ __forceinline__ int rammer_target(int word, int waits, int run, int backs) {
  const unsigned lane = threadIdx.x & 31, every = 0xffffffffu;
  const int arrivals = __shfl_sync(every, word, (lane + 2 * waits) & 31);
  if (backs) run -= __shfl_sync(every, word, (lane + 4 * waits) & 31);
  return (int)((unsigned)arrivals * (unsigned)run);
}

// Whether a row has a counter that is, or may be, behind. The whole warp.
__device__ __forceinline__ bool rammer_waits(int word, int waits, int ahead) {
  return __any_sync(0xffffffffu, (threadIdx.x & 31) < waits && word >= 0 && ahead < 0);
}

// A warp waits: each of its first `waits` lanes for a counter, if it has one that is behind, all in one look. As many
// lanes after them look at the counters of the next row. Returned is what was seen: where it is negative the counter is,
// or may be, behind. Every look acquires, which costs little beside its trip; a fence after the last one would wait for
// the warp's stores. The warp sleeps ever longer between two looks, so as not to take bandwidth from those who work.
__device__ __forceinline__ int rammer_wait(int* state, int word, int waits, int target, int ahead) {
  const unsigned lane = threadIdx.x & 31;
  const bool looking = lane < 2 * waits && word >= 0, waiting = looking && lane < waits && ahead < 0;
  int* counter = state + (looking ? word : 0);
  int seen, behind;
  unsigned pause = 16;
  do {
    seen = __nv_atomic_load_n(counter, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) - target;
    behind = __any_sync(0xffffffffu, waiting && seen < 0);
    if (behind) __nanosleep(pause);
    pause = pause < 256 ? 2 * pause : 256;
  } while (behind);
  return looking ? seen : -1;
}

// What a warp has seen of the counters of the next row, for the lanes that wait for them; -1 if it has not looked.
__device__ __forceinline__ int rammer_ahead(int seen, int waits, bool looked) {
  seen = __shfl_down_sync(0xffffffffu, seen, waits);
  return looked ? seen : -1;
}

// The block has arrived: of one of its warps the lanes from `first` on say so, each to one of `signals` counters.
__device__ __forceinline__ void rammer_signal(int* state, int word, int first, int signals) {
  const unsigned number = (threadIdx.x & 31) - first;
  if (number < (unsigned)signals && word >= 0) {
    __nv_atomic_add(state + word, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  }
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

// The threads of the block copy `vectors` of 16 bytes of a constant to shared memory, each some of them side by side.
// Before the first row; the block barrier of that row comes before anything is read.
__device__ __forceinline__ void rammer_keep(const void* constant, void* kept, int vectors) {
  auto from = static_cast<const int4*>(constant);
  auto to = static_cast<int4*>(kept);
#pragma unroll 4
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) to[i] = from[i];
}

// The first of two pointers where a condition holds.
template <typename T>
__device__ __forceinline__ T* rammer_select(bool condition, T* one, T* other) {
  return condition ? one : other;
}

// A pointer to global memory, as if nothing were known of it. Where it is a kernel's parameter and an offset, nvcc would
// first add offset and index, in 64 bits, and keep the parameter in uniform registers: four instructions for each
// address in the place of one, and spills where these registers run out in a kernel of many functions.
template <typename T>
__device__ __forceinline__ T* rammer_pointer(T* pointer) {
  size_t address = __cvta_generic_to_global(pointer);
  asm("" : "+l"(address));
  return static_cast<T*>(__cvta_global_to_generic(address));
}

#endif  // RAMMER_SYNC
