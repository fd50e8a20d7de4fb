extern "C" __global__ void __launch_bounds__(64) k0_kernel(half* __restrict__ p0_x_0_ptr, half* __restrict__ p1_x_1_ptr, half* __restrict__ p2_compute_intermediate_1_ptr);
extern "C" __global__ void __launch_bounds__(64) k0_kernel(half* __restrict__ p0_x_0_ptr, half* __restrict__ p1_x_1_ptr, half* __restrict__ p2_compute_intermediate_1_ptr) {
  alignas(64) float sums_ptr[16];
  alignas(64) half next_ptr[16];
  alignas(64) half4 next_ptr_1[4];
  __shared__ alignas(64) half tiles_ptr[5112];
  alignas(64) uint4 a_ptr[2];
  alignas(64) half b_ptr[8];
  #pragma unroll
  for (int i = 0; i < 16; ++i) {
    sums_ptr[i] = 0x0p+0f/*0.000000e+00*/;
  }
  int cse_v1 = (((int)threadIdx.x) >> 5);
  int cse_v2 = (((int)blockIdx.x) * 32);
  int cse_v3 = (((int)threadIdx.x) & 31);
  int cse_v9 = ((((int)threadIdx.x) >> 5) * 81);
  int cse_v16 = min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80);
  int cse_v20 = (min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9);
  int cse_v21 = (min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9);
  #pragma unroll
  for (int i_1 = 0; i_1 < 16; ++i_1) {
    next_ptr[i_1] = p0_x_0_ptr[(((((i_1 & 7) * 162) + ((((int)threadIdx.x) >> 5) * 81)) + (max(((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9) - 1), 0) * 9)) + max((((i_1 >> 3) + (min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9)) - 1), 0))];
  }
  #pragma unroll
  for (int i_2 = 0; i_2 < 4; ++i_2) {
    next_ptr_1[i_2] = *(half4*)(p1_x_1_ptr + ((i_2 * 256) + (((int)threadIdx.x) * 4)));
  }
  for (int i_3 = 0; i_3 < 5; ++i_3) {
    int cse_v4 = (i_3 * 2);
    int cse_v11 = ((i_3 & 1) * 2560);
    #pragma unroll
    for (int i_4 = 0; i_4 < 16; ++i_4) {
      int cse_v10 = ((i_3 * 2) + (i_4 >> 3));
      int cse_v22 = ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9) + (((i_3 * 2) + (i_4 >> 3)) / 3));
      int cse_v23 = ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9) + (((i_3 * 2) + (i_4 >> 3)) % 3));
      bool holds = (((((((i_3 * 2) + (i_4 >> 3)) < 9) & (1 <= ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9) + (((i_3 * 2) + (i_4 >> 3)) / 3)))) & (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9) + (((i_3 * 2) + (i_4 >> 3)) / 3)) < 10)) & (1 <= ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9) + (((i_3 * 2) + (i_4 >> 3)) % 3)))) & (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9) + (((i_3 * 2) + (i_4 >> 3)) % 3)) < 10));
      half arm = next_ptr[i_4];
      tiles_ptr[(((((i_3 & 1) * 2560) + (i_4 * 80)) + ((((int)threadIdx.x) >> 5) * 40)) + (((int)threadIdx.x) & 31))] = (holds ? arm : __float2half_rn(0x0p+0f/*0.000000e+00*/));
    }
    int cse_v5 = (((int)threadIdx.x) >> 3);
    int cse_v6 = (((int)threadIdx.x) & 7);
    int cse_v12 = ((((int)threadIdx.x) & 7) * 4);
    #pragma unroll
    for (int i_5 = 0; i_5 < 4; ++i_5) {
      half4 condval;
      if (((i_3 * 2) + (i_5 >> 1)) < 9) {
        condval = next_ptr_1[i_5];
      } else {
        condval = make_half4(__float2half_rn(0x0p+0f/*0.000000e+00*/), __float2half_rn(0x0p+0f/*0.000000e+00*/), __float2half_rn(0x0p+0f/*0.000000e+00*/), __float2half_rn(0x0p+0f/*0.000000e+00*/));
      }
      *(half4*)(tiles_ptr + ((((((i_3 & 1) * 2560) + (i_5 * 320)) + ((((int)threadIdx.x) >> 3) * 40)) + ((((int)threadIdx.x) & 7) * 4)) + 1280)) = condval;
    }
    __syncthreads();
    if (i_3 < 4) {
      #pragma unroll
      for (int i_6 = 0; i_6 < 16; ++i_6) {
        int cse_v17 = (((i_3 * 2) + (i_6 >> 3)) + 2);
        next_ptr[i_6] = p0_x_0_ptr[(((((i_6 & 7) * 162) + ((((int)threadIdx.x) >> 5) * 81)) + (max(min((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) / 9) + ((((i_3 * 2) + (i_6 >> 3)) + 2) / 3)) - 1), 8), 0) * 9)) + max(min((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 80) % 9) + ((((i_3 * 2) + (i_6 >> 3)) + 2) % 3)) - 1), 8), 0))];
      }
      #pragma unroll
      for (int i_7 = 0; i_7 < 4; ++i_7) {
        next_ptr_1[i_7] = *(half4*)(p1_x_1_ptr + ((min(((((i_3 * 32) + (i_7 * 8)) + (((int)threadIdx.x) >> 3)) + 32), 143) * 32) + ((((int)threadIdx.x) & 7) * 4)));
      }
    }
    for (int i_8 = 0; i_8 < 2; ++i_8) {
      int cse_v7 = (((int)threadIdx.x) & 15);
      int cse_v18 = (((i_3 & 1) * 2560) + (i_8 * 640));
      #pragma unroll
      for (int i_9 = 0; i_9 < 2; ++i_9) {
        rammer_ldmatrix_trans((&(a_ptr[i_9])), (&(*(uint4*)(tiles_ptr + (((((((i_3 & 1) * 2560) + (i_8 * 640)) + (((((int)threadIdx.x) & 31) >> 4) * 320)) + ((((int)threadIdx.x) & 7) * 40)) + (i_9 * 16)) + (((((int)threadIdx.x) & 15) >> 3) * 8))))));
      }
      rammer_ldmatrix_trans((&(*(uint4*)(b_ptr + 0))), (&(*(uint4*)(tiles_ptr + ((((((i_3 & 1) * 2560) + (i_8 * 640)) + ((((int)threadIdx.x) & 15) * 40)) + ((((int)threadIdx.x) >> 4) * 8)) + 1280)))));
      #pragma unroll
      for (int i_10 = 0; i_10 < 2; ++i_10) {
        #pragma unroll
        for (int i_11 = 0; i_11 < 2; ++i_11) {
          int cse_v8 = (i_11 * 4);
          rammer_mma_f16((&(*(float4*)(sums_ptr + ((i_10 * 8) + (i_11 * 4))))), (&(a_ptr[i_10])), (&(*(half4*)(b_ptr + (i_11 * 4)))));
        }
      }
    }
  }
  #pragma unroll
  for (int i_12 = 0; i_12 < 16; ++i_12) {
    int cse_v13 = ((i_12 >> 3) * 16);
    int cse_v14 = ((((int)threadIdx.x) & 31) >> 2);
    int cse_v15 = ((i_12 & 7) >> 2);
    int cse_v19 = (((i_12 & 3) >> 1) * 8);
    if ((((((((int)blockIdx.x) * 32) + ((i_12 >> 3) * 16)) + (((i_12 & 3) >> 1) * 8)) + ((((int)threadIdx.x) & 31) >> 2)) < 81) & ((((((int)threadIdx.x) >> 5) * 2) + ((i_12 & 7) >> 2)) < 3)) {
      p2_compute_intermediate_1_ptr[(((((((((((int)threadIdx.x) >> 5) * 1296) + (((i_12 & 7) >> 2) * 648)) + ((((int)threadIdx.x) & 3) * 162)) + ((i_12 & 1) * 81)) + (((int)blockIdx.x) * 32)) + ((i_12 >> 3) * 16)) + (((i_12 & 3) >> 1) * 8)) + ((((int)threadIdx.x) & 31) >> 2))] = rammer_max_float16(__float2half_rn(0x0p+0f/*0.000000e+00*/), ((half)sums_ptr[i_12]));
    }
  }
}

