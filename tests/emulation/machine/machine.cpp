// The machine of cuda_host.h that emulated kernels run on: its scheduler, barriers, weak memory and matrix instructions.
#include "cuda_host.h"
#include <csignal>
#include <stdexcept>
#include <sys/mman.h>

namespace emu {

// ---- weak memory --------------------------------------------------------------------------------------------------
Device device;
uint64_t random_state = 1;

uint32_t random_below(uint32_t n) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return uint32_t(((random_state >> 33) * uint64_t(n)) >> 31);
}

void Device::start(char* at, size_t size, Weakness how) {
  memory = at, bytes = size, weakness = how;
  initial.assign(at, at + size);
  published.clear();
}
void View::start() {
  if (strong()) return;
  base = device.initial;
  room.resize(device.bytes + kAlignment);
  bytes = room.data() + (kAlignment - reinterpret_cast<uintptr_t>(room.data()) % kAlignment) % kAlignment;
  std::memcpy(bytes, base.data(), device.bytes);
}
void View::publish(bool some) {
  if (strong()) return;
  for (size_t page = 0; page < device.bytes; page += kPage) {
    size_t end = page + kPage < device.bytes ? page + kPage : device.bytes;
    if (!std::memcmp(&bytes[page], &base[page], end - page)) continue;
    for (size_t line = page; line < end; line += kLine) {
      if (!std::memcmp(&bytes[line], &base[line], kLine) || (some && random_below(2))) continue;
      for (size_t i = line; i < line + kLine; i++)
        if (bytes[i] != base[i]) base[i] = device.memory[i] = bytes[i];
      device.published.push_back(line);
    }
  }
}
void View::refresh() {
  if (strong()) return;
  for (; seen < device.published.size(); seen++)
    for (size_t i = device.published[seen], end = i + kLine; i < end; i++)
      if (bytes[i] == base[i]) bytes[i] = base[i] = device.memory[i];
}
void View::drift_out() {
  if (device.weakness == Weakness::drifting) publish(true);
}
void View::drift_in() {
  if (device.weakness == Weakness::drifting && random_below(2)) refresh();
}

// ---- threads ------------------------------------------------------------------------------------------------------
Fiber* now = nullptr;
Block* running = nullptr;
Context scheduler;
std::function<void()> body;
Dim3 grid_size, block_size;
std::vector<Fiber*> asleep;
int wakings = 0;  // of all sleepers because nobody else could go on, since the last atomic write
long long clock = 0;  // stands still but for leaps, when nobody can go on and somebody has looked at it
bool timed = false;
std::vector<Block*> active;  // the blocks in which some fiber is ready
std::string failure;
std::string where() {
  return "block " + std::to_string(now->block->index.x) + ", thread " + std::to_string(now->linear);
}
void pause() { switch_to(now->context, scheduler); }
void fail(const std::string& what) {
  if (failure.empty()) failure = what + " (" + where() + ")";
  for (;;) pause();
}
void fail(const char* what) { fail(std::string(what)); }
void wake(std::vector<Fiber*>& fibers) {
  for (Fiber* f : fibers) {
    if (f->block->ready.empty() && f->block != running) active.push_back(f->block);
    f->block->ready.push_back(f);
  }
  fibers.clear();
}
void wake_sleepers() { wakings = 0, wake(asleep); }
void arrive(Barrier& b, int expected, const char* kind) {
  if (!b.waiting.empty() && b.expected != expected)
    fail(std::string(kind) + " of " + std::to_string(expected) + " threads, but others wait there for " + std::to_string(b.expected));
  b.expected = expected;
  b.waiting.push_back(now);
  if (int(b.waiting.size()) == expected) wake(b.waiting);
  pause();
}
void block_barrier(int id, int threads) {
  if (now->linear >= threads || threads % 32) fail("barrier of " + std::to_string(threads) + " threads");
  arrive(now->block->barriers[id], threads, "barrier");
}
int threads_per_block() { return block_size.x * block_size.y * block_size.z; }

bool block_or(bool value) {
  bool& any = now->block->any[now->round_of_or++ % 3];  // three: nobody clears one that others still read or write
  now->block->any[now->round_of_or % 3] = false;
  any |= value;
  block_barrier(0, threads_per_block());
  return any;
}
Warp& warp_of() { return now->block->warps[now->linear / 32]; }
void warp_barrier(unsigned mask) {
  if (!(mask >> (now->linear % 32) & 1)) fail("warp operation by a thread outside of its mask");
  arrive(warp_of().barrier, __builtin_popcount(mask), "warp barrier");
}
unsigned ballot(unsigned mask, bool bit) {
  int side = now->round++ & 1;
  warp_of().slot[side][now->linear % 32] = bit;
  warp_barrier(mask);
  unsigned lanes = 0;
  for (int lane = 0; lane < 32; lane++) lanes |= (mask >> lane & 1 && warp_of().slot[side][lane] ? 1u : 0u) << lane;
  return lanes;
}
bool untouched(const char* from, const char* to) {
  return std::all_of(from, to, [](char c) { return c == char(kPoison); });
}
void poison(char* from, char* to) { std::fill(from, to, char(kPoison)); }
char* begin_of(std::vector<char>& room) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(room.data()) + kGuard + 15) & ~uintptr_t(15));
}
char* shared_array_of(int line, size_t bytes) {
  auto& [room, size] = now->block->statics[line];
  if (room.empty()) room.assign((size = bytes) + 2 * kGuard + 15, char(kPoison));
  return begin_of(room);
}
char* shared_arena() {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(now->block->shared.data()) + kGuard + 127) & ~uintptr_t(127));
}
void entry() {
  body();
  now->done = true;
  for (;;) pause();
}

// What the host gave to be read lies between pages that nobody may touch. A fiber that does is left where it is.
void outside(int signal) {
  if (now) fail("access out of bounds");
  std::signal(signal, SIG_DFL);
}
struct Watch {
  struct sigaction before, ours {};
  Watch() {
    ours.sa_handler = outside, ours.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before);
  }
  ~Watch() { sigaction(SIGSEGV, &before, nullptr); }
};

// Two blocks race for a word if one of them uses it within the scope of its block: what they see is undefined.
struct Users { const Block* one; bool several, narrow; };
std::map<const void*, Users> users;

// Blocks from `first` on, all at once.
void run_blocks(int first, int count, size_t shared_bytes, uint64_t seed) {
  active.clear(), asleep.clear(), wakings = 0, clock = 0, timed = false;
  const Dim3 grid = grid_size, block = block_size;
  int threads = threads_per_block();
  std::vector<Block> blocks(count);
  std::vector<Fiber> fibers(size_t(count) * threads);
  size_t stacks_bytes = fibers.size() * kStack;
  auto stacks = static_cast<char*>(mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stacks == MAP_FAILED) throw std::runtime_error("no memory for the stacks of the fibers");
  for (int b = 0; b < count; b++) {
    Block& k = blocks[b];
    int number = first + b;
    k.index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
    k.view.start();
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
  // In every other run one block hardly goes on while another one can: who does not wait for it reads too early.
  const Block* late = seed % 2 ? &blocks[seed / 2 % count] : nullptr;
  Watch watch;
  while (failure.empty() && !active.empty()) {
    size_t chosen = random_below(active.size());
    if (active[chosen] == late && active.size() > 1 && random_below(64)) chosen = (chosen + 1) % active.size();
    std::swap(active[chosen], active.back());
    Block* k = active.back();
    active.pop_back();
    running = k;
    k->view.drift_in();
    for (uint32_t steps = 1u << random_below(22); steps && !k->ready.empty() && failure.empty(); steps--) {
      std::swap(k->ready[random_below(k->ready.size())], k->ready.back());
      now = k->ready.back();
      k->ready.pop_back();
      switch_to(scheduler, now->context);
    }
    k->view.drift_out();
    if (!k->ready.empty()) active.push_back(k);
    // Sleepers wake up by themselves, too; when all have looked again in vain, nothing will ever change.
    running = nullptr;
    if (active.empty() && ++wakings > kWakings && timed && clock < kLeaps * kLeap)
      clock += kLeap, timed = false, wakings = 0;
    if (active.empty() && wakings <= kWakings) wake(asleep);
  }
  for (Block& k : blocks) k.view.publish();  // the end of a launch is a release, and its start an acquire
  size_t unfinished = std::count_if(fibers.begin(), fibers.end(), [](const Fiber& f) { return !f.done; });
  if (failure.empty() && unfinished)
    failure = "deadlock: " + std::to_string(unfinished) + " threads wait, " + std::to_string(asleep.size()) + " of them for a counter";
  for (Block& k : blocks) {
    now = &fibers[(&k - blocks.data()) * size_t(threads)];
    char *begin = shared_arena(), *end = k.shared.data() + k.shared.size();
    bool inside = untouched(k.shared.data(), begin) && untouched(begin + shared_bytes, end);
    for (auto& [line, array] : k.statics) {
      auto& [room, size] = array;
      inside = inside && untouched(room.data(), begin_of(room)) && untouched(begin_of(room) + size, room.data() + room.size());
    }
    if (failure.empty() && !inside) failure = "write outside of shared memory, block " + std::to_string(k.index.x);
  }
  munmap(stacks, stacks_bytes);
}

// A grid of more threads is run part by part, as on a GPU that does not hold all of it: what waits for a later part hangs.
constexpr int kMostThreads = 1 << 17;

void run(Dim3 grid, Dim3 block, size_t shared_bytes, uint64_t seed, char* memory, size_t bytes, std::function<void()> f) {
  grid_size = grid, block_size = block, body = std::move(f), failure.clear();
  random_state = seed * 2654435761u + 12345;
  device.start(memory, bytes, Weakness(seed % 3));
  users.clear();
  int count = grid.x * grid.y * grid.z, most = std::max(1, kMostThreads / threads_per_block());
  for (int first = 0; first < count && failure.empty(); first += most)
    run_blocks(first, std::min(most, count - first), shared_bytes, seed);
}
void check_scope(const void* word, int scope) {
  Users& found = users.try_emplace(word, Users{now->block, false, false}).first->second;
  found.several |= found.one != now->block;
  found.narrow |= scope < __NV_THREAD_SCOPE_DEVICE;
  if (found.several && found.narrow) fail("atomic operation of a block's scope on a word that several blocks use");
}

// ---- alignment -----------------------------------------------------------------------------------------------------
// g++ calls this where an address is no multiple of what its type is aligned to (-fsanitize=alignment).
struct Misaligned { const char* file; unsigned line, column; const void* type; unsigned char log_alignment, kind; };
extern "C" void __ubsan_handle_type_mismatch_v1(const Misaligned* access, size_t) {
  fail("access that is not aligned to " + std::to_string(1u << access->log_alignment) + " bytes");
}

// ---- matrix instructions ------------------------------------------------------------------------------------------
struct WarpMatrices { const uint16_t* rows[32]; unsigned words[32][6]; };
std::map<const Warp*, WarpMatrices> matrices;

void load_matrices(bool transposed, unsigned* const (&result)[4], size_t address) {
  WarpMatrices& shared = matrices[&warp_of()];
  int lane = now->linear % 32;
  if (address % 16) fail("row of a matrix that is not aligned to 16 bytes");
  shared.rows[lane] = reinterpret_cast<const uint16_t*>(address);
  warp_barrier(0xFFFFFFFFu);
  for (int m = 0; m < 4; m++) {
    unsigned pair = 0;
    for (int n = 0; n < 2; n++) {
      int slow = lane / 4, fast = lane % 4 * 2 + n;
      unsigned element = transposed ? shared.rows[m * 8 + fast][slow] : shared.rows[m * 8 + slow][fast];
      pair |= element << 16 * n;
    }
    *result[m] = pair;
  }
  warp_barrier(0xFFFFFFFFu);  // nobody goes on, to write what others still read
}

template <class T> float number_of(unsigned word, int which) {
  unsigned short bits = word >> 16 * which;
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return float(value);
}

template <> float number_of<tf32>(unsigned word, int) {
  unsigned read = word & ~0x1FFFu;
  float value;
  std::memcpy(&value, &read, sizeof value);
  return value;
}

template <class T> void multiply_matrices(float* const (&d)[4], const unsigned (&ab)[6], const float (&c)[4]) {
  WarpMatrices& shared = matrices[&warp_of()];
  int lane = now->linear % 32;
  std::memcpy(shared.words[lane], ab, sizeof ab);
  warp_barrier(0xFFFFFFFFu);
  for (int e = 0; e < 4; e++) {
    int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    float sum = c[e];
    for (int word = 0; word < 8; word++) {
      unsigned a = shared.words[row % 8 * 4 + word % 4][row / 8 + word / 4 * 2];
      unsigned b = shared.words[column * 4 + word % 4][4 + word / 4];
      for (int n = 0; n < int(sizeof(unsigned) / sizeof(T)); n++) sum += number_of<T>(a, n) * number_of<T>(b, n);
    }
    *d[e] = sum;
  }
  warp_barrier(0xFFFFFFFFu);
}

template void multiply_matrices<tf32>(float* const (&)[4], const unsigned (&)[6], const float (&)[4]);
template void multiply_matrices<half>(float* const (&)[4], const unsigned (&)[6], const float (&)[4]);
template void multiply_matrices<nv_bfloat16>(float* const (&)[4], const unsigned (&)[6], const float (&)[4]);
}  // namespace emu
