; What those who walk a lane find in its environment, which is 64 bits for each pointer or number.

define internal ptr @rammer_pointer(ptr %environment, i32 %index) alwaysinline {
  %place = getelementptr ptr, ptr %environment, i32 %index
  %pointer = load ptr, ptr %place
  ret ptr %pointer
}

define internal i64 @rammer_number(ptr %environment, i32 %index) alwaysinline {
  %place = getelementptr i64, ptr %environment, i32 %index
  %number = load i64, ptr %place
  ret i64 %number
}
