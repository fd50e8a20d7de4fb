extern "C" __global__ void __launch_bounds__(64) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_x_2_ptr, float* __restrict__ p3_compute_intermediate_ptr);
extern "C" __global__ void __launch_bounds__(64) k0_kernel(float* __restrict__ p0_x_0_ptr, float* __restrict__ p1_x_1_ptr, float* __restrict__ p2_x_2_ptr, float* __restrict__ p3_compute_intermediate_ptr) {
  alignas(64) float kept_ptr[1];
  alignas(64) float sums_ptr[4];
  alignas(64) float weights_ptr[12];
  alignas(64) float elements_ptr[3];
  __shared__ alignas(64) float parts_ptr[80];
  int cse_v1 = (((int)blockIdx.x) * 8);
  int cse_v2 = (((int)threadIdx.x) & 7);
  kept_ptr[0] = p2_x_2_ptr[min(((((int)blockIdx.x) * 8) + (((int)threadIdx.x) & 7)), 29)];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    sums_ptr[i] = 0x0p+0f/*0.000000e+00*/;
  }
  #pragma unroll
  for (int i_1 = 0; i_1 < 3; ++i_1) {
    *(float4*)(weights_ptr + (i_1 * 4)) = *(float4*)(p1_x_1_ptr + (((((int)blockIdx.x) * 768) + (i_1 * 256)) + (((int)threadIdx.x) * 4)));
  }
  #pragma unroll
  for (int i_2 = 0; i_2 < 3; ++i_2) {
    elements_ptr[i_2] = p0_x_0_ptr[min(((i_2 * 32) + (((int)threadIdx.x) >> 1)), 69)];
  }
  #pragma unroll
  for (int i_3 = 0; i_3 < 3; ++i_3) {
    #pragma unroll
    for (int i_4 = 0; i_4 < 4; ++i_4) {
      bool holds = (((i_3 * 16) + (((int)threadIdx.x) >> 2)) < 35);
      float arm = elements_ptr[i_3];
      sums_ptr[i_4] = (sums_ptr[i_4] + ((holds ? arm : 0x0p+0f/*0.000000e+00*/) * weights_ptr[((i_3 * 4) + i_4)]));
    }
  }
  #pragma unroll
  for (int i_5 = 0; i_5 < 4; ++i_5) {
    sums_ptr[i_5] = (sums_ptr[i_5] + __shfl_xor_sync((uint)4294967295, sums_ptr[i_5], 2, 32));
  }
  #pragma unroll
  for (int i_6 = 0; i_6 < 4; ++i_6) {
    sums_ptr[i_6] = (sums_ptr[i_6] + __shfl_xor_sync((uint)4294967295, sums_ptr[i_6], 4, 32));
  }
  #pragma unroll
  for (int i_7 = 0; i_7 < 4; ++i_7) {
    sums_ptr[i_7] = (sums_ptr[i_7] + __shfl_xor_sync((uint)4294967295, sums_ptr[i_7], 8, 32));
  }
  #pragma unroll
  for (int i_8 = 0; i_8 < 4; ++i_8) {
    sums_ptr[i_8] = (sums_ptr[i_8] + __shfl_xor_sync((uint)4294967295, sums_ptr[i_8], 16, 32));
  }
  int cse_v3 = (((int)threadIdx.x) + 16);
  parts_ptr[(((int)threadIdx.x) + 16)] = kept_ptr[0];
  if ((((int)threadIdx.x) & 31) < 2) {
    *(float4*)(parts_ptr + (((((int)threadIdx.x) >> 5) * 8) + ((((int)threadIdx.x) & 1) * 4))) = *(float4*)(sums_ptr + 0);
  }
  __syncthreads();
  if (((((int)blockIdx.x) * 4) + ((((int)threadIdx.x) & 7) >> 1)) < 15) {
    if (((int)threadIdx.x) < 8) {
      sums_ptr[0] = (parts_ptr[((int)threadIdx.x)] + parts_ptr[(((int)threadIdx.x) + 8)]);
      p3_compute_intermediate_ptr[((((int)blockIdx.x) * 8) + ((int)threadIdx.x))] = rammer_max_float32(0x0p+0f/*0.000000e+00*/, (sums_ptr[0] + parts_ptr[(((int)threadIdx.x) + 16)]));
    }
  }
}

