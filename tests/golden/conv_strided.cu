extern "C" __global__ void __launch_bounds__(128) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_conv2d_nchw_ptr);
extern "C" __global__ void __launch_bounds__(128) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_conv2d_nchw_ptr) {
  alignas(64) float sums_ptr[8];
  alignas(64) float next_ptr[8];
  alignas(64) float4 next_ptr_1[1];
  __shared__ alignas(64) float tiles_ptr[3580];
  alignas(64) float a_ptr[2];
  alignas(64) float b_ptr[4];
  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    sums_ptr[i] = 0x0p+0f/*0.000000e+00*/;
  }
  int cse_v1 = (((int)threadIdx.x) >> 5);
  int cse_v2 = (((int)blockIdx.x) * 32);
  int cse_v3 = (((int)threadIdx.x) & 31);
  int cse_v8 = ((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31));
  int cse_v16 = min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224);
  int cse_v19 = ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2);
  int cse_v20 = ((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2);
  #pragma unroll
  for (int i_1 = 0; i_1 < 8; ++i_1) {
    int cse_v7 = ((i_1 * 4) + (((int)threadIdx.x) >> 5));
    next_ptr[i_1] = p0_x_0_ptr[((((((i_1 * 4) + (((int)threadIdx.x) >> 5)) % 3) * 900) + (max(((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2) + (((i_1 * 4) + (((int)threadIdx.x) >> 5)) / 21)) - 3), 0) * 30)) + max(min(((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2) + ((((i_1 * 4) + (((int)threadIdx.x) >> 5)) % 21) / 3)) - 3), 29), 0))];
  }
  next_ptr_1[0] = *(float4*)(p1_x_1_ptr + (((int)threadIdx.x) * 4));
  int cse_v6 = (((int)threadIdx.x) >> 6);
  int cse_v12 = ((((int)threadIdx.x) & 15) * 2);
  int cse_v13 = ((((int)threadIdx.x) & 63) >> 4);
  for (int i_2 = 0; i_2 < 5; ++i_2) {
    int cse_v4 = (i_2 * 32);
    int cse_v9 = ((i_2 & 1) * 1792);
    #pragma unroll
    for (int i_3 = 0; i_3 < 8; ++i_3) {
      int cse_v17 = (((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5));
      int cse_v21 = (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2) + ((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) / 21));
      int cse_v22 = (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2) + (((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) % 21) / 3));
      bool holds = ((((((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) < 147) & (3 <= (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2) + ((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) / 21)))) & ((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2) + ((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) / 21)) < 33)) & (3 <= (((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2) + (((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) % 21) / 3)))) & ((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2) + (((((i_2 * 32) + (i_3 * 4)) + (((int)threadIdx.x) >> 5)) % 21) / 3)) < 33));
      float arm = next_ptr[i_3];
      tiles_ptr[(((((i_2 & 1) * 1792) + (i_3 * 144)) + ((((int)threadIdx.x) >> 5) * 36)) + (((int)threadIdx.x) & 31))] = (holds ? arm : 0x0p+0f/*0.000000e+00*/);
    }
    int cse_v5 = (((int)threadIdx.x) >> 2);
    int cse_v10 = ((i_2 * 32) + (((int)threadIdx.x) >> 2));
    int cse_v11 = ((((int)threadIdx.x) & 3) * 4);
    float4 condval;
    if (((i_2 * 32) + (((int)threadIdx.x) >> 2)) < 147) {
      condval = next_ptr_1[0];
    } else {
      condval = make_float4(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
    }
    *(float4*)(tiles_ptr + (((((i_2 & 1) * 1792) + ((((int)threadIdx.x) >> 2) * 20)) + ((((int)threadIdx.x) & 3) * 4)) + 1152)) = condval;
    __syncthreads();
    if (i_2 < 4) {
      #pragma unroll
      for (int i_4 = 0; i_4 < 8; ++i_4) {
        int cse_v18 = (((i_2 * 32) + (i_4 * 4)) + (((int)threadIdx.x) >> 5));
        next_ptr[i_4] = p0_x_0_ptr[((((((((i_2 * 32) + (i_4 * 4)) + (((int)threadIdx.x) >> 5)) + 2) % 3) * 900) + (max(min(((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) / 15) * 2) + (((((i_2 * 32) + (i_4 * 4)) + (((int)threadIdx.x) >> 5)) + 32) / 21)) - 3), 29), 0) * 30)) + max(min(((((min(((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)), 224) % 15) * 2) + ((((((i_2 * 32) + (i_4 * 4)) + (((int)threadIdx.x) >> 5)) + 11) % 21) / 3)) - 3), 29), 0))];
      }
      next_ptr_1[0] = *(float4*)(p1_x_1_ptr + ((min((((i_2 * 32) + (((int)threadIdx.x) >> 2)) + 32), 146) * 16) + ((((int)threadIdx.x) & 3) * 4)));
    }
    for (int i_5 = 0; i_5 < 2; ++i_5) {
      #pragma unroll
      for (int i_6 = 0; i_6 < 8; ++i_6) {
        *(float2*)(a_ptr + 0) = *(float2*)(tiles_ptr + ((((((i_2 & 1) * 1792) + (i_5 * 576)) + (i_6 * 72)) + ((((int)threadIdx.x) >> 6) * 36)) + ((((int)threadIdx.x) & 15) * 2)));
        *(float4*)(b_ptr + 0) = *(float4*)(tiles_ptr + (((((((i_2 & 1) * 1792) + (i_5 * 320)) + (i_6 * 40)) + ((((int)threadIdx.x) >> 6) * 20)) + (((((int)threadIdx.x) & 63) >> 4) * 4)) + 1152));
        #pragma unroll
        for (int i_7 = 0; i_7 < 2; ++i_7) {
          #pragma unroll
          for (int i_8 = 0; i_8 < 4; ++i_8) {
            int cse_v14 = ((i_7 * 4) + i_8);
            sums_ptr[((i_7 * 4) + i_8)] = (sums_ptr[((i_7 * 4) + i_8)] + (a_ptr[i_7] * b_ptr[i_8]));
          }
        }
      }
    }
  }
  __syncthreads();
  #pragma unroll
  for (int i_9 = 0; i_9 < 4; ++i_9) {
    int2 v_ = make_int2((i_9)+(4*0), (i_9)+(4*1));
    *(float2*)(tiles_ptr + (((((((int)threadIdx.x) >> 6) * 520) + (((((int)threadIdx.x) & 63) >> 4) * 128)) + (i_9 * 32)) + ((((int)threadIdx.x) & 15) * 2))) = make_float2(sums_ptr[v_.x],sums_ptr[v_.y]);
  }
  __syncthreads();
  #pragma unroll
  for (int i_10 = 0; i_10 < 4; ++i_10) {
    int cse_v15 = ((i_10 * 128) + ((int)threadIdx.x));
    sums_ptr[0] = (tiles_ptr[((i_10 * 128) + ((int)threadIdx.x))] + tiles_ptr[(((i_10 * 128) + ((int)threadIdx.x)) + 520)]);
    if (((((int)blockIdx.x) * 32) + (((int)threadIdx.x) & 31)) < 225) {
      p2_conv2d_nchw_ptr[((((i_10 * 900) + ((((int)threadIdx.x) >> 5) * 225)) + (((int)blockIdx.x) * 32)) + (((int)threadIdx.x) & 31))] = sums_ptr[0];
    }
  }
}

