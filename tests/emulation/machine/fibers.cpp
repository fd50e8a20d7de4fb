// Switching between fibers, for each processor.
#include "fibers.h"
#include <cstdint>
#include <cstring>

namespace emu {

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

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void emu_switch(void** save, void* load);
void switch_to(Context& from, Context& to) { emu_switch(&from.sp, to.sp); }
void prepare(Context& c, char* stack, size_t bytes, void (*entry)()) {
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
void switch_to(Context& from, Context& to) { swapcontext(&from.context, &to.context); }
void prepare(Context& c, char* stack, size_t bytes, void (*entry)()) {
  getcontext(&c.context);
  c.context.uc_stack.ss_sp = stack;
  c.context.uc_stack.ss_size = bytes;
  c.context.uc_link = nullptr;
  makecontext(&c.context, entry, 0);
}
#endif

}  // namespace emu
