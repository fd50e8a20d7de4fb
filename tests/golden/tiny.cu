extern "C" __device__ void double_exp_elementwise_vectors_per_thread1_threads32_vector_width4(float* __restrict__ p0_x0_ptr, float* __restrict__ p1_compute_ptr, int rtask, int tid);
extern "C" __global__ void __launch_bounds__(32) tiny_kernel(int* arguments_ptr, int* begin_ptr, int* code_ptr, float* segment0_ptr, float* segment1_ptr, int* state_ptr, uchar* workspace_ptr);
extern "C" __device__ void double_exp_elementwise_vectors_per_thread1_threads32_vector_width4(float* __restrict__ p0_x0_ptr, float* __restrict__ p1_compute_ptr, int rtask, int tid) {
  int cse_v1 = ((rtask * 128) + (tid * 4));
  int cse_v1_1 = ((rtask * 128) + (tid * 4));
  float4 __1;
  float4 v_ = *(float4*)(p0_x0_ptr + ((rtask * 128) + (tid * 4)));
  __1.x = expf(v_.x);
  __1.y = expf(v_.y);
  __1.z = expf(v_.z);
  __1.w = expf(v_.w);
  *(float4*)(p1_compute_ptr + ((rtask * 128) + (tid * 4))) = __1;
}

extern "C" __global__ void __launch_bounds__(32) tiny_kernel(int* arguments_ptr, int* begin_ptr, int* code_ptr, float* segment0_ptr, float* segment1_ptr, int* state_ptr, uchar* workspace_ptr) {
  int run = rammer_run_number((&(state_ptr[32])), 2);
  int first = begin_ptr[((int)blockIdx.x)];
  int last = begin_ptr[(((int)blockIdx.x) + 1)];
  for (int v = 0; v < (last - first); ++v) {
    int cse_v1 = (first * 8);
    int cse_v2 = (v * 8);
    int at = ((first * 8) + (v * 8));
    int cse_v3 = ((v * 8) + (first * 8));
    int what = code_ptr[((v * 8) + (first * 8))];
    int cse_v4 = (((v * 8) + (first * 8)) + 1);
    int cse_v5 = (((v * 8) + (first * 8)) + 2);
    if (what == 0) {
      if (((int)threadIdx.x) == 0) {
        rammer_wait((&(state_ptr[((code_ptr[(((v * 8) + (first * 8)) + 1)] * 32) + 64)])), code_ptr[(((v * 8) + (first * 8)) + 2)], run);
      }
    } else {
      if (what == 1) {
        rammer_block_barrier();
        if (((int)threadIdx.x) == 0) {
          rammer_signal((&(state_ptr[((code_ptr[(((v * 8) + (first * 8)) + 1)] * 32) + 64)])));
        }
      } else {
        rammer_block_barrier();
        int cse_v6 = (((v * 8) + (first * 8)) + 3);
        int cse_v7 = (((v * 8) + (first * 8)) + 4);
        if (what < 3) {
          int operator_ = code_ptr[(((v * 8) + (first * 8)) + 1)];
          int start = code_ptr[(((v * 8) + (first * 8)) + 2)];
          int count = code_ptr[(((v * 8) + (first * 8)) + 3)];
          int step = code_ptr[(((v * 8) + (first * 8)) + 4)];
          for (int v_1 = 0; v_1 < count; ++v_1) {
            double_exp_elementwise_vectors_per_thread1_threads32_vector_width4((&(segment0_ptr[0])), (&(((float*)workspace_ptr)[arguments_ptr[((operator_ * 2) + 1)]])), (start + (v_1 * step)), ((int)threadIdx.x));
          }
        } else {
          int operator__1 = code_ptr[(((v * 8) + (first * 8)) + 1)];
          int start_1 = code_ptr[(((v * 8) + (first * 8)) + 2)];
          int count_1 = code_ptr[(((v * 8) + (first * 8)) + 3)];
          int step_1 = code_ptr[(((v * 8) + (first * 8)) + 4)];
          for (int v_2 = 0; v_2 < count_1; ++v_2) {
            double_exp_elementwise_vectors_per_thread1_threads32_vector_width4((&(((float*)workspace_ptr)[arguments_ptr[(operator__1 * 2)]])), (&(segment1_ptr[0])), (start_1 + (v_2 * step_1)), ((int)threadIdx.x));
          }
        }
      }
    }
  }
  if (((int)threadIdx.x) == 0) {
    rammer_finish((&(state_ptr[32])));
  }
}

