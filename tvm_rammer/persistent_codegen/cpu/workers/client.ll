; Made of client.c by make_ir.py; do not edit. Source: 3fd26a01e5948c8a
%struct.TVMFFIByteArray = type { ptr, i64 }
%struct.TVMFFIAny = type { i32, i32, %union.anon }
%union.anon = type { i64 }
@rammer_pool_of_process = weak hidden global ptr null, align 8
@rammer_maker = weak hidden global ptr null, align 8
@NAME_BYTES = internal constant %struct.TVMFFIByteArray { ptr @NAME, i64 21 }, align 8
@NAME = internal constant [22 x i8] c"tvm_rammer.workers.v3\00", align 16
define linkonce_odr hidden noundef zeroext i1 @rammer_run(ptr noundef %0, ptr noundef %1, ptr noundef %2, i32 noundef %3) {
  %5 = alloca ptr, align 8
  %6 = alloca %struct.TVMFFIAny, align 8
  %7 = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %7)
  %8 = load atomic i64, ptr @rammer_pool_of_process seq_cst, align 8
  %9 = inttoptr i64 %8 to ptr
  store ptr %9, ptr %7, align 8
  %10 = icmp eq i64 %8, 0
  br i1 %10, label %11, label %43
11:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5)
  store ptr null, ptr %5, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %6, i8 0, i64 16, i1 false)
  %12 = icmp eq ptr @TVMFFIFunctionGetGlobal, null
  br i1 %12, label %29, label %13
13:
  %14 = call i32 @TVMFFIFunctionGetGlobal(ptr noundef nonnull @NAME_BYTES, ptr noundef nonnull %5)
  %15 = icmp eq i32 %14, 0
  %16 = load ptr, ptr %5, align 8
  %17 = icmp ne ptr %16, null
  %18 = select i1 %15, i1 %17, i1 false
  br i1 %18, label %19, label %29
19:
  %20 = call i32 @TVMFFIFunctionCall(ptr noundef nonnull %16, ptr noundef null, i32 noundef 0, ptr noundef nonnull %6)
  %21 = icmp eq i32 %20, 0
  br i1 %21, label %24, label %22
22:
  %23 = getelementptr inbounds i8, ptr %6, i64 8
  store ptr null, ptr %23, align 8
  br label %24
24:
  %25 = load ptr, ptr %5, align 8
  %26 = call i32 @TVMFFIObjectDecRef(ptr noundef %25)
  %27 = getelementptr inbounds i8, ptr %6, i64 8
  %28 = load ptr, ptr %27, align 8
  br label %29
29:
  %30 = phi ptr [ %28, %24 ], [ null, %13 ], [ null, %11 ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5)
  store ptr %30, ptr %7, align 8
  %31 = icmp eq ptr %30, null
  %32 = load ptr, ptr @rammer_maker, align 8
  %33 = icmp ne ptr %32, null
  %34 = select i1 %31, i1 %33, i1 false
  br i1 %34, label %35, label %38
35:
  %36 = call i32 %32(ptr noundef nonnull %7)
  %37 = load ptr, ptr %7, align 8
  br label %38
38:
  %39 = phi ptr [ %37, %35 ], [ %30, %29 ]
  %40 = icmp eq ptr %39, null
  br i1 %40, label %49, label %41
41:
  %42 = ptrtoint ptr %39 to i64
  store atomic i64 %42, ptr @rammer_pool_of_process seq_cst, align 8
  br label %43
43:
  %44 = phi ptr [ %39, %41 ], [ %9, %4 ]
  %45 = getelementptr inbounds i8, ptr %44, i64 16
  %46 = load ptr, ptr %45, align 8
  %47 = load ptr, ptr %46, align 8
  %48 = call i32 %47(ptr noundef %44, ptr noundef %0, ptr noundef %1, ptr noundef %2, i32 noundef %3)
  br label %49
49:
  %50 = phi i1 [ true, %43 ], [ false, %38 ]
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7)
  ret i1 %50
}
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture)
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)
declare extern_weak i32 @TVMFFIFunctionGetGlobal(ptr noundef, ptr noundef)
declare extern_weak i32 @TVMFFIFunctionCall(ptr noundef, ptr noundef, i32 noundef, ptr noundef)
declare extern_weak i32 @TVMFFIObjectDecRef(ptr noundef)
