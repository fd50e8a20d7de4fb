; Two threads on two cores: how long until one sees what the other wrote, and until one that sleeps runs.

declare i32 @clock_gettime(i32, ptr)
declare i32 @usleep(i32)
declare i32 @sched_yield()
declare i64 @read(i32, ptr, i64)
declare i64 @write(i32, ptr, i64)

define internal i64 @exchange_now() {
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %place
  %scaled = mul i64 %s, 1000000000
  %now = add i64 %scaled, %ns
  ret i64 %now
}

; Polls; a thread that polls long gives its processor away, which the other side may need.
define internal void @exchange_await(ptr %word, i32 %value) {
entry:
  br label %poll
poll:
  %polls = phi i32 [ 0, %entry ], [ %counted, %again ], [ 0, %patient ]
  %seen = load atomic i32, ptr %word seq_cst, align 4
  %there = icmp sge i32 %seen, %value
  br i1 %there, label %done, label %count
count:
  %counted = add i32 %polls, 1
  %soon = icmp slt i32 %counted, 256
  br i1 %soon, label %again, label %patient
again:
  call void @rammer_pause()
  br label %poll
patient:
  %yielded = call i32 @sched_yield()
  br label %poll
done:
  ret void
}

; The side waits for 2 k + side, and answers with one more; it notes the time of every 16th, in nanoseconds.
define internal i32 @exchange_words(ptr %word, ptr %ns, i32 %side, i32 %rounds) {
entry:
  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %next, %go_on ]
  %twice = shl i32 %k, 1
  %mine = add i32 %twice, %side
  call void @exchange_await(ptr %word, i32 %mine)
  %answer = add i32 %mine, 1
  store atomic i32 %answer, ptr %word seq_cst, align 4
  %in_block = and i32 %k, 15
  %block = lshr i32 %k, 4
  %first = icmp eq i32 %in_block, 0
  br i1 %first, label %note, label %go_on
note:
  %now = call i64 @exchange_now()
  %at = getelementptr i64, ptr %ns, i32 %block
  store i64 %now, ptr %at
  br label %go_on
go_on:
  %next = add i32 %k, 1
  %more = icmp slt i32 %next, %rounds
  br i1 %more, label %round, label %done
done:
  ret i32 0
}

; A thread that sleeps until a byte comes, and then writes the word.
define internal i32 @exchange_sleep(ptr %word, ptr %ns, i32 %file, i32 %rounds) {
entry:
  %byte = alloca i8
  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %next, %round ]
  %next = add i32 %k, 1
  %got = call i64 @read(i32 %file, ptr %byte, i64 1)
  store atomic i32 %next, ptr %word seq_cst, align 4
  %more = icmp slt i32 %next, %rounds
  br i1 %more, label %round, label %done
done:
  ret i32 0
}

; The thread that wakes it, time after time; nanoseconds until it saw the word, of each time.
define internal i32 @exchange_wake(ptr %word, ptr %ns, i32 %file, i32 %rounds) {
entry:
  %byte = alloca i8
  store i8 0, ptr %byte
  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %next, %round ]
  %next = add i32 %k, 1
  %slept = call i32 @usleep(i32 500)
  %begin = call i64 @exchange_now()
  %put = call i64 @write(i32 %file, ptr %byte, i64 1)
  call void @exchange_await(ptr %word, i32 %next)
  %end = call i64 @exchange_now()
  %passed = sub i64 %end, %begin
  %at = getelementptr i64, ptr %ns, i32 %k
  store i64 %passed, ptr %at
  %more = icmp slt i32 %next, %rounds
  br i1 %more, label %round, label %done
done:
  ret i32 0
}
