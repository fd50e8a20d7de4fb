extern "C" __global__ void __launch_bounds__(256) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_x_2_ptr, float* __restrict__ p3_compute_intermediate_ptr);
extern "C" __global__ void __launch_bounds__(256) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_x_2_ptr, float* __restrict__ p3_compute_intermediate_ptr) {
  alignas(64) float matmul_intermediate_rf_shared_local_ptr[1];
  __shared__ alignas(64) float matmul_intermediate_rf_shared_ptr[256];
  __shared__ alignas(64) float matmul_intermediate_shared_ptr[8];
  int cse_v2 = (((int)blockIdx.x) * 8);
  alignas(64) float ahead_ptr[3];
  alignas(64) float ahead_ptr_1[3];
  #pragma unroll
  for (int u = 0; u < 3; ++u) {
    ahead_ptr[u] = p0_x_0_ptr[((u * 32) + (((int)threadIdx.x) >> 3))];
  }
  #pragma unroll
  for (int u_1 = 0; u_1 < 3; ++u_1) {
    ahead_ptr_1[u_1] = p1_x_1_ptr[((((u_1 * 6400) + ((((int)threadIdx.x) >> 3) * 200)) + (((int)blockIdx.x) * 8)) + (((int)threadIdx.x) & 7))];
  }
  #pragma unroll
  for (int u_2 = 0; u_2 < 3; ++u_2) {
    if (u_2 == 0) {
      matmul_intermediate_rf_shared_local_ptr[0] = 0x0p+0f/*0.000000e+00*/;
    }
    matmul_intermediate_rf_shared_local_ptr[0] = (matmul_intermediate_rf_shared_local_ptr[0] + (ahead_ptr[u_2] * ahead_ptr_1[u_2]));
  }
  matmul_intermediate_rf_shared_ptr[((int)threadIdx.x)] = matmul_intermediate_rf_shared_local_ptr[0];
  __syncthreads();
  if (((int)threadIdx.x) < 8) {
    alignas(64) float sum_ptr[1];
    for (int ax0 = 0; ax0 < 32; ++ax0) {
      if (ax0 == 0) {
        sum_ptr[0] = 0x0p+0f/*0.000000e+00*/;
      }
      sum_ptr[0] = (sum_ptr[0] + matmul_intermediate_rf_shared_ptr[((ax0 * 8) + ((int)threadIdx.x))]);
    }
    matmul_intermediate_shared_ptr[((int)threadIdx.x)] = sum_ptr[0];
  }
  if (((int)threadIdx.x) < 8) {
    int cse_v3 = ((((int)blockIdx.x) * 8) + ((int)threadIdx.x));
    p3_compute_intermediate_ptr[((((int)blockIdx.x) * 8) + ((int)threadIdx.x))] = tanhf((matmul_intermediate_shared_ptr[((int)threadIdx.x)] + p2_x_2_ptr[((((int)blockIdx.x) * 8) + ((int)threadIdx.x))]));
  }
}

