// Fibers: threads that one OS thread switches between, whenever they say so.
#pragma once
#include <cstddef>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace emu {

struct Context {
#if defined(__x86_64__) || defined(__aarch64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};
void switch_to(Context& from, Context& to);
void prepare(Context& c, char* stack, size_t bytes, void (*entry)());

}  // namespace emu
