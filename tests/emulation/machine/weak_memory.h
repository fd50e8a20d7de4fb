// Global memory as the memory model of a GPU allows it to be, at its worst.
//
// Each block has a view of global memory: a copy that its plain loads and stores act on. What it writes stays there until
// a release by one of its threads, at the scope of the device, publishes it; what others have published it sees once one
// of its threads acquires. Atomic operations of that scope act on the device's memory, and move no more than their own
// word. A load that need not be coherent (__ldg) returns what was there when the launch began.
//
// Threads of one block share a view: between them only the order in which fibers run, and barriers, decide.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace emu {

// lazy: nothing moves but by release and acquire. strong: one memory for all. drifting: whenever another block goes on,
// lines chosen at random become visible, in any order.
enum class Weakness { lazy, strong, drifting };

constexpr size_t kLine = 64, kPage = 4096, kAlignment = 256;

struct Device {
  char* memory = nullptr;
  size_t bytes = 0;  // a multiple of a line
  Weakness weakness = Weakness::strong;
  std::vector<char> initial;
  std::vector<size_t> published;  // lines, in the order in which they were

  void start(char* at, size_t size, Weakness how);
};
extern Device device;

struct View {
  std::vector<char> room, base;  // base: as the bytes were when last in agreement with the device
  char* bytes = nullptr;         // in `room`, aligned as memory on a GPU is
  size_t seen = 0;               // how much of `published`

  bool strong() const { return device.weakness == Weakness::strong; }
  void start();
  char* begin() { return strong() ? device.memory : bytes; }
  // Where in global memory an address of this view is; device.bytes for shared memory and what nobody writes.
  size_t offset(const void* p) {
    auto at = size_t(static_cast<const char*>(p) - begin());
    return at < device.bytes ? at : device.bytes;
  }
  // An address that the host gave, as this block has it.
  void* seen_from_here(void* p) {
    auto at = size_t(static_cast<char*>(p) - device.memory);
    return at < device.bytes ? begin() + at : p;
  }
  template <class T> T* on_device(T* p) {
    size_t at = offset(p);
    return at < device.bytes ? reinterpret_cast<T*>(device.memory + at) : p;
  }
  template <class T> const T* non_coherent(const T* p) {
    size_t at = offset(p);
    return at < device.bytes && !strong() ? reinterpret_cast<const T*>(device.initial.data() + at) : p;
  }
  // A word that was just read or written on the device.
  template <class T> void note(T* p) {
    size_t at = offset(p);
    if (strong() || at == device.bytes) return;
    std::memcpy(&bytes[at], device.memory + at, sizeof(T));
    std::memcpy(&base[at], device.memory + at, sizeof(T));
  }
  // Make what the block has written visible; or of each line only with a chance.
  void publish(bool some = false);
  // See what others have published; what the block itself has written since stays.
  void refresh();
  void drift_out();
  void drift_in();
};

}  // namespace emu
