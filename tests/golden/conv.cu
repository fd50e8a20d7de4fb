extern "C" __global__ void __launch_bounds__(64) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_compute_intermediate_ptr);
extern "C" __global__ void __launch_bounds__(64) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_compute_intermediate_ptr) {
  alignas(64) float sums_ptr[8];
  alignas(64) float next_ptr[4];
  alignas(64) float next_ptr_1[2];
  __shared__ alignas(64) float tiles_ptr[892];
  alignas(64) float a_ptr[2];
  alignas(64) float b_ptr[4];
  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    sums_ptr[i] = 0x0p+0f/*0.000000e+00*/;
  }
  int cse_v1 = (((int)threadIdx.x) >> 5);
  int cse_v2 = (((int)threadIdx.x) & 31);
  int cse_v7 = ((((int)threadIdx.x) >> 5) * 169);
  int cse_v8 = ((((int)blockIdx.x) >> 1) * 32);
  int cse_v14 = (((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31));
  int cse_v15 = min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168);
  int cse_v16 = (min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13);
  int cse_v17 = (min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13);
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; ++i_1) {
    next_ptr[i_1] = p0_x_0_ptr[((((i_1 * 338) + ((((int)threadIdx.x) >> 5) * 169)) + (max(((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13) - 1), 0) * 13)) + max(((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13) - 1), 0))];
  }
  int cse_v3 = (((int)threadIdx.x) >> 4);
  int cse_v4 = (((int)blockIdx.x) & 1);
  int cse_v5 = (((int)threadIdx.x) & 15);
  int cse_v9 = ((((int)threadIdx.x) >> 4) * 32);
  int cse_v10 = ((((int)blockIdx.x) & 1) * 16);
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; ++i_2) {
    next_ptr_1[i_2] = p1_x_1_ptr[((((i_2 * 128) + ((((int)threadIdx.x) >> 4) * 32)) + ((((int)blockIdx.x) & 1) * 16)) + (((int)threadIdx.x) & 15))];
  }
  int cse_v12 = ((((int)threadIdx.x) & 15) * 2);
  for (int i_3 = 0; i_3 < 9; ++i_3) {
    int cse_v11 = ((i_3 & 1) * 448);
    #pragma unroll
    for (int i_4 = 0; i_4 < 4; ++i_4) {
      int cse_v18 = ((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13) + (i_3 / 3));
      int cse_v19 = ((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13) + (i_3 % 3));
      bool holds = ((((1 <= ((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13) + (i_3 / 3))) & (((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13) + (i_3 / 3)) < 14)) & (1 <= ((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13) + (i_3 % 3)))) & (((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13) + (i_3 % 3)) < 14));
      float arm = next_ptr[i_4];
      tiles_ptr[(((((i_3 & 1) * 448) + (i_4 * 72)) + ((((int)threadIdx.x) >> 5) * 36)) + (((int)threadIdx.x) & 31))] = (holds ? arm : 0x0p+0f/*0.000000e+00*/);
    }
    #pragma unroll
    for (int i_5 = 0; i_5 < 2; ++i_5) {
      tiles_ptr[((((((i_3 & 1) * 448) + (i_5 * 80)) + ((((int)threadIdx.x) >> 4) * 20)) + (((int)threadIdx.x) & 15)) + 288)] = next_ptr_1[i_5];
    }
    __syncthreads();
    if (i_3 < 8) {
      #pragma unroll
      for (int i_6 = 0; i_6 < 4; ++i_6) {
        int cse_v6 = (i_3 + 1);
        next_ptr[i_6] = p0_x_0_ptr[((((i_6 * 338) + ((((int)threadIdx.x) >> 5) * 169)) + (max(min((((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) / 13) + ((i_3 + 1) / 3)) - 1), 12), 0) * 13)) + max(min((((min((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)), 168) % 13) + ((i_3 + 1) % 3)) - 1), 12), 0))];
      }
      #pragma unroll
      for (int i_7 = 0; i_7 < 2; ++i_7) {
        next_ptr_1[i_7] = p1_x_1_ptr[((((((i_3 * 256) + (i_7 * 128)) + ((((int)threadIdx.x) >> 4) * 32)) + ((((int)blockIdx.x) & 1) * 16)) + (((int)threadIdx.x) & 15)) + 256)];
      }
    }
    #pragma unroll
    for (int i_8 = 0; i_8 < 8; ++i_8) {
      *(float2*)(a_ptr + 0) = *(float2*)(tiles_ptr + ((((i_3 & 1) * 448) + (i_8 * 36)) + ((((int)threadIdx.x) & 15) * 2)));
      *(float4*)(b_ptr + 0) = *(float4*)(tiles_ptr + (((((i_3 & 1) * 448) + (i_8 * 20)) + ((((int)threadIdx.x) >> 4) * 4)) + 288));
      #pragma unroll
      for (int i_9 = 0; i_9 < 2; ++i_9) {
        #pragma unroll
        for (int i_10 = 0; i_10 < 4; ++i_10) {
          int cse_v13 = ((i_9 * 4) + i_10);
          sums_ptr[((i_9 * 4) + i_10)] = (sums_ptr[((i_9 * 4) + i_10)] + (a_ptr[i_9] * b_ptr[i_10]));
        }
      }
    }
  }
  __syncthreads();
  #pragma unroll
  for (int i_11 = 0; i_11 < 4; ++i_11) {
    int2 v_ = make_int2((i_11)+(4*0), (i_11)+(4*1));
    *(float2*)(tiles_ptr + ((((((int)threadIdx.x) >> 4) * 128) + (i_11 * 32)) + ((((int)threadIdx.x) & 15) * 2))) = make_float2(sums_ptr[v_.x],sums_ptr[v_.y]);
  }
  __syncthreads();
  #pragma unroll
  for (int i_12 = 0; i_12 < 8; ++i_12) {
    sums_ptr[0] = tiles_ptr[((i_12 * 64) + ((int)threadIdx.x))];
    if (((((((int)blockIdx.x) >> 1) * 32) + (((int)threadIdx.x) & 31)) < 169) & ((((((int)blockIdx.x) & 1) * 4) + (i_12 >> 1)) < 5)) {
      p2_compute_intermediate_ptr[((((((((int)blockIdx.x) & 1) * 2704) + (i_12 * 338)) + ((((int)threadIdx.x) >> 5) * 169)) + ((((int)blockIdx.x) >> 1) * 32)) + (((int)threadIdx.x) & 31))] = rammer_max_float32(0x0p+0f/*0.000000e+00*/, sums_ptr[0]);
    }
  }
}

