extern "C" __global__ void __launch_bounds__(128) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_group_conv2d_nchw_ptr);
extern "C" __global__ void __launch_bounds__(128) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_group_conv2d_nchw_ptr) {
  __shared__ alignas(64) float pad_temp_shared_ptr[1152];
  __shared__ alignas(64) float p1_x_1_shared_ptr[72];
  alignas(64) float p2_group_conv2d_nchw_local_ptr[7];
  for (int64_t var = (int64_t)0; var < (int64_t)1; ++var) {
    int cse_v1 = (((int)blockIdx.x) & 1);
    int cse_v3 = (((int)blockIdx.x) >> 1);
    int cse_v7 = ((((int)blockIdx.x) >> 1) * 1568);
    int cse_v8 = ((((int)blockIdx.x) & 1) * 98);
    __syncthreads();
    alignas(64) float ahead_ptr[9];
    #pragma unroll
    for (int u = 0; u < 9; ++u) {
      bool holds = ((((1 <= (((((int)blockIdx.x) & 1) * 7) + (((u * 8) + (((int)threadIdx.x) >> 4)) % 9))) & ((((((int)blockIdx.x) & 1) * 7) + (((u * 8) + (((int)threadIdx.x) >> 4)) % 9)) < 15)) & (1 <= (((int)threadIdx.x) & 15))) & ((((int)threadIdx.x) & 15) < 15));
      int arm = (((((((((int)blockIdx.x) >> 1) * 1568) + ((((u * 8) + (((int)threadIdx.x) >> 4)) / 9) * 196)) + ((((int)blockIdx.x) & 1) * 98)) + ((((u * 8) + (((int)threadIdx.x) >> 4)) % 9) * 14)) + (((int)threadIdx.x) & 15)) - 15);
      ahead_ptr[u] = p0_x_0_ptr[(holds ? arm : 0)];
    }
    #pragma unroll
    for (int u_1 = 0; u_1 < 9; ++u_1) {
      bool holds_1 = ((((1 <= (((((int)blockIdx.x) & 1) * 7) + (((u_1 * 8) + (((int)threadIdx.x) >> 4)) % 9))) & ((((((int)blockIdx.x) & 1) * 7) + (((u_1 * 8) + (((int)threadIdx.x) >> 4)) % 9)) < 15)) & (1 <= (((int)threadIdx.x) & 15))) & ((((int)threadIdx.x) & 15) < 15));
      float arm_1 = ahead_ptr[u_1];
      pad_temp_shared_ptr[((u_1 * 128) + ((int)threadIdx.x))] = (holds_1 ? arm_1 : 0x0p+0f/*0.000000e+00*/);
    }
    if (((int)threadIdx.x) < 72) {
      p1_x_1_shared_ptr[((int)threadIdx.x)] = p1_x_1_ptr[(((((int)blockIdx.x) >> 1) * 72) + ((int)threadIdx.x))];
    }
    #pragma unroll
    for (int xx_2_init = 0; xx_2_init < 7; ++xx_2_init) {
      if (((int)threadIdx.x) < 112) {
        p2_group_conv2d_nchw_local_ptr[xx_2_init] = 0x0p+0f/*0.000000e+00*/;
      }
    }
    int cse_v4 = (((int)threadIdx.x) / 14);
    int cse_v5 = (((int)threadIdx.x) % 14);
    __syncthreads();
    #pragma unroll
    for (int ry = 0; ry < 3; ++ry) {
      #pragma unroll
      for (int rx = 0; rx < 3; ++rx) {
        #pragma unroll
        for (int xx_2 = 0; xx_2 < 7; ++xx_2) {
          if (((int)threadIdx.x) < 112) {
            p2_group_conv2d_nchw_local_ptr[xx_2] = (p2_group_conv2d_nchw_local_ptr[xx_2] + (pad_temp_shared_ptr[(((((((((int)threadIdx.x) / 14) * 144) + (((((int)threadIdx.x) % 14) >> 1) * 16)) + (ry * 16)) + ((((int)threadIdx.x) & 1) * 7)) + xx_2) + rx)] * p1_x_1_shared_ptr[((((((int)threadIdx.x) / 14) * 9) + (ry * 3)) + rx)]));
          }
        }
      }
    }
    for (int ax3 = 0; ax3 < 7; ++ax3) {
      if (((int)threadIdx.x) < 112) {
        p2_group_conv2d_nchw_ptr[((((((((int)blockIdx.x) >> 1) * 1568) + ((((int)threadIdx.x) / 14) * 196)) + ((((int)blockIdx.x) & 1) * 98)) + ((((int)threadIdx.x) % 14) * 7)) + ax3)] = p2_group_conv2d_nchw_local_ptr[ax3];
      }
    }
  }
}

