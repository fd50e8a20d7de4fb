; Made of workers.c by make_ir.py; do not edit. Source: c4431a1bf077e51e
%struct.TVMFFIByteArray = type { ptr, i64 }
%struct.Pool = type { i32, i64, ptr, ptr }
%struct.cpu_set_t = type { [16 x i64] }
%struct.TVMFFIAny = type { i32, i32, %union.anon }
%union.anon = type { i64 }
%struct.Polling = type { i32, i64 }
%struct.Job = type { i32, i32, i32, ptr, ptr, [32 x i8], i32, [60 x i8], %struct.Bell, [128 x %struct.Lane] }
%struct.Bell = type { i32, i32, i32, i32, [48 x i8] }
%struct.Lane = type { i64, [56 x i8] }
%struct.__sigset_t = type { [16 x i64] }
%struct.Helper = type { i32, ptr, i64, i64, i64, i64, i64, [8 x i8] }
%struct.Waiter = type { %struct.Polling, i32, i32 }
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
define linkonce_odr hidden ptr @rammer_pool(ptr nocapture noundef readonly %0) {
  %2 = alloca %struct.cpu_set_t, align 8
  %3 = alloca ptr, align 8
  %4 = load atomic i64, ptr @rammer_the_pool seq_cst, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %8, label %6
6:
  %7 = inttoptr i64 %4 to ptr
  br label %63
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
  br i1 %15, label %16, label %60
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
  store i32 %34, ptr @make_pool.pool, align 8
  %35 = call fastcc i32 @setting(ptr noundef nonnull @.str, i32 noundef 100)
  %36 = sext i32 %35 to i64
  %37 = mul nsw i64 %36, 1000
  store i64 %37, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 8), align 8
  %38 = getelementptr inbounds i8, ptr %0, i64 8
  %39 = load ptr, ptr %38, align 8
  store ptr %39, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 16), align 8
  store ptr %17, ptr getelementptr inbounds (i8, ptr @make_pool.pool, i64 24), align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3)
  store ptr null, ptr %3, align 8
  %40 = icmp eq ptr @TVMFFIFunctionCreate, null
  br i1 %40, label %58, label %41
41:
  %42 = getelementptr inbounds i8, ptr %0, i64 16
  %43 = load ptr, ptr %42, align 8
  %44 = call i32 @TVMFFIFunctionCreate(ptr noundef nonnull @make_pool.pool, ptr noundef %43, ptr noundef null, ptr noundef nonnull %3)
  %45 = icmp eq i32 %44, 0
  br i1 %45, label %46, label %58
46:
  %47 = load ptr, ptr %3, align 8
  %48 = call i32 @TVMFFIFunctionSetGlobal(ptr noundef nonnull @NAME_BYTES, ptr noundef %47, i32 noundef 0)
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %52, label %50
50:
  %51 = call fastcc ptr @find_pool()
  br label %52
52:
  %53 = phi ptr [ %51, %50 ], [ null, %46 ]
  %54 = icmp eq ptr %53, null
  %55 = select i1 %54, ptr @make_pool.pool, ptr %53
  %56 = load ptr, ptr %3, align 8
  %57 = call i32 @TVMFFIObjectDecRef(ptr noundef %56)
  br label %58
58:
  %59 = phi ptr [ %55, %52 ], [ @make_pool.pool, %41 ], [ @make_pool.pool, %33 ]
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3)
  br label %60
60:
  %61 = phi ptr [ %14, %13 ], [ %59, %58 ]
  %62 = ptrtoint ptr %61 to i64
  store atomic i64 %62, ptr @rammer_the_pool seq_cst, align 8
  store atomic i32 0, ptr @rammer_pool.making seq_cst, align 4
  br label %63
63:
  %64 = phi ptr [ %7, %6 ], [ %61, %60 ]
  ret ptr %64
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
  %6 = tail call fastcc i64 @take_stock(ptr noundef %0)
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
  tail call fastcc void @take_part(ptr noundef nonnull %31, ptr noundef %0, i32 noundef %35, i32 noundef %32)
  br label %36
36:
  %37 = phi i1 [ true, %34 ], [ %26, %28 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %3)
  %38 = add nuw nsw i64 %25, 1
  br label %24
39:
  br i1 %26, label %40, label %53
40:
  %41 = tail call fastcc i64 @take_stock(ptr noundef %0)
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
define internal fastcc i64 @take_stock(ptr nocapture noundef %0) unnamed_addr {
  %2 = tail call fastcc i64 @clock_ns(i32 noundef 3)
  %3 = tail call fastcc i64 @now_ns()
  %4 = getelementptr inbounds i8, ptr %0, i64 16
  %5 = load i64, ptr %4, align 16
  %6 = sub nsw i64 %2, %5
  %7 = getelementptr inbounds i8, ptr %0, i64 24
  %8 = load i64, ptr %7, align 8
  %9 = add i64 %6, %8
  %10 = sub i64 %3, %9
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
  ret i64 %10
}
define linkonce_odr hidden void @rammer_run(ptr nocapture noundef readonly %0, ptr noundef %1, ptr nocapture noundef readonly %2, i32 noundef %3) {
  %5 = alloca i64, align 8
  %6 = alloca %struct.__sigset_t, align 8
  %7 = alloca %struct.__sigset_t, align 8
  %8 = tail call ptr @rammer_pool(ptr noundef %0)
  %9 = add i32 %3, -129
  %10 = icmp ult i32 %9, -127
  br i1 %10, label %30, label %11
11:
  %12 = load atomic i32, ptr %8 seq_cst, align 8
  %13 = icmp slt i32 %12, 2
  br i1 %13, label %30, label %14
14:
  %15 = getelementptr inbounds i8, ptr %8, i64 24
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr inbounds i8, ptr %16, i64 8320
  br label %18
18:
  %19 = phi i64 [ %29, %28 ], [ 0, %14 ]
  %20 = icmp eq i64 %19, 16
  br i1 %20, label %30, label %21
21:
  %22 = getelementptr inbounds [16 x %struct.Job], ptr %17, i64 0, i64 %19
  %23 = load atomic i32, ptr %22 seq_cst, align 64
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %25, label %28
25:
  %26 = atomicrmw xchg ptr %22, i32 1 seq_cst, align 64
  %27 = icmp eq i32 %26, 0
  br i1 %27, label %32, label %28
28:
  %29 = add nuw nsw i64 %19, 1
  br label %18
30:
  %31 = load ptr, ptr %0, align 8
  tail call fastcc void @walk_alone(ptr noundef %31, ptr noundef %1, ptr noundef %2, i32 noundef %3)
  br label %152
32:
  %33 = load ptr, ptr %0, align 8
  %34 = getelementptr inbounds i8, ptr %22, i64 16
  store ptr %33, ptr %34, align 16
  %35 = getelementptr inbounds i8, ptr %22, i64 24
  store ptr %1, ptr %35, align 8
  %36 = getelementptr inbounds i8, ptr %22, i64 8
  %37 = load i32, ptr %36, align 8
  %38 = add i32 %37, 1
  store i32 %38, ptr %36, align 8
  %39 = getelementptr inbounds i8, ptr %22, i64 64
  store atomic i32 %3, ptr %39 seq_cst, align 64
  %40 = getelementptr inbounds i8, ptr %22, i64 140
  store atomic i32 %3, ptr %40 seq_cst, align 4
  %41 = getelementptr inbounds i8, ptr %22, i64 192
  %42 = zext nneg i32 %3 to i64
  %43 = zext i32 %38 to i64
  %44 = shl nuw i64 %43, 32
  br label %45
45:
  %46 = phi i64 [ %151, %146 ], [ 0, %32 ]
  %47 = icmp eq i64 %46, %42
  br i1 %47, label %48, label %140
48:
  %49 = getelementptr inbounds i8, ptr %22, i64 4
  store atomic i32 %3, ptr %49 seq_cst, align 4
  %50 = load ptr, ptr %15, align 8
  %51 = atomicrmw add ptr %50, i32 1 seq_cst, align 64
  %52 = add nsw i32 %3, -1
  %53 = load ptr, ptr %15, align 8
  %54 = load atomic i32, ptr %8 seq_cst, align 8
  %55 = tail call i32 @llvm.smin.i32(i32 %54, i32 128)
  %56 = add nsw i32 %55, -1
  %57 = getelementptr inbounds i8, ptr %53, i64 64
  %58 = load atomic i32, ptr %57 seq_cst, align 64
  %59 = getelementptr inbounds i8, ptr %53, i64 192
  %60 = sext i32 %56 to i64
  %61 = tail call i32 @llvm.smax.i32(i32 %58, i32 0)
  %62 = zext nneg i32 %61 to i64
  br label %63
63:
  %64 = phi i64 [ %98, %96 ], [ 0, %48 ]
  %65 = phi i32 [ %97, %96 ], [ %52, %48 ]
  %66 = icmp eq i64 %64, %62
  br i1 %66, label %71, label %67
67:
  %68 = icmp slt i64 %64, %60
  %69 = icmp sgt i32 %65, 0
  %70 = select i1 %68, i1 %69, i1 false
  br i1 %70, label %75, label %71
71:
  %72 = icmp sgt i32 %65, 0
  %73 = icmp slt i32 %58, %56
  %74 = select i1 %72, i1 %73, i1 false
  br i1 %74, label %99, label %138
75:
  %76 = getelementptr inbounds [127 x %struct.Helper], ptr %59, i64 0, i64 %64
  %77 = load atomic i32, ptr %76 seq_cst, align 64
  %78 = icmp eq i32 %77, 1
  %79 = sext i1 %78 to i32
  %80 = add nsw i32 %65, %79
  %81 = getelementptr inbounds i8, ptr %76, i64 48
  %82 = load atomic i64, ptr %81 seq_cst, align 16
  %83 = icmp eq i32 %77, 2
  br i1 %83, label %84, label %96
84:
  %85 = icmp eq i64 %82, 0
  br i1 %85, label %89, label %86
86:
  %87 = tail call fastcc i64 @now_ns()
  %88 = icmp slt i64 %87, %82
  br i1 %88, label %96, label %89
89:
  %90 = cmpxchg ptr %76, i32 2, i32 0 seq_cst seq_cst, align 64
  %91 = extractvalue { i32, i1 } %90, 1
  br i1 %91, label %92, label %94
92:
  %93 = tail call i64 @rammer_futex(ptr noundef nonnull %76, i32 noundef 129, i32 noundef 1)
  br label %94
94:
  %95 = add nsw i32 %65, -1
  br label %96
96:
  %97 = phi i32 [ %95, %94 ], [ %80, %86 ], [ %80, %75 ]
  %98 = add nuw nsw i64 %64, 1
  br label %63
99:
  %100 = getelementptr inbounds i8, ptr %53, i64 128
  %101 = atomicrmw xchg ptr %100, i32 1 seq_cst, align 64
  %102 = icmp eq i32 %101, 0
  br i1 %102, label %103, label %138
103:
  %104 = load atomic i32, ptr %57 seq_cst, align 64
  %105 = getelementptr inbounds i8, ptr %8, i64 16
  %106 = sext i32 %104 to i64
  br label %107
107:
  %108 = phi i64 [ %134, %133 ], [ %106, %103 ]
  %109 = phi i32 [ %136, %133 ], [ %65, %103 ]
  %110 = icmp sgt i32 %109, 0
  %111 = icmp slt i64 %108, %60
  %112 = select i1 %110, i1 %111, i1 false
  br i1 %112, label %113, label %137
113:
  %114 = load ptr, ptr %15, align 8
  %115 = getelementptr inbounds i8, ptr %114, i64 192
  %116 = getelementptr inbounds [127 x %struct.Helper], ptr %115, i64 0, i64 %108
  %117 = getelementptr inbounds i8, ptr %116, i64 8
  store ptr %8, ptr %117, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6)
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %7)
  %118 = call i32 @sigfillset(ptr noundef nonnull %6)
  %119 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %6, ptr noundef nonnull %7)
  %120 = load ptr, ptr %105, align 8
  %121 = call i32 @pthread_create(ptr noundef nonnull %5, ptr noundef null, ptr noundef %120, ptr noundef nonnull %116)
  %122 = icmp eq i32 %121, 0
  br i1 %122, label %123, label %130
123:
  %124 = load i64, ptr %5, align 8
  %125 = call i32 @pthread_detach(i64 noundef %124)
  %126 = load ptr, ptr %15, align 8
  %127 = getelementptr inbounds i8, ptr %126, i64 64
  %128 = add nsw i64 %108, 1
  %129 = trunc nsw i64 %128 to i32
  store atomic i32 %129, ptr %127 seq_cst, align 64
  br label %133
130:
  %131 = add nsw i64 %108, 1
  %132 = trunc nsw i64 %131 to i32
  store atomic i32 %132, ptr %8 seq_cst, align 8
  br label %133
133:
  %134 = phi i64 [ %128, %123 ], [ %131, %130 ]
  %135 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %7, ptr noundef null)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %7)
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5)
  %136 = add nsw i32 %109, -1
  br label %107
137:
  store atomic i32 0, ptr %100 seq_cst, align 64
  br label %138
138:
  %139 = load i32, ptr %2, align 4
  call fastcc void @take_part(ptr noundef nonnull %22, ptr noundef null, i32 noundef 0, i32 noundef %139)
  store atomic i32 0, ptr %49 seq_cst, align 4
  store atomic i32 0, ptr %22 seq_cst, align 64
  br label %152
140:
  %141 = icmp eq i64 %46, 0
  br i1 %141, label %146, label %142
142:
  %143 = getelementptr inbounds i32, ptr %2, i64 %46
  %144 = load i32, ptr %143, align 4
  %145 = add nsw i32 %144, 2
  br label %146
146:
  %147 = phi i32 [ %145, %142 ], [ 1, %140 ]
  %148 = getelementptr inbounds [128 x %struct.Lane], ptr %41, i64 0, i64 %46
  %149 = zext i32 %147 to i64
  %150 = or disjoint i64 %44, %149
  store atomic i64 %150, ptr %148 seq_cst, align 64
  %151 = add nuw nsw i64 %46, 1
  br label %45
152:
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
  %8 = zext i32 %3 to i64
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
define internal fastcc void @take_part(ptr noundef %0, ptr noundef %1, i32 noundef %2, i32 noundef %3) unnamed_addr {
  %5 = alloca i32, align 4
  %6 = alloca %struct.Waiter, align 8
  %7 = alloca i32, align 4
  store i32 %2, ptr %5, align 4
  call void @llvm.lifetime.start.p0(i64 24, ptr nonnull %6)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %6, i8 0, i64 24, i1 false)
  %8 = getelementptr inbounds i8, ptr %0, i64 4
  %9 = load atomic i32, ptr %8 seq_cst, align 4
  %10 = getelementptr inbounds i8, ptr %0, i64 128
  %11 = getelementptr inbounds i8, ptr %0, i64 136
  %12 = atomicrmw add ptr %11, i32 1 seq_cst, align 8
  %13 = getelementptr inbounds i8, ptr %0, i64 16
  %14 = getelementptr inbounds i8, ptr %0, i64 24
  %15 = getelementptr inbounds i8, ptr %0, i64 192
  %16 = getelementptr inbounds i8, ptr %0, i64 8
  %17 = getelementptr inbounds i8, ptr %6, i64 16
  %18 = getelementptr inbounds i8, ptr %0, i64 64
  %19 = icmp eq ptr %1, null
  %20 = add nsw i32 %9, 1
  %21 = getelementptr inbounds i8, ptr %0, i64 132
  %22 = getelementptr inbounds i8, ptr %6, i64 20
  %23 = getelementptr inbounds i8, ptr %1, i64 24
  %24 = icmp ne ptr %1, null
  br label %25
25:
  %26 = phi i1 [ true, %4 ], [ %99, %98 ]
  %27 = phi i32 [ %3, %4 ], [ %92, %98 ]
  br i1 %26, label %28, label %100
28:
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %7)
  store i32 %27, ptr %7, align 4
  %29 = icmp sgt i32 %27, -1
  br i1 %29, label %30, label %60
30:
  %31 = load ptr, ptr %13, align 16
  %32 = load ptr, ptr %14, align 8
  %33 = load i32, ptr %5, align 4
  %34 = call i32 %31(ptr noundef %32, i32 noundef %33, ptr noundef nonnull %7, ptr noundef nonnull %10)
  %35 = load i32, ptr %7, align 4
  %36 = icmp slt i32 %35, 0
  %37 = add nsw i32 %35, 2
  %38 = select i1 %36, i32 0, i32 %37
  %39 = sext i32 %33 to i64
  %40 = getelementptr inbounds [128 x %struct.Lane], ptr %15, i64 0, i64 %39
  %41 = load i32, ptr %16, align 8
  %42 = zext i32 %41 to i64
  %43 = shl nuw i64 %42, 32
  %44 = zext i32 %38 to i64
  %45 = or disjoint i64 %43, %44
  store atomic i64 %45, ptr %40 seq_cst, align 64
  %46 = icmp eq i32 %35, %27
  br i1 %46, label %60, label %47
47:
  %48 = load i32, ptr %17, align 8
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %53, label %50
50:
  %51 = atomicrmw sub ptr %10, i32 1 seq_cst, align 64
  %52 = load i32, ptr %7, align 4
  br label %53
53:
  %54 = phi i32 [ %35, %47 ], [ %52, %50 ]
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %6, i8 0, i64 24, i1 false)
  %55 = icmp slt i32 %54, 0
  br i1 %55, label %56, label %89
56:
  %57 = atomicrmw sub ptr %18, i32 1 seq_cst, align 64
  %58 = icmp eq i32 %57, 1
  br i1 %58, label %59, label %89
59:
  call fastcc void @ring_if_heard(ptr noundef nonnull %10)
  br label %89
60:
  br i1 %19, label %65, label %61
61:
  %62 = call fastcc i64 @take_stock(ptr noundef nonnull %1)
  %63 = icmp sgt i64 %62, 500000
  br i1 %63, label %64, label %65
64:
  call fastcc void @ring_if_heard(ptr noundef nonnull %10)
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %7)
  br label %100
65:
  %66 = load i32, ptr %17, align 8
  %67 = icmp sgt i32 %66, 1
  br i1 %67, label %68, label %70
68:
  %69 = add nsw i32 %66, -1
  store i32 %69, ptr %17, align 8
  br label %84
70:
  %71 = icmp eq i32 %66, 1
  br i1 %71, label %72, label %79
72:
  %73 = call fastcc i64 @now_ns()
  %74 = load i32, ptr %22, align 4
  %75 = call i64 @rammer_futex(ptr noundef nonnull %21, i32 noundef 128, i32 noundef %74)
  %76 = atomicrmw sub ptr %10, i32 1 seq_cst, align 64
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %6, i8 0, i64 24, i1 false)
  %77 = call fastcc i64 @now_ns()
  %78 = sub nsw i64 %77, %73
  br label %84
79:
  %80 = call fastcc zeroext i1 @poll_on(ptr noundef nonnull %6, i64 noundef 200000)
  br i1 %80, label %84, label %81
81:
  %82 = atomicrmw add ptr %10, i32 1 seq_cst, align 64
  store i32 %20, ptr %17, align 8
  %83 = load atomic i32, ptr %21 seq_cst, align 4
  store i32 %83, ptr %22, align 4
  br label %84
84:
  %85 = phi i64 [ %78, %72 ], [ 0, %81 ], [ 0, %79 ], [ 0, %68 ]
  br i1 %19, label %89, label %86
86:
  %87 = load i64, ptr %23, align 8
  %88 = add nsw i64 %87, %85
  store i64 %88, ptr %23, align 8
  br label %89
89:
  %90 = load i32, ptr %5, align 4
  %91 = add nsw i32 %90, 1
  %92 = call fastcc i32 @claim_any(ptr noundef %0, i32 noundef %91, ptr noundef nonnull %5)
  %93 = icmp sgt i32 %92, -1
  %94 = or i1 %93, %24
  br i1 %94, label %98, label %95
95:
  %96 = load atomic i32, ptr %18 seq_cst, align 64
  %97 = icmp ne i32 %96, 0
  br label %98
98:
  %99 = phi i1 [ %93, %89 ], [ %97, %95 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %7)
  br label %25
100:
  %101 = load i32, ptr %17, align 8
  %102 = icmp eq i32 %101, 0
  br i1 %102, label %105, label %103
103:
  %104 = atomicrmw sub ptr %10, i32 1 seq_cst, align 64
  br label %105
105:
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %6, i8 0, i64 24, i1 false)
  %106 = atomicrmw sub ptr %11, i32 1 seq_cst, align 8
  call void @llvm.lifetime.end.p0(i64 24, ptr nonnull %6)
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
