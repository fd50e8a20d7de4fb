; Made of workers.c by scripts/workers_ir; do not edit. Source: 7a27f5706a4627af
%struct.TVMFFIByteArray = type { ptr, i64 }
%struct.Pool = type { i32, i64, ptr, ptr }
%struct.cpu_set_t = type { [16 x i64] }
%struct.TVMFFIAny = type { i32, i32, %union.anon }
%union.anon = type { i64 }
%struct.Polling = type { i32, i64 }
%struct.Job = type { i32, i32, i32, ptr, ptr, [32 x i8], i32, [60 x i8], %struct.Bell, [128 x %struct.Lane] }
%struct.Bell = type { i32, i32, i32, [52 x i8] }
%struct.Lane = type { i64, [56 x i8] }
%struct.__sigset_t = type { [16 x i64] }
%struct.Waiter = type { %struct.Polling, i8, i32, i64 }
%struct.Helper = type { i32, ptr, i64, i64, i64, i64, i64, [8 x i8] }
%struct.Dl_info = type { ptr, ptr, ptr, ptr }
%struct.timespec = type { i64, i64 }
@rammer_pool.making = internal global i32 0, align 4
@rammer_the_pool = weak global ptr null, align 8
@NAME_BYTES = internal constant %struct.TVMFFIByteArray { ptr @NAME, i64 21 }, align 8
@make_pool.pool = internal global %struct.Pool zeroinitializer, align 8
@.str = private unnamed_addr constant [15 x i8] c"RAMMER_SPIN_US\00", align 1
@.str.1 = private unnamed_addr constant [16 x i8] c"TVM_NUM_THREADS\00", align 1
@.str.2 = private unnamed_addr constant [16 x i8] c"OMP_NUM_THREADS\00", align 1
@NAME = internal constant [22 x i8] c"tvm_rammer.workers.v1\00", align 16
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
  store i32 %12, ptr %0, align 8
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
define linkonce_odr hidden ptr @rammer_pool(ptr nocapture noundef readonly %0) {
  %2 = alloca %struct.cpu_set_t, align 8
  %3 = alloca ptr, align 8
  %4 = load atomic i64, ptr @rammer_the_pool seq_cst, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %8, label %6
6:
  %7 = inttoptr i64 %4 to ptr
  br label %61
8:
  %9 = atomicrmw xchg ptr @rammer_pool.making, i32 1 seq_cst, align 4
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %13, label %11
11:
  %12 = tail call i32 @sched_yield()
  br label %8
13:
  %14 = tail call fastcc ptr @find_pool()
  %15 = icmp eq ptr %14, null
  br i1 %15, label %16, label %58
16:
  %17 = tail call ptr @mmap(ptr noundef null, i64 noundef 142464, i32 noundef 3, i32 noundef 34, i32 noundef -1, i64 noundef 0)
  %18 = icmp eq ptr %17, inttoptr (i64 -1 to ptr)
  br i1 %18, label %32, label %19
19:
  %20 = tail call i32 @madvise(ptr noundef %17, i64 noundef 142464, i32 noundef 18)
  %21 = icmp eq i32 %20, 0
  tail call fastcc void @pin(ptr noundef readonly %0)
  br i1 %21, label %22, label %33
22:
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %2)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %2, i8 0, i64 128, i1 false)
  %23 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %2)
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %25, label %27
25:
  %26 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %2)
  br label %27
27:
  %28 = phi i32 [ %26, %25 ], [ 1, %22 ]
  %29 = call fastcc i32 @setting(ptr noundef nonnull @.str.2, i32 noundef %28)
  %30 = call fastcc i32 @setting(ptr noundef nonnull @.str.1, i32 noundef %29)
  %31 = call noundef i32 @llvm.smin.i32(i32 %30, i32 %28)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %2)
  br label %33
32:
  tail call fastcc void @pin(ptr noundef readonly %0)
  br label %33
33:
  %34 = phi i32 [ %31, %27 ], [ 1, %19 ], [ 1, %32 ]
  %35 = call fastcc i32 @setting(ptr noundef nonnull @.str, i32 noundef 100)
  %36 = sext i32 %35 to i64
  %37 = mul nsw i64 %36, 1000
  %38 = getelementptr inbounds i8, ptr %0, i64 8
  %39 = load ptr, ptr %38, align 8
  store i32 %34, ptr @make_pool.pool, align 8
  store i64 %37, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 8), align 8
  store ptr %39, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 16), align 8
  store ptr %17, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 24), align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3)
  store ptr null, ptr %3, align 8
  %40 = icmp eq ptr @TVMFFIFunctionCreate, null
  br i1 %40, label %56, label %41
41:
  %42 = getelementptr inbounds i8, ptr %0, i64 16
  %43 = load ptr, ptr %42, align 8
  %44 = call i32 @TVMFFIFunctionCreate(ptr noundef nonnull @make_pool.pool, ptr noundef %43, ptr noundef null, ptr noundef nonnull %3)
  %45 = icmp eq i32 %44, 0
  br i1 %45, label %46, label %56
46:
  %47 = load ptr, ptr %3, align 8
  %48 = call i32 @TVMFFIFunctionSetGlobal(ptr noundef nonnull @NAME_BYTES, ptr noundef %47, i32 noundef 0)
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %52, label %50
50:
  %51 = call fastcc ptr @find_pool()
  br label %52
52:
  %53 = phi ptr [ %51, %50 ], [ @make_pool.pool, %46 ]
  %54 = load ptr, ptr %3, align 8
  %55 = call i32 @TVMFFIObjectDecRef(ptr noundef %54)
  br label %56
56:
  %57 = phi ptr [ %53, %52 ], [ @make_pool.pool, %41 ], [ @make_pool.pool, %33 ]
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3)
  br label %58
58:
  %59 = phi ptr [ %14, %13 ], [ %57, %56 ]
  %60 = ptrtoint ptr %59 to i64
  store atomic i64 %60, ptr @rammer_the_pool seq_cst, align 8
  store atomic i32 0, ptr @rammer_pool.making seq_cst, align 4
  br label %61
61:
  %62 = phi ptr [ %7, %6 ], [ %59, %58 ]
  ret ptr %62
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
  tail call fastcc void @take_stock(ptr noundef %0)
  %6 = getelementptr inbounds i8, ptr %0, i64 32
  store i64 10000000, ptr %6, align 32
  %7 = getelementptr inbounds i8, ptr %5, i64 24
  %8 = ptrtoint ptr %0 to i64
  %9 = getelementptr inbounds i8, ptr %0, i64 24
  %10 = getelementptr inbounds i8, ptr %5, i64 8
  %11 = getelementptr inbounds i8, ptr %0, i64 40
  %12 = getelementptr inbounds i8, ptr %0, i64 48
  br label %13
13:
  %14 = load ptr, ptr %7, align 8
  %15 = load atomic i32, ptr %14 seq_cst, align 64
  %16 = load ptr, ptr %7, align 8
  %17 = getelementptr inbounds i8, ptr %16, i64 192
  %18 = ptrtoint ptr %17 to i64
  %19 = sub i64 %8, %18
  %20 = lshr exact i64 %19, 6
  %21 = trunc i64 %20 to i32
  %22 = add nsw i32 %21, 1
  br label %23
23:
  %24 = phi i64 [ %40, %38 ], [ 0, %13 ]
  %25 = phi i1 [ %39, %38 ], [ false, %13 ]
  %26 = icmp eq i64 %24, 16
  br i1 %26, label %41, label %27
27:
  %28 = load ptr, ptr %7, align 8
  %29 = getelementptr inbounds i8, ptr %28, i64 8320
  %30 = getelementptr inbounds [16 x %struct.Job], ptr %29, i64 0, i64 %24
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %3)
  %31 = call fastcc i32 @claim_any(ptr noundef nonnull %30, i32 noundef %22, ptr noundef nonnull %3)
  %32 = icmp slt i32 %31, 0
  br i1 %32, label %38, label %33
33:
  %34 = load i32, ptr %3, align 4
  %35 = tail call fastcc i64 @walk_lanes(ptr noundef nonnull readonly %5, ptr noundef nonnull %30, i32 noundef %34, i32 noundef %31)
  %36 = load i64, ptr %9, align 8
  %37 = add nsw i64 %36, %35
  store i64 %37, ptr %9, align 8
  br label %38
38:
  %39 = phi i1 [ true, %33 ], [ %25, %27 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %3)
  %40 = add nuw nsw i64 %24, 1
  br label %23
41:
  br i1 %25, label %42, label %54
42:
  tail call fastcc void @take_stock(ptr noundef %0)
  %43 = load i64, ptr %6, align 32
  %44 = icmp slt i64 %43, 0
  br i1 %44, label %45, label %54
45:
  store i64 0, ptr %6, align 32
  %46 = load i64, ptr %11, align 8
  %47 = icmp eq i64 %46, 0
  %48 = shl nsw i64 %46, 1
  %49 = tail call i64 @llvm.smin.i64(i64 %48, i64 256000000)
  %50 = select i1 %47, i64 4000000, i64 %49
  store i64 %50, ptr %11, align 8
  %51 = tail call fastcc i64 @now_ns()
  %52 = load i64, ptr %11, align 8
  %53 = add nsw i64 %52, %51
  store atomic i64 %53, ptr %12 seq_cst, align 16
  store atomic i32 2, ptr %0 seq_cst, align 64
  br label %70
54:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  store atomic i32 1, ptr %0 seq_cst, align 64
  br label %55
55:
  %56 = load ptr, ptr %7, align 8
  %57 = load atomic i32, ptr %56 seq_cst, align 64
  %58 = icmp eq i32 %57, %15
  br i1 %58, label %60, label %59
59:
  store atomic i32 0, ptr %0 seq_cst, align 64
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  br label %82
60:
  %61 = load i64, ptr %10, align 8
  %62 = call fastcc zeroext i1 @poll_on(ptr noundef nonnull %2, i64 noundef %61)
  br i1 %62, label %55, label %63
63:
  store atomic i32 0, ptr %0 seq_cst, align 64
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  store atomic i32 2, ptr %0 seq_cst, align 64
  %64 = load ptr, ptr %7, align 8
  %65 = load atomic i32, ptr %64 seq_cst, align 64
  %66 = icmp eq i32 %65, %15
  br i1 %66, label %70, label %67
67:
  %68 = cmpxchg ptr %0, i32 2, i32 0 seq_cst seq_cst, align 64
  %69 = extractvalue { i32, i1 } %68, 1
  br i1 %69, label %82, label %70
70:
  %71 = tail call fastcc i64 @now_ns()
  br label %72
72:
  %73 = load atomic i32, ptr %0 seq_cst, align 64
  %74 = icmp eq i32 %73, 2
  br i1 %74, label %75, label %77
75:
  %76 = tail call i64 @rammer_futex(ptr noundef nonnull %0, i32 noundef 128, i32 noundef 2)
  br label %72
77:
  %78 = tail call fastcc i64 @now_ns()
  %79 = sub i64 %78, %71
  %80 = load i64, ptr %9, align 8
  %81 = add nsw i64 %79, %80
  store i64 %81, ptr %9, align 8
  br label %82
82:
  br label %13
}
define internal fastcc void @take_stock(ptr nocapture noundef %0) unnamed_addr {
  %2 = tail call fastcc i64 @clock_ns(i32 noundef 3)
  %3 = tail call fastcc i64 @now_ns()
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = load i64, ptr %4, align 16
  %6 = sub nsw i64 %2, %5
  %7 = getelementptr inbounds i8, ptr %0, i64 24
  %8 = load i64, ptr %7, align 8
  %9 = sub i64 %6, %3
  %10 = add i64 %9, %8
  store i64 %2, ptr %4, align 16
  store i64 %3, ptr %7, align 8
  %11 = shl i64 %10, 1
  %12 = add i64 %11, %6
  %13 = getelementptr inbounds i8, ptr %0, i64 32
  %14 = load i64, ptr %13, align 32
  %15 = add nsw i64 %12, %14
  store i64 %15, ptr %13, align 32
  %16 = icmp sgt i64 %15, 10000000
  br i1 %16, label %17, label %19
17:
  store i64 10000000, ptr %13, align 32
  %18 = getelementptr inbounds i8, ptr %0, i64 40
  store i64 0, ptr %18, align 8
  br label %19
19:
  ret void
}
define linkonce_odr hidden void @rammer_run(ptr nocapture noundef readonly %0, ptr noundef %1, ptr nocapture noundef readonly %2, i32 noundef %3) {
  %5 = alloca i64, align 8
  %6 = alloca %struct.__sigset_t, align 8
  %7 = alloca %struct.__sigset_t, align 8
  %8 = alloca i32, align 4
  %9 = alloca %struct.Waiter, align 8
  %10 = tail call ptr @rammer_pool(ptr noundef %0)
  %11 = add i32 %3, -129
  %12 = icmp ult i32 %11, -127
  br i1 %12, label %32, label %13
13:
  %14 = load i32, ptr %10, align 8
  %15 = icmp slt i32 %14, 2
  br i1 %15, label %32, label %16
16:
  %17 = getelementptr inbounds i8, ptr %10, i64 24
  %18 = load ptr, ptr %17, align 8
  %19 = getelementptr inbounds i8, ptr %18, i64 8320
  br label %20
20:
  %21 = phi i64 [ %31, %30 ], [ 0, %16 ]
  %22 = icmp eq i64 %21, 16
  br i1 %22, label %32, label %23
23:
  %24 = getelementptr inbounds [16 x %struct.Job], ptr %19, i64 0, i64 %21
  %25 = load atomic i32, ptr %24 seq_cst, align 64
  %26 = icmp eq i32 %25, 0
  br i1 %26, label %27, label %30
27:
  %28 = atomicrmw xchg ptr %24, i32 1 seq_cst, align 64
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %34, label %30
30:
  %31 = add nuw nsw i64 %21, 1
  br label %20
32:
  %33 = load ptr, ptr %0, align 8
  tail call fastcc void @walk_alone(ptr noundef %33, ptr noundef %1, ptr noundef %2, i32 noundef %3)
  br label %179
34:
  %35 = load ptr, ptr %0, align 8
  %36 = getelementptr inbounds i8, ptr %24, i64 16
  store ptr %35, ptr %36, align 16
  %37 = getelementptr inbounds i8, ptr %24, i64 24
  store ptr %1, ptr %37, align 8
  %38 = getelementptr inbounds i8, ptr %24, i64 8
  %39 = load i32, ptr %38, align 8
  %40 = add i32 %39, 1
  store i32 %40, ptr %38, align 8
  %41 = getelementptr inbounds i8, ptr %24, i64 64
  store atomic i32 %3, ptr %41 seq_cst, align 64
  %42 = getelementptr inbounds i8, ptr %24, i64 192
  %43 = zext nneg i32 %3 to i64
  %44 = zext i32 %40 to i64
  %45 = shl nuw i64 %44, 32
  br label %46
46:
  %47 = phi i64 [ %152, %147 ], [ 0, %34 ]
  %48 = icmp eq i64 %47, %43
  br i1 %48, label %49, label %141
49:
  %50 = getelementptr inbounds i8, ptr %24, i64 4
  store atomic i32 %3, ptr %50 seq_cst, align 4
  %51 = load ptr, ptr %17, align 8
  %52 = atomicrmw add ptr %51, i32 1 seq_cst, align 64
  %53 = add nsw i32 %3, -1
  %54 = load ptr, ptr %17, align 8
  %55 = getelementptr inbounds i8, ptr %54, i64 64
  %56 = load atomic i32, ptr %55 seq_cst, align 64
  %57 = getelementptr inbounds i8, ptr %54, i64 192
  %58 = sext i32 %56 to i64
  br label %59
59:
  %60 = phi i64 [ %95, %93 ], [ 0, %49 ]
  %61 = phi i32 [ %94, %93 ], [ %53, %49 ]
  %62 = icmp slt i64 %60, %58
  %63 = icmp sgt i32 %61, 0
  %64 = select i1 %62, i1 %63, i1 false
  br i1 %64, label %72, label %65
65:
  %66 = load i32, ptr %10, align 8
  %67 = add nsw i32 %66, -1
  %68 = icmp sgt i32 %66, 127
  %69 = select i1 %68, i32 127, i32 %67
  %70 = icmp slt i32 %56, %69
  %71 = select i1 %63, i1 %70, i1 false
  br i1 %71, label %96, label %136
72:
  %73 = getelementptr inbounds [127 x %struct.Helper], ptr %57, i64 0, i64 %60
  %74 = load atomic i32, ptr %73 seq_cst, align 64
  %75 = icmp eq i32 %74, 1
  %76 = sext i1 %75 to i32
  %77 = add nsw i32 %61, %76
  %78 = getelementptr inbounds i8, ptr %73, i64 48
  %79 = load atomic i64, ptr %78 seq_cst, align 16
  %80 = icmp eq i32 %74, 2
  br i1 %80, label %81, label %93
81:
  %82 = icmp eq i64 %79, 0
  br i1 %82, label %86, label %83
83:
  %84 = tail call fastcc i64 @now_ns()
  %85 = icmp slt i64 %84, %79
  br i1 %85, label %93, label %86
86:
  %87 = cmpxchg ptr %73, i32 2, i32 0 seq_cst seq_cst, align 64
  %88 = extractvalue { i32, i1 } %87, 1
  br i1 %88, label %89, label %91
89:
  %90 = tail call i64 @rammer_futex(ptr noundef nonnull %73, i32 noundef 129, i32 noundef 1)
  br label %91
91:
  %92 = add nsw i32 %61, -1
  br label %93
93:
  %94 = phi i32 [ %92, %91 ], [ %77, %83 ], [ %77, %72 ]
  %95 = add nuw nsw i64 %60, 1
  br label %59
96:
  %97 = getelementptr inbounds i8, ptr %54, i64 128
  %98 = atomicrmw xchg ptr %97, i32 1 seq_cst, align 64
  %99 = icmp eq i32 %98, 0
  br i1 %99, label %100, label %136
100:
  %101 = load atomic i32, ptr %55 seq_cst, align 64
  %102 = getelementptr inbounds i8, ptr %10, i64 16
  %103 = sext i32 %101 to i64
  %104 = sext i32 %69 to i64
  br label %105
105:
  %106 = phi i64 [ %132, %131 ], [ %103, %100 ]
  %107 = phi i32 [ %134, %131 ], [ %61, %100 ]
  %108 = icmp sgt i32 %107, 0
  %109 = icmp slt i64 %106, %104
  %110 = select i1 %108, i1 %109, i1 false
  br i1 %110, label %111, label %135
111:
  %112 = load ptr, ptr %17, align 8
  %113 = getelementptr inbounds i8, ptr %112, i64 192
  %114 = getelementptr inbounds [127 x %struct.Helper], ptr %113, i64 0, i64 %106
  %115 = getelementptr inbounds i8, ptr %114, i64 8
  store ptr %10, ptr %115, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %7)
  %116 = call i32 @sigfillset(ptr noundef nonnull %6)
  %117 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %6, ptr noundef nonnull %7)
  %118 = load ptr, ptr %102, align 8
  %119 = call i32 @pthread_create(ptr noundef nonnull %5, ptr noundef null, ptr noundef %118, ptr noundef nonnull %114)
  %120 = icmp eq i32 %119, 0
  br i1 %120, label %121, label %128
121:
  %122 = load i64, ptr %5, align 8
  %123 = call i32 @pthread_detach(i64 noundef %122)
  %124 = load ptr, ptr %17, align 8
  %125 = getelementptr inbounds i8, ptr %124, i64 64
  %126 = add nsw i64 %106, 1
  %127 = trunc nsw i64 %126 to i32
  store atomic i32 %127, ptr %125 seq_cst, align 64
  br label %131
128:
  %129 = add nsw i64 %106, 1
  %130 = trunc nsw i64 %129 to i32
  store i32 %130, ptr %10, align 8
  br label %131
131:
  %132 = phi i64 [ %126, %121 ], [ %129, %128 ]
  %133 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %7, ptr noundef null)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %7)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5)
  %134 = add nsw i32 %107, -1
  br label %105
135:
  store atomic i32 0, ptr %97 seq_cst, align 64
  br label %136
136:
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %8)
  store i32 0, ptr %8, align 4
  %137 = load i32, ptr %2, align 4
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %9)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %9, i8 0, i64 32, i1 false)
  %138 = getelementptr inbounds i8, ptr %9, i64 16
  %139 = getelementptr inbounds i8, ptr %24, i64 128
  %140 = getelementptr inbounds i8, ptr %10, i64 8
  br label %153
141:
  %142 = icmp eq i64 %47, 0
  br i1 %142, label %147, label %143
143:
  %144 = getelementptr inbounds i32, ptr %2, i64 %47
  %145 = load i32, ptr %144, align 4
  %146 = add nsw i32 %145, 2
  br label %147
147:
  %148 = phi i32 [ %146, %143 ], [ 1, %141 ]
  %149 = getelementptr inbounds [128 x %struct.Lane], ptr %42, i64 0, i64 %47
  %150 = zext i32 %148 to i64
  %151 = or disjoint i64 %45, %150
  store atomic i64 %151, ptr %149 seq_cst, align 64
  %152 = add nuw nsw i64 %47, 1
  br label %46
153:
  %154 = phi i32 [ %137, %136 ], [ %174, %178 ]
  %155 = icmp sgt i32 %154, -1
  br i1 %155, label %156, label %164
156:
  %157 = load i32, ptr %8, align 4
  %158 = call fastcc i64 @walk_lanes(ptr noundef nonnull %10, ptr noundef nonnull %24, i32 noundef %157, i32 noundef %154)
  %159 = load i8, ptr %138, align 8
  %160 = trunc nuw i8 %159 to i1
  br i1 %160, label %161, label %163
161:
  %162 = atomicrmw sub ptr %139, i32 1 seq_cst, align 64
  br label %163
163:
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %9, i8 0, i64 24, i1 false)
  br label %164
164:
  %165 = load atomic i32, ptr %41 seq_cst, align 64
  %166 = icmp eq i32 %165, 0
  br i1 %166, label %167, label %173
167:
  %168 = load i8, ptr %138, align 8
  %169 = trunc nuw i8 %168 to i1
  br i1 %169, label %170, label %172
170:
  %171 = atomicrmw sub ptr %139, i32 1 seq_cst, align 64
  br label %172
172:
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %9)
  store atomic i32 0, ptr %50 seq_cst, align 4
  store atomic i32 0, ptr %24 seq_cst, align 64
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %8)
  br label %179
173:
  %174 = call fastcc i32 @claim_any(ptr noundef nonnull %24, i32 noundef 0, ptr noundef nonnull %8)
  %175 = icmp slt i32 %174, 0
  br i1 %175, label %176, label %178
176:
  %177 = load i64, ptr %140, align 8
  call fastcc void @wait_a_little(ptr noundef nonnull %9, ptr noundef nonnull %139, i64 noundef %177)
  br label %178
178:
  br label %153
179:
  ret void
}
define internal fastcc void @walk_alone(ptr nocapture noundef readonly %0, ptr noundef %1, ptr nocapture noundef readonly %2, i32 noundef %3) unnamed_addr {
  %5 = alloca %struct.Bell, align 64
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(64) %5, i8 0, i64 64, i1 false)
  %6 = getelementptr inbounds i8, ptr %5, i64 8
  store i32 1, ptr %6, align 8
  %7 = zext i32 %3 to i64
  %8 = tail call ptr @llvm.stacksave.p0()
  %9 = alloca i32, i64 %7, align 16
  %10 = tail call i32 @llvm.smax.i32(i32 %3, i32 0)
  %11 = zext nneg i32 %10 to i64
  br label %12
12:
  %13 = phi i64 [ %19, %15 ], [ 0, %4 ]
  %14 = icmp eq i64 %13, %11
  br i1 %14, label %20, label %15
15:
  %16 = getelementptr inbounds i32, ptr %2, i64 %13
  %17 = load i32, ptr %16, align 4
  %18 = getelementptr inbounds i32, ptr %9, i64 %13
  store i32 %17, ptr %18, align 4
  %19 = add nuw nsw i64 %13, 1
  br label %12
20:
  %21 = phi i32 [ %36, %35 ], [ %3, %12 ]
  %22 = phi i32 [ %38, %35 ], [ 0, %12 ]
  %23 = icmp eq i32 %21, 0
  br i1 %23, label %24, label %25
24:
  call void @llvm.stackrestore.p0(ptr %8)
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %5)
  ret void
25:
  %26 = sext i32 %22 to i64
  %27 = getelementptr inbounds i32, ptr %9, i64 %26
  %28 = load i32, ptr %27, align 4
  %29 = icmp slt i32 %28, 0
  br i1 %29, label %35, label %30
30:
  %31 = call i32 %0(ptr noundef %1, i32 noundef %22, ptr noundef nonnull %27, ptr noundef nonnull %5)
  %32 = load i32, ptr %27, align 4
  %33 = ashr i32 %32, 31
  %34 = add i32 %33, %21
  br label %35
35:
  %36 = phi i32 [ %21, %25 ], [ %34, %30 ]
  %37 = add nsw i32 %22, 1
  %38 = srem i32 %37, %3
  br label %20
}
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)
define internal fastcc i64 @walk_lanes(ptr nocapture noundef readonly %0, ptr noundef %1, i32 noundef %2, i32 noundef %3) unnamed_addr {
  %5 = alloca %struct.Waiter, align 8
  %6 = alloca i32, align 4
  %7 = alloca i32, align 4
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %5, i8 0, i64 32, i1 false)
  %8 = getelementptr inbounds i8, ptr %1, i64 128
  %9 = getelementptr inbounds i8, ptr %1, i64 136
  %10 = atomicrmw add ptr %9, i32 1 seq_cst, align 8
  %11 = getelementptr inbounds i8, ptr %1, i64 16
  %12 = getelementptr inbounds i8, ptr %1, i64 24
  %13 = getelementptr inbounds i8, ptr %5, i64 16
  %14 = getelementptr inbounds i8, ptr %1, i64 192
  %15 = getelementptr inbounds i8, ptr %1, i64 8
  %16 = getelementptr inbounds i8, ptr %1, i64 64
  %17 = getelementptr inbounds i8, ptr %0, i64 8
  br label %18
18:
  %19 = phi i32 [ %3, %4 ], [ %74, %69 ]
  %20 = phi i32 [ %2, %4 ], [ %75, %69 ]
  %21 = icmp sgt i32 %19, -1
  br i1 %21, label %22, label %76
22:
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %6)
  store i32 %19, ptr %6, align 4
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %7)
  %23 = load ptr, ptr %11, align 16
  %24 = load ptr, ptr %12, align 8
  %25 = call i32 %23(ptr noundef %24, i32 noundef %20, ptr noundef nonnull %6, ptr noundef nonnull %8)
  %26 = load i32, ptr %6, align 4
  %27 = icmp eq i32 %26, %19
  br i1 %27, label %46, label %28
28:
  %29 = load i8, ptr %13, align 8
  %30 = trunc nuw i8 %29 to i1
  br i1 %30, label %31, label %34
31:
  %32 = atomicrmw sub ptr %8, i32 1 seq_cst, align 64
  %33 = load i32, ptr %6, align 4
  br label %34
34:
  %35 = phi i32 [ %33, %31 ], [ %26, %28 ]
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %5, i8 0, i64 24, i1 false)
  %36 = icmp slt i32 %35, 0
  br i1 %36, label %37, label %46
37:
  %38 = sext i32 %20 to i64
  %39 = getelementptr inbounds [128 x %struct.Lane], ptr %14, i64 0, i64 %38
  %40 = load i32, ptr %15, align 8
  %41 = zext i32 %40 to i64
  %42 = shl nuw i64 %41, 32
  store atomic i64 %42, ptr %39 seq_cst, align 64
  %43 = atomicrmw sub ptr %16, i32 1 seq_cst, align 64
  %44 = icmp eq i32 %43, 1
  br i1 %44, label %45, label %46
45:
  call fastcc void @ring_if_heard(ptr noundef nonnull %8)
  br label %46
46:
  %47 = add nsw i32 %20, 1
  %48 = call fastcc i32 @claim_any(ptr noundef nonnull %1, i32 noundef %47, ptr noundef nonnull %7)
  %49 = icmp sgt i32 %48, -1
  %50 = load i32, ptr %6, align 4
  %51 = icmp sgt i32 %50, -1
  %52 = select i1 %49, i1 %51, i1 false
  br i1 %52, label %53, label %63
53:
  %54 = add nuw nsw i32 %50, 2
  %55 = sext i32 %20 to i64
  %56 = getelementptr inbounds [128 x %struct.Lane], ptr %14, i64 0, i64 %55
  %57 = load i32, ptr %15, align 8
  %58 = zext i32 %57 to i64
  %59 = shl nuw i64 %58, 32
  %60 = zext nneg i32 %54 to i64
  %61 = or disjoint i64 %59, %60
  store atomic i64 %61, ptr %56 seq_cst, align 64
  call fastcc void @ring_if_heard(ptr noundef nonnull %8)
  %62 = load i32, ptr %6, align 4
  br label %63
63:
  %64 = phi i32 [ %62, %53 ], [ %50, %46 ]
  %65 = icmp eq i32 %64, %19
  br i1 %65, label %66, label %69
66:
  %67 = load i64, ptr %17, align 8
  call fastcc void @wait_a_little(ptr noundef nonnull %5, ptr noundef nonnull %8, i64 noundef %67)
  %68 = load i32, ptr %6, align 4
  br label %69
69:
  %70 = phi i32 [ %68, %66 ], [ %64, %63 ]
  %71 = icmp slt i32 %70, 0
  %72 = select i1 %49, i1 true, i1 %71
  %73 = load i32, ptr %7, align 4
  %74 = select i1 %72, i32 %48, i32 %70
  %75 = select i1 %72, i32 %73, i32 %20
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %7)
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %6)
  br label %18
76:
  %77 = load i8, ptr %13, align 8
  %78 = trunc nuw i8 %77 to i1
  br i1 %78, label %79, label %81
79:
  %80 = atomicrmw sub ptr %8, i32 1 seq_cst, align 64
  br label %81
81:
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %5, i8 0, i64 24, i1 false)
  %82 = atomicrmw sub ptr %9, i32 1 seq_cst, align 8
  %83 = getelementptr inbounds i8, ptr %5, i64 24
  %84 = load i64, ptr %83, align 8
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %5)
  ret i64 %84
}
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
define internal fastcc void @wait_a_little(ptr nocapture noundef %0, ptr noundef %1, i64 noundef %2) unnamed_addr {
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = load i8, ptr %4, align 8
  %6 = trunc nuw i8 %5 to i1
  br i1 %6, label %7, label %23
7:
  %8 = tail call fastcc i64 @now_ns()
  %9 = getelementptr inbounds i8, ptr %1, i64 4
  %10 = getelementptr inbounds i8, ptr %0, i64 20
  %11 = load i32, ptr %10, align 4
  %12 = tail call i64 @rammer_futex(ptr noundef nonnull %9, i32 noundef 128, i32 noundef %11)
  %13 = tail call fastcc i64 @now_ns()
  %14 = sub i64 %13, %8
  %15 = getelementptr inbounds i8, ptr %0, i64 24
  %16 = load i64, ptr %15, align 8
  %17 = add nsw i64 %14, %16
  store i64 %17, ptr %15, align 8
  %18 = load i8, ptr %4, align 8
  %19 = trunc nuw i8 %18 to i1
  br i1 %19, label %20, label %22
20:
  %21 = atomicrmw sub ptr %1, i32 1 seq_cst, align 64
  br label %22
22:
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %0, i8 0, i64 24, i1 false)
  br label %30
23:
  %24 = tail call fastcc zeroext i1 @poll_on(ptr noundef nonnull %0, i64 noundef %2)
  br i1 %24, label %30, label %25
25:
  %26 = atomicrmw add ptr %1, i32 1 seq_cst, align 64
  store i8 1, ptr %4, align 8
  %27 = getelementptr inbounds i8, ptr %1, i64 4
  %28 = load atomic i32, ptr %27 seq_cst, align 4
  %29 = getelementptr inbounds i8, ptr %0, i64 20
  store i32 %28, ptr %29, align 4
  br label %30
30:
  ret void
}
declare extern_weak i32 @TVMFFIFunctionGetGlobal(ptr noundef, ptr noundef)
declare extern_weak i32 @TVMFFIFunctionCall(ptr noundef, ptr noundef, i32 noundef, ptr noundef)
declare ptr @mmap(ptr noundef, i64 noundef, i32 noundef, i32 noundef, i32 noundef, i64 noundef)
declare i32 @madvise(ptr noundef, i64 noundef, i32 noundef)
define internal fastcc void @pin(ptr nocapture noundef readonly %0) unnamed_addr {
  %2 = alloca %struct.Dl_info, align 8
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %2)
  %3 = getelementptr inbounds i8, ptr %0, i64 8
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
