; Signal and Wait between the lanes of a program on a CPU: TIR has no atomic operation, so these two are LLVM IR. Nor can it
; choose between two pointers.
; Whoever walks a lane leaves it at once where nobody may be on another lane; else he polls for some microseconds before he
; leaves it, and sleeps in the end until the program's bell rings (workers/workers.h). A sleeper says so before he looks at the counter once more, and both sides are sequentially
; consistent, so no ring is lost.

define internal void @rammer_signal(ptr %counter, ptr %bell) alwaysinline {
  %before = atomicrmw add ptr %counter, i32 1 seq_cst
  %asleep = load atomic i32, ptr %bell seq_cst, align 4
  %nobody = icmp eq i32 %asleep, 0
  br i1 %nobody, label %done, label %ring
ring:
  %ring_at = getelementptr ptr, ptr %bell, i64 2
  %rings = load ptr, ptr %ring_at
  %zero = call i32 %rings(ptr %bell)
  br label %done
done:
  ret void
}

define internal i1 @rammer_waits(ptr %counter, i32 %arrivals, ptr %bell) alwaysinline {
entry:
  %walkers_at = getelementptr i32, ptr %bell, i64 2
  %lanes_at = getelementptr i32, ptr %bell, i64 3
  %before = load atomic i32, ptr %counter seq_cst, align 4
  %passed = icmp sge i32 %before, %arrivals
  br i1 %passed, label %done, label %look
look:
  %walkers = load atomic i32, ptr %walkers_at monotonic, align 4
  %lanes = load atomic i32, ptr %lanes_at monotonic, align 4
  %some_free = icmp slt i32 %walkers, %lanes
  br i1 %some_free, label %done, label %poll
poll:
  %tries = phi i32 [ 0, %look ], [ %next, %again ]
  %now = load atomic i32, ptr %counter seq_cst, align 4
  %there = icmp sge i32 %now, %arrivals
  br i1 %there, label %done, label %again_or_leave
again_or_leave:
  %next = add i32 %tries, 1
  %patient = icmp slt i32 %next, 1000
  br i1 %patient, label %again, label %done
again:
  call void @rammer_pause()
  br label %poll
done:
  %waits = phi i1 [ false, %entry ], [ true, %look ], [ false, %poll ], [ true, %again_or_leave ]
  ret i1 %waits
}

define internal ptr @rammer_select(i1 %condition, ptr %one, ptr %other) alwaysinline {
  %chosen = select i1 %condition, ptr %one, ptr %other
  ret ptr %chosen
}
