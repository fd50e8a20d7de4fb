// CUDA text as TVM emits it, compiled as C++ and run on the CPU: every CUDA thread is a fiber.
//
// One OS thread runs all fibers of all blocks. A fiber runs until it has to wait (barrier, shuffle, __nanosleep),
// then a random other one of its block goes on; after a number of such steps, drawn from 1 to 2^21, a random other
// block does, so that some blocks run far ahead, and in half of the runs one is far behind. Memory is weak between
// blocks (weak_memory.h). The seed decides all, so a run can be repeated. A program that lacks a barrier, a wait or a
// memory order reads what another thread has not written yet, in some run. What a real GPU would turn into a hang is an
// error here: a barrier that differing numbers of threads expect, and a state in which nobody can go on.
//
// What no kernel's text changes is in machine.cpp, which is compiled once.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "fibers.h"
#include "weak_memory.h"

namespace emu {

struct Dim3 { int x = 1, y = 1, z = 1; };

// ---- the machine --------------------------------------------------------------------------------------------------
struct Fiber;

struct Barrier { int expected = 0; std::vector<Fiber*> waiting; };

struct Warp { Barrier barrier; unsigned mask = 0; uint64_t slot[2][32]; };

struct Block {
  Dim3 index;
  std::vector<char> shared;
  std::map<int, std::pair<std::vector<char>, size_t>> statics;  // by line: with guards on both sides; bytes without
  std::map<int, Barrier> barriers;
  std::vector<Warp> warps;
  std::vector<Fiber*> ready;
  bool any[3] = {};
  View view;
};

struct Fiber {
  Context context;
  Block* block = nullptr;
  Dim3 thread;
  int linear = 0, round = 0, round_of_or = 0;
  bool done = false;
};

constexpr size_t kStack = 64 * 1024, kGuard = 256;
constexpr int kWakings = 3, kLeaps = 4;
constexpr long long kLeap = 1ll << 50;
constexpr unsigned char kPoison = 0xFF;  // as a float: not a number

extern Fiber* now;
extern Dim3 block_size, grid_size;
extern std::vector<Fiber*> asleep;
extern long long clock;  // stands still but for leaps, when nobody can go on and somebody has looked at it
extern bool timed;
extern std::string failure;
[[noreturn]] void fail(const std::string& what);
[[noreturn]] void fail(const char* what);
void pause();
void wake_sleepers();
void block_barrier(int id, int threads);
int threads_per_block();
bool block_or(bool value);
Warp& warp_of();
void warp_barrier(unsigned mask);
unsigned ballot(unsigned mask, bool bit);
char* shared_array_of(int line, size_t bytes);  // poisoned when it is asked for first
char* shared_arena();
void run(Dim3 grid, Dim3 block, size_t shared_bytes, uint64_t seed, char* memory, size_t bytes, std::function<void()> f);

template <class T> T exchange(unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= 8);
  int side = now->round++ & 1;  // two sides: nobody writes to the one that others still read
  std::memcpy(&warp_of().slot[side][now->linear % 32], &value, sizeof(T));
  warp_barrier(mask);
  std::memcpy(&value, &warp_of().slot[side][source], sizeof(T));
  return value;
}
template <class T, int N> T (&shared_array(int line))[N] {
  return *reinterpret_cast<T(*)[N]>(shared_array_of(line, sizeof(T) * N));
}

// An array of a thread, between bytes that nobody may touch: what is stored outside of it is told, and what is read
// there is NaN.
constexpr int kLocalGuard = 64;
bool untouched(const char* from, const char* to);
void poison(char* from, char* to);
template <class T, int N> class LocalArray {
 public:
  LocalArray() { poison(bytes_, bytes_ + sizeof bytes_); }
  ~LocalArray() {
    const char* end = bytes_ + kLocalGuard + sizeof(T) * N;
    if (failure.empty() && !(untouched(bytes_, bytes_ + kLocalGuard) && untouched(end, bytes_ + sizeof bytes_)))
      fail("store outside of an array of " + std::to_string(N) + " elements of a thread");
  }
  LocalArray(const LocalArray&) = delete;
  operator T*() { return reinterpret_cast<T*>(bytes_ + kLocalGuard); }

 private:
  alignas(64) char bytes_[2 * kLocalGuard + (sizeof(T) * N + 63) / 64 * 64];
};

// Aligned as on a GPU: an access at another address is an error there, and is told here (machine.cpp).
template <class T> struct alignas(2 * sizeof(T)) Vec2 { T x, y; };
template <class T> struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) Vec4 { T x, y, z, w; };
}  // namespace emu

// ---- CUDA's names -------------------------------------------------------------------------------------------------
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define threadIdx (emu::now->thread)
#define blockIdx (emu::now->block->index)
#define blockDim (emu::block_size)
#define gridDim (emu::grid_size)
#define EMU_VECTORS(name, type)                                                     \
  using name##2 = emu::Vec2<type>;                                                  \
  using name##4 = emu::Vec4<type>;                                                  \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                  \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)
EMU_VECTORS(char, signed char)
EMU_VECTORS(short, short)
EMU_VECTORS(int, int)
EMU_VECTORS(longlong, long long)
EMU_VECTORS(uchar, unsigned char)
EMU_VECTORS(ushort, unsigned short)
EMU_VECTORS(uint, unsigned int)
EMU_VECTORS(ulonglong, unsigned long long)
#undef EMU_VECTORS
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short

inline int __syncthreads_or(int value) { return emu::block_or(value != 0); }
inline long long clock64() { return emu::timed = true, emu::clock; }
inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }
inline void __syncthreads() { emu::block_barrier(0, emu::threads_per_block()); }
inline void __barrier_sync_count(int id, int threads) { emu::block_barrier(id, threads); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { emu::warp_barrier(mask); }
inline unsigned __activemask() { return 0xFFFFFFFFu; }
inline void __threadfence() { emu::now->block->view.publish(), emu::now->block->view.refresh(); }
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {
  emu::asleep.push_back(emu::now);
  emu::pause();
}
inline unsigned __ballot_sync(unsigned mask, bool bit) { return emu::ballot(mask, bit); }
inline int __any_sync(unsigned mask, bool bit) { return emu::ballot(mask, bit) != 0; }
inline size_t __cvta_generic_to_global(const void* p) { return reinterpret_cast<size_t>(p); }
inline void* __cvta_global_to_generic(size_t p) { return reinterpret_cast<void*>(p); }
template <class T> T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  int me = emu::now->linear % 32;
  return emu::exchange(mask, v, (me & ~(width - 1)) + (lane & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned mask, T v, int delta, int width = 32) {
  int me = emu::now->linear % 32, from = me + delta;
  return emu::exchange(mask, v, (from & ~(width - 1)) == (me & ~(width - 1)) ? from : me);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, int delta, int width = 32) {
  int me = emu::now->linear % 32, from = me - delta;
  return emu::exchange(mask, v, from >= (me & ~(width - 1)) ? from : me);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  int me = emu::now->linear % 32, from = me ^ bits;
  return emu::exchange(mask, v, (from & ~(width - 1)) <= (me & ~(width - 1)) ? from : me);
}

// Fibers are never interrupted between two statements, so a word is atomic; a write wakes who sleeps. An operation of
// the block's scope stays in the view of its block, any other acts on the device's memory.
enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST };
enum { __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER, __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM };
namespace emu {
inline bool acquires(int order) { return order == __NV_ATOMIC_ACQUIRE || order == __NV_ATOMIC_CONSUME || order >= __NV_ATOMIC_ACQ_REL; }
inline bool releases(int order) { return order >= __NV_ATOMIC_RELEASE; }
void check_scope(const void* word, int scope);
// Before the operation what was written is released; after it what was released is acquired.
template <class T, class F> T atomic_operation(const T* p, int order, int scope, bool writes, F change) {
  View& view = now->block->view;
  bool wide = scope >= __NV_THREAD_SCOPE_DEVICE;
  if (view.offset(p) < device.bytes) check_scope(view.on_device(p), scope);
  if (wide && releases(order)) view.publish();
  T* word = wide ? view.on_device(const_cast<T*>(p)) : const_cast<T*>(p);
  T old = *word;
  if (writes) *word = change(old), wake_sleepers();
  if (wide) view.note(const_cast<T*>(p));
  if (wide && acquires(order)) view.refresh();
  return old;
}
}  // namespace emu
template <class T> T __nv_atomic_load_n(const T* p, int order, int scope) {
  if (order == __NV_ATOMIC_RELEASE || order == __NV_ATOMIC_ACQ_REL) emu::fail("load that releases");
  return emu::atomic_operation(p, order, scope, false, [](T old) { return old; });
}
template <class T> void __nv_atomic_store_n(T* p, T v, int order, int scope) {
  if (order == __NV_ATOMIC_ACQUIRE || order == __NV_ATOMIC_ACQ_REL) emu::fail("store that acquires");
  emu::atomic_operation(p, order, scope, true, [v](T) { return v; });
}
template <class T> T __nv_atomic_fetch_add(T* p, T v, int order, int scope) {
  return emu::atomic_operation(p, order, scope, true, [v](T old) { return T(old + v); });
}
template <class T> void __nv_atomic_add(T* p, T v, int order, int scope) { __nv_atomic_fetch_add(p, v, order, scope); }
template <class T> T atomicAdd(T* p, T v) { return __nv_atomic_fetch_add(p, v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE); }

using std::max;
using std::min;
// Of two types, as CUDA's overloads take them: both are of the wider one first.
template <class A, class B, class = std::enable_if_t<!std::is_same_v<A, B>>> std::common_type_t<A, B> max(A a, B b) {
  return std::max<std::common_type_t<A, B>>(a, b);
}
template <class A, class B, class = std::enable_if_t<!std::is_same_v<A, B>>> std::common_type_t<A, B> min(A a, B b) {
  return std::min<std::common_type_t<A, B>>(a, b);
}
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __tanhf(float x) { return tanhf(x); }
// As in fast math, with which CUDA text is compiled: none of what is below 0.
inline float __powf(float x, float y) { return exp2f(y * log2f(x)); }
#define powf __powf
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
template <class T> T __ldg(const T* p) { return *emu::now->block->view.non_coherent(p); }
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_INF double(INFINITY)
#define CUDART_NAN double(NAN)
#include "cuda_half.h"
#include "matrices.h"
