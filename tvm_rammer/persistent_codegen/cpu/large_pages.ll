; Ask Linux for large pages for memory that a program reads all over: an image of many channels has each of them on other pages,
; and weights are read once a call. With pages of 4 KB their addresses are not in the processor's translation buffers, and
; to look each up in the page tables takes longer than to read from a cache, in a virtual machine most of all.
;
; It is advice: where it is not taken nothing changes. What was asked for before is found by its address, so that a call asks for
; nothing that it asked for already; where there are more addresses than %asked has places, as with many workspaces, the others stay as they are.
; Only the whole large pages within the memory are touched, so a neighbour's are not. MADV_COLLAPSE, of Linux 6.1 and later, moves what
; lies on small pages already, as constants do.
declare i32 @madvise(ptr, i64, i32)

define linkonce_odr hidden void @rammer_ask_large_pages(ptr %asked, i64 %places, ptr %memory, i64 %bytes) noinline {
entry:
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %other ]
  %full = icmp eq i64 %slot, %places
  br i1 %full, label %done, label %compare
compare:
  %place = getelementptr ptr, ptr %asked, i64 %slot
  %known = load atomic ptr, ptr %place monotonic, align 8
  %same = icmp eq ptr %known, %memory
  br i1 %same, label %done, label %differs
differs:
  %empty = icmp eq ptr %known, null
  br i1 %empty, label %first, label %other
other:
  %next = add i64 %slot, 1
  br label %look
first:
  store atomic ptr %memory, ptr %place monotonic, align 8
  %address = ptrtoint ptr %memory to i64
  %up = add i64 %address, 2097151
  %begin = and i64 %up, -2097152
  %last = add i64 %address, %bytes
  %end = and i64 %last, -2097152
  %any = icmp ugt i64 %end, %begin
  br i1 %any, label %ask, label %done
ask:
  %count = sub i64 %end, %begin
  %pages = inttoptr i64 %begin to ptr
  %wanted = call i32 @madvise(ptr %pages, i64 %count, i32 14)
  %collapsed = call i32 @madvise(ptr %pages, i64 %count, i32 25)
  br label %done
done:
  ret void
}
