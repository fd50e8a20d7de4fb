"""What code of ours needs of a processor, as LLVM IR."""

_PAUSE = {"x86_64": "pause", "aarch64": "isb"}
_PAUSES = """
define linkonce_odr hidden void @rammer_pause() alwaysinline {{
  call void asm sideeffect "{instruction}", "~{{memory}}"()
  ret void
}}
"""
_YIELD = """
define linkonce_odr hidden void @rammer_pause() {
  %ignored = call i64 (i64, ...) @syscall(i64 124)
  ret void
}
"""
"""For processors whose instruction for it is not known here: the system call `sched_yield`."""
_FUTEX = """
declare i64 @syscall(i64, ...)
define linkonce_odr hidden i64 @rammer_futex(ptr %word, i32 %operation, i32 %value) {{
  %result = call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i32 %operation, i32 %value, ptr null)
  ret i64 %result
}}
"""
_FUTEX_NUMBER = {"x86_64": 202}
"""Of the system call on Linux; 98 on every 64-bit processor that Linux came to later."""

MACHINES = ("x86_64", "aarch64", "riscv64", "loongarch64")
"""Processors whose system calls have these numbers."""


def processor_text(machine: str) -> str:
    """`rammer_pause` and `rammer_futex` as LLVM IR: one instruction and one system call.

    Parameters
    ----------
    machine : str
        As `platform.machine` says it.
    """
    pause = _PAUSE.get(machine)
    text = _YIELD if pause is None else _PAUSES.format(instruction=pause)
    return text + _FUTEX.format(number=_FUTEX_NUMBER.get(machine, 98))
