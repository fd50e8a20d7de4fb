// CUDA text as TVM emits it, compiled as C++ and run on the CPU: every CUDA thread is a fiber.
//
// One OS thread runs all fibers of all blocks. A fiber runs until it has to wait (barrier, shuffle, __nanosleep),
// then a random other one of its block goes on; after a number of such steps, drawn from 1 to 2^21, a random other
// block does, so that some blocks run far ahead. The seed decides all, so a run can be repeated. A program that lacks a barrier or a
// wait reads what another thread has not written yet, in some order. What a real GPU would turn into a hang is an
// error here: a barrier that differing numbers of threads expect, and a state in which nobody can go on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <sys/mman.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace emu {

struct Dim3 { int x = 1, y = 1, z = 1; };

// ---- fibers -------------------------------------------------------------------------------------------------------
// Switching saves the registers that a callee must keep, and the stack pointer: ucontext would make a system call.
#if defined(__x86_64__)
asm(R"(
.text
.globl emu_switch
.type emu_switch,@function
emu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");
constexpr int kSaved = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.globl emu_switch
.type emu_switch,%function
emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]; stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]; ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#endif

struct Context {
#if defined(__x86_64__) || defined(__aarch64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};
#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void emu_switch(void** save, void* load);
inline void switch_to(Context& from, Context& to) { emu_switch(&from.sp, to.sp); }
inline void prepare(Context& c, char* stack, size_t bytes, void (*entry)()) {
  auto top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15));
#if defined(__x86_64__)
  *--top = nullptr;  // after the `ret` into entry the stack is aligned as after a call
  *--top = reinterpret_cast<void*>(entry);
  top -= kSaved;
  std::memset(top, 0, kSaved * sizeof(void*));
#else
  top -= 20;
  std::memset(top, 0, 160);
  top[11] = reinterpret_cast<void*>(entry);
#endif
  c.sp = top;
}
#else
inline void switch_to(Context& from, Context& to) { swapcontext(&from.context, &to.context); }
inline void prepare(Context& c, char* stack, size_t bytes, void (*entry)()) {
  getcontext(&c.context);
  c.context.uc_stack.ss_sp = stack;
  c.context.uc_stack.ss_size = bytes;
  c.context.uc_link = nullptr;
  makecontext(&c.context, entry, 0);
}
#endif

// ---- the machine --------------------------------------------------------------------------------------------------
struct Fiber;

struct Barrier { int expected = 0; std::vector<Fiber*> waiting; };

struct Warp { Barrier barrier; unsigned mask = 0; uint64_t slot[2][32]; };

struct Block {
  Dim3 index;
  std::vector<char> shared;
  std::map<int, std::vector<char>> statics;
  std::map<int, Barrier> barriers;
  std::vector<Warp> warps;
  std::vector<Fiber*> ready;
};

struct Fiber {
  Context context;
  Block* block = nullptr;
  Dim3 thread;
  int linear = 0, round = 0;
  bool done = false;
};

constexpr size_t kStack = 64 * 1024, kGuard = 256;
constexpr unsigned char kPoison = 0xFF;  // as a float: not a number

inline Fiber* now = nullptr;
inline Block* running = nullptr;
inline Context scheduler;
inline std::function<void()> body;
inline Dim3 grid_size, block_size;
inline std::vector<Fiber*> asleep;
inline std::vector<Block*> active;  // the blocks in which some fiber is ready
inline std::string failure;
inline uint64_t random_state = 1;

inline uint32_t random_below(uint32_t n) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return uint32_t(((random_state >> 33) * uint64_t(n)) >> 31);
}
inline std::string where() {
  return "block " + std::to_string(now->block->index.x) + ", thread " + std::to_string(now->linear);
}
inline void pause() { switch_to(now->context, scheduler); }
[[noreturn]] inline void fail(const std::string& what) {
  if (failure.empty()) failure = what + " (" + where() + ")";
  for (;;) pause();
}
inline void wake(std::vector<Fiber*>& fibers) {
  for (Fiber* f : fibers) {
    if (f->block->ready.empty() && f->block != running) active.push_back(f->block);
    f->block->ready.push_back(f);
  }
  fibers.clear();
}
inline void wake_sleepers() { wake(asleep); }
inline void arrive(Barrier& b, int expected, const char* kind) {
  if (!b.waiting.empty() && b.expected != expected)
    fail(std::string(kind) + " of " + std::to_string(expected) + " threads, but others wait there for " + std::to_string(b.expected));
  b.expected = expected;
  b.waiting.push_back(now);
  if (int(b.waiting.size()) == expected) wake(b.waiting);
  pause();
}
inline void block_barrier(int id, int threads) {
  if (now->linear >= threads || threads % 32) fail("barrier of " + std::to_string(threads) + " threads");
  arrive(now->block->barriers[id], threads, "barrier");
}
inline int threads_per_block() { return block_size.x * block_size.y * block_size.z; }

inline Warp& warp_of() { return now->block->warps[now->linear / 32]; }
inline void warp_barrier(unsigned mask) {
  if (!(mask >> (now->linear % 32) & 1)) fail("warp operation by a thread outside of its mask");
  arrive(warp_of().barrier, __builtin_popcount(mask), "warp barrier");
}
template <class T> T exchange(unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= 8);
  int side = now->round++ & 1;  // two sides: nobody writes to the one that others still read
  std::memcpy(&warp_of().slot[side][now->linear % 32], &value, sizeof(T));
  warp_barrier(mask);
  std::memcpy(&value, &warp_of().slot[side][source], sizeof(T));
  return value;
}
template <class T, int N> T (&shared_array(int line))[N] {
  auto& bytes = now->block->statics[line];
  if (bytes.empty()) bytes.assign(sizeof(T) * N + 16, char(kPoison));
  auto p = (reinterpret_cast<uintptr_t>(bytes.data()) + 15) & ~uintptr_t(15);
  return *reinterpret_cast<T(*)[N]>(p);
}
inline char* shared_arena() {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(now->block->shared.data()) + kGuard + 127) & ~uintptr_t(127));
}
inline void entry() {
  body();
  now->done = true;
  for (;;) pause();
}

inline void run(Dim3 grid, Dim3 block, size_t shared_bytes, uint64_t seed, std::function<void()> f) {
  grid_size = grid, block_size = block, body = std::move(f), failure.clear(), active.clear(), asleep.clear();
  random_state = seed * 2654435761u + 12345;
  int threads = threads_per_block(), count = grid.x * grid.y * grid.z;
  std::vector<Block> blocks(count);
  std::vector<Fiber> fibers(size_t(count) * threads);
  size_t stacks_bytes = fibers.size() * kStack;
  auto stacks = static_cast<char*>(mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stacks == MAP_FAILED) throw std::runtime_error("no memory for the stacks of the fibers");
  for (int b = 0; b < count; b++) {
    Block& k = blocks[b];
    k.index = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    k.shared.assign(shared_bytes + 2 * kGuard + 128, char(kPoison));
    k.warps.resize((threads + 31) / 32);
    for (int t = 0; t < threads; t++) {
      Fiber& f = fibers[size_t(b) * threads + t];
      f.block = &k, f.linear = t;
      f.thread = {t % block.x, t / block.x % block.y, t / block.x / block.y};
      prepare(f.context, stacks + (size_t(b) * threads + t) * kStack, kStack, entry);
      k.ready.push_back(&f);
    }
    active.push_back(&k);
  }
  while (failure.empty() && !active.empty()) {
    size_t chosen = random_below(active.size());
    std::swap(active[chosen], active.back());
    Block* k = active.back();
    active.pop_back();
    running = k;
    for (uint32_t steps = 1u << random_below(22); steps && !k->ready.empty() && failure.empty(); steps--) {
      std::swap(k->ready[random_below(k->ready.size())], k->ready.back());
      now = k->ready.back();
      k->ready.pop_back();
      switch_to(scheduler, now->context);
    }
    if (!k->ready.empty()) active.push_back(k);
  }
  size_t unfinished = std::count_if(fibers.begin(), fibers.end(), [](const Fiber& f) { return !f.done; });
  if (failure.empty() && unfinished)
    failure = "deadlock: " + std::to_string(unfinished) + " threads wait, " + std::to_string(asleep.size()) + " of them for a counter";
  for (Block& k : blocks) {
    now = &fibers[(&k - blocks.data()) * size_t(threads)];
    char *first = shared_arena(), *end = k.shared.data() + k.shared.size();
    auto touched = [](char* from, char* to) { return std::any_of(from, to, [](char c) { return c != char(kPoison); }); };
    if (failure.empty() && (touched(k.shared.data(), first) || touched(first + shared_bytes, end)))
      failure = "write outside of shared memory, block " + std::to_string(k.index.x);
  }
  munmap(stacks, stacks_bytes);
}

template <class T> struct Vec2 { T x, y; };
template <class T> struct Vec4 { T x, y, z, w; };
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
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short
using float2 = emu::Vec2<float>;
using float4 = emu::Vec4<float>;
using int2 = emu::Vec2<int>;
using int4 = emu::Vec4<int>;
using uint2 = emu::Vec2<unsigned>;
using uint4 = emu::Vec4<unsigned>;
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

inline void __syncthreads() { emu::block_barrier(0, emu::threads_per_block()); }
inline void __barrier_sync_count(int id, int threads) { emu::block_barrier(id, threads); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { emu::warp_barrier(mask); }
inline unsigned __activemask() { return 0xFFFFFFFFu; }
inline void __threadfence() {}
inline void __nanosleep(unsigned) {
  emu::asleep.push_back(emu::now);
  emu::pause();
}
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

// Fibers are never interrupted between two statements, so plain memory is atomic; a write wakes who sleeps.
enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST };
enum { __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM };
template <class T> T __nv_atomic_load_n(const T* p, int, int) { return *p; }
template <class T> void __nv_atomic_store_n(T* p, T v, int, int) { *p = v, emu::wake_sleepers(); }
template <class T> T __nv_atomic_fetch_add(T* p, T v, int, int) {
  T old = *p;
  *p += v;
  emu::wake_sleepers();
  return old;
}
template <class T> void __nv_atomic_add(T* p, T v, int order, int scope) { __nv_atomic_fetch_add(p, v, order, scope); }
template <class T> T atomicAdd(T* p, T v) { return __nv_atomic_fetch_add(p, v, 0, 0); }

using std::max;
using std::min;
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
template <class T> T __ldg(const T* p) { return *p; }
#define CUDART_INF_F INFINITY

// ---- half precision: each operation rounded, as the host's compiler does it ----------------------------------------
using half = _Float16;
using half2 = emu::Vec2<half>;
using half4 = emu::Vec4<half>;
inline half2 make_half2(half x, half y) { return {x, y}; }
inline half4 make_half4(half x, half y, half z, half w) { return {x, y, z, w}; }
inline half __float2half_rn(float x) { return half(x); }
inline float __half2float(half x) { return float(x); }
inline half __hmax(half x, half y) { return x < y ? y : x; }
inline half __hmin(half x, half y) { return x < y ? x : y; }
inline half hexp(half x) { return half(expf(float(x))); }
inline half hlog(half x) { return half(logf(float(x))); }
inline half hsqrt(half x) { return half(sqrtf(float(x))); }
inline half hrsqrt(half x) { return half(1.0f / sqrtf(float(x))); }
inline half htanh(half x) { return half(tanhf(float(x))); }
inline half hcos(half x) { return half(cosf(float(x))); }
inline half hsin(half x) { return half(sinf(float(x))); }
inline half hpow(half x, half y) { return half(powf(float(x), float(y))); }
inline half __habs(half x) { return x < half(0) ? -x : x; }
#define CUDART_INF_FP16 half(INFINITY)

// ---- tensor cores: every thread of a warp has the whole fragment, and all must take part ---------------------------
namespace nvcuda::wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  static_assert(M == 16 && N == 16 && K == 16);
  T at[16][16];
};
template <class T> void check_alignment(const T* p, unsigned stride) {
  if (reinterpret_cast<uintptr_t>(p) % 32) emu::fail("fragment that is not aligned to 32 bytes");
  if (stride * sizeof(T) % 16) emu::fail("fragment whose rows are not aligned to 16 bytes");
}
template <class F, class T> void fill_fragment(F& f, T value) {
  for (auto& row : f.at) for (auto& x : row) x = value;
}
template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* p, unsigned stride) {
  check_alignment(p, stride);
  __syncwarp();
  bool by_rows = std::is_same_v<Layout, row_major>;
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) f.at[i][j] = by_rows ? p[i * stride + j] : p[j * stride + i];
  __syncwarp();
}
template <class T>
void store_matrix_sync(T* p, const fragment<accumulator, 16, 16, 16, T>& f, unsigned stride, layout_t layout) {
  check_alignment(p, stride);
  __syncwarp();
  for (int n = emu::now->linear % 32; n < 256; n += 32) {
    int i = n / 16, j = n % 16;
    p[layout == mem_row_major ? i * stride + j : j * stride + i] = f.at[i][j];
  }
  __syncwarp();
}
template <class A, class B, class C>
void mma_sync(C& d, const A& a, const B& b, const C& c) {
  C sum;
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) {
    float s = c.at[i][j];
    for (int k = 0; k < 16; k++) s += float(a.at[i][k]) * float(b.at[k][j]);
    sum.at[i][j] = s;
  }
  __syncwarp();
  d = sum;
}
}  // namespace nvcuda::wmma
