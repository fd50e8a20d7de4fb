// Kernels that do nothing but what is to be priced, with the functions of sync.cuh, which comes before this text.
//
// `state` is as in persistent_codegen/cuda/state.py: blocks that have finished over all runs, then counters that grow.

extern "C" __global__ void __launch_bounds__(128) price_launch(int* state_ptr) {}

// Two blocks hand a counter to and fro, `rounds` times.
extern "C" __global__ void __launch_bounds__(32) price_hops(int* rounds_ptr, int* state_ptr) {
  const int rounds = rounds_ptr[0], before = rounds * (rammer_run_number(state_ptr + 32, 2) - 1);
  const int lane = threadIdx.x, me = blockIdx.x;
  const int waits = lane == 0 ? 64 + 32 * me : lane == 2 ? 1 : -1;  // a row: event, that of the next row, arrivals
  const int signals = lane == 0 ? 64 + 32 * (1 - me) : -1;
  for (int r = 1; r <= rounds; ++r) {
    const int target = rammer_target(waits, 1, before + r, 0);
    if (me == 1) rammer_wait(state_ptr, waits, 1, target, -1);
    rammer_signal(state_ptr, signals, 0, 1);
    if (me == 0) rammer_wait(state_ptr, waits, 1, target, -1);
  }
  if (lane == 0) rammer_finish(state_ptr + 32);
}

// All blocks wait for one another, `rounds` times.
extern "C" __global__ void __launch_bounds__(128) price_barriers(int* rounds_ptr, int* state_ptr) {
  const int blocks = gridDim.x, lane = threadIdx.x & 31;
  const int rounds = rounds_ptr[0], before = rounds * (rammer_run_number(state_ptr + 32, blocks) - 1);
  const int waits = lane == 0 ? 64 : lane == 2 ? blocks : -1, signals = lane == 0 ? 64 : -1;
  for (int r = 1; r <= rounds; ++r) {
    rammer_block_barrier();
    if (threadIdx.x >= 96) rammer_signal(state_ptr, signals, 0, 1);
    const int target = rammer_target(waits, 1, before + r, 0);
    if (threadIdx.x < 32) rammer_wait(state_ptr, waits, 1, target, -1);
    rammer_block_barrier();
  }
  if (threadIdx.x == 0) rammer_finish(state_ptr + 32);
}
