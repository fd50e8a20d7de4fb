extern "C" __device__ void double_exp_elementwise_vectors_per_thread1_threads64_vector_width4(float* __restrict__ p0_x0_ptr, float* __restrict__ p1_compute_ptr, int rtask, int tid);
extern "C" __global__ void __launch_bounds__(64, 1) tiny_kernel(int* begin_ptr, int* rows_ptr, float* segment0_ptr, float* segment1_ptr, int* state_ptr, uchar* workspace_ptr);
extern "C" __device__ void double_exp_elementwise_vectors_per_thread1_threads64_vector_width4(float* __restrict__ p0_x0_ptr, float* __restrict__ p1_compute_ptr, int rtask, int tid) {
  int cse_v1 = ((rtask * 256) + (tid * 4));
  int cse_v1_1 = ((rtask * 256) + (tid * 4));
  float4 __1;
  float4 v_ = *(float4*)(p0_x0_ptr + ((rtask * 256) + (tid * 4)));
  __1.x = expf(v_.x);
  __1.y = expf(v_.y);
  __1.z = expf(v_.z);
  __1.w = expf(v_.w);
  *(float4*)(p1_compute_ptr + ((rtask * 256) + (tid * 4))) = __1;
}

extern "C" __global__ void __launch_bounds__(64, 1) tiny_kernel(int* begin_ptr, int* rows_ptr, float* segment0_ptr, float* segment1_ptr, int* state_ptr, uchar* workspace_ptr) {
  alignas(64) int here_ptr[1];
  alignas(64) int ahead_ptr[1];
  alignas(64) int following_ptr[1];
  alignas(64) int target_ptr[1];
  alignas(64) bool waits_ptr[1];
  int run = rammer_run_number((&(state_ptr[32])), 2);
  int first = begin_ptr[((int)blockIdx.x)];
  int last = begin_ptr[(((int)blockIdx.x) + 1)];
  int cse_v1 = (((int)threadIdx.x) & 31);
  int lane = (((int)threadIdx.x) & 31);
  int zero = begin_ptr[0];
  int cse_v2 = (first * 32);
  here_ptr[0] = rows_ptr[((first * 32) + (((int)threadIdx.x) & 31))];
  ahead_ptr[0] = -1;
  for (int v = 0; v < (last - first); ++v) {
    int what = rammer_word(here_ptr[0], 5);
    int start = rammer_word(here_ptr[0], 6);
    int count = rammer_word(here_ptr[0], 7);
    int step = rammer_word(here_ptr[0], 8);
    following_ptr[0] = rows_ptr[((((v * 32) + (first * 32)) + (((int)threadIdx.x) & 31)) + 32)];
    target_ptr[0] = rammer_target(here_ptr[0], 1, run, 0);
    waits_ptr[0] = rammer_waits(here_ptr[0], 1, rammer_arrived(ahead_ptr[0], zero));
    if (0 <= what) {
      if (what < 2) {
        int argument1 = rammer_word(here_ptr[0], 10);
        if ((((int)threadIdx.x) < 32) & waits_ptr[0]) {
          ahead_ptr[0] = rammer_wait((&(state_ptr[0])), here_ptr[0], 1, target_ptr[0], ahead_ptr[0]);
        }
        rammer_block_barrier();
        #pragma unroll 1
        for (int v_1 = 0; v_1 < count; ++v_1) {
          double_exp_elementwise_vectors_per_thread1_threads64_vector_width4(rammer_pointer((&(segment0_ptr[0]))), rammer_pointer((&(((float*)workspace_ptr)[argument1]))), (start + (v_1 * step)), ((int)threadIdx.x));
        }
      } else {
        int argument0 = rammer_word(here_ptr[0], 9);
        if ((((int)threadIdx.x) < 32) & waits_ptr[0]) {
          ahead_ptr[0] = rammer_wait((&(state_ptr[0])), here_ptr[0], 1, target_ptr[0], ahead_ptr[0]);
        }
        rammer_block_barrier();
        #pragma unroll 1
        for (int v_2 = 0; v_2 < count; ++v_2) {
          double_exp_elementwise_vectors_per_thread1_threads64_vector_width4(rammer_pointer((&(((float*)workspace_ptr)[argument0]))), rammer_pointer((&(segment1_ptr[0]))), (start + (v_2 * step)), ((int)threadIdx.x));
        }
      }
    } else {
      if ((((int)threadIdx.x) < 32) & waits_ptr[0]) {
        ahead_ptr[0] = rammer_wait((&(state_ptr[0])), here_ptr[0], 1, target_ptr[0], ahead_ptr[0]);
      }
    }
    if (0 < (what & 1)) {
      rammer_block_barrier();
      if (32 <= ((int)threadIdx.x)) {
        rammer_signal((&(state_ptr[0])), here_ptr[0], 4, 1);
      }
    }
    ahead_ptr[0] = rammer_ahead(ahead_ptr[0], 1, waits_ptr[0]);
    here_ptr[0] = rammer_arrived(following_ptr[0], zero);
  }
  if (((int)threadIdx.x) == 0) {
    rammer_finish((&(state_ptr[32])));
  }
}

