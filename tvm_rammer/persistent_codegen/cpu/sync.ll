; Signal and Wait between the vEUs of a CPU: TIR has no atomic operation, so these two are LLVM IR. Nor can it choose
; between two pointers.
; A vEU that waits long gives its core away: it may be the one that the signalling vEU needs.

declare i32 @sched_yield()

define internal void @rammer_signal(ptr %counter) alwaysinline {
  %before = atomicrmw add ptr %counter, i32 1 release
  ret void
}

define internal void @rammer_wait(ptr %counter, i32 %arrivals) alwaysinline {
entry:
  br label %poll
poll:
  %tries = phi i32 [ 0, %entry ], [ %next, %again ], [ 0, %yield ]
  %now = load atomic i32, ptr %counter acquire, align 4
  %there = icmp sge i32 %now, %arrivals
  br i1 %there, label %done, label %again_or_yield
again_or_yield:
  %next = add i32 %tries, 1
  %patient = icmp slt i32 %next, 4096
  br i1 %patient, label %again, label %yield
again:
  br label %poll
yield:
  %ignored = call i32 @sched_yield()
  br label %poll
done:
  ret void
}

define internal ptr @rammer_select(i1 %condition, ptr %one, ptr %other) alwaysinline {
  %chosen = select i1 %condition, ptr %one, ptr %other
  ret ptr %chosen
}
