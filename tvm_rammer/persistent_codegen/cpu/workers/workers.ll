; Made of workers.c by make_ir.py; do not edit. Source: 5b8539955a286a92
%struct.TVMFFIByteArray = type { ptr, i64 }
%struct.Pool = type { i32, i64, ptr, ptr }
%struct.cpu_set_t = type { [16 x i64] }
%struct.TVMFFIAny = type { i32, i32, %union.anon }
%union.anon = type { i64 }
%struct.Polling = type { i32, i64 }
%struct.Job = type { i32, i32, i32, ptr, ptr, [32 x i8], i32, [60 x i8], %struct.Bell, [128 x %struct.Lane] }
%struct.Bell = type { i32, i32, i32, i32, ptr, [40 x i8] }
%struct.Lane = type { i64, [56 x i8] }
%struct.__sigset_t = type { [16 x i64] }
%struct.Helper = type { i32, ptr, i64, i64, i64, i64, i64, [8 x i8] }
%struct.Waiter = type { %struct.Polling, i32, i32 }
%struct.Dl_info = type { ptr, ptr, ptr, ptr }
%struct.timespec = type { i64, i64 }
@rammer_make_pool.making = internal global i32 0, align 4
@rammer_make_pool.made = internal unnamed_addr global ptr null, align 8
@NAME_BYTES = internal constant %struct.TVMFFIByteArray { ptr @NAME, i64 21 }, align 8
@new_pool.pool = internal global %struct.Pool zeroinitializer, align 8
@.str = private unnamed_addr constant [15 x i8] c"RAMMER_SPIN_US\00", align 1
@.str.1 = private unnamed_addr constant [16 x i8] c"TVM_NUM_THREADS\00", align 1
@.str.2 = private unnamed_addr constant [16 x i8] c"OMP_NUM_THREADS\00", align 1
@NAME = internal constant [22 x i8] c"tvm_rammer.workers.v3\00", align 16
define linkonce_odr hidden noundef i32 @rammer_give_pool(ptr noundef %0, ptr nocapture noundef readonly %1, i32 noundef %2, ptr nocapture noundef writeonly %3) {
  %5 = icmp sgt i32 %2, 0
  br i1 %5, label %6, label %13
6:
  %7 = load i32, ptr %1, align 8
  %8 = icmp eq i32 %7, 1
  br i1 %8, label %9, label %13
9:
  %10 = getelementptr inbounds i8, ptr %1, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = trunc i64 %11 to i32
  store atomic i32 %12, ptr %0 seq_cst, align 8
  br label %13
13:
  store i32 4, ptr %3, align 8
  %14 = getelementptr inbounds i8, ptr %3, i64 4
  store i32 0, ptr %14, align 4
  %15 = getelementptr inbounds i8, ptr %3, i64 8
  store ptr %0, ptr %15, align 8
  ret i32 0
}
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture)
define linkonce_odr hidden void @rammer_make_pool(ptr nocapture noundef writeonly %0, ptr noundef %1) {
  %3 = alloca %struct.cpu_set_t, align 8
  %4 = alloca ptr, align 8
  br label %5
5:
  %6 = atomicrmw xchg ptr @rammer_make_pool.making, i32 1 seq_cst, align 4
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %10, label %8
8:
  %9 = tail call i32 @sched_yield()
  br label %5
10:
  %11 = load ptr, ptr @rammer_make_pool.made, align 8
  %12 = icmp eq ptr %11, null
  br i1 %12, label %13, label %57
13:
  %14 = tail call fastcc ptr @find_pool()
  store ptr %14, ptr @rammer_make_pool.made, align 8
  %15 = icmp eq ptr %14, null
  br i1 %15, label %16, label %57
16:
  %17 = tail call ptr @mmap(ptr noundef null, i64 noundef 142464, i32 noundef 3, i32 noundef 34, i32 noundef -1, i64 noundef 0)
  %18 = icmp eq ptr %17, inttoptr (i64 -1 to ptr)
  br i1 %18, label %32, label %19
19:
  %20 = tail call i32 @madvise(ptr noundef %17, i64 noundef 142464, i32 noundef 18)
  %21 = icmp eq i32 %20, 0
  tail call fastcc void @pin(ptr noundef %1)
  br i1 %21, label %22, label %33
22:
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %3)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %3, i8 0, i64 128, i1 false)
  %23 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %3)
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %25, label %27
25:
  %26 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %3)
  br label %27
27:
  %28 = phi i32 [ %26, %25 ], [ 1, %22 ]
  %29 = call fastcc i32 @setting(ptr noundef nonnull @.str.2, i32 noundef %28)
  %30 = call fastcc i32 @setting(ptr noundef nonnull @.str.1, i32 noundef %29)
  %31 = call noundef i32 @llvm.smin.i32(i32 %30, i32 %28)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %3)
  br label %33
32:
  tail call fastcc void @pin(ptr noundef %1)
  br label %33
33:
  %34 = phi i32 [ %31, %27 ], [ 1, %19 ], [ 1, %32 ]
  store i32 %34, ptr @new_pool.pool, align 8
  %35 = call fastcc i32 @setting(ptr noundef nonnull @.str, i32 noundef 100)
  %36 = sext i32 %35 to i64
  %37 = mul nsw i64 %36, 1000
  store i64 %37, ptr getelementptr inbounds (i8, ptr @new_pool.pool, i64 8), align 8
  store ptr %1, ptr getelementptr inbounds (i8, ptr @new_pool.pool, i64 16), align 8
  store ptr %17, ptr getelementptr inbounds (i8, ptr @new_pool.pool, i64 24), align 8
  store ptr @new_pool.pool, ptr @rammer_make_pool.made, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %4)
  store ptr null, ptr %4, align 8
  %38 = icmp eq ptr @TVMFFIFunctionCreate, null
  br i1 %38, label %55, label %39
39:
  %40 = getelementptr inbounds i8, ptr %1, i64 24
  %41 = load ptr, ptr %40, align 8
  %42 = call i32 @TVMFFIFunctionCreate(ptr noundef nonnull @new_pool.pool, ptr noundef %41, ptr noundef null, ptr noundef nonnull %4)
  %43 = icmp eq i32 %42, 0
  br i1 %43, label %44, label %55
44:
  %45 = load ptr, ptr %4, align 8
  %46 = call i32 @TVMFFIFunctionSetGlobal(ptr noundef nonnull @NAME_BYTES, ptr noundef %45, i32 noundef 0)
  %47 = icmp eq i32 %46, 0
  br i1 %47, label %52, label %48
48:
  %49 = call fastcc ptr @find_pool()
  %50 = icmp eq ptr %49, null
  br i1 %50, label %52, label %51
51:
  store ptr %49, ptr @rammer_make_pool.made, align 8
  br label %52
52:
  %53 = load ptr, ptr %4, align 8
  %54 = call i32 @TVMFFIObjectDecRef(ptr noundef %53)
  br label %55
55:
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %4)
  %56 = load ptr, ptr @rammer_make_pool.made, align 8
  br label %57
57:
  %58 = phi ptr [ %11, %10 ], [ %56, %55 ], [ %14, %13 ]
  store ptr %58, ptr %0, align 8
  store atomic i32 0, ptr @rammer_make_pool.making seq_cst, align 4
  ret void
}
declare i32 @sched_yield()
define internal fastcc ptr @find_pool() unnamed_addr {
  %1 = alloca ptr, align 8
  %2 = alloca %struct.TVMFFIAny, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %1)
  store ptr null, ptr %1, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  %3 = icmp eq ptr @TVMFFIFunctionGetGlobal, null
  br i1 %3, label %20, label %4
4:
  %5 = call i32 @TVMFFIFunctionGetGlobal(ptr noundef nonnull @NAME_BYTES, ptr noundef nonnull %1)
  %6 = icmp eq i32 %5, 0
  %7 = load ptr, ptr %1, align 8
  %8 = icmp ne ptr %7, null
  %9 = select i1 %6, i1 %8, i1 false
  br i1 %9, label %10, label %20
10:
  %11 = call i32 @TVMFFIFunctionCall(ptr noundef nonnull %7, ptr noundef null, i32 noundef 0, ptr noundef nonnull %2)
  %12 = icmp eq i32 %11, 0
  br i1 %12, label %15, label %13
13:
  %14 = getelementptr inbounds i8, ptr %2, i64 8
  store ptr null, ptr %14, align 8
  br label %15
15:
  %16 = load ptr, ptr %1, align 8
  %17 = call i32 @TVMFFIObjectDecRef(ptr noundef %16)
  %18 = getelementptr inbounds i8, ptr %2, i64 8
  %19 = load ptr, ptr %18, align 8
  br label %20
20:
  %21 = phi ptr [ %19, %15 ], [ null, %4 ], [ null, %0 ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %1)
  ret ptr %21
}
declare extern_weak i32 @TVMFFIFunctionCreate(ptr noundef, ptr noundef, ptr noundef, ptr noundef)
declare extern_weak i32 @TVMFFIFunctionSetGlobal(ptr noundef, ptr noundef, i32 noundef)
declare extern_weak i32 @TVMFFIObjectDecRef(ptr noundef)
define linkonce_odr hidden void @rammer_ring(ptr noundef %0) {
  %2 = getelementptr inbounds i8, ptr %0, i64 4
  %3 = atomicrmw add ptr %2, i32 1 seq_cst, align 4
  %4 = tail call i64 @rammer_futex(ptr noundef nonnull %2, i32 noundef 129, i32 noundef 2147483647)
  ret void
}
define linkonce_odr hidden void @rammer_help(ptr noundef %0) {
  %2 = alloca %struct.Polling, align 8
  %3 = alloca i32, align 4
  %4 = getelementptr inbounds i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = tail call fastcc zeroext i1 @take_stock(ptr noundef %0)
  %7 = getelementptr inbounds i8, ptr %0, i64 32
  store i64 5000000, ptr %7, align 32
  %8 = getelementptr inbounds i8, ptr %5, i64 24
  %9 = ptrtoint ptr %0 to i64
  %10 = getelementptr inbounds i8, ptr %5, i64 8
  %11 = getelementptr inbounds i8, ptr %0, i64 40
  %12 = getelementptr inbounds i8, ptr %0, i64 48
  %13 = getelementptr inbounds i8, ptr %0, i64 24
  br label %14
14:
  %15 = load ptr, ptr %8, align 8
  %16 = load atomic i32, ptr %15 seq_cst, align 64
  %17 = load ptr, ptr %8, align 8
  %18 = getelementptr inbounds i8, ptr %17, i64 192
  %19 = ptrtoint ptr %18 to i64
  %20 = sub i64 %9, %19
  %21 = lshr exact i64 %20, 6
  %22 = trunc i64 %21 to i32
  %23 = add nsw i32 %22, 1
  br label %24
24:
  %25 = phi i64 [ %38, %36 ], [ 0, %14 ]
  %26 = phi i1 [ %37, %36 ], [ false, %14 ]
  %27 = icmp eq i64 %25, 16
  br i1 %27, label %39, label %28
28:
  %29 = load ptr, ptr %8, align 8
  %30 = getelementptr inbounds i8, ptr %29, i64 8320
  %31 = getelementptr inbounds [16 x %struct.Job], ptr %30, i64 0, i64 %25
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %3)
  %32 = call fastcc i32 @claim_any(ptr noundef nonnull %31, i32 noundef %23, ptr noundef nonnull %3)
  %33 = icmp slt i32 %32, 0
  br i1 %33, label %36, label %34
34:
  %35 = load i32, ptr %3, align 4
  tail call fastcc void @take_part(ptr noundef nonnull %5, ptr noundef nonnull %31, ptr noundef %0, i32 noundef %35, i32 noundef %32)
  br label %36
36:
  %37 = phi i1 [ true, %34 ], [ %26, %28 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %3)
  %38 = add nuw nsw i64 %25, 1
  br label %24
39:
  br i1 %26, label %40, label %53
40:
  %41 = tail call fastcc zeroext i1 @take_stock(ptr noundef %0)
  %42 = load i64, ptr %7, align 32
  %43 = icmp slt i64 %42, 0
  br i1 %43, label %44, label %53
44:
  store i64 0, ptr %7, align 32
  %45 = load i64, ptr %11, align 8
  %46 = icmp eq i64 %45, 0
  %47 = shl nsw i64 %45, 1
  %48 = tail call i64 @llvm.smin.i64(i64 %47, i64 256000000)
  %49 = select i1 %46, i64 4000000, i64 %48
  store i64 %49, ptr %11, align 8
  %50 = tail call fastcc i64 @now_ns()
  %51 = load i64, ptr %11, align 8
  %52 = add nsw i64 %51, %50
  store atomic i64 %52, ptr %12 seq_cst, align 16
  store atomic i32 2, ptr %0 seq_cst, align 64
  br label %69
53:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  store atomic i32 1, ptr %0 seq_cst, align 64
  br label %54
54:
  %55 = load ptr, ptr %8, align 8
  %56 = load atomic i32, ptr %55 seq_cst, align 64
  %57 = icmp eq i32 %56, %16
  br i1 %57, label %59, label %58
58:
  store atomic i32 0, ptr %0 seq_cst, align 64
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  br label %81
59:
  %60 = load i64, ptr %10, align 8
  %61 = call fastcc zeroext i1 @poll_on(ptr noundef nonnull %2, i64 noundef %60)
  br i1 %61, label %54, label %62
62:
  store atomic i32 0, ptr %0 seq_cst, align 64
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  store atomic i32 2, ptr %0 seq_cst, align 64
  %63 = load ptr, ptr %8, align 8
  %64 = load atomic i32, ptr %63 seq_cst, align 64
  %65 = icmp eq i32 %64, %16
  br i1 %65, label %69, label %66
66:
  %67 = cmpxchg ptr %0, i32 2, i32 0 seq_cst seq_cst, align 64
  %68 = extractvalue { i32, i1 } %67, 1
  br i1 %68, label %81, label %69
69:
  %70 = tail call fastcc i64 @now_ns()
  br label %71
71:
  %72 = load atomic i32, ptr %0 seq_cst, align 64
  %73 = icmp eq i32 %72, 2
  br i1 %73, label %74, label %76
74:
  %75 = tail call i64 @rammer_futex(ptr noundef nonnull %0, i32 noundef 128, i32 noundef 2)
  br label %71
76:
  %77 = tail call fastcc i64 @now_ns()
  %78 = sub i64 %77, %70
  %79 = load i64, ptr %13, align 8
  %80 = add nsw i64 %78, %79
  store i64 %80, ptr %13, align 8
  br label %81
81:
  br label %14
}
define internal fastcc zeroext i1 @take_stock(ptr nocapture noundef %0) unnamed_addr {
  %2 = tail call fastcc i64 @clock_ns(i32 noundef 3)
  %3 = tail call fastcc i64 @now_ns()
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = load i64, ptr %4, align 16
  %6 = sub nsw i64 %2, %5
  %7 = getelementptr inbounds i8, ptr %0, i64 24
  %8 = load i64, ptr %7, align 8
  %9 = sub nsw i64 %3, %8
  %10 = sub nsw i64 %9, %6
  store i64 %2, ptr %4, align 16
  store i64 %3, ptr %7, align 8
  %11 = shl nsw i64 %10, 1
  %12 = sub nsw i64 %6, %11
  %13 = getelementptr inbounds i8, ptr %0, i64 32
  %14 = load i64, ptr %13, align 32
  %15 = add nsw i64 %12, %14
  store i64 %15, ptr %13, align 32
  %16 = icmp sgt i64 %15, 5000000
  br i1 %16, label %17, label %19
17:
  store i64 5000000, ptr %13, align 32
  %18 = getelementptr inbounds i8, ptr %0, i64 40
  store i64 0, ptr %18, align 8
  br label %19
19:
  %20 = icmp sgt i64 %10, 500000
  br i1 %20, label %21, label %24
21:
  %22 = sdiv i64 %9, 8
  %23 = icmp sgt i64 %10, %22
  br label %24
24:
  %25 = phi i1 [ false, %19 ], [ %23, %21 ]
  ret i1 %25
}
define linkonce_odr hidden void @rammer_walk_all(ptr noundef %0, ptr noundef %1, ptr noundef %2, ptr nocapture noundef readonly %3, i32 noundef %4) {
  %6 = icmp slt i32 %4, 0
  %7 = tail call i32 @llvm.abs.i32(i32 %4, i1 true)
  %8 = add nsw i32 %7, -129
  %9 = icmp ult i32 %8, -127
  br i1 %9, label %40, label %10
10:
  %11 = load atomic i32, ptr %0 seq_cst, align 8
  %12 = icmp slt i32 %11, 2
  br i1 %12, label %40, label %13
13:
  br i1 %6, label %14, label %24
14:
  %15 = tail call fastcc i64 @now_ns()
  %16 = getelementptr inbounds i8, ptr %0, i64 24
  %17 = load ptr, ptr %16, align 8
  %18 = getelementptr inbounds i8, ptr %17, i64 136
  %19 = load atomic i64, ptr %18 seq_cst, align 8
  %20 = sub nsw i64 %15, %19
  %21 = getelementptr inbounds i8, ptr %0, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = icmp slt i64 %20, %22
  br i1 %23, label %24, label %40
24:
  %25 = getelementptr inbounds i8, ptr %0, i64 24
  br label %26
26:
  %27 = phi i64 [ %39, %38 ], [ 0, %24 ]
  %28 = icmp eq i64 %27, 16
  br i1 %28, label %40, label %29
29:
  %30 = load ptr, ptr %25, align 8
  %31 = getelementptr inbounds i8, ptr %30, i64 8320
  %32 = getelementptr inbounds [16 x %struct.Job], ptr %31, i64 0, i64 %27
  %33 = load atomic i32, ptr %32 seq_cst, align 64
  %34 = icmp eq i32 %33, 0
  br i1 %34, label %35, label %38
35:
  %36 = atomicrmw xchg ptr %32, i32 1 seq_cst, align 64
  %37 = icmp eq i32 %36, 0
  br i1 %37, label %44, label %38
38:
  %39 = add nuw nsw i64 %27, 1
  br label %26
40:
  tail call fastcc void @walk_alone(ptr noundef %1, ptr noundef %2, ptr noundef %3, i32 noundef %7)
  br i1 %6, label %41, label %83
41:
  %42 = load atomic i32, ptr %0 seq_cst, align 8
  %43 = icmp sgt i32 %42, 1
  br i1 %43, label %82, label %83
44:
  %45 = getelementptr inbounds i8, ptr %32, i64 16
  store ptr %1, ptr %45, align 16
  %46 = getelementptr inbounds i8, ptr %32, i64 24
  store ptr %2, ptr %46, align 8
  %47 = getelementptr inbounds i8, ptr %0, i64 16
  %48 = load ptr, ptr %47, align 8
  %49 = getelementptr inbounds i8, ptr %48, i64 8
  %50 = load ptr, ptr %49, align 8
  %51 = getelementptr inbounds i8, ptr %32, i64 144
  store ptr %50, ptr %51, align 16
  %52 = getelementptr inbounds i8, ptr %32, i64 8
  %53 = load i32, ptr %52, align 8
  %54 = add i32 %53, 1
  store i32 %54, ptr %52, align 8
  %55 = getelementptr inbounds i8, ptr %32, i64 64
  store atomic i32 %7, ptr %55 seq_cst, align 64
  %56 = getelementptr inbounds i8, ptr %32, i64 140
  store atomic i32 %7, ptr %56 seq_cst, align 4
  %57 = getelementptr inbounds i8, ptr %32, i64 192
  %58 = zext nneg i32 %7 to i64
  %59 = zext i32 %54 to i64
  %60 = shl nuw i64 %59, 32
  br label %61
61:
  %62 = phi i64 [ %81, %76 ], [ 0, %44 ]
  %63 = icmp eq i64 %62, %58
  br i1 %63, label %64, label %70
64:
  %65 = getelementptr inbounds i8, ptr %32, i64 4
  store atomic i32 %7, ptr %65 seq_cst, align 4
  %66 = load ptr, ptr %25, align 8
  %67 = atomicrmw add ptr %66, i32 1 seq_cst, align 64
  %68 = add nsw i32 %7, -1
  tail call fastcc void @call_helpers(ptr noundef nonnull %0, i32 noundef %68)
  %69 = load i32, ptr %3, align 4
  tail call fastcc void @take_part(ptr noundef nonnull %0, ptr noundef nonnull %32, ptr noundef null, i32 noundef 0, i32 noundef %69)
  store atomic i32 0, ptr %65 seq_cst, align 4
  store atomic i32 0, ptr %32 seq_cst, align 64
  br label %82
70:
  %71 = icmp eq i64 %62, 0
  br i1 %71, label %76, label %72
72:
  %73 = getelementptr inbounds i32, ptr %3, i64 %62
  %74 = load i32, ptr %73, align 4
  %75 = add nsw i32 %74, 2
  br label %76
76:
  %77 = phi i32 [ %75, %72 ], [ 1, %70 ]
  %78 = getelementptr inbounds [128 x %struct.Lane], ptr %57, i64 0, i64 %62
  %79 = zext i32 %77 to i64
  %80 = or disjoint i64 %60, %79
  store atomic i64 %80, ptr %78 seq_cst, align 64
  %81 = add nuw nsw i64 %62, 1
  br label %61
82:
  tail call fastcc void @note_end(ptr noundef nonnull %0)
  br label %83
83:
  ret void
}
define internal fastcc void @walk_alone(ptr nocapture noundef readonly %0, ptr noundef %1, ptr nocapture noundef readonly %2, i32 noundef %3) unnamed_addr {
  %5 = alloca %struct.Bell, align 64
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(64) %5, i8 0, i64 64, i1 false)
  %6 = getelementptr inbounds i8, ptr %5, i64 8
  store i32 1, ptr %6, align 8
  %7 = getelementptr inbounds i8, ptr %5, i64 12
  store i32 %3, ptr %7, align 4
  %8 = zext nneg i32 %3 to i64
  %9 = tail call ptr @llvm.stacksave.p0()
  %10 = alloca i32, i64 %8, align 16
  %11 = tail call i32 @llvm.smax.i32(i32 %3, i32 0)
  %12 = zext nneg i32 %11 to i64
  br label %13
13:
  %14 = phi i64 [ %20, %16 ], [ 0, %4 ]
  %15 = icmp eq i64 %14, %12
  br i1 %15, label %21, label %16
16:
  %17 = getelementptr inbounds i32, ptr %2, i64 %14
  %18 = load i32, ptr %17, align 4
  %19 = getelementptr inbounds i32, ptr %10, i64 %14
  store i32 %18, ptr %19, align 4
  %20 = add nuw nsw i64 %14, 1
  br label %13
21:
  %22 = phi i32 [ %37, %36 ], [ %3, %13 ]
  %23 = phi i32 [ %39, %36 ], [ 0, %13 ]
  %24 = icmp eq i32 %22, 0
  br i1 %24, label %25, label %26
25:
  call void @llvm.stackrestore.p0(ptr %9)
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %5)
  ret void
26:
  %27 = sext i32 %23 to i64
  %28 = getelementptr inbounds i32, ptr %10, i64 %27
  %29 = load i32, ptr %28, align 4
  %30 = icmp slt i32 %29, 0
  br i1 %30, label %36, label %31
31:
  %32 = call i32 %0(ptr noundef %1, i32 noundef %23, ptr noundef nonnull %28, ptr noundef nonnull %5)
  %33 = load i32, ptr %28, align 4
  %34 = ashr i32 %33, 31
  %35 = add i32 %34, %22
  br label %36
36:
  %37 = phi i32 [ %22, %26 ], [ %35, %31 ]
  %38 = add nsw i32 %23, 1
  %39 = srem i32 %38, %3
  br label %21
}
define internal fastcc void @note_end(ptr nocapture noundef readonly %0) unnamed_addr {
  %2 = getelementptr inbounds i8, ptr %0, i64 24
  %3 = load ptr, ptr %2, align 8
  %4 = getelementptr inbounds i8, ptr %3, i64 136
  %5 = tail call fastcc i64 @now_ns()
  store atomic i64 %5, ptr %4 seq_cst, align 8
  ret void
}
define internal fastcc void @call_helpers(ptr noundef %0, i32 noundef %1) unnamed_addr {
  %3 = alloca i64, align 8
  %4 = alloca %struct.__sigset_t, align 8
  %5 = alloca %struct.__sigset_t, align 8
  %6 = getelementptr inbounds i8, ptr %0, i64 24
  %7 = load ptr, ptr %6, align 8
  %8 = load atomic i32, ptr %0 seq_cst, align 8
  %9 = tail call i32 @llvm.smin.i32(i32 %8, i32 128)
  %10 = add nsw i32 %9, -1
  %11 = getelementptr inbounds i8, ptr %7, i64 64
  %12 = load atomic i32, ptr %11 seq_cst, align 64
  %13 = getelementptr inbounds i8, ptr %7, i64 192
  %14 = sext i32 %10 to i64
  %15 = tail call i32 @llvm.smax.i32(i32 %12, i32 0)
  %16 = zext nneg i32 %15 to i64
  br label %17
17:
  %18 = phi i64 [ %52, %50 ], [ 0, %2 ]
  %19 = phi i32 [ %51, %50 ], [ %1, %2 ]
  %20 = icmp eq i64 %18, %16
  br i1 %20, label %25, label %21
21:
  %22 = icmp slt i64 %18, %14
  %23 = icmp sgt i32 %19, 0
  %24 = select i1 %22, i1 %23, i1 false
  br i1 %24, label %29, label %25
25:
  %26 = icmp sgt i32 %19, 0
  %27 = icmp slt i32 %12, %10
  %28 = select i1 %26, i1 %27, i1 false
  br i1 %28, label %53, label %94
29:
  %30 = getelementptr inbounds [127 x %struct.Helper], ptr %13, i64 0, i64 %18
  %31 = load atomic i32, ptr %30 seq_cst, align 64
  %32 = icmp eq i32 %31, 1
  %33 = sext i1 %32 to i32
  %34 = add nsw i32 %19, %33
  %35 = getelementptr inbounds i8, ptr %30, i64 48
  %36 = load atomic i64, ptr %35 seq_cst, align 16
  %37 = icmp eq i32 %31, 2
  br i1 %37, label %38, label %50
38:
  %39 = icmp eq i64 %36, 0
  br i1 %39, label %43, label %40
40:
  %41 = tail call fastcc i64 @now_ns()
  %42 = icmp slt i64 %41, %36
  br i1 %42, label %50, label %43
43:
  %44 = cmpxchg ptr %30, i32 2, i32 0 seq_cst seq_cst, align 64
  %45 = extractvalue { i32, i1 } %44, 1
  br i1 %45, label %46, label %48
46:
  %47 = tail call i64 @rammer_futex(ptr noundef nonnull %30, i32 noundef 129, i32 noundef 1)
  br label %48
48:
  %49 = add nsw i32 %19, -1
  br label %50
50:
  %51 = phi i32 [ %49, %48 ], [ %34, %40 ], [ %34, %29 ]
  %52 = add nuw nsw i64 %18, 1
  br label %17
53:
  %54 = getelementptr inbounds i8, ptr %7, i64 128
  %55 = atomicrmw xchg ptr %54, i32 1 seq_cst, align 64
  %56 = icmp eq i32 %55, 0
  br i1 %56, label %57, label %94
57:
  %58 = load atomic i32, ptr %11 seq_cst, align 64
  %59 = getelementptr inbounds i8, ptr %0, i64 16
  %60 = sext i32 %58 to i64
  br label %61
61:
  %62 = phi i64 [ %90, %89 ], [ %60, %57 ]
  %63 = phi i32 [ %92, %89 ], [ %19, %57 ]
  %64 = icmp sgt i32 %63, 0
  %65 = icmp slt i64 %62, %14
  %66 = select i1 %64, i1 %65, i1 false
  br i1 %66, label %67, label %93
67:
  %68 = load ptr, ptr %6, align 8
  %69 = getelementptr inbounds i8, ptr %68, i64 192
  %70 = getelementptr inbounds [127 x %struct.Helper], ptr %69, i64 0, i64 %62
  %71 = getelementptr inbounds i8, ptr %70, i64 8
  store ptr %0, ptr %71, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %4)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5)
  %72 = call i32 @sigfillset(ptr noundef nonnull %4)
  %73 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %4, ptr noundef nonnull %5)
  %74 = load ptr, ptr %59, align 8
  %75 = getelementptr inbounds i8, ptr %74, i64 16
  %76 = load ptr, ptr %75, align 8
  %77 = call i32 @pthread_create(ptr noundef nonnull %3, ptr noundef null, ptr noundef %76, ptr noundef nonnull %70)
  %78 = icmp eq i32 %77, 0
  br i1 %78, label %79, label %86
79:
  %80 = load i64, ptr %3, align 8
  %81 = call i32 @pthread_detach(i64 noundef %80)
  %82 = load ptr, ptr %6, align 8
  %83 = getelementptr inbounds i8, ptr %82, i64 64
  %84 = add nsw i64 %62, 1
  %85 = trunc nsw i64 %84 to i32
  store atomic i32 %85, ptr %83 seq_cst, align 64
  br label %89
86:
  %87 = add nsw i64 %62, 1
  %88 = trunc nsw i64 %87 to i32
  store atomic i32 %88, ptr %0 seq_cst, align 8
  br label %89
89:
  %90 = phi i64 [ %84, %79 ], [ %87, %86 ]
  %91 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %5, ptr noundef null)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %4)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3)
  %92 = add nsw i32 %63, -1
  br label %61
93:
  store atomic i32 0, ptr %54 seq_cst, align 64
  br label %94
94:
  ret void
}
define internal fastcc void @take_part(ptr noundef %0, ptr noundef %1, ptr noundef %2, i32 noundef %3, i32 noundef %4) unnamed_addr {
  %6 = alloca i32, align 4
  %7 = alloca %struct.Waiter, align 8
  %8 = alloca i32, align 4
  store i32 %3, ptr %6, align 4
  call void @llvm.lifetime.start.p0(i64 24, ptr nonnull %7)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %7, i8 0, i64 24, i1 false)
  %9 = getelementptr inbounds i8, ptr %1, i64 128
  %10 = getelementptr inbounds i8, ptr %1, i64 136
  %11 = atomicrmw add ptr %10, i32 1 seq_cst, align 8
  %12 = getelementptr inbounds i8, ptr %1, i64 16
  %13 = getelementptr inbounds i8, ptr %1, i64 24
  %14 = getelementptr inbounds i8, ptr %1, i64 192
  %15 = getelementptr inbounds i8, ptr %1, i64 8
  %16 = getelementptr inbounds i8, ptr %7, i64 16
  %17 = getelementptr inbounds i8, ptr %1, i64 64
  %18 = icmp eq ptr %2, null
  %19 = getelementptr inbounds i8, ptr %1, i64 4
  %20 = getelementptr inbounds i8, ptr %1, i64 132
  %21 = getelementptr inbounds i8, ptr %7, i64 20
  %22 = getelementptr inbounds i8, ptr %2, i64 24
  %23 = icmp ne ptr %2, null
  br label %24
24:
  %25 = phi i64 [ 0, %5 ], [ %130, %129 ]
  %26 = phi i32 [ %4, %5 ], [ %92, %129 ]
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %8)
  store i32 %26, ptr %8, align 4
  %27 = icmp sgt i32 %26, -1
  br i1 %27, label %28, label %58
28:
  %29 = load ptr, ptr %12, align 16
  %30 = load ptr, ptr %13, align 8
  %31 = load i32, ptr %6, align 4
  %32 = call i32 %29(ptr noundef %30, i32 noundef %31, ptr noundef nonnull %8, ptr noundef nonnull %9)
  %33 = load i32, ptr %8, align 4
  %34 = icmp slt i32 %33, 0
  %35 = add nsw i32 %33, 2
  %36 = select i1 %34, i32 0, i32 %35
  %37 = sext i32 %31 to i64
  %38 = getelementptr inbounds [128 x %struct.Lane], ptr %14, i64 0, i64 %37
  %39 = load i32, ptr %15, align 8
  %40 = zext i32 %39 to i64
  %41 = shl nuw i64 %40, 32
  %42 = zext i32 %36 to i64
  %43 = or disjoint i64 %41, %42
  store atomic i64 %43, ptr %38 seq_cst, align 64
  %44 = icmp eq i32 %33, %26
  br i1 %44, label %58, label %45
45:
  %46 = load i32, ptr %16, align 8
  %47 = icmp eq i32 %46, 0
  br i1 %47, label %51, label %48
48:
  %49 = atomicrmw sub ptr %9, i32 1 seq_cst, align 64
  %50 = load i32, ptr %8, align 4
  br label %51
51:
  %52 = phi i32 [ %33, %45 ], [ %50, %48 ]
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %7, i8 0, i64 24, i1 false)
  %53 = icmp slt i32 %52, 0
  br i1 %53, label %54, label %89
54:
  %55 = atomicrmw sub ptr %17, i32 1 seq_cst, align 64
  %56 = icmp eq i32 %55, 1
  br i1 %56, label %57, label %89
57:
  call fastcc void @ring_if_heard(ptr noundef nonnull %9)
  br label %89
58:
  br i1 %18, label %63, label %59
59:
  %60 = call fastcc zeroext i1 @take_stock(ptr noundef nonnull %2)
  br i1 %60, label %61, label %63
61:
  call fastcc void @ring_if_heard(ptr noundef nonnull %9)
  %62 = atomicrmw sub ptr %10, i32 1 seq_cst, align 8
  br label %131
63:
  %64 = load atomic i32, ptr %19 seq_cst, align 4
  %65 = load i32, ptr %16, align 8
  %66 = icmp sgt i32 %65, 1
  br i1 %66, label %67, label %69
67:
  %68 = add nsw i32 %65, -1
  store i32 %68, ptr %16, align 8
  br label %84
69:
  %70 = icmp eq i32 %65, 1
  br i1 %70, label %71, label %78
71:
  %72 = call fastcc i64 @now_ns()
  %73 = load i32, ptr %21, align 4
  %74 = call i64 @rammer_futex(ptr noundef nonnull %20, i32 noundef 128, i32 noundef %73)
  %75 = atomicrmw sub ptr %9, i32 1 seq_cst, align 64
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %7, i8 0, i64 24, i1 false)
  %76 = call fastcc i64 @now_ns()
  %77 = sub nsw i64 %76, %72
  br label %84
78:
  %79 = call fastcc zeroext i1 @poll_on(ptr noundef nonnull %7, i64 noundef 200000)
  br i1 %79, label %84, label %80
80:
  %81 = atomicrmw add ptr %9, i32 1 seq_cst, align 64
  %82 = add nsw i32 %64, 1
  store i32 %82, ptr %16, align 8
  %83 = load atomic i32, ptr %20 seq_cst, align 4
  store i32 %83, ptr %21, align 4
  br label %84
84:
  %85 = phi i64 [ %77, %71 ], [ 0, %80 ], [ 0, %78 ], [ 0, %67 ]
  br i1 %18, label %89, label %86
86:
  %87 = load i64, ptr %22, align 8
  %88 = add nsw i64 %87, %85
  store i64 %88, ptr %22, align 8
  br label %89
89:
  %90 = load i32, ptr %6, align 4
  %91 = add nsw i32 %90, 1
  %92 = call fastcc i32 @claim_any(ptr noundef nonnull %1, i32 noundef %91, ptr noundef nonnull %6)
  %93 = icmp slt i32 %92, 0
  br i1 %93, label %94, label %108
94:
  %95 = load atomic i32, ptr %10 seq_cst, align 8
  br label %96
96:
  %97 = phi i32 [ %95, %94 ], [ %107, %103 ]
  %98 = load atomic i32, ptr %17 seq_cst, align 64
  br i1 %18, label %101, label %99
99:
  %100 = icmp sgt i32 %97, %98
  br i1 %100, label %103, label %129
101:
  %102 = icmp eq i32 %98, 0
  br i1 %102, label %103, label %108
103:
  %104 = add nsw i32 %97, -1
  %105 = cmpxchg ptr %10, i32 %97, i32 %104 seq_cst seq_cst, align 8
  %106 = extractvalue { i32, i1 } %105, 1
  %107 = extractvalue { i32, i1 } %105, 0
  br i1 %106, label %131, label %96
108:
  %109 = or i1 %23, %93
  br i1 %109, label %129, label %110
110:
  %111 = load atomic i32, ptr %17 seq_cst, align 64
  %112 = load atomic i32, ptr %0 seq_cst, align 8
  %113 = call i32 @llvm.smin.i32(i32 %111, i32 %112)
  %114 = load atomic i32, ptr %10 seq_cst, align 8
  %115 = sub nsw i32 %113, %114
  %116 = icmp sgt i32 %115, 0
  br i1 %116, label %117, label %123
117:
  %118 = call fastcc i64 @now_ns()
  %119 = icmp eq i64 %118, 0
  br i1 %119, label %123, label %120
120:
  %121 = icmp eq i64 %25, 0
  %122 = select i1 %121, i64 %118, i64 %25
  br label %123
123:
  %124 = phi i64 [ 0, %117 ], [ 0, %110 ], [ %122, %120 ]
  %125 = phi i64 [ 0, %117 ], [ 0, %110 ], [ %118, %120 ]
  %126 = sub nsw i64 %125, %124
  %127 = icmp slt i64 %126, 2000001
  br i1 %127, label %129, label %128
128:
  call fastcc void @call_helpers(ptr noundef nonnull %0, i32 noundef %115)
  br label %129
129:
  %130 = phi i64 [ %25, %108 ], [ %124, %123 ], [ %125, %128 ], [ %25, %99 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %8)
  br label %24
131:
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %8)
  %132 = load i32, ptr %16, align 8
  %133 = icmp eq i32 %132, 0
  br i1 %133, label %136, label %134
134:
  %135 = atomicrmw sub ptr %9, i32 1 seq_cst, align 64
  br label %136
136:
  call void @llvm.lifetime.end.p0(i64 24, ptr nonnull %7)
  ret void
}
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)
declare extern_weak i32 @TVMFFIFunctionGetGlobal(ptr noundef, ptr noundef)
declare extern_weak i32 @TVMFFIFunctionCall(ptr noundef, ptr noundef, i32 noundef, ptr noundef)
declare ptr @mmap(ptr noundef, i64 noundef, i32 noundef, i32 noundef, i32 noundef, i64 noundef)
declare i32 @madvise(ptr noundef, i64 noundef, i32 noundef)
define internal fastcc void @pin(ptr nocapture noundef readonly %0) unnamed_addr {
  %2 = alloca %struct.Dl_info, align 8
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %2)
  %3 = getelementptr inbounds i8, ptr %0, i64 16
  %4 = load ptr, ptr %3, align 8
  %5 = call i32 @dladdr(ptr noundef %4, ptr noundef nonnull %2)
  %6 = icmp eq i32 %5, 0
  br i1 %6, label %10, label %7
7:
  %8 = load ptr, ptr %2, align 8
  %9 = call ptr @dlopen(ptr noundef %8, i32 noundef 4102)
  br label %10
10:
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %2)
  ret void
}
define internal fastcc noundef i32 @setting(ptr nocapture noundef readonly %0, i32 noundef %1) unnamed_addr {
  %3 = tail call ptr @getenv(ptr noundef %0)
  %4 = icmp eq ptr %3, null
  br i1 %4, label %10, label %5
5:
  %6 = tail call i32 @atoi(ptr nocapture noundef nonnull %3)
  %7 = freeze i32 %6
  %8 = icmp sgt i32 %7, 0
  %9 = select i1 %8, i32 %7, i32 %1
  br label %10
10:
  %11 = phi i32 [ %1, %2 ], [ %9, %5 ]
  ret i32 %11
}
declare i32 @dladdr(ptr noundef, ptr noundef)
declare ptr @dlopen(ptr noundef, i32 noundef)
declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef)
declare i32 @__sched_cpucount(i64 noundef, ptr noundef)
declare noundef ptr @getenv(ptr nocapture noundef)
declare i32 @atoi(ptr nocapture noundef)
define internal fastcc i64 @clock_ns(i32 noundef %0) unnamed_addr {
  %2 = alloca %struct.timespec, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  %3 = call i32 @clock_gettime(i32 noundef %0, ptr noundef nonnull %2)
  %4 = load i64, ptr %2, align 8
  %5 = mul nsw i64 %4, 1000000000
  %6 = getelementptr inbounds i8, ptr %2, i64 8
  %7 = load i64, ptr %6, align 8
  %8 = add nsw i64 %5, %7
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  ret i64 %8
}
define internal fastcc i64 @now_ns() unnamed_addr {
  %1 = tail call fastcc i64 @clock_ns(i32 noundef 1)
  ret i64 %1
}
declare i32 @clock_gettime(i32 noundef, ptr noundef)
define internal fastcc i32 @claim_any(ptr nocapture noundef %0, i32 noundef %1, ptr nocapture noundef writeonly %2) unnamed_addr {
  %4 = getelementptr inbounds i8, ptr %0, i64 4
  %5 = load atomic i32, ptr %4 seq_cst, align 4
  %6 = getelementptr inbounds i8, ptr %0, i64 192
  %7 = tail call i32 @llvm.smax.i32(i32 %5, i32 0)
  br label %8
8:
  %9 = phi i32 [ 0, %3 ], [ %30, %29 ]
  %10 = icmp eq i32 %9, %7
  br i1 %10, label %31, label %11
11:
  %12 = add nsw i32 %9, %1
  %13 = srem i32 %12, %5
  store i32 %13, ptr %2, align 4
  %14 = sext i32 %13 to i64
  %15 = getelementptr inbounds [128 x %struct.Lane], ptr %6, i64 0, i64 %14
  %16 = load atomic i64, ptr %15 seq_cst, align 64
  %17 = and i64 %16, 4294967294
  %18 = icmp eq i64 %17, 0
  br i1 %18, label %29, label %19
19:
  %20 = and i64 %16, -4294967296
  %21 = or disjoint i64 %20, 1
  %22 = cmpxchg ptr %15, i64 %16, i64 %21 seq_cst seq_cst, align 64
  %23 = extractvalue { i64, i1 } %22, 1
  %24 = extractvalue { i64, i1 } %22, 0
  %25 = trunc i64 %24 to i32
  %26 = add i32 %25, -2
  %27 = icmp sgt i32 %26, -1
  %28 = select i1 %23, i1 %27, i1 false
  br i1 %28, label %31, label %29
29:
  %30 = add nuw i32 %9, 1
  br label %8
31:
  %32 = phi i32 [ -1, %8 ], [ %26, %19 ]
  ret i32 %32
}
define internal fastcc zeroext i1 @poll_on(ptr nocapture noundef %0, i64 noundef %1) unnamed_addr {
  tail call void @rammer_pause()
  %3 = load i32, ptr %0, align 8
  %4 = add nsw i32 %3, 1
  store i32 %4, ptr %0, align 8
  %5 = and i32 %4, 63
  %6 = icmp eq i32 %5, 0
  br i1 %6, label %7, label %17
7:
  %8 = tail call fastcc i64 @now_ns()
  %9 = getelementptr inbounds i8, ptr %0, i64 8
  %10 = load i64, ptr %9, align 8
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %12, label %13
12:
  store i64 %8, ptr %9, align 8
  br label %13
13:
  %14 = phi i64 [ %8, %12 ], [ %10, %7 ]
  %15 = sub nsw i64 %8, %14
  %16 = icmp slt i64 %15, %1
  br label %17
17:
  %18 = phi i1 [ %16, %13 ], [ true, %2 ]
  ret i1 %18
}
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare i32 @sigfillset(ptr noundef)
declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef)
declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef)
declare i32 @pthread_detach(i64 noundef)
define internal fastcc void @ring_if_heard(ptr noundef %0) unnamed_addr {
  %2 = load atomic i32, ptr %0 seq_cst, align 64
  %3 = icmp eq i32 %2, 0
  br i1 %3, label %5, label %4
4:
  tail call void @rammer_ring(ptr noundef nonnull %0)
  br label %5
5:
  ret void
}
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.abs.i32(i32, i1 immarg)
