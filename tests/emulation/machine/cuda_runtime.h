// The CUDA runtime on the CPU: as much of it as a program needs that launches the emulated kernels of cuda_host.h.
//
// Memory is one arena with guards between arrays; a launch runs at once, whatever its stream. Who launches must have
// registered the kernel (emu::Registered), which stands for its image. The environment variable EMU_SEED chooses the
// interleavings, EMU_UNITS says how many multiprocessors there are, EMU_FAILS the launch, from 1, that fails, EMU_LOG names
// a file that gets a line for each call that says what a program does with its streams and launches.
#pragma once
#include <sys/mman.h>

#include <cstdarg>
#include <tuple>
#include <utility>

#include "cuda_host.h"

#define dim3 emu::RuntimeDim3
enum cudaError_t {
  cudaSuccess, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100, cudaErrorNoKernelImageForDevice = 209, cudaErrorNotReady = 600, cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrCooperativeLaunch = 95 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum { cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1 };
using cudaStream_t = struct EmuStream*;
using cudaEvent_t = struct EmuEvent*;
struct EmuStream { int number; };
struct EmuEvent { EmuStream* recorded; };

namespace emu {
struct RuntimeDim3 {
  unsigned x, y, z;
  RuntimeDim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct Registered {
  static inline std::map<const void*, std::function<void(void**)>> kernels;
  template <class... P> explicit Registered(void (*kernel)(P...)) {
    kernels[reinterpret_cast<const void*>(kernel)] = [=](void** parameters) {
      call(kernel, parameters, std::index_sequence_for<P...>{});
    };
  }
  template <class... P, size_t... I> static void call(void (*kernel)(P...), void** parameters, std::index_sequence<I...>) {
    kernel(static_cast<P>(now->block->view.seen_from_here(*static_cast<void**>(parameters[I])))...);
  }
};

constexpr size_t kArena = size_t(1) << 30, kGap = size_t(1) << 16;
inline char* arena = nullptr;
inline size_t used = 0, runs = 0;
inline long asked = 0;  // launches
inline int streams = 0;
inline bool hangs = false;  // a launch has not ended, and never will: its memory is as it left it
struct Array { char* at; size_t bytes; };
inline std::vector<Array> arrays;
inline std::map<const void*, size_t> allowed_shared;

inline long setting(const char* name, long otherwise) { return std::getenv(name) ? std::atol(std::getenv(name)) : otherwise; }
inline void log(const char* format, ...) {
  const char* path = std::getenv("EMU_LOG");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::va_list values;
  va_start(values, format);
  std::vfprintf(file, format, values);
  va_end(values);
  std::fclose(file);
}
inline int number_of(cudaStream_t stream) { return stream ? stream->number : 0; }

// Everything outside of arrays is as it was made, or somebody has written out of bounds.
inline bool gaps_are_whole() {
  char* at = arena;
  for (const Array& array : arrays) {
    for (; at < array.at; ++at) if (*at != char(kPoison)) return false;
    at = array.at + array.bytes;
  }
  for (; at < arena + used; ++at) if (*at != char(kPoison)) return false;
  return true;
}

inline cudaError_t launch(const void* kernel, RuntimeDim3 grid, RuntimeDim3 block, void** parameters, size_t shared,
                          cudaStream_t stream, bool cooperative) {
  auto found = Registered::kernels.find(kernel);
  if (found == Registered::kernels.end()) return cudaErrorNoKernelImageForDevice;
  if (++asked == setting("EMU_FAILS", 0)) return cudaErrorLaunchFailure;
  if (shared > 48 * 1024 && allowed_shared[kernel] < shared) return cudaErrorInvalidValue;
  if (cooperative && long(grid.x) > setting("EMU_UNITS", 4)) return cudaErrorCooperativeLaunchTooLarge;
  log("launch %u,%u,%u %u,%u,%u %zu %d stream %d\n", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
      cooperative, number_of(stream));
  auto extents = [](RuntimeDim3 d) { return Dim3{int(d.x), int(d.y), int(d.z)}; };
  run(extents(grid), extents(block), shared, uint64_t(setting("EMU_SEED", 0)) + runs++, arena, used,
      [=] { found->second(parameters); });
  if (failure.empty() && !gaps_are_whole()) failure = "a write out of bounds";
  if (failure.empty()) return cudaSuccess;
  if (failure.rfind("deadlock", 0) == 0) return hangs = true, cudaSuccess;
  std::fprintf(stderr, "emulation: %s\n", failure.c_str());
  return cudaErrorLaunchFailure;
}
}  // namespace emu

inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorNoKernelImageForDevice: return "cudaErrorNoKernelImageForDevice";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    default: return "cudaErrorInvalidValue";
  }
}
inline const char* cudaGetErrorString(cudaError_t) { return "as emulated"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* gpu) { return *gpu = 0, emu::setting("EMU_UNITS", 4) ? cudaSuccess : cudaErrorNoDevice; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  return *value = which == cudaDevAttrCooperativeLaunch ? 1 : int(emu::setting("EMU_UNITS", 4)), cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  return emu::allowed_shared[kernel] = size_t(bytes), cudaSuccess;
}
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return *blocks = 1, cudaSuccess;
}
inline cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (!emu::arena)
    emu::arena = static_cast<char*>(
        mmap(nullptr, emu::kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  size_t start = (emu::used + emu::kGap + 255) / 256 * 256, end = (start + bytes + emu::kGap + 255) / 256 * 256;
  if (end > emu::kArena) return cudaErrorMemoryAllocation;
  std::memset(emu::arena + emu::used, emu::kPoison, end - emu::used);
  emu::used = end;
  emu::arrays.push_back({emu::arena + start, bytes});
  return *pointer = emu::arena + start, cudaSuccess;
}
inline cudaError_t cudaFree(void*) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void* at, int value, size_t bytes) { return std::memset(at, value, bytes), cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new EmuStream{++emu::streams}, cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return emu::hangs ? cudaErrorNotReady : cudaSuccess; }
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = emu::setting("EMU_CAPTURING", 0) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  emu::log("stream %d waits for stream %d\n", emu::number_of(stream), emu::number_of(event->recorded));
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new EmuEvent{nullptr}, cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return event->recorded = stream, cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { return *ms = 1, cudaSuccess; }
inline cudaError_t cudaLaunchKernel(
    const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared, cudaStream_t stream) {
  return emu::launch(kernel, grid, block, parameters, shared, stream, false);
}
inline cudaError_t cudaLaunchCooperativeKernel(
    const void* kernel, dim3 grid, dim3 block, void** parameters, size_t shared, cudaStream_t stream) {
  return emu::launch(kernel, grid, block, parameters, shared, stream, true);
}
